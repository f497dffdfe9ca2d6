import { createHash, generateKeyPairSync, randomUUID, timingSafeEqual, type KeyObject } from 'node:crypto';
import { createServer, type IncomingMessage } from 'node:http';
import { CompactSign } from 'jose';
import { json, listen, readBody, send, type Message, type RunningServer } from './http/messages.js';

/** Whose tokens it stands in for; a Core has an emulator of its own. */
export type DevIssuerProfile = 'oauth' | 'kubernetes' | 'spiffe';

/** Of `POST /token`. Not secret: whoever reaches the issuer may ask it for tokens. */
export const demoClient = { id: 'checkout', secret: 'demo' } as const;

interface DevIssuer extends RunningServer {
  /**
   * Signs a token for a subject, in the form that the profile has for it: a name, `NAMESPACE/NAME`, or a SPIFFE ID.
   * Only tokens of `oauth` have permissions.
   */
  readonly mint: (claims: TokenRequest) => Promise<string>;
}

interface TokenRequest {
  readonly subject: string;
  readonly permissions: readonly string[];
  /** Seconds. */
  readonly validityS: number;
  /** What it is bound to (RFC 7800 §3.1); left out where that is nothing. */
  readonly cnf?: object;
}

interface Signer {
  readonly keyId: string;
  readonly privateKey: KeyObject;
  /** Members of the public JWK. */
  readonly published: object;
}

interface DevIssuerOptions {
  readonly profile: DevIssuerProfile;
  readonly host: string;
  /** 0 asks the system for a free one. */
  readonly port: number;
  /** What its tokens say in `aud`. */
  readonly audience: string;
  /** What the client of `POST /token` may ask for. */
  readonly scopes: readonly string[];
  /** Seconds that a token of `POST /token` lives. */
  readonly validityS: number;
}

/**
 * Starts an issuer for development: metadata and keys, or a bundle for SPIFFE, and for `oauth` a token endpoint for one
 * client. Whoever reaches it can have tokens. Keys are new at each start.
 */
export async function startDevIssuer(options: DevIssuerOptions): Promise<DevIssuer> {
  const signer = createSigner();
  // Its name holds its port, which is known once it listens.
  const place = { url: '' };
  const mint: DevIssuer['mint'] = (request) => sign(claimsOf(request, place.url, options), signer, options.profile);
  const server = createServer((request, response) => {
    respond(request, options, signer, place.url, mint).then(
      (message) => send(request, response, message),
      () => response.destroy(),
    );
  });
  const running = await listen(server, options.host, options.port);
  place.url = running.url;
  return { ...running, mint };
}

function createSigner(): Signer {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  return { keyId: randomUUID(), privateKey, published: publicKey.export({ format: 'jwk' }) };
}

/** RFC 9068 §2.1 for `oauth`; the others say `JWT`. */
function sign(claims: object, { keyId, privateKey }: Signer, profile: DevIssuerProfile): Promise<string> {
  return new CompactSign(Buffer.from(JSON.stringify(claims)))
    .setProtectedHeader({ alg: 'ES256', typ: profile === 'oauth' ? 'at+jwt' : 'JWT', kid: keyId })
    .sign(privateKey);
}

function claimsOf(
  { subject, permissions, validityS, cnf }: TokenRequest,
  issuer: string,
  { profile, audience }: Pick<DevIssuerOptions, 'profile' | 'audience'>,
): object {
  const nowS = Math.floor(Date.now() / 1_000);
  const common = { iat: nowS, exp: nowS + validityS, ...(cnf === undefined ? {} : { cnf }) };
  switch (profile) {
    case 'oauth':
      return {
        iss: issuer,
        aud: audience,
        sub: subject,
        client_id: subject,
        scope: permissions.join(' '),
        jti: randomUUID(),
        ...common,
      };
    case 'kubernetes': {
      const [namespace = '', name = ''] = subject.split('/');
      return {
        iss: issuer,
        aud: [audience],
        sub: `system:serviceaccount:${namespace}:${name}`,
        'kubernetes.io': { namespace, serviceaccount: { name, uid: randomUUID() } },
        ...common,
      };
    }
    case 'spiffe':
      return { aud: [audience], sub: subject, ...common };
  }
}

async function respond(
  request: IncomingMessage,
  options: DevIssuerOptions,
  signer: Signer,
  url: string,
  mint: DevIssuer['mint'],
): Promise<Message> {
  const { profile } = options;
  const { published, keyId } = signer;
  const path = (request.url ?? '').split('?')[0];
  const asked = `${request.method ?? ''} ${path ?? ''}`;
  const body = await readBody(request);
  if (body === null) return json(413, { error: 'too_large' });
  if (profile === 'spiffe') {
    const key = { ...published, kid: keyId, use: 'jwt-svid' };
    return asked === 'GET /bundle' ? json(200, { keys: [key], spiffe_refresh_hint: 60 }) : notFound;
  }
  if (asked === 'GET /.well-known/openid-configuration') {
    const tokens = profile === 'oauth' ? { token_endpoint: `${url}/token`, grant_types_supported: [grantType] } : {};
    return json(200, { issuer: url, jwks_uri: `${url}/jwks`, ...tokens });
  }
  if (asked === 'GET /jwks') return json(200, { keys: [{ ...published, kid: keyId, alg: 'ES256', use: 'sig' }] });
  if (asked === 'POST /token' && profile === 'oauth') return issue(request, body.toString('utf8'), options, mint);
  return notFound;
}

const notFound = json(404, { error: 'not_found' });

const grantType = 'client_credentials';

/** RFC 6749 §4.4, for the one client; what it does not ask for in `scope` it gets all the same. */
async function issue(
  request: IncomingMessage,
  body: string,
  { scopes, validityS }: Pick<DevIssuerOptions, 'scopes' | 'validityS'>,
  mint: DevIssuer['mint'],
): Promise<Message> {
  const form = new URLSearchParams(body);
  if (!isDemoClient(request.headers.authorization, form)) return json(401, { error: 'invalid_client' });
  if (form.get('grant_type') !== grantType) return json(400, { error: 'unsupported_grant_type' });
  const wanted = (form.get('scope') ?? scopes.join(' ')).split(' ').filter((scope) => scope !== '');
  if (!wanted.every((scope) => scopes.includes(scope))) return json(400, { error: 'invalid_scope' });
  const token = await mint({ subject: demoClient.id, permissions: wanted, validityS });
  return json(200, { access_token: token, token_type: 'Bearer', expires_in: validityS, scope: wanted.join(' ') });
}

/** RFC 6749 §2.3.1: by `Authorization`, or in the body. */
function isDemoClient(authorization: string | undefined, form: URLSearchParams): boolean {
  const basic = /^Basic ([A-Za-z0-9+/]+=*)$/i.exec(authorization ?? '')?.[1];
  const shown =
    basic === undefined
      ? `${form.get('client_id') ?? ''}:${form.get('client_secret') ?? ''}`
      : Buffer.from(basic, 'base64').toString('utf8');
  return timingSafeEqual(digest(shown), digest(`${demoClient.id}:${demoClient.secret}`));
}

function digest(value: string): Buffer {
  return createHash('sha256').update(value).digest();
}
