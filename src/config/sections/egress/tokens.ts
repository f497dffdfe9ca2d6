/** What of the section `egress` says where the calling side's tokens come from. */
import { z } from 'zod';
import { nameOf, type Report } from '../../load/report.js';
import type { Path } from '../../load/source-tree.js';
import { readUrl } from '../../schema/addresses.js';
import {
  duration,
  fetchedUrl,
  filePath,
  flag,
  line,
  list,
  map,
  text,
  visibleText,
  webOrigin,
  word,
} from '../../schema/scalars.js';
import {
  always,
  reloaded,
  secretsIn,
  whenAdded,
  whenMore,
  whenOff,
  whenOn,
  whenReplaced,
  withoutSecrets,
  type KeyChanges,
} from '../../schema/key-changes.js';
import type { AbsolutePath } from '../../schema/section.js';
import type { ClientAuth, OAuthTokenSettings, TokenSourceSettings } from '../../types.js';
import { assertionAlgorithm } from '../issuers/introspection.js';
import { metadataUrls } from '../issuers/key-access.js';
import { permission } from '../routes/routes.js';
import { maxSubjectLength } from '../../../decision/token/principal.js';
import { maxPermissions } from '../../../decision/token/service-token.js';
import { isLoopback } from '../../../lib/ip-ranges.js';

/** Names of targets and tokens are labels of metrics and parts of log lines. */
export const egressName = text(
  /^[A-Za-z0-9][A-Za-z0-9._-]*$/,
  '1 to 64 letters, digits, `.`, `_` and `-`, beginning with a letter or digit',
  64,
);

const coreSchema = map({
  curl_config: filePath().describe(
    'A curl config file, the one that `curl -K` reads: where the Core is, and its key. Taken up when it changes.',
  ),
  issuer: webOrigin().describe('The API domain, which becomes `iss`.'),
  allow_http: flag()
    .prefault(false)
    .describe('Whether the Core’s key may go in the clear to another machine on the private network.'),
  allow_public_core: flag()
    .prefault(false)
    .describe('Whether the Core may have a public address: whoever reaches it can mint any identity.'),
});

const claimsSchema = map({
  aud: line(256).describe('The receiving service.'),
  sub: visibleText(maxSubjectLength).describe('The calling service.'),
  source: line(256).describe('`source`, as the receiving service expects it.'),
  token_type: line(256).describe('`token_type`, as the receiving service expects it.'),
  permissions: list(permission, 0, 'permissions')
    .max(maxPermissions, `a list of at most ${maxPermissions} permissions`)
    .prefault([])
    .describe('What the calling service may do, in the order that the token will have.'),
});

const authSchema = map({
  secret_file: filePath().nullable().prefault(null).describe('File with the client’s secret.'),
  secret_in: word('header', 'body')
    .nullable()
    .prefault(null)
    .describe(
      'Where the secret goes: `client_secret_basic` or `client_secret_post`. Only with `secret_file`. Default: `header`.',
    ),
  private_key_file: filePath()
    .nullable()
    .prefault(null)
    .describe('Private key in PEM that signs assertions (`private_key_jwt`, RFC 7523).'),
  key_id: visibleText(256)
    .nullable()
    .prefault(null)
    .describe('`kid` of these assertions; without it they have none. Only with `private_key_file`.'),
  algorithm: assertionAlgorithm,
  certificate_file: filePath()
    .nullable()
    .prefault(null)
    .describe('Certificate in PEM, with its chain, that is shown in TLS (`tls_client_auth`, RFC 8705).'),
  key_file: filePath().nullable().prefault(null).describe('Its private key in PEM.'),
});

/** Of a scope, an audience or a resource, as the issuer reads it. */
const parameter = line(1_024);

