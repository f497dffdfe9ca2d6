/** Tokens that are bound to a certificate (RFC 8705 §3), over real TLS: docs/bound-tokens.md. */
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect as connectHttp2, type ClientHttp2Session } from 'node:http2';
import { join } from 'node:path';
import { connect, type ConnectionOptions, type TLSSocket } from 'node:tls';
import t from 'tap';
import { certificateDigest } from '../../support/certificate-digest.js';
import { certificates, type Certificate, type Certificates } from '../../support/certificates.js';
import { openssl } from '../../support/openssl.js';
import { request } from '../../support/raw-client.js';
import type { Scope } from '../../support/scope.js';
import { startProxy, type Harness } from '../harness.js';

const versions = ['TLSv1.2', 'TLSv1.3'] as const;

const boundTo = (certificate: Certificate): object => ({ cnf: { 'x5t#S256': certificateDigest(certificate.cert) } });

type Mode = 'require' | 'optional' | 'request';

async function start(t: Scope, files: Certificates, mode: Mode, more: object = {}): Promise<Harness> {
  const tls = { cert_file: '/tls/tls.crt', key_file: '/tls/tls.key', client_auth: mode };
  const config = mode === 'request' ? tls : { ...tls, client_ca_file: '/tls/ca.crt' };
  return startProxy(t, {
    config: { listen: { tls: config, http2: true }, ...more },
    tls: {
      cert: files.server.cert,
      key: files.server.key,
      clientCa: mode === 'request' ? null : files.ca.cert,
      clientAuth: mode,
    },
  });
}

const shown = (files: Certificates, client: Certificate | null): ConnectionOptions => ({
  ca: files.ca.cert,
  servername: 'localhost',
  ...(client === null ? {} : { cert: client.cert, key: client.key }),
});

t.test('a token passes with the certificate that it is bound to, and with no other', async (t) => {
  const files = certificates(t);
  const rows = [
    { mode: 'require', bound: files.client, client: files.client, reason: null },
    { mode: 'require', bound: files.stranger, client: files.client, reason: 'certificate_mismatch' },
    { mode: 'optional', bound: files.client, client: files.client, reason: null },
    { mode: 'optional', bound: files.client, client: null, reason: 'certificate_missing' },
    // RFC 8705 §2.2: whoever signed it, the issuer saw that very certificate.
    { mode: 'request', bound: files.stranger, client: files.stranger, reason: null },
    { mode: 'request', bound: files.client, client: files.client, reason: null },
    { mode: 'request', bound: files.client, client: files.stranger, reason: 'certificate_mismatch' },
    { mode: 'request', bound: files.client, client: null, reason: 'certificate_missing' },
    { mode: 'request', bound: null, client: null, reason: null },
    { mode: 'request', bound: null, client: files.stranger, reason: null },
  ] as const;
  for (const mode of ['require', 'optional', 'request'] as const) {
    const proxy = await start(t, files, mode);
    for (const { bound, client, reason } of rows.filter((row) => row.mode === mode)) {
      const authorization = proxy.authorization(bound === null ? {} : { ...boundTo(bound) });
      for (const version of versions) {
        const name = `${mode}, ${version}: ${reason ?? 'passes'}`;
        const tls = { ...shown(files, client), minVersion: version, maxVersion: version };
        const response = await request(proxy.port, { path: '/orders', headers: authorization }, { tls });
        t.equal(response.status, reason === null ? 200 : 401, name);
        const record = await proxy.recordOf(response.field('x-request-id') ?? '');
        t.equal(record.reason, reason, name);
        // Whose token was stolen says nothing of the thief.
        if (reason !== null) t.equal(record.subject, null, name);
      }
      const session = connectHttp2(`https://localhost:${proxy.port}`, { ...shown(files, client) });
      t.equal(await askHttp2(session, authorization), reason === null ? 200 : 401, `${mode}, HTTP/2`);
      session.destroy();
    }
  }
});

t.test('a certificate without a name is one: its tokens pass, and nobody is kept from being served', async (t) => {
  const files = certificates(t);
  const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-keyout', 'nameless.key'];
  openssl(files.dir, 'req', '-x509', ...newKey, '-out', 'nameless.crt', '-days', '2', '-subj', '/');
  const [certFile, keyFile] = [join(files.dir, 'nameless.crt'), join(files.dir, 'nameless.key')];
  const nameless = { certFile, keyFile, cert: readFileSync(certFile, 'utf8'), key: readFileSync(keyFile, 'utf8') };
  t.notOk(new X509Certificate(nameless.cert).subject);
  const proxy = await start(t, files, 'request');
  const authorization = proxy.authorization({ ...boundTo(nameless) });
  const response = await request(
    proxy.port,
    { path: '/orders', headers: authorization },
    { tls: shown(files, nameless) },
  );
  t.equal(response.status, 200);
  t.equal((await proxy.recordOf(response.field('x-request-id') ?? '')).client_certificate ?? null, null);
  const session = connectHttp2(`https://localhost:${proxy.port}`, { ...shown(files, nameless) });
  t.equal(await askHttp2(session, authorization), 200);
  session.destroy();
});

async function askHttp2(session: ClientHttp2Session, headers: { readonly Authorization: string }): Promise<number> {
  const stream = session.request({ ':path': '/orders', authorization: headers.Authorization });
  const [answer] = (await once(stream, 'response')) as [{ readonly ':status': number }];
  stream.resume();
  return answer[':status'];
}

