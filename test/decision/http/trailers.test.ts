import t from 'tap';
import { createHeaderRules } from '../../../src/decision/http/header-rules.js';
import { knownTrailers, requestTrailers, responseTrailers } from '../../../src/decision/http/trailers.js';

const rules = createHeaderRules({
  identityNames: ['X-Caller', 'X-Auth-Subject'],
  underscoreFields: 'drop',
  http10: 'refuse',
});

const http = { rules, isAskedFor: true, isGrpcOverHttp2: false };
const grpc = { rules, isAskedFor: true, isGrpcOverHttp2: true };

t.test('of responses the known trailers pass, in order, where the caller asked', (t) => {
  const all = [...knownTrailers].flatMap((name) => [name, 'x']);
  t.same(responseTrailers(all, http), all);
  t.same(responseTrailers(['Grpc-Status', '0', 'X-Other', 'a'], http), ['Grpc-Status', '0']);
  t.equal(responseTrailers(all, { ...http, isAskedFor: false }), null, 'nobody asked');
  t.equal(responseTrailers([], http), null);
  t.equal(responseTrailers(['X-Other', 'a'], http), null);
  t.end();
});

t.test('of requests only digests pass', (t) => {
  t.same(requestTrailers(['Content-Digest', 'sha-256=:AAAA:', 'grpc-status', '0', 'ETag', '"a"'], http), [
    'Content-Digest',
    'sha-256=:AAAA:',
  ]);
  t.equal(requestTrailers(['Content-Digest', 'a'], { ...http, isAskedFor: false }), null);
  t.end();
});

t.test('in gRPC over HTTP/2 metadata of the application passes too, asked for or not', (t) => {
  const fields = ['grpc-status', '5', 'x-my-detail', 'a', 'detail-bin', 'AAAA', 'x-my-detail', 'b'];
  t.same(responseTrailers(fields, grpc), fields);
  t.same(responseTrailers(fields, { ...grpc, isAskedFor: false }), fields);
  t.same(requestTrailers(['x-my-detail', 'a'], grpc), ['x-my-detail', 'a']);
  t.same(
    responseTrailers(['grpc-timeout', '1S', 'grpc-encoding', 'gzip'], grpc),
    null,
    'what gRPC says itself does not',
  );
  t.end();
});

t.test('what frames, routes, authenticates, conditions or says who asks never passes, in no spelling', (t) => {
  const names = [
    'Content-Length',
    'Transfer-Encoding',
    'Trailer',
    'TE',
    'Connection',
    'Keep-Alive',
    'Proxy-Connection',
    'Upgrade',
    'Host',
    'Max-Forwards',
    'Forwarded',
    'X-Forwarded-For',
    'X-Forwarded-Proto',
    'Via',
    'X-Real-IP',
    'Authorization',
    'Proxy-Authorization',
    'Cookie',
    'Set-Cookie',
    'WWW-Authenticate',
    'Authentication-Info',
    'If-Match',
    'If-None-Match',
    'If-Modified-Since',
    'If-Unmodified-Since',
    'If-Range',
    'Range',
    'Expect',
    'Cache-Control',
    'Pragma',
    'Age',
    'Expires',
    'Vary',
    'Location',
    'Retry-After',
    'Date',
    'Content-Type',
    'Content-Encoding',
    'Content-Range',
    'Content-Location',
    'X-Caller',
    'x_caller',
    'X-Auth-Subject',
    'X_Auth.Subject',
    'X-Auth-Assertion',
    'Remote-User',
    'X-Remote-Group',
    'Idempotency-Key',
    'Idempotency-Record',
    'Idempotency-Outcome',
    'Idempotent-Replayed',
    'Proxy-Status',
    'X-Request-Id',
    'traceparent',
    'tracestate',
    'X-HTTP-Method-Override',
    'Content_Type',
    'Set.Cookie',
    'Access-Control-Allow-Origin',
    'Sec-Fetch-Site',
    'st-access-token',
    'front-token',
    'bad name',
    '',
    ':status',
  ];
  for (const context of [http, grpc]) {
    for (const name of names) {
      for (const spelling of [name, name.toLowerCase(), name.toUpperCase()]) {
        t.equal(requestTrailers([spelling, 'a'], context), null, `request: ${spelling}`);
        t.equal(responseTrailers([spelling, 'a'], context), null, `response: ${spelling}`);
      }
    }
  }
  t.end();
});

t.test('a value that is none is left out, and a section has an end', (t) => {
  t.equal(responseTrailers(['grpc-status', 'a\r\nb'], http), null);
  const many = Array.from({ length: 100 }, (_, i) => [`x-${String(i)}`, 'a']).flat();
  t.equal(responseTrailers(many, grpc)?.length, 128);
  const large = ['x-a', 'a'.repeat(10_000), 'x-b', 'b'.repeat(10_000)];
  t.same(responseTrailers(large, grpc), large.slice(0, 2));
  t.end();
});

t.test('headers that the operator strips do not pass as trailers', (t) => {
  const strict = createHeaderRules({
    identityNames: [],
    underscoreFields: 'drop',
    http10: 'refuse',
    stripFields: ['X-Tenant'],
  });
  t.equal(requestTrailers(['x-tenant', 'a'], { ...grpc, rules: strict }), null);
  t.end();
});
