/** Tokens that are bound to a key or to a certificate: real oidc-provider, and a Sallyport as the target. */
import { randomBytes, X509Certificate } from 'node:crypto';
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:https';
import { join } from 'node:path';
import { TLSSocket } from 'node:tls';
import t from 'tap';
import { certificates } from '../../support/certificates.js';
import { freePort, listen } from '../../support/listening.js';
import { startOidcProvider } from '../../support/oidc-provider.js';
import { openssl } from '../../support/openssl.js';
import type { ConfigTree } from '../../support/proxy-process.js';
import { startReceiver } from '../../support/receiver.js';
import { tempDir } from '../../support/temp-dir.js';
import { until } from '../../support/until.js';
import { startInProcessProxy, type InProcessProxy } from '../in-process-proxy.js';
import { ok, startCalling, startTarget } from './calling.js';

const { ca, client, server } = certificates(t);
const dir = tempDir(t);
const secretFile = join(dir, 'secret');
const nonceKeyFile = join(dir, 'nonces');
writeFileSync(secretFile, 'a secret', { mode: 0o600 });
writeFileSync(nonceKeyFile, `${randomBytes(32).toString('base64')}\n`, { mode: 0o600 });
const withSecret = { client_secret: 'a secret', token_endpoint_auth_method: 'client_secret_basic' };
const idp = await startOidcProvider(t, [
  { ...withSecret, client_id: 'key', dpop_bound_access_tokens: true },
  {
    client_id: 'certificate',
    token_endpoint_auth_method: 'tls_client_auth',
    tls_client_auth_subject_dn: 'CN=client',
    tls_client_certificate_bound_access_tokens: true,
  },
]);
const receiver = await startReceiver(t);

/** A Sallyport that takes bound tokens alone. */
async function startAnswering(t: Parameters<typeof startInProcessProxy>[0], dpop: ConfigTree = {}): Promise<string> {
  const port = await freePort();
  const origin = `https://127.0.0.1:${String(port)}`;
  await startInProcessProxy(t, {
    receiver,
    config: {
      listen: {
        port,
        tls: { cert_file: server.certFile, key_file: server.keyFile, client_auth: 'request' },
        dpop: { origins: [origin], clock_skew: '1s', ...dpop },
      },
      store: { memory: {} },
      issuers: {
        idp: {
          profile: 'oauth',
          issuer: idp.issuer,
          audience: 'orders',
          ca_file: idp.caFile,
          claims: { subject: 'client_id' },
          binding: 'require',
        },
      },
      routes: [
        {
          name: 'orders',
          methods: ['GET', 'POST'],
          path: '/**',
          subjects: ['key', 'certificate'],
          permissions: ['orders:read'],
          idempotency: 'none',
        },
      ],
    },
  });
  return origin;
}

function oauth(id: string, auth: object, more: object = {}): ConfigTree {
  const asked = { scope: 'orders:read', resource: 'urn:orders:RS256' };
  return { oauth: { issuer: idp.issuer, ca_file: idp.caFile, client_id: id, auth, ...asked }, ...more };
}

const trusting = { ca_file: ca.certFile, server_name: 'localhost' };

async function fetchesOf(proxy: InProcessProxy, token: string): Promise<number> {
  return proxy.metric(`sallyport_egress_token_fetches_total{token="${token}"}`);
}

t.test('a token that is bound to a key goes with a proof for each attempt', async (t) => {
  const origin = await startAnswering(t);
  const tokens = { own: oauth('key', { secret_file: secretFile }, { dpop: true }) };
  const { call, proxy } = await startCalling(t, origin, trusting, { tokens });
  for (const [method, path] of [
    ['GET', '/orders/v1'],
    ['GET', '/orders/v1?a=b&c'],
    ['POST', '/orders/caf%C3%A9'],
    ['POST', '/orders/~a'],
  ] as const) {
    const answer = await call(path, { method, headers: { DPoP: 'of.the.caller' } });
    t.equal(answer.status, 200, `${method} ${path}`);
  }
  t.equal(await fetchesOf(proxy, 'own'), 1);
  t.notMatch(JSON.stringify(receiver.requests), /of\.the\.caller/, 'the caller’s own proof goes nowhere');
});

t.test('a nonce that the target asks for is taken up once, and remembered', async (t) => {
  const origin = await startAnswering(t, { nonce_key_file: nonceKeyFile });
  const tokens = { own: oauth('key', { secret_file: secretFile }, { dpop: true }) };
  const { call, proxy } = await startCalling(t, origin, trusting, { tokens });
  const attempts: string[] = [];
  for (let i = 0; i < 3; i += 1) {
    const answer = await call('/orders/v1', { body: 'x'.repeat(1_000) });
    t.equal(answer.status, 200);
    attempts.push(answer.field('x-sallyport-attempts') ?? '');
  }
  t.same(attempts, ['2', '1', '1']);
  t.equal(await fetchesOf(proxy, 'own'), 1, 'the token is the same');
});

