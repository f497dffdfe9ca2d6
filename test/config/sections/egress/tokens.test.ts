import t from 'tap';
import { createReport } from '../../../../src/config/load/report.js';
import {
  checkTokens,
  compileTokens,
  secretFilesOf,
  tokensSchema,
} from '../../../../src/config/sections/egress/tokens.js';
import type { TokenSourceSettings } from '../../../../src/config/types.js';

const core = { curl_config: 'core.curl', issuer: 'https://api.example.com' };
const claims = { aud: 'orders', sub: 'checkout', source: 'microservice', token_type: 'service' };
const oauth = { issuer: 'https://idp.example.com/realms/shop', client_id: 'checkout', auth: { secret_file: 's' } };

/** What is said of one source; empty where all is well. */
function problemsOf(file: object): string {
  const read = tokensSchema.safeParse({ it: file });
  if (!read.success) return read.error.issues.map(({ message, path }) => `${path.join('.')}: ${message}`).join('\n');
  const report = createReport('f', () => null);
  checkTokens(read.data, ['egress', 'tokens'], report);
  return report
    .problems()
    .map(({ message, allowed }) => `${message}; ${allowed}`)
    .join('\n');
}

/** Paths as they stand. */
function unchanged<Path extends string | null>(path: Path): Path {
  return path;
}

function compiled(file: object): TokenSourceSettings | undefined {
  return compileTokens(tokensSchema.parse({ it: file }), unchanged)[0];
}

const withOAuth = (more: object): object => ({ oauth: { ...oauth, ...more } });
const withAuth = (auth: object, more: object = {}): object => ({ oauth: { ...oauth, auth, ...more } });

t.test('what is right', async (t) => {
  const rows = [
    { core, claims },
    { core, claims: { ...claims, permissions: ['orders:write'] }, lifetime: '2h', single_use: true },
    { core: { ...core, allow_http: true, allow_public_core: true }, claims },
    { oauth },
    withOAuth({
      grant: 'exchange',
      scope: 'a b',
      audience: 'billing',
      resource: 'urn:x',
      timeout: '1s',
      ca_file: 'ca',
    }),
    withOAuth({ token_url: 'http://127.0.0.1:8080/token' }),
    withOAuth({ issuer: 'http://localhost:8080' }),
    withAuth({ secret_file: 's', secret_in: 'body' }),
    withAuth({ private_key_file: 'k', key_id: '1', algorithm: 'PS256' }),
    withAuth({ certificate_file: 'c', key_file: 'k' }),
    { file: '/var/run/secrets/tokens/orders' },
  ];
  for (const file of rows) t.equal(problemsOf(file), '', JSON.stringify(file));
});

