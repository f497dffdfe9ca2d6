/** What of an issuer says how its opaque tokens are asked about (RFC 7662). */
import type { Entry, ParsedConfig } from '../../load/parse-sections.js';
import { nameOf, type Report } from '../../load/report.js';
import type { IntrospectionSettings } from '../../types.js';
import { readUrl } from '../../schema/addresses.js';
import {
  always,
  never,
  reloaded,
  secretsIn,
  whenLess,
  whenMore,
  whenOff,
  whenOn,
  withoutSecrets,
  type KeyChanges,
} from '../../schema/key-changes.js';
import {
  duration,
  fetchedUrl,
  filePath,
  flag,
  integer,
  map,
  size,
  text,
  visibleText,
  word,
} from '../../schema/scalars.js';
import type { AbsolutePath } from '../../schema/section.js';
import type { IssuerFile } from './issuers.js';
import { isLoopback } from '../../../lib/ip-ranges.js';
import { algorithmNames } from '../../../decision/token/profiles.js';

/** How this proxy shows the issuer who asks: RFC 6749 §2.3.1, RFC 7523 §2.2, RFC 8705 §2.1. */
const authMethods = ['client_secret_basic', 'client_secret_post', 'private_key_jwt', 'tls_client_auth'] as const;

type AuthMethod = (typeof authMethods)[number];

const prefixAllowed =
  'up to 64 characters that a token may begin with: letters, digits, `-`, `.`, `_`, `~`, `+` and `/`';

/** With what the assertions are signed by which a client proves who it is (RFC 7523), here and to who issues tokens. */
export const assertionAlgorithm = word(...algorithmNames)
  .nullable()
  .prefault(null)
  .describe(
    'Signature algorithm of these assertions. Left out: `RS256` with an RSA key, that of its curve with an EC key, else `EdDSA`.',
  );

export const introspectionSchema = map({
  url: fetchedUrl()
    .nullable()
    .prefault(null)
    .describe(
      'Where the issuer is asked: https, or http on this machine. Left out: the `introspection_endpoint` of its metadata, which takes `discovery`.',
    ),
  client_id: visibleText(256).describe('Who this proxy is to the issuer.'),
  client_auth: word(...authMethods)
    .prefault('client_secret_basic')
    .describe(
      'How the proxy proves that: a secret in a header or in the body, an assertion signed with a key (RFC 7523), or a certificate (RFC 8705).',
    ),
  client_secret_file: filePath()
    .nullable()
    .prefault(null)
    .describe(
      'File with the secret, for `client_secret_basic` and `client_secret_post`. Taken up when it changes, as `key_file` and `cert_file` are.',
    ),
  key_file: filePath()
    .nullable()
    .prefault(null)
    .describe('Private key in PEM, for `private_key_jwt` and `tls_client_auth`.'),
  cert_file: filePath()
    .nullable()
    .prefault(null)
    .describe('Certificate in PEM, with its chain, for `tls_client_auth`.'),
  key_id: visibleText(256)
    .nullable()
    .prefault(null)
    .describe('`kid` of the assertions of `private_key_jwt`; without it they have none.'),
  algorithm: assertionAlgorithm,
  answer: word('json', 'jwt')
    .prefault('json')
    .describe(
      'What is asked for, and the only form that is taken: JSON, or a JWT that the issuer’s keys verify (RFC 9701).',
    ),
  token_prefix: text(/^[A-Za-z0-9._~+/-]*$/, prefixAllowed, 64)
    .prefault('')
    .describe(
      'How its opaque tokens begin; others are not sent there. Needed where several issuers have `introspection`.',
    ),
  require_aud: flag()
    .prefault(true)
    .describe(
      'Whether an answer has to have `aud`. `false` takes the issuer’s word that it says `active` of tokens for this client alone; an `aud` that is ' +
        'there has to hold all the same.',
    ),
  has_jti: flag()
    .prefault(false)
    .describe('Whether every answer has a `jti`: one without is refused then. Routes with `single_use` need it.'),
  max_age: duration('0ms', '30s')
    .prefault('30s')
    .describe('For how long `active` is believed, within `exp`: so long a token passes that the issuer has revoked.'),
  max_negative_age: duration('0ms', '5s')
    .prefault('5s')
    .describe('For how long it is believed that a token is not active.'),
  timeout: duration('10ms', '30s').prefault('3s').describe('For one question as a whole.'),
  max_bytes: size('1KiB', '1MiB').prefault('64KiB').describe('Largest body of a response that is read.'),
  unknown_per_second: integer(1, 10_000)
    .prefault(20)
    .describe(
      'Questions in a second about tokens that were not active before, by all callers whose connections have shown nothing good yet; by all others as ' +
        'many. Five times as many at once. A question whose answer is `active` does not count.',
    ),
  unknown_per_address: integer(1, 10_000)
    .prefault(5)
    .describe(
      'The same for the callers of one address, or of one /64 of IPv6; those of one /48 have twice as much together.',
    ),
});