t.test('a target that asks for another nonce whatever it gets is not asked for ever', async (t) => {
  let count = 0;
  const target = await startTarget(t, (_seen, _number, res) => {
    count += 1;
    res.writeHead(401, { 'DPoP-Nonce': `nonce-${String(count)}`, 'WWW-Authenticate': 'DPoP error="use_dpop_nonce"' });
    res.end();
  });
  const tokens = { own: oauth('key', { secret_file: secretFile }, { dpop: true }) };
  const { call, proxy } = await startCalling(t, target.url, {}, { tokens });
  t.equal((await call('/orders/v1')).status, 401);
  t.equal(count, 3, 'once with the nonce, and once with another token');
  t.equal(await fetchesOf(proxy, 'own'), 2);
  const nonces = target.seen.map(({ headers }) => {
    const [, claims = ''] = String(headers['dpop']).split('.');
    return (JSON.parse(Buffer.from(claims, 'base64url').toString()) as { readonly nonce?: string }).nonce;
  });
  t.same(nonces, [undefined, 'nonce-1', 'nonce-2']);
  t.equal(new Set(target.seen.map(({ headers }) => headers['dpop'])).size, 3);
});

t.test('a certificate for a target, and a token that is bound to it; both follow their files', async (t) => {
  const origin = await startAnswering(t);
  const pair = { certFile: join(dir, 'shown.crt'), keyFile: join(dir, 'shown.key') };
  const put = (cert: string, key: string): void => {
    for (const [path, text] of [
      [pair.keyFile, key],
      [pair.certFile, cert],
    ] as const) {
      writeFileSync(`${path}.new`, text, { mode: 0o600 });
      renameSync(`${path}.new`, path);
    }
  };
  put(client.cert, client.key);
  const tokens = {
    own: oauth('certificate', { certificate_file: pair.certFile, key_file: pair.keyFile }),
  };
  const shown = { ...trusting, cert_file: pair.certFile, key_file: pair.keyFile };
  const { call, proxy } = await startCalling(t, origin, shown, { tokens });
  t.equal((await call('/orders/v1')).status, 200);
  t.match(
    proxy.app.status().certificates.map(({ certificate }) => certificate),
    ['target:orders'],
    'its end is told as that of the others',
  );
  const others = otherClient();
  put(others.cert, client.key);
  await until('a pair that does not fit is told', () =>
    proxy.logs().some(({ msg }) => msg === 'the certificate for a target was not reloaded; the old one stays in use'),
  );
  t.equal((await call('/orders/v1')).status, 200, 'the old one stays');
  put(others.cert, others.key);
  await until('it was taken up', () =>
    proxy.logs().some(({ msg }) => msg === 'the certificate for a target was reloaded'),
  );
  await until('files are looked at again', async () => (await call('/orders/v1')).status === 200);
  const before = await fetchesOf(proxy, 'own');
  for (let i = 0; i < 5; i += 1) t.equal((await call('/orders/v1')).status, 200);
  t.equal(await fetchesOf(proxy, 'own'), before);
});

t.test('what a target is shown is the pair that its files hold, from the next request on', async (t) => {
  const shown: string[] = [];
  const target = createServer({ cert: server.cert, key: server.key, ca: ca.cert, requestCert: true }, (req, res) => {
    if (req.socket instanceof TLSSocket) shown.push(req.socket.getPeerCertificate().serialNumber);
    req.resume().on('end', () => res.end('done'));
  });
  const { port } = await listen(t, target);
  const folder = tempDir(t);
  const pair = { cert_file: join(folder, 'shown.crt'), key_file: join(folder, 'shown.key') };
  const put = (cert: string, key: string): void => {
    writeFileSync(pair.cert_file, cert);
    writeFileSync(pair.key_file, key, { mode: 0o600 });
  };
  put(client.cert, client.key);
  const { call, proxy } = await startCalling(t, `https://127.0.0.1:${String(port)}`, { ...trusting, ...pair });
  for (let i = 0; i < 2; i += 1) t.equal((await call('/orders/v1')).status, 200);
  const others = otherClient();
  put(others.cert, others.key);
  await until('it was taken up', () =>
    proxy.logs().some(({ msg }) => msg === 'the certificate for a target was reloaded'),
  );
  t.equal((await call('/orders/v1')).status, 200);
  const serialOf = (pem: string): string => new X509Certificate(pem).serialNumber;
  t.same(shown, [client.cert, client.cert, others.cert].map(serialOf));
});

t.test('without its certificate or its key a token of theirs is worth nothing', async (t) => {
  const origin = await startAnswering(t);
  const tokens = { own: oauth('certificate', { certificate_file: client.certFile, key_file: client.keyFile }) };
  const { call } = await startCalling(t, origin, trusting, { tokens });
  t.equal((await call('/orders/v1')).status, 401);
});

t.test('a pair that cannot be shown refuses the config, by the name of its file', async (t) => {
  const target = await startTarget(t, ok);
  const shown = { ...trusting, cert_file: client.certFile, key_file: server.keyFile };
  await t.rejects(startCalling(t, target.url.replace('http:', 'https:'), shown), /is not the key of the certificate/);
});

/** Another certificate of the same name and authority. */
function otherClient(): { readonly cert: string; readonly key: string } {
  const folder = tempDir(t);
  const [cert, key, csr] = ['o.crt', 'o.key', 'o.csr'];
  const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
  openssl(folder, 'req', ...newKey, '-keyout', key, '-out', csr, '-subj', '/CN=client');
  writeFileSync(join(folder, 'ext'), 'extendedKeyUsage=clientAuth\n');
  const signer = ['-CA', ca.certFile, '-CAkey', ca.keyFile, '-CAcreateserial'];
  openssl(folder, 'x509', '-req', '-in', csr, ...signer, '-out', cert, '-days', '2', '-extfile', 'ext');
  return { cert: readFileSync(join(folder, cert), 'utf8'), key: readFileSync(join(folder, key), 'utf8') };
}
