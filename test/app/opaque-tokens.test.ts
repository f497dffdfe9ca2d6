/** Opaque tokens of a real authorization server, which is asked about them in every way that it takes. */
import { createPublicKey, generateKeyPairSync } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { stringify } from 'yaml';
import { certificates } from '../support/certificates.js';
import { startOidcProvider } from '../support/oidc-provider.js';
import { request } from '../support/raw-client.js';
import { startReceiver } from '../support/receiver.js';
import { startServe } from '../support/serve-process.js';
import { tempDir } from '../support/temp-dir.js';
import { until } from '../support/until.js';

const { client } = certificates(t);
const dir = tempDir(t);
const secretFile = join(dir, 'secret');
const keyFile = join(dir, 'key.pem');
const secret = 'a secret: of + sallyport %';
const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
writeFileSync(secretFile, `${secret}\n`, { mode: 0o600 });
writeFileSync(keyFile, privateKey.export({ format: 'pem', type: 'pkcs8' }), { mode: 0o600 });
const jwk = { ...createPublicKey(privateKey).export({ format: 'jwk' }), kid: 'k', use: 'sig', alg: 'ES256' };

const bySecret = { client_secret: secret };

/** What the server knows of a client, and what the proxy is told of it. */
const ways: readonly { readonly registered: object; readonly config: object }[] = [
  {
    registered: { ...bySecret, client_id: 'basic', token_endpoint_auth_method: 'client_secret_basic' },
    config: { client_id: 'basic', client_secret_file: secretFile },
  },
  {
    registered: { ...bySecret, client_id: 'post', token_endpoint_auth_method: 'client_secret_post' },
    config: { client_id: 'post', client_auth: 'client_secret_post', client_secret_file: secretFile },
  },
  {
    registered: { client_id: 'key', token_endpoint_auth_method: 'private_key_jwt', jwks: { keys: [jwk] } },
    config: { client_id: 'key', client_auth: 'private_key_jwt', key_file: keyFile, key_id: 'k' },
  },
  {
    registered: {
      client_id: 'certificate',
      token_endpoint_auth_method: 'tls_client_auth',
      tls_client_auth_subject_dn: 'CN=client',
    },
    config: {
      client_id: 'certificate',
      client_auth: 'tls_client_auth',
      cert_file: client.certFile,
      key_file: client.keyFile,
    },
  },
  {
    registered: {
      ...bySecret,
      client_id: 'signed',
      token_endpoint_auth_method: 'client_secret_basic',
      introspection_signed_response_alg: 'PS256',
    },
    config: { client_id: 'signed', client_secret_file: secretFile, answer: 'jwt' },
  },
];

const idp = await startOidcProvider(
  t,
  ways.map(({ registered }) => ({ ...registered })),
);
const receiver = await startReceiver(t);

interface Deployed {
  readonly statusOf: (token: string) => Promise<number>;
  readonly output: () => string;
  readonly configFile: string;
}

async function deploy(introspection: object): Promise<Deployed> {
  const configFile = join(tempDir(t), 'sallyport.yaml');
  const config = {
    listen: { host: '127.0.0.1', port: 0 },
    admin: { host: '127.0.0.1', port: 0 },
    upstream: { url: receiver.url },
    issuers: {
      idp: {
        profile: 'oauth',
        issuer: idp.issuer,
        audience: 'orders',
        ca_file: idp.caFile,
        algorithms: ['RS256', 'PS256', 'ES256', 'EdDSA'],
        claims: { subject: 'client_id' },
        introspection: { max_age: '200ms', max_negative_age: '0s', ...introspection },
      },
    },
    routes: [{ name: 'list', methods: ['GET'], path: '/orders', subjects: ['checkout'], permissions: ['orders:read'] }],
  };
  writeFileSync(configFile, stringify(config));
  const serve = startServe(t, configFile);
  const port = await serve.port('proxy');
  const adminPort = await serve.port('admin');
  await until('ready', async () => (await request(adminPort, { path: '/readyz' })).status === 200);
  return {
    statusOf: async (token) =>
      (await request(port, { path: '/orders', headers: { Authorization: `Bearer ${token}` } })).status,
    output: serve.output,
    configFile,
  };
}

t.test('it passes by each way to show who asks, and is refused once it is revoked', async (t) => {
  for (const { config } of ways) {
    const name = JSON.stringify(config);
    const { statusOf, output } = await deploy(config);
    const token = await idp.token('opaque');
    t.notMatch(token, /\./);
    t.equal(await statusOf(token), 200, name);
    t.equal(await statusOf(`${token}x`), 401, name);
    t.equal(await statusOf(await idp.token('opaque', 'orders:write')), 403, name);
    t.equal(await statusOf(await idp.token('ES256')), 200, `${name}: JWTs of the same issuer by its keys`);
    await idp.revoke(token);
    await until('the revocation counts', async () => (await statusOf(token)) === 401);
    t.notOk(output().includes(token), name);
    t.notOk(output().includes(secret), name);
  }
});

t.test('a client that the server does not know is 503, and the log says so', async (t) => {
  const { statusOf, output } = await deploy({ client_id: 'nobody', client_secret_file: secretFile });
  t.equal(await statusOf(await idp.token('opaque')), 503);
  const line = await until('the line', () =>
    output()
      .split('\n')
      .find((text) => text.includes('does not let this proxy')),
  );
  t.match(JSON.parse(line), {
    level: 'error',
    issuer: 'idp',
    error: /^the issuer refuses this client \(status 40[01]\)$/,
  });
});