type IntrospectionFile = NonNullable<IssuerFile['introspection']>;

/** What a change of each of its keys means; of an issuer, below `introspection`. */
export const introspectionKeys: KeyChanges<{ readonly introspection: IntrospectionSettings | null }> = {
  // Its keys are compared where there is one before and after. With it, whatever the issuer calls active comes in.
  introspection: { of: ({ introspection }) => introspection !== null, widens: whenOn },
  'introspection.url': {
    of: ({ introspection }) =>
      introspection === null ? undefined : introspection.url === null ? 'discovery' : withoutSecrets(introspection.url),
    hidden: ({ introspection }) => secretsIn(introspection?.url ?? 'https://discovery'),
    widens: always,
  },
  'introspection.client_id': { of: ({ introspection }) => introspection?.clientId, widens: always },
  'introspection.client_auth': { of: ({ introspection }) => introspection?.auth.method, widens: never },
  'introspection.client_secret_file': reloaded,
  'introspection.key_file': reloaded,
  'introspection.cert_file': reloaded,
  'introspection.key_id': reloaded,
  'introspection.algorithm': reloaded,
  'introspection.answer': {
    of: ({ introspection }) => introspection?.answer,
    widens: (from) => from === 'jwt',
  },
  'introspection.token_prefix': {
    of: ({ introspection }) => introspection?.rules.tokenPrefix,
    widens: (from, to) => !String(to).startsWith(String(from)),
  },
  'introspection.require_aud': { of: ({ introspection }) => introspection?.rules.requiresAudience, widens: whenOff },
  'introspection.has_jti': { of: ({ introspection }) => introspection?.rules.requiresTokenId, widens: whenOff },
  'introspection.max_age': { of: ({ introspection }) => introspection?.maxAgeMs, widens: whenMore },
  'introspection.max_negative_age': { of: ({ introspection }) => introspection?.maxNegativeAgeMs, widens: whenLess },
  'introspection.timeout': reloaded,
  'introspection.max_bytes': reloaded,
  'introspection.unknown_per_second': { of: ({ introspection }) => introspection?.unknownPerSecond, widens: whenMore },
  'introspection.unknown_per_address': {
    of: ({ introspection }) => introspection?.unknownPerAddress,
    widens: whenMore,
  },
};

/** Which files each way of authentication needs; it has no use for the others. */
const filesOf: Readonly<Record<AuthMethod, readonly (keyof IntrospectionFile)[]>> = {
  client_secret_basic: ['client_secret_file'],
  client_secret_post: ['client_secret_file'],
  private_key_jwt: ['key_file'],
  tls_client_auth: ['cert_file', 'key_file'],
};

/** Checks what the settings of one issuer say together. `discovers`: whether its metadata is fetched. */
export function checkIntrospection(
  { path: issuerPath }: Entry<IssuerFile>,
  { introspection: file }: Pick<IssuerFile, 'introspection'>,
  discovers: boolean,
  report: Report,
): void {
  if (file === null) return;
  const path = [...issuerPath, 'introspection'];
  const name = nameOf(path);
  const needed = filesOf[file.client_auth];
  for (const key of ['client_secret_file', 'cert_file', 'key_file'] as const) {
    if (needed.includes(key) === (file[key] !== null)) continue;
    if (file[key] === null) {
      report.error(path, `${name}.${key} is missing, and client_auth is ${file.client_auth}`, key);
    } else {
      report.keyError(
        [...path, key],
        `${name}.${key} has no use with client_auth: ${file.client_auth}`,
        needed.join(' and '),
      );
    }
  }
  for (const key of ['key_id', 'algorithm'] as const) {
    if (file[key] === null || file.client_auth === 'private_key_jwt') continue;
    report.keyError(
      [...path, key],
      `${name}.${key} has no use with client_auth: ${file.client_auth}`,
      'client_auth: private_key_jwt',
    );
  }
  checkPlace(path, file, discovers, report);
  if (!file.require_aud) {
    report.warning(
      [...path, 'require_aud'],
      `${name} takes tokens whose audience nobody names: the issuer alone sees to it that a token for another service does not pass here`,
      'require_aud: true, where the issuer’s answers have aud',
    );
  }
  if (file.unknown_per_address > file.unknown_per_second) {
    report.warning(
      [...path, 'unknown_per_address'],
      `${name}.unknown_per_address is more than unknown_per_second, so that one address may use up everybody’s share`,
      'less than unknown_per_second',
    );
  }
}