const oauthSchema = map({
  issuer: fetchedUrl().describe('The authorization server: to the letter the `issuer` of its metadata.'),
  token_url: fetchedUrl()
    .nullable()
    .prefault(null)
    .describe(
      'Where tokens are asked for: https, or http on this machine. Left out: the `token_endpoint` of its metadata, on the origin of `issuer`.',
    ),
  client_id: visibleText(256).describe('Who this sidecar is to the issuer.'),
  auth: authSchema.describe('How it proves that: with a secret, a key, or a certificate. One of them.'),
  grant: word('client_credentials', 'exchange', 'jwt_bearer')
    .prefault('client_credentials')
    .describe(
      'What is asked for: a token of the client itself (RFC 6749 §4.4), or one for the caller’s own token, exchanged (RFC 8693) or as an assertion ' +
        '(RFC 7523).',
    ),
  scope: parameter.nullable().prefault(null).describe('`scope` of the request.'),
  audience: parameter.nullable().prefault(null).describe('`audience` of the request.'),
  resource: parameter.nullable().prefault(null).describe('`resource` of the request (RFC 8707).'),
  ca_file: filePath()
    .nullable()
    .prefault(null)
    .describe('Authorities in PEM that vouch for the issuer, instead of the system’s. Taken up when it changes.'),
  timeout: duration('100ms', '30s').prefault('5s').describe('For one request to the issuer as a whole.'),
});

const tokenSchema = map({
  core: coreSchema.nullable().prefault(null).describe('The Core mints them, with `claims`.'),
  claims: claimsSchema
    .nullable()
    .prefault(null)
    .describe('What the Core’s tokens say. Required with `core`, and only there.'),
  lifetime: duration('10s', '2h')
    .nullable()
    .prefault(null)
    .describe('How long the Core’s tokens live, in whole seconds. Only with `core`. Default: `10m`.'),
  single_use: flag()
    .prefault(false)
    .describe('Whether each request gets a token of its own, which the target lets pass once. Only with `core`.'),
  dpop: flag()
    .prefault(false)
    .describe(
      'Whether tokens are bound to a key of this process, which proves it for each attempt (RFC 9449). With `core` and `oauth`, for targets that take proofs.',
    ),
  oauth: oauthSchema.nullable().prefault(null).describe('An OAuth authorization server issues them.'),
  file: filePath()
    .nullable()
    .prefault(null)
    .describe('Something else writes them to this file. Read again, at most each second.'),
});

export const tokensSchema = z
  .record(egressName, tokenSchema, 'a map of tokens')
  .prefault({})
  .describe('Tokens that are attached, by a name of your choice: each has one of `core`, `oauth` and `file`.');

type TokensFile = z.output<typeof tokensSchema>;
type TokenFile = TokensFile[string];
type OAuthFile = NonNullable<TokenFile['oauth']>;

const kinds = ['core', 'oauth', 'file'] as const;

const defaultLifetimeMs = 600_000;

/** Checks what the settings of each source say together. `path` is that of the map. */
export function checkTokens(file: TokensFile, path: Path, report: Report): void {
  for (const [name, token] of Object.entries(file)) checkToken([...path, name], token, report);
}

function checkToken(path: Path, file: TokenFile, report: Report): void {
  const name = nameOf(path);
  const [kind, second] = kinds.filter((candidate) => file[candidate] !== null);
  if (kind === undefined) {
    report.error(path, `${name} does not say where the token comes from`, 'core, oauth or file');
    return;
  }
  if (second !== undefined) {
    report.keyError([...path, second], `${name}.${second} stands beside ${name}.${kind}`, 'one of them');
    return;
  }
  if (kind === 'core') {
    if (file.claims === null) report.error(path, `${name} does not say what the Core’s tokens hold`, 'claims');
    if ((file.lifetime ?? 0) % 1_000 !== 0) {
      report.error([...path, 'lifetime'], `${name}.lifetime is no whole number of seconds`, 'such as 10m');
    }
    return;
  }
  for (const key of ['claims', 'lifetime', 'single_use'] as const) {
    if (file[key] === null || file[key] === false) continue;
    report.keyError([...path, key], `${name}.${key} has no use with ${name}.${kind}`, 'core');
  }
  if (file.file !== null && file.dpop) {
    report.keyError(
      [...path, 'dpop'],
      `${name}.dpop has no use with ${name}.file, whose token is bound already`,
      'core or oauth',
    );
  }
  if (file.oauth !== null) checkOAuth([...path, 'oauth'], file.oauth, report);
}

