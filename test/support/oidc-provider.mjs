/**
 * An authorization server as a process of its own: the certified `oidc-provider`, with keys of four algorithms. A
 * resource `urn:orders:ALG` gets access tokens that are JWTs (RFC 9068) signed with that algorithm for the audience
 * `orders`; `urn:orders:opaque` gets opaque ones. Told `rotateTo`, it makes new keys, signs with them from then on, and
 * publishes them at that path.
 */
import { generateKeyPairSync, randomUUID } from 'node:crypto';
import { createServer } from 'node:https';
import Provider from 'oidc-provider';

const kinds = {
  RS256: () => generateKeyPairSync('rsa', { modulusLength: 2048 }),
  PS256: () => generateKeyPairSync('rsa', { modulusLength: 2048 }),
  ES256: () => generateKeyPairSync('ec', { namedCurve: 'P-256' }),
  EdDSA: () => generateKeyPairSync('ed25519'),
};

let handle = (_req, res) => res.writeHead(503).end();
const server = createServer((req, res) => handle(req, res));

process.on('message', ({ listenWith, rotateTo }) => {
  if (listenWith !== undefined) {
    server.setSecureContext(listenWith);
    server.listen(0, '127.0.0.1', () => {
      start('/jwks');
      process.send({ origin: originOf(server) });
    });
    return;
  }
  start(rotateTo);
  process.send({ rotated: true });
});

process.on('disconnect', () => process.exit());

function originOf(listening) {
  return `https://127.0.0.1:${listening.address().port}`;
}

function start(jwksPath) {
  const provider = new Provider(originOf(server), {
    jwks: { keys: Object.keys(kinds).map(makeKey) },
    routes: { jwks: jwksPath },
    clients: [
      {
        client_id: 'checkout',
        client_secret: 'a secret of the client',
        grant_types: ['client_credentials'],
        redirect_uris: [],
        response_types: [],
      },
    ],
    scopes: ['orders:read', 'orders:write'],
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      introspection: { enabled: true },
      revocation: { enabled: true },
      resourceIndicators: { enabled: true, getResourceServerInfo: resourceServer },
    },
  });
  handle = provider.callback();
}

function makeKey(alg) {
  return { ...kinds[alg]().privateKey.export({ format: 'jwk' }), kid: `${alg}-${randomUUID()}`, alg, use: 'sig' };
}

function resourceServer(_ctx, resource) {
  const alg = resource.split(':').at(-1);
  const about = { scope: 'orders:read orders:write', audience: 'orders', accessTokenTTL: 300 };
  if (alg === 'opaque') return { ...about, accessTokenFormat: 'opaque' };
  return { ...about, accessTokenFormat: 'jwt', jwt: { sign: { alg } } };
}
