import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { connect as connectHttp2, constants, type IncomingHttpHeaders } from 'node:http2';
import { connect as connectTcp } from 'node:net';
import { connect, type ConnectionOptions } from 'node:tls';
import t from 'tap';
import { certificates, type Certificate, type Certificates } from '../../support/certificates.js';
import { connectRaw, request, requestBytes, sendRaw } from '../../support/raw-client.js';
import { mintToken } from '../../support/tokens.js';
import { until } from '../../support/until.js';
import type { TlsMaterial } from '../../../src/proxy/inbound/listener.js';
import { startProxy } from '../harness.js';

function material(
  served: Certificate,
  ca: Certificate | null,
  clientAuth: 'require' | 'optional' = 'require',
): TlsMaterial {
  return { cert: served.cert, key: served.key, clientCa: ca === null ? null : ca.cert, clientAuth };
}

/** What the config has to say for TLS; the files are read by nobody here. */
const listen = { tls: { cert_file: '/tls/tls.crt', key_file: '/tls/tls.key' } };

const shown = (files: Certificates, client: Certificate | null): ConnectionOptions => ({
  ca: files.ca.cert,
  servername: 'localhost',
  ...(client === null ? {} : { cert: client.cert, key: client.key }),
});

/** The status of a request, or `null` where the connection was refused. */
async function ask(
  port: number,
  tls: ConnectionOptions,
  headers: Readonly<Record<string, string>>,
): Promise<number | null> {
  try {
    return (await request(port, { path: '/orders', headers }, { tls })).status;
  } catch {
    return null;
  }
}

t.test('callers over TLS are served, and the upstream learns of it', async (t) => {
  const files = certificates(t);
  const proxy = await startProxy(t, { config: { listen }, tls: material(files.server, null) });
  const bytes = `POST /orders HTTP/1.1\r\nHost: a\r\n${proxy.bearer()}Content-Length: 5\r\n\r\nhello`;
  const responses = await sendRaw(proxy.port, bytes, { tls: shown(files, null) });
  t.equal(responses[0]?.status, 200);
  t.same(proxy.receiver.requests[0]?.field('x-forwarded-proto'), ['https']);
});

t.test('client certificates: required or optional, but one that does not verify is refused', async (t) => {
  const files = certificates(t);
  const cases = [
    { mode: 'require', client: files.client, status: 200 },
    { mode: 'require', client: null, status: null },
    { mode: 'require', client: files.stranger, status: null },
    { mode: 'optional', client: files.client, status: 200 },
    { mode: 'optional', client: null, status: 200 },
    { mode: 'optional', client: files.stranger, status: null },
  ] as const;
  for (const mode of ['require', 'optional'] as const) {
    const proxy = await startProxy(t, { config: { listen }, tls: material(files.server, files.ca, mode) });
    for (const { client, status } of cases.filter((entry) => entry.mode === mode)) {
      for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
        const tls = { ...shown(files, client), minVersion: version, maxVersion: version };
        const name = client === null ? 'none' : (client.certFile.split('/').at(-1) ?? '');
        t.equal(await ask(proxy.port, tls, proxy.authorization()), status, `${mode}, ${version}, ${name}`);
      }
    }
    await until('no connection is left', () => proxy.server.counts().connections === 0);
  }
});

t.test('a connection that needs a certificate ends once that is over', async (t) => {
  const files = certificates(t);
  const endsAtMs = Date.parse(new X509Certificate(files.client.cert).validTo);
  for (const mode of ['require', 'optional'] as const) {
    let nowMs = endsAtMs;
    const proxy = await startProxy(t, {
      config: { listen: { tls: { ...listen.tls, client_ca_file: '/tls/ca.crt', client_auth: mode } } },
      tls: material(files.server, files.ca, mode),
      clock: { now: () => nowMs, monotonic: () => performance.now() },
    });
    const token = `Bearer ${mintToken({ key: proxy.key, nowMs: endsAtMs - 1_000 })}`;
    const connection = await connectRaw(proxy.port, { tls: shown(files, files.client) });
    t.teardown(connection.end);
    const ask = async (id: string): Promise<[number | undefined, string | null | undefined]> => {
      const headers = { Authorization: token, 'X-Request-Id': id };
      connection.write(requestBytes(proxy.port, { path: '/orders', headers }));
      const response = await connection.readResponse();
      return [response?.status, response?.field('connection')];
    };
    t.same(await ask('counts'), [200, 'keep-alive'], `${mode}: its last moment`);
    nowMs += 1;
    const isNeeded = mode === 'require';
    t.same(await ask('is-over'), isNeeded ? [403, 'close'] : [200, 'keep-alive'], mode);
    t.match(await proxy.recordOf('is-over'), {
      reason: isNeeded ? 'client_certificate_refused' : null,
      client_certificate: isNeeded ? 'CN=client' : undefined,
    });
  }
});