function checkOAuth(path: Path, file: OAuthFile, report: Report): void {
  checkAuth([...path, 'auth'], file.auth, report);
  const key = file.token_url === null ? 'issuer' : 'token_url';
  const at = [...path, key];
  const written = file.token_url ?? file.issuer;
  if (file.token_url === null && written.includes('?')) {
    report.error(at, `${nameOf(at)} has a query, so that it has no metadata (RFC 8414 §2)`, 'token_url beside it');
  }
  const url = readUrl(written);
  if (url?.protocol !== 'http:') return;
  if (!isLoopback(url.hostname)) {
    report.error(at, `${nameOf(at)} would send the client’s secret and tokens over http to another host`, 'https');
  } else if (file.auth.certificate_file !== null) {
    report.error(at, `${nameOf(at)} is http, and a certificate is shown over https only`, 'https');
  }
}

const ways = 'secret_file, private_key_file, or certificate_file and key_file';

function checkAuth(path: Path, file: OAuthFile['auth'], report: Report): void {
  const name = nameOf(path);
  const [way, second] = (['secret_file', 'private_key_file', 'certificate_file'] as const).filter(
    (key) => file[key] !== null,
  );
  if (way === undefined) {
    report.error(path, `${name} does not say how this sidecar proves who it is`, ways);
    return;
  }
  if (second !== undefined) {
    report.keyError([...path, second], `${name}.${second} stands beside ${name}.${way}`, 'one of them');
    return;
  }
  if (way === 'certificate_file' && file.key_file === null) {
    report.error(path, `${name} has a certificate without its private key`, 'key_file');
  }
  const uses = [
    ['secret_in', 'secret_file'],
    ['key_id', 'private_key_file'],
    ['algorithm', 'private_key_file'],
    ['key_file', 'certificate_file'],
  ] as const;
  for (const [key, needed] of uses) {
    if (file[key] === null || way === needed) continue;
    report.keyError([...path, key], `${name}.${key} has no use with ${name}.${way}`, needed);
  }
}

/** Returns what reads a setting of one kind of source; another kind has none. */
function ofKind<Kind extends TokenSourceSettings['kind']>(
  kind: Kind,
  read: (settings: Extract<TokenSourceSettings, { readonly kind: Kind }>) => unknown,
): (settings: TokenSourceSettings) => unknown {
  return (settings) => (isKind(settings, kind) ? read(settings) : null);
}

function isKind<Kind extends TokenSourceSettings['kind']>(
  settings: TokenSourceSettings,
  kind: Kind,
): settings is Extract<TokenSourceSettings, { readonly kind: Kind }> {
  return settings.kind === kind;
}

