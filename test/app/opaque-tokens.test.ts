/** Opaque tokens of a real authorization server, which is asked about them in every way that it takes. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { stringify } from 'yaml';
import { oauthClient } from '../support/oauth-client.js';
import { startOidcProvider } from '../support/oidc-provider.js';
import { request } from '../support/raw-client.js';
import { startUpstreamServer } from '../support/upstream-server.js';
import { startServe } from '../support/serve-process.js';
import { tempDir } from '../support/temp-dir.js';
import { until } from '../support/until.js';

const { secret, secretFile, keyFile, certificate, registered } = oauthClient(t);

/** What the server knows of a client, and what the proxy is told of it. */
const ways: readonly { readonly known: object; readonly config: object }[] = [
  {
    known: { ...registered.basic, client_id: 'basic' },
    config: { client_id: 'basic', client_secret_file: secretFile },
  },
  {
    known: { ...registered.post, client_id: 'post' },
    config: { client_id: 'post', client_auth: 'client_secret_post', client_secret_file: secretFile },
  },
  {
    known: { ...registered.key, client_id: 'key' },
    config: { client_id: 'key', client_auth: 'private_key_jwt', key_file: keyFile, key_id: 'k' },
  },
  {
    known: { ...registered.certificate, client_id: 'certificate' },
    config: {
      client_id: 'certificate',
      client_auth: 'tls_client_auth',
      cert_file: certificate.certFile,
      key_file: certificate.keyFile,
    },
  },
  {
    known: {
      ...registered.basic,
      client_id: 'signed',
      introspection_signed_response_alg: 'PS256',
    },
    config: { client_id: 'signed', client_secret_file: secretFile, answer: 'jwt' },
  },
];

const idp = await startOidcProvider(
  t,
  ways.map(({ known }) => ({ ...known })),
);
const receiver = await startUpstreamServer(t);

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