t.test('every refusal of a bound token is the same 401 as that of any other', async (t) => {
  const files = certificates(t);
  const proxy = await start(t, files, 'request', {
    issuers: { core: { ...coreIssuer, binding: 'require' } },
  });
  const rows = [
    { claims: {}, reason: 'binding_missing' },
    { claims: { cnf: {} }, reason: 'binding_unknown' },
    { claims: { cnf: { 'x5t#S256': certificateDigest(files.client.cert), wth: 'x' } }, reason: 'binding_unknown' },
    { claims: boundTo(files.stranger), reason: 'certificate_mismatch' },
    { claims: { cnf: { jkt: certificateDigest(files.client.cert) } }, reason: 'proof_missing' },
    {
      claims: { cnf: { jkt: certificateDigest(files.client.cert), ...boundTo(files.client) } },
      reason: 'binding_unknown',
    },
    { claims: { exp: 1 }, reason: 'token_expired' },
    { claims: { ...boundTo(files.stranger), exp: 1 }, reason: 'token_expired' },
  ];
  const answers = new Set<string>();
  for (const { claims, reason } of rows) {
    const tls = shown(files, files.client);
    // Twice: the second time the token is remembered, if it ever was.
    for (let time = 0; time < 2; time += 1) {
      const input = { path: '/orders', headers: proxy.authorization({ ...claims }) };
      const response = await request(proxy.port, input, { tls });
      t.equal(response.status, 401, reason);
      t.equal((await proxy.recordOf(response.field('x-request-id') ?? '')).reason, reason);
      const fields = response.fields.filter(([name]) => !['date', 'x-request-id'].includes(name.toLowerCase()));
      answers.add(JSON.stringify([fields, response.body.toString('latin1')]));
    }
  }
  t.equal(answers.size, 1);
});

const coreIssuer = {
  issuer: 'https://api.example.com',
  audience: 'orders',
  source: 'microservice',
  token_type: 'service',
};

t.test('a remembered token is held to the certificate of each connection', async (t) => {
  const files = certificates(t);
  const proxy = await start(t, files, 'request');
  const headers = proxy.authorization({ ...boundTo(files.client) });
  const ask = async (client: Certificate | null): Promise<number> =>
    (await request(proxy.port, { path: '/orders', headers }, { tls: shown(files, client) })).status;
  t.equal(await ask(files.client), 200);
  t.equal(proxy.activeConfig().verified?.size(), 1);
  t.equal(await ask(files.stranger), 401);
  t.equal(await ask(null), 401);
  t.equal(await ask(files.client), 200);
});

t.test('with binding: none a bound token counts for whoever has it', async (t) => {
  const files = certificates(t);
  const proxy = await start(t, files, 'request', { issuers: { core: { ...coreIssuer, binding: 'none' } } });
  for (const claims of [boundTo(files.client), { cnf: { kid: 'x' } }]) {
    const input = { path: '/orders', headers: proxy.authorization({ ...claims }) };
    t.equal((await request(proxy.port, input, { tls: shown(files, null) })).status, 200);
  }
});

/** Opens a connection that sends one request; with what a later one needs to resume its session. */
async function resumable(
  port: number,
  options: ConnectionOptions,
  authorization: string,
): Promise<{ readonly status: number; readonly session: Buffer | undefined; readonly isReused: boolean }> {
  const socket: TLSSocket = connect({ port, host: '127.0.0.1', ...options });
  let session: Buffer | undefined;
  socket.on('session', (ticket: Buffer) => (session = ticket));
  await once(socket, 'secureConnect');
  const isReused = socket.isSessionReused();
  socket.write(`GET /orders HTTP/1.1\r\nHost: a\r\nAuthorization: ${authorization}\r\nConnection: close\r\n\r\n`);
  let came = '';
  for await (const chunk of socket) came += String(chunk);
  const status = Number(/^HTTP\/1\.1 (\d+)/.exec(came)?.[1]);
  return { status, session, isReused };
}

t.test('a resumed session has the certificate with which it was begun, whatever its client has now', async (t) => {
  const files = certificates(t);
  const proxy = await start(t, files, 'request');
  const { Authorization: own } = proxy.authorization({ ...boundTo(files.client) });
  for (const version of versions) {
    const options = (client: Certificate | null): ConnectionOptions => ({
      ...shown(files, client),
      minVersion: version,
      maxVersion: version,
    });
    const first = await resumable(proxy.port, options(files.client), own);
    t.equal(first.status, 200, version);
    const again = await resumable(proxy.port, { ...options(files.client), session: first.session }, own);
    t.same([again.status, again.isReused], [200, true], `${version}: resumed by its client`);

    // A thief has the token and sessions of its own: with another certificate, and with none.
    for (const thief of [files.stranger, null]) {
      const begun = await resumable(proxy.port, options(thief), own);
      t.equal(begun.status, 401, version);
      const resumed = await resumable(proxy.port, { ...options(files.client), session: begun.session }, own);
      t.same([resumed.status, resumed.isReused], [401, true], `${version}: a session of the thief stays the thief’s`);
    }
  }
});

t.test('who was turned away for want of a certificate resumes nothing', async (t) => {
  const files = certificates(t);
  const proxy = await start(t, files, 'require');
  const { Authorization: plain } = proxy.authorization();
  for (const version of versions) {
    const options = { ...shown(files, null), minVersion: version, maxVersion: version };
    let session: Buffer | undefined;
    const socket = connect({ port: proxy.port, host: '127.0.0.1', ...options });
    socket.on('session', (ticket: Buffer) => (session = ticket));
    socket.on('error', () => undefined);
    await new Promise((resolve) => socket.once('close', resolve));
    if (session === undefined) continue;
    const outcome = await resumable(proxy.port, { ...options, session }, plain).catch(() => null);
    t.equal(Number.isNaN(outcome?.status ?? NaN), true, `${version}: ${String(outcome?.status)}`);
  }
  t.equal(proxy.records.length, 0);
});