t.test('over HTTP/2 its caller is asked to open no more streams on such a connection', async (t) => {
  const files = certificates(t);
  const endsAtMs = Date.parse(new X509Certificate(files.client.cert).validTo);
  const proxy = await startProxy(t, {
    config: { listen: { http2: true, tls: { ...listen.tls, client_ca_file: '/tls/ca.crt' } } },
    tls: material(files.server, files.ca),
    clock: { now: () => endsAtMs + 1, monotonic: () => performance.now() },
  });
  const session = connectHttp2(`https://localhost:${String(proxy.port)}`, shown(files, files.client));
  t.teardown(() => session.destroy());
  const hasGone = once(session, 'goaway');
  const [{ ':status': status }] = (await once(session.request({ ':path': '/orders' }), 'response')) as [
    IncomingHttpHeaders,
  ];
  t.equal(status, 403);
  t.equal((await hasGone)[0], constants.NGHTTP2_NO_ERROR);
});

t.test('other certificates count for connections to come, and a pair that does not fit is refused whole', async (t) => {
  const files = certificates(t);
  const proxy = await startProxy(t, { config: { listen }, tls: material(files.server, files.ca) });
  const fingerprint = async (): Promise<string> =>
    new Promise((resolve, reject) => {
      const socket = connect({ port: proxy.port, host: '127.0.0.1', ...shown(files, files.client) }, () => {
        resolve(socket.getPeerCertificate().fingerprint256);
        socket.destroy();
      });
      socket.on('error', reject);
    });
  const before = await fingerprint();
  t.equal(await ask(proxy.port, shown(files, files.client), proxy.authorization()), 200);
  t.throws(() => {
    proxy.server.setTls({ ...material(files.renewed, files.ca), key: files.server.key });
  });
  t.throws(() => {
    proxy.server.setTls({ ...material(files.renewed, files.ca), cert: 'nonsense' });
  });
  t.equal(await fingerprint(), before, 'the old ones stay');
  proxy.server.setTls(material(files.renewed, files.ca));
  t.not(await fingerprint(), before);
  t.equal(await ask(proxy.port, shown(files, files.client), proxy.authorization()), 200);
  proxy.server.setTls(material(files.renewed, files.otherCa));
  t.equal(
    await ask(proxy.port, shown(files, files.client), proxy.authorization()),
    null,
    'nor does the old CA of clients count any more',
  );
  t.equal(await ask(proxy.port, shown(files, files.stranger), proxy.authorization()), 200);
});

t.test('TLS below 1.2 is refused', async (t) => {
  const files = certificates(t);
  const proxy = await startProxy(t, { config: { listen }, tls: material(files.server, null) });
  const old = {
    ...shown(files, null),
    minVersion: 'TLSv1',
    maxVersion: 'TLSv1.1',
    ciphers: 'ALL:@SECLEVEL=0',
  } as const;
  t.equal(await ask(proxy.port, old, proxy.authorization()), null);
  t.equal(
    await ask(proxy.port, { ...shown(files, null), ALPNProtocols: ['h2'] }, proxy.authorization()),
    null,
    'nor is there HTTP/2',
  );
  t.equal(
    await ask(proxy.port, { ...shown(files, null), ALPNProtocols: ['h2', 'http/1.1'] }, proxy.authorization()),
    200,
  );
});

t.test('a handshake has to be done in time, and plain HTTP on this port is no request', async (t) => {
  const files = certificates(t);
  const proxy = await startProxy(t, {
    config: { listen: { ...listen, header_timeout: '200ms' } },
    tls: material(files.server, null),
  });
  for (const bytes of ['', '\x16\x03\x01', 'GET /orders HTTP/1.1\r\nHost: a\r\n\r\n']) {
    const socket = connectTcp(proxy.port, '127.0.0.1');
    t.teardown(() => socket.destroy());
    let came = '';
    socket.on('error', () => undefined);
    socket.on('data', (chunk) => (came += chunk.toString('latin1')));
    socket.write(bytes);
    await until(`${JSON.stringify(bytes)}: closed`, () => socket.closed);
    t.notMatch(came, 'HTTP/1.1');
  }
  t.same(proxy.records, []);
});