function checkPlace(
  path: Entry<IssuerFile>['path'],
  file: IntrospectionFile,
  discovers: boolean,
  report: Report,
): void {
  const name = nameOf(path);
  const at = [...path, 'url'];
  if (file.url === null) {
    if (!discovers) {
      report.error(path, `${name} does not say where the issuer is asked, and its metadata is not fetched`, 'url');
    }
    return;
  }
  const url = readUrl(file.url);
  if (url?.protocol !== 'http:') return;
  if (!isLoopback(url.hostname)) {
    report.error(at, `${name}.url would send tokens and the client’s secret over http to another host`, 'https');
  } else if (file.client_auth === 'tls_client_auth') {
    report.error(at, `${name}.url is http, and a certificate is shown over https only`, 'https');
  }
}

/** Nothing in an opaque token says whose it is, and nobody else may see it: each has one issuer that is asked. */
export function checkPrefixes(entries: readonly Entry<IssuerFile>[], report: Report): void {
  const asked = entries.flatMap(({ path, parsed }) => {
    const file = parsed?.value.introspection ?? null;
    return file === null ? [] : [{ path: [...path, 'introspection'], prefix: file.token_prefix }];
  });
  for (const [index, { path, prefix }] of asked.entries()) {
    const same = asked
      .slice(0, index)
      .find((earlier) => earlier.prefix.startsWith(prefix) || prefix.startsWith(earlier.prefix));
    if (same === undefined) continue;
    report.error(
      [...path, 'token_prefix'],
      `${nameOf(path)} and ${nameOf(same.path)} would be asked about the same tokens: one issuer would learn the other’s`,
      'token_prefix at each of them, none of which begins with another',
    );
  }
}

/** A token that passes once is known by its `jti`. */
export function checkSingleUse(parts: ParsedConfig, report: Report): void {
  const without = [...parts.issuers.values()].filter(({ parsed }) => parsed?.value.introspection?.has_jti === false);
  for (const { path, parsed } of parts.routes) {
    if (parsed === null) continue;
    const { single_use: isSingleUse, issuers } = parsed.value;
    if (!isSingleUse) continue;
    for (const issuer of without) {
      const name = String(issuer.path.at(-1));
      if (issuers?.includes(name) === false) continue;
      report.error(
        [...path, 'single_use'],
        `${nameOf(path)} lets a token pass once, and takes opaque tokens of ${nameOf(issuer.path)}, whose answers need not have a jti`,
        `has_jti: true in ${nameOf([...issuer.path, 'introspection'])}, where its answers have one; or issuers of the route without it`,
      );
    }
  }
}

/** Compiles the settings of an issuer without errors. */
export function compileIntrospection(
  file: IssuerFile,
  caFile: string | null,
  absolute: AbsolutePath,
): IntrospectionSettings | null {
  const { introspection } = file;
  if (introspection === null) return null;
  return {
    url: introspection.url,
    caFile,
    clientId: introspection.client_id,
    auth: authOf(introspection, file.issuer ?? '', absolute),
    answer: introspection.answer,
    rules: {
      tokenPrefix: introspection.token_prefix,
      requiresAudience: introspection.require_aud,
      requiresTokenId: introspection.has_jti,
    },
    maxAgeMs: introspection.max_age,
    maxNegativeAgeMs: introspection.max_negative_age,
    timeoutMs: introspection.timeout,
    maxBytes: introspection.max_bytes,
    unknownPerSecond: introspection.unknown_per_second,
    unknownPerAddress: introspection.unknown_per_address,
  };
}

function authOf(file: IntrospectionFile, audience: string, absolute: AbsolutePath): IntrospectionSettings['auth'] {
  const keyFile = absolute(file.key_file ?? '');
  switch (file.client_auth) {
    case 'client_secret_basic':
    case 'client_secret_post':
      return { method: file.client_auth, secretFile: absolute(file.client_secret_file ?? '') };
    case 'private_key_jwt':
      return { method: 'private_key_jwt', keyFile, keyId: file.key_id, algorithm: file.algorithm, audience };
    case 'tls_client_auth':
      return { method: 'tls_client_auth', certFile: absolute(file.cert_file ?? ''), keyFile };
  }
}
