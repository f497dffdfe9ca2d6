import t from 'tap';
import { responseFailure, connectFailure } from '../../../src/proxy/upstream/errors.js';

function failed(code: string | undefined): Error {
  return Object.assign(new Error('secret'), code === undefined ? {} : { code });
}

t.test('before anything was written the upstream was not reached, and Proxy-Status says why', (t) => {
  const cases = [
    ['ECONNREFUSED', 'connection_refused'],
    ['ENOENT', 'connection_refused'],
    ['EACCES', 'connection_refused'],
    ['ENOTFOUND', 'dns_error'],
    ['EAI_AGAIN', 'dns_error'],
    ['ETIMEDOUT', 'connection_timeout'],
    ['EHOSTUNREACH', 'destination_ip_unroutable'],
    ['ENETUNREACH', 'destination_ip_unroutable'],
    ['ECONNRESET', 'connection_terminated'],
    ['DEPTH_ZERO_SELF_SIGNED_CERT', 'tls_certificate_error'],
    ['SELF_SIGNED_CERT_IN_CHAIN', 'tls_certificate_error'],
    ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'tls_certificate_error'],
    ['UNABLE_TO_GET_ISSUER_CERT_LOCALLY', 'tls_certificate_error'],
    ['CERT_HAS_EXPIRED', 'tls_certificate_error'],
    ['CERT_NOT_YET_VALID', 'tls_certificate_error'],
    ['ERR_TLS_CERT_ALTNAME_INVALID', 'tls_certificate_error'],
    ['EPROTO', 'tls_protocol_error'],
    ['ERR_SSL_WRONG_VERSION_NUMBER', 'tls_protocol_error'],
    ['ERR_TLS_INVALID_PROTOCOL_VERSION', 'tls_protocol_error'],
    [undefined, 'connection_refused'],
  ] as const;
  for (const [code, error] of cases) {
    t.same(connectFailure(failed(code)), { reason: 'upstream_unreachable', error }, String(code));
  }
  t.same(connectFailure('not an error'), { reason: 'upstream_unreachable', error: 'connection_refused' });
  t.end();
});

t.test('after that the upstream may have acted', (t) => {
  for (const code of ['ECONNRESET', 'EPIPE', 'SALLYPORT_BROKEN_ANSWER', undefined]) {
    t.same(responseFailure(failed(code)), { reason: 'upstream_failed' }, String(code));
  }
  t.end();
});

t.test('what would not be sent is a mistake of ours', (t) => {
  for (const code of ['SALLYPORT_MALFORMED_REQUEST']) {
    t.same(connectFailure(failed(code)), { reason: 'internal' });
    t.same(responseFailure(failed(code)), { reason: 'internal' });
  }
  t.end();
});
