/** Certificates and proofs of callers where the application ends TLS itself. */
import type { ServerOptions } from 'node:https';
import { createSecureContext, Server as TlsServer } from 'node:tls';
import { fastify, type FastifyInstance } from 'fastify';
import t from 'tap';
import { sallyport } from '../../src/fastify/plugin.js';
import { certificateDigest } from '../support/certificate-digest.js';
import { certificates } from '../support/certificates.js';
import { makeProof, proofKey } from '../support/dpop.js';
import { startJwksServer } from '../support/jwks-server.js';
import { rsaKey } from '../support/keys.js';
import type { ConfigTree } from '../support/proxy-process.js';
import { request, type RawResponse } from '../support/raw-client.js';
import type { Scope } from '../support/scope.js';
import { mintToken } from '../support/tokens.js';
import { until } from '../support/until.js';
import { applicationConfig } from './open-app.js';

const { ca, client, server, stranger } = certificates(t);
const pair = { cert: server.cert, key: server.key };
const verifying: ServerOptions = { ...pair, requestCert: true, rejectUnauthorized: false, ca: ca.cert };
const reads = { subjects: ['checkout'], permissions: ['orders:read'] };

async function open(
  t: Scope,
  https: ServerOptions,
  config: ConfigTree = {},
  policy: object = { client_certificates: ['CN=client'] },
): Promise<{ app: FastifyInstance; ask: (options: AskOptions) => Promise<RawResponse>; port: () => number }> {
  const key = rsaKey();
  const jwks = await startJwksServer(t, { keys: [key] });
  const app = fastify({ https, forceCloseConnections: true }) as unknown as FastifyInstance;
  t.teardown(() => app.close());
  app.register(sallyport, { config: applicationConfig(jwks.url, { routes: undefined, ...config }) });
  app.after(() => {
    app.get('/orders', { config: { sallyport: { ...reads, ...policy } } }, ({ headers }) => ({
      shown: headers['x-auth-client-certificate'] ?? null,
    }));
  });
  const port = (): number => {
    const address = app.server.address();
    return typeof address === 'object' ? (address?.port ?? 0) : 0;
  };
  return {
    app,
    port,
    ask: async ({ certificate = null, claims = {}, headers }) =>
      request(
        port(),
        {
          path: '/orders',
          headers: { Authorization: `Bearer ${mintToken({ key, claims: { ...claims } })}`, ...headers },
        },
        { tls: { ca: ca.cert, servername: 'localhost', ...certificate } },
      ),
  };
}

interface AskOptions {
  readonly certificate?: { readonly cert: string; readonly key: string } | null;
  readonly claims?: object;
  readonly headers?: Readonly<Record<string, string>>;
}

t.test('client_certificates counts where the application says who vouches for certificates', async (t) => {
  const { app, ask } = await open(t, verifying);
  await app.listen({ host: '127.0.0.1', port: 0 });
  await until('keys', () => app.sallyport.readiness().status === 'ready');
  t.equal((await ask({ certificate: client })).status, 200);
  t.equal((await ask({})).status, 403, 'without one');
  t.equal((await ask({ certificate: stranger })).status, 403, 'of another authority');
});

t.test('a token that is bound to a certificate is taken with that one alone', async (t) => {
  const { app, ask } = await open(t, { ...pair, requestCert: true, rejectUnauthorized: false }, {}, {});
  await app.listen({ host: '127.0.0.1', port: 0 });
  await until('keys', () => app.sallyport.readiness().status === 'ready');
  const digest = certificateDigest(client.cert);
  const claims = { cnf: { 'x5t#S256': digest } };
  t.equal((await ask({ certificate: client, claims })).status, 200);
  t.equal((await ask({ certificate: stranger, claims })).status, 401);
  t.equal((await ask({ claims })).status, 401);
});

const unverified: readonly (readonly [name: string, https: ServerOptions])[] = [
  ['it names no authority, so that every public one would count', { ...pair, requestCert: true }],
  ['it asks for no certificate', { ...pair, ca: ca.cert }],
  [
    'a context by SNI may have others',
    { ...verifying, SNICallback: (_name, done) => done(null, createSecureContext(pair)) },
  ],
];

t.test('client_certificates ends the start where the application does not say so', async (t) => {
  for (const [name, https] of unverified) {
    await t.test(name, async (t) => {
      const { app } = await open(t, https);
      await t.rejects(
        Promise.resolve(app.ready()),
        /nobody verifies those of callers; allowed: https: \{ requestCert: true, ca \} of the application/,
      );
    });
  }
});

t.test('a context that is added later takes its names with it', async (t) => {
  const { app, ask } = await open(t, verifying);
  await app.listen({ host: '127.0.0.1', port: 0 });
  await until('keys', () => app.sallyport.readiness().status === 'ready');
  t.equal((await ask({ certificate: client })).status, 200);
  if (app.server instanceof TlsServer) app.server.addContext('other', pair);
  t.equal((await ask({ certificate: client })).status, 403);
});

t.test('a proof of a key counts once, and for the origin that the config names', async (t) => {
  const origin = 'https://orders.example.com';
  const { app, ask } = await open(t, pair, { listen: { dpop: { origins: [origin] } }, store: { memory: {} } }, {});
  await app.listen({ host: '127.0.0.1', port: 0 });
  await until('keys', () => app.sallyport.readiness().status === 'ready');
  const own = proofKey();
  const token = mintToken({ key: rsaKey(), claims: { cnf: { jkt: own.thumbprint } } });
  const proved = (uri: string): AskOptions => ({
    headers: { Authorization: `DPoP ${token}`, DPoP: makeProof(own, { uri, token }) },
  });
  const good = proved(`${origin}/orders`);
  t.equal((await ask(good)).status, 200);
  const again = await ask(good);
  t.equal(again.status, 401);
  t.match(again.field('www-authenticate'), /DPoP/);
  t.equal((await ask(proved('https://other.example.com/orders'))).status, 401);
  t.equal((await ask({ headers: { Authorization: `Bearer ${token}` } })).status, 401, 'a stolen one alone');
});