t.test('what is wrong is said with what would be right', async (t) => {
  const rows: readonly (readonly [object, RegExp])[] = [
    [{}, /tokens\.it does not say where the token comes from; core, oauth or file/],
    [{ core, claims, oauth }, /tokens\.it\.oauth stands beside .*core; one of them/],
    [{ oauth, file: 'f' }, /it\.file stands beside .*oauth/],
    [{ core }, /does not say what the Core’s tokens hold; claims/],
    [{ core, claims, lifetime: '10500ms' }, /no whole number of seconds/],
    [{ core, claims, lifetime: '3h' }, /it\.lifetime: a duration from 10s to 2h/],
    [{ core, claims: { ...claims, permissions: ['a b'] } }, /permissions\.0: /],
    [{ core, claims: { ...claims, permissions: Array.from({ length: 2_000 }, () => 'a') } }, /list of at most/],
    [{ core: { ...core, issuer: 'api.example.com' }, claims }, /core\.issuer: https/],
    [{ core, claims: { ...claims, iss: 'x' } }, /claims: /],
    [{ oauth, claims }, /it\.claims has no use with .*oauth; core/],
    [{ file: 'f', lifetime: '10m' }, /it\.lifetime has no use with .*file/],
    [{ file: 'f', dpop: true }, /it\.dpop has no use with .*file, whose token is bound already/],
    [{ file: 'f', single_use: true }, /it\.single_use has no use with .*file/],
    [withOAuth({ issuer: 'http://idp.example.com' }), /oauth\.issuer would send .* over http to another host; https/],
    [withOAuth({ token_url: 'http://idp.example.com/t' }), /oauth\.token_url would send .* over http/],
    [withOAuth({ issuer: 'https://idp.example.com/?a' }), /oauth\.issuer has a query/],
    [withOAuth({ scope: 'a\nb' }), /oauth\.scope: /],
    [withOAuth({ grant: 'password' }), /oauth\.grant: client_credentials, exchange, jwt_bearer/],
    [withAuth({}), /oauth\.auth does not say how this sidecar proves who it is; secret_file, private_key_file/],
    [withAuth({ secret_file: 's', private_key_file: 'k' }), /private_key_file stands beside .*secret_file/],
    [withAuth({ certificate_file: 'c' }), /certificate without its private key; key_file/],
    [withAuth({ secret_file: 's', key_id: '1' }), /key_id has no use with .*secret_file; private_key_file/],
    [withAuth({ secret_file: 's', key_file: 'k' }), /key_file has no use with .*secret_file; certificate_file/],
    [withAuth({ private_key_file: 'k', secret_in: 'body' }), /secret_in has no use/],
    [
      withAuth({ certificate_file: 'c', key_file: 'k' }, { token_url: 'http://127.0.0.1/t' }),
      /token_url is http, and a certificate is shown over https only/,
    ],
  ];
  for (const [file, says] of rows) t.match(problemsOf(file), says, JSON.stringify(file).slice(0, 200));
  t.notOk(tokensSchema.safeParse({ 'a b': { file: 'f' } }).success, 'names');
});

t.test('what it comes to', async (t) => {
  t.strictSame(compiled({ core, claims }), {
    kind: 'core',
    name: 'it',
    curlConfigFile: 'core.curl',
    issuer: 'https://api.example.com',
    claims: { ...claims, permissions: [] },
    validityS: 600,
    singleUse: false,
    dpop: false,
    allowHttp: false,
    allowPublicCore: false,
  });
  t.strictSame(compiled({ oauth }), {
    kind: 'oauth',
    name: 'it',
    issuer: oauth.issuer,
    tokenUrl: null,
    metadataUrls: [
      'https://idp.example.com/realms/shop/.well-known/openid-configuration',
      'https://idp.example.com/.well-known/oauth-authorization-server/realms/shop',
    ],
    caFile: null,
    clientId: 'checkout',
    auth: { method: 'client_secret_basic', secretFile: 's' },
    grant: 'client_credentials',
    scope: null,
    audience: null,
    resource: null,
    dpop: false,
    timeoutMs: 5_000,
  });
  t.match([compiled({ core, claims, dpop: true }), compiled({ oauth, dpop: true })], [{ dpop: true }, { dpop: true }]);
  t.match(compiled(withOAuth({ token_url: 'https://t/' })), { tokenUrl: 'https://t/', metadataUrls: [] });
  t.match(compiled(withAuth({ secret_file: 's', secret_in: 'body' })), { auth: { method: 'client_secret_post' } });
  t.match(compiled(withAuth({ private_key_file: 'k', key_id: '1' })), {
    auth: { method: 'private_key_jwt', keyFile: 'k', keyId: '1', algorithm: null, audience: oauth.issuer },
  });
  t.match(compiled(withAuth({ certificate_file: 'c', key_file: 'k' })), {
    auth: { method: 'tls_client_auth', certFile: 'c', keyFile: 'k' },
  });
  t.strictSame(compiled({ file: 'f' }), { kind: 'file', name: 'it', path: 'f' });
});

t.test('the files that nobody else should read', async (t) => {
  const rows: readonly (readonly [object, string])[] = [
    [{ core, claims }, 'core.curl'],
    [{ oauth }, 's'],
    [withAuth({ private_key_file: 'k' }), 'k'],
    [withAuth({ certificate_file: 'c', key_file: 'k2' }), 'k2'],
    [{ file: 'f' }, 'f'],
  ];
  for (const [file, path] of rows) {
    const settings = compiled(file);
    t.strictSame(settings === undefined ? [] : secretFilesOf(settings), [path]);
  }
});
