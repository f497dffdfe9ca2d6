/**
 * An authorization server as a process of its own: the certified `oidc-provider`, with keys of four algorithms. A
 * resource `urn:orders:ALG` gets access tokens that are JWTs (RFC 9068) signed with that algorithm for the audience
 * `orders`; `urn:orders:opaque` gets opaque ones. Told `rotateTo`, it makes new keys, signs with them from then on, and
 * publishes them at that path. A client may exchange a token that it issued (RFC 8693: an opaque one; RFC 7523: a JWT)
 * for one of its own, whose `act_for` is whoever the first one belonged to. Its keys are told to whoever started it, so
 * that another process can go on with them.
 */
import { generateKeyPairSync, randomUUID } from 'node:crypto';
import { createServer } from 'node:https';
import { createLocalJWKSet, jwtVerify } from 'jose';
import Provider, { errors } from 'oidc-provider';

const kinds = {
  RS256: () => generateKeyPairSync('rsa', { modulusLength: 2048 }),
  PS256: () => generateKeyPairSync('rsa', { modulusLength: 2048 }),
  ES256: () => generateKeyPairSync('ec', { namedCurve: 'P-256' }),
  EdDSA: () => generateKeyPairSync('ed25519'),
};

/** Clients besides `checkout`, as the provider has them. */
let introspecting = null;
let handle = (_req, res) => res.writeHead(503).end();
const server = createServer({ requestCert: true, rejectUnauthorized: false }, (req, res) => handle(req, res));

process.on('message', ({ listenWith, rotateTo, clients, port, keys }) => {
  if (listenWith !== undefined) {
    introspecting = clients;
    server.setSecureContext(listenWith);
    server.listen(port, '127.0.0.1', () => {
      process.send({ origin: originOf(server), keys: start('/jwks', keys ?? makeKeys()) });
    });
    return;
  }
  process.send({ keys: start(rotateTo, makeKeys()) });
});

process.on('disconnect', () => process.exit());

function originOf(listening) {
  return `https://127.0.0.1:${listening.address().port}`;
}

function start(jwksPath, keys) {
  const provider = new Provider(originOf(server), {
    jwks: { keys },
    routes: { jwks: jwksPath },
    clientAuthMethods: ['client_secret_basic', 'client_secret_post', 'private_key_jwt', 'tls_client_auth', 'none'],
    clients: [
      {
        client_id: 'checkout',
        client_secret: 'a secret of the client',
        grant_types: ['client_credentials'],
        redirect_uris: [],
        response_types: [],
      },
      ...(introspecting ?? []).map((client) => ({
        grant_types: ['client_credentials'],
        redirect_uris: [],
        response_types: [],
        ...client,
      })),
    ],
    scopes: ['orders:read', 'orders:write'],
    extraTokenClaims: (ctx) => (ctx.actFor === undefined ? undefined : { act_for: ctx.actFor }),
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      dPoP: { enabled: true },
      introspection: { enabled: true, allowedPolicy: () => true },
      jwtIntrospection: { enabled: true },
      mTLS: {
        enabled: true,
        certificateBoundAccessTokens: true,
        tlsClientAuth: true,
        getCertificate: (ctx) => ctx.req.socket.getPeerX509Certificate?.(),
        certificateAuthorized: (ctx) => ctx.req.socket.authorized,
        certificateSubjectMatches: (ctx, property, expected) =>
          property === 'tls_client_auth_subject_dn' &&
          ctx.req.socket.getPeerX509Certificate().subject.replaceAll('\n', ',') === expected,
      },
      revocation: { enabled: true },
      resourceIndicators: { enabled: true, getResourceServerInfo: resourceServer },
    },
  });
  provider.registerGrantType(exchange, issueFor(provider, 'subject_token', clientOfOpaque(provider)), [
    'subject_token',
    'subject_token_type',
    'requested_token_type',
    'audience',
    'resource',
    'scope',
  ]);
  provider.registerGrantType(jwtBearer, issueFor(provider, 'assertion', clientOfJwt(keys)), [
    'assertion',
    'audience',
    'resource',
    'scope',
  ]);
  handle = provider.callback();
  return keys;
}

const exchange = 'urn:ietf:params:oauth:grant-type:token-exchange';
const jwtBearer = 'urn:ietf:params:oauth:grant-type:jwt-bearer';

function clientOfOpaque(provider) {
  return async (token) => (await provider.ClientCredentials.find(token)).clientId;
}

function clientOfJwt(keys) {
  const published = keys.map(({ kty, n, e, crv, x, y, kid, alg, use }) => ({ kty, n, e, crv, x, y, kid, alg, use }));
  return async (token) => {
    const { payload } = await jwtVerify(token, createLocalJWKSet({ keys: published }), { issuer: originOf(server) });
    return payload.client_id;
  };
}

/** A grant that is made with another token, which stands in this parameter. */
function issueFor(provider, parameter, clientOf) {
  return async (ctx) => {
    const { client, params } = ctx.oidc;
    try {
      ctx.actFor = await clientOf(params[parameter]);
    } catch {
      throw new errors.InvalidGrant('the token is none of ours');
    }
    const token = new provider.ClientCredentials({ client, scope: params.scope });
    const resource = params.resource ?? 'urn:orders:RS256';
    token.resourceServer = new provider.ResourceServer(resource, resourceServer(ctx, resource));
    const value = await token.save();
    ctx.body = {
      access_token: value,
      issued_token_type: 'urn:ietf:params:oauth:token-type:access_token',
      token_type: token.tokenType,
      expires_in: token.expiration,
    };
  };
}

function makeKeys() {
  return Object.keys(kinds).map(makeKey);
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