/** What a change of each key of a token means. What says something else of the workload is another token. */
export const tokenKeys: KeyChanges<TokenSourceSettings> = {
  'core.curl_config': { of: ofKind('core', ({ curlConfigFile }) => curlConfigFile), widens: always },
  'core.issuer': { of: ofKind('core', ({ issuer }) => issuer), widens: always },
  'core.allow_http': { of: ofKind('core', ({ allowHttp }) => allowHttp), widens: whenOn },
  'core.allow_public_core': { of: ofKind('core', ({ allowPublicCore }) => allowPublicCore), widens: whenOn },
  'claims.aud': { of: ofKind('core', ({ claims }) => claims.aud), widens: always },
  'claims.sub': { of: ofKind('core', ({ claims }) => claims.sub), widens: always },
  'claims.source': { of: ofKind('core', ({ claims }) => claims.source), widens: always },
  'claims.token_type': { of: ofKind('core', ({ claims }) => claims.token_type), widens: always },
  'claims.permissions': { of: ofKind('core', ({ claims }) => claims.permissions), widens: whenAdded },
  lifetime: { of: ofKind('core', ({ validityS }) => validityS), widens: whenMore },
  single_use: { of: ofKind('core', ({ singleUse }) => singleUse), widens: whenOff },
  dpop: { of: (token) => token.kind !== 'file' && token.dpop, widens: whenOff },
  'oauth.issuer': { of: ofKind('oauth', ({ issuer }) => issuer), widens: always },
  'oauth.token_url': {
    of: ofKind('oauth', ({ tokenUrl }) => tokenUrl && withoutSecrets(tokenUrl)),
    hidden: ofKind('oauth', ({ tokenUrl }) => tokenUrl && secretsIn(tokenUrl)),
    widens: always,
  },
  'oauth.client_id': { of: ofKind('oauth', ({ clientId }) => clientId), widens: always },
  'oauth.auth': { of: ofKind('oauth', ({ auth }) => auth), widens: always, whole: true },
  'oauth.grant': { of: ofKind('oauth', ({ grant }) => grant), widens: always },
  'oauth.scope': { of: ofKind('oauth', ({ scope }) => scope), widens: always },
  'oauth.audience': { of: ofKind('oauth', ({ audience }) => audience), widens: always },
  'oauth.resource': { of: ofKind('oauth', ({ resource }) => resource), widens: always },
  'oauth.ca_file': { of: ofKind('oauth', ({ caFile }) => caFile), widens: whenReplaced },
  'oauth.timeout': reloaded,
  file: { of: ofKind('file', ({ path }) => path), widens: always },
};

/** Compiles sources without errors, in the order of the file. */
export function compileTokens(file: TokensFile, absolute: AbsolutePath): readonly TokenSourceSettings[] {
  return Object.entries(file).map(([name, token]) => compileToken(name, token, absolute));
}

function compileToken(name: string, file: TokenFile, absolute: AbsolutePath): TokenSourceSettings {
  const { core, oauth, claims } = file;
  if (core !== null && claims !== null) {
    return {
      kind: 'core',
      name,
      curlConfigFile: absolute(core.curl_config),
      issuer: core.issuer,
      claims,
      validityS: (file.lifetime ?? defaultLifetimeMs) / 1_000,
      singleUse: file.single_use,
      dpop: file.dpop,
      allowHttp: core.allow_http,
      allowPublicCore: core.allow_public_core,
    };
  }
  if (oauth !== null) return { ...compileOAuth(name, oauth, absolute), dpop: file.dpop };
  return { kind: 'file', name, path: absolute(file.file ?? '') };
}

function compileOAuth(name: string, file: OAuthFile, absolute: AbsolutePath): Omit<OAuthTokenSettings, 'dpop'> {
  return {
    kind: 'oauth',
    name,
    issuer: file.issuer,
    tokenUrl: file.token_url,
    metadataUrls: file.token_url === null ? metadataUrls(file.issuer) : [],
    caFile: absolute(file.ca_file),
    clientId: file.client_id,
    auth: authOf(file, absolute),
    grant: file.grant,
    scope: file.scope,
    audience: file.audience,
    resource: file.resource,
    timeoutMs: file.timeout,
  };
}

function authOf({ auth, issuer }: OAuthFile, absolute: AbsolutePath): ClientAuth {
  if (auth.secret_file !== null) {
    const method = auth.secret_in === 'body' ? 'client_secret_post' : 'client_secret_basic';
    return { method, secretFile: absolute(auth.secret_file) };
  }
  if (auth.private_key_file !== null) {
    const { key_id: keyId, algorithm } = auth;
    return { method: 'private_key_jwt', keyFile: absolute(auth.private_key_file), keyId, algorithm, audience: issuer };
  }
  return {
    method: 'tls_client_auth',
    certFile: absolute(auth.certificate_file ?? ''),
    keyFile: absolute(auth.key_file ?? ''),
  };
}

/** The files of a source that nobody else should read. */
export function secretFilesOf(settings: TokenSourceSettings): readonly string[] {
  switch (settings.kind) {
    case 'core':
      return [settings.curlConfigFile];
    case 'oauth':
      return ['secretFile' in settings.auth ? settings.auth.secretFile : settings.auth.keyFile];
    case 'file':
      return [settings.path];
  }
}
