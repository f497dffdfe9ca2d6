/** A program whose tokens are bound to a key or a certificate of its own, before a proxy that asks for proofs. */
import { generateKeyPairSync } from 'node:crypto';
import t from 'tap';
import {
  createProofKey,
  createTokenSource,
  type ProofKey,
  type TokenSourceOptions,
} from '../../src/client/token/source.js';
import { startCoreEmulator } from '../../src/core-emulator/server.js';
import { startInProcessProxy } from '../app/in-process-proxy.js';
import { certificateDigest } from '../support/certificate-digest.js';
import { certificates } from '../support/certificates.js';
import { request } from '../support/raw-client.js';
import type { ConfigTree } from '../support/proxy-process.js';

const apiKey = 'k3y-of-twenty-and-more-characters';
const origin = 'https://orders.example';

const core = await startCoreEmulator({ host: '127.0.0.1', port: 0, rotateEveryMs: 3_600_000, apiKeys: [apiKey] });
t.teardown(async () => core.close());

async function tokenOf(boundTo: NonNullable<TokenSourceOptions['boundTo']>): Promise<string> {
  const tokens = createTokenSource({
    core: { url: core.url, apiKey },
    issuer: 'https://api.example.com',
    claims: {
      aud: 'orders',
      sub: 'checkout',
      source: 'microservice',
      token_type: 'service',
      permissions: ['orders:read'],
    },
    boundTo,
  });
  t.teardown(async () => tokens.close());
  return tokens.getToken();
}

function confirmationIn(token: string): unknown {
  return (JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()) as { readonly cnf: unknown }).cnf;
}

const pemOf = (kind: 'P-256' | 'ed25519' | 'rsa' | 'P-384'): string => {
  const { privateKey } =
    kind === 'ed25519'
      ? generateKeyPairSync('ed25519')
      : kind === 'rsa'
        ? generateKeyPairSync('rsa', { modulusLength: 2048 })
        : generateKeyPairSync('ec', { namedCurve: kind });
  return privateKey.export({ format: 'pem', type: 'pkcs8' }).toString();
};

t.test('a proxy takes its proofs, each once, for the request that they were made for', async (t) => {
  const config: ConfigTree = {
    listen: { dpop: { origins: [origin] } },
    store: { memory: {} },
    issuers: { core: { jwks_url: `${core.url}/.well-known/jwks.json`, binding: 'require' } },
  };
  const proxy = await startInProcessProxy(t, { config });
  const ask = async (headers: Readonly<Record<string, string>>): Promise<number> =>
    (await request(proxy.port, { path: '/orders?a=b', headers })).status;
  const keys: readonly ProofKey[] = [
    createProofKey(),
    ...(['P-256', 'ed25519', 'rsa'] as const).map((kind) => createProofKey(pemOf(kind))),
  ];
  for (const key of keys) {
    const token = await tokenOf(key);
    t.same(confirmationIn(token), { jkt: key.thumbprint });
    const asked = { method: 'GET', url: `${origin}/orders?a=b#c`, token };
    const headers = key.headers(asked);
    t.equal(await ask(headers), 200);
    t.equal(await ask(headers), 401, 'once');
    t.equal(await ask(key.headers({ ...asked, nonce: 'x' })), 200, 'a nonce that nobody asked for');
    t.equal(await ask(key.headers({ ...asked, method: 'POST' })), 401);
    t.equal(await ask(key.headers({ ...asked, url: new URL('https://other.example/orders') })), 401);
    t.equal(await ask(createProofKey().headers(asked)), 401, 'of another key');
    t.equal(await ask({ Authorization: `Bearer ${token}` }), 401);
  }
});

t.test('a token is bound to a certificate', async (t) => {
  const { client } = certificates(t);
  const digest = certificateDigest(client.cert);
  t.same(confirmationIn(await tokenOf({ certificate: client.cert })), { 'x5t#S256': digest });
  await t.rejects(async () => tokenOf({ certificate: client.key }), {
    name: 'TypeError',
    message: 'createTokenSource: boundTo.certificate is no certificate in PEM',
  });
});

t.test('keys that receivers take no proofs of', (t) => {
  const { publicKey } = generateKeyPairSync('ed25519');
  for (const pem of ['', 'x', pemOf('P-384'), publicKey.export({ format: 'pem', type: 'spki' }).toString()]) {
    t.throws(() => createProofKey(pem), {
      name: 'TypeError',
      message: 'createProofKey: the key is no private key of P-256, Ed25519 or RSA with 2,048 to 4,096 bits in PEM',
    });
  }
  t.end();
});
