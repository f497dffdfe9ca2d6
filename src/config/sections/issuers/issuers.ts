/** The section that says whose tokens count. */
import { staleAllowanceMs, longestKeyWaitMs } from '../../../decision/http/http-freshness.js';
import { z } from 'zod';
import type { ParsedConfig, Entry } from '../../load/parse-sections.js';
import { nameOf, type Report } from '../../load/report.js';
import { readUrl } from '../../schema/addresses.js';
import {
  always,
  never,
  reloaded,
  saidByAnother,
  whenAdded,
  whenMore,
  whenRemoved,
  withoutSecrets,
  type KeyChanges,
} from '../../schema/key-changes.js';
import {
  duration,
  fetchedUrl,
  filePath,
  flag,
  line,
  list,
  map,
  oneOrMore,
  size,
  text,
  visibleText,
} from '../../schema/scalars.js';
import { type AbsolutePath, section } from '../../schema/section.js';
import { bindingKeys, bindingSchema, checkBinding } from './binding.js';
import { checkOverlaps, checkSameCallers } from './overlaps.js';
import {
  checkIntrospection,
  checkPrefixes,
  checkSingleUse,
  compileIntrospection,
  introspectionKeys,
  introspectionSchema,
} from './introspection.js';
import {
  checkProfile,
  compileProfile,
  fetchedFrom,
  fetchesMetadata,
  keyAccessOf,
  profileKeys,
} from './issuer-profiles.js';
import type { IssuerSettings } from '../../types.js';
import type { IssuerRules } from '../../../decision/route/policy.js';
import { profileNames, type Profile } from '../../../decision/token/profiles.js';
import { isLoopback } from '../../../lib/ip-ranges.js';

const keyIdPattern = text(/^(?=.)[\x21-\x29\x2b-\x7e]*\*?$/, 'a key id, or its beginning and `*`', 256);

const keyIdsSchema = map({
  accept: list(keyIdPattern, 1, 'key ids')
    .optional()
    .describe(
      'Key ids that count: whole, or a beginning and `*`. Default: `["d-*"]` with `profile: core`, whose dynamic keys begin so, else `["*"]`.',
    ),
  reject: list(keyIdPattern, 0, 'key ids')
    .prefault([])
    .describe('Key ids that do not count, though `accept` has them.'),
});

/** How keys are fetched and kept. */
export const jwksSchema = map({
  min_age: duration('0ms', '24h')
    .prefault('10s')
    .describe('Shortest lifetime of fetched keys, whatever the response’s cache headers say; at most `max_age`.'),
  max_age: duration('100ms', '7d')
    .prefault('10m')
    .describe(
      'Longest lifetime of fetched keys, whatever the response’s cache headers say; they are refreshed before it is over.',
    ),
  max_stale: duration('0ms', '30d')
    .nullable()
    .prefault(null)
    .describe(
      'How long keys serve beyond their lifetime while their source is out of reach, whatever the response’s `must-revalidate` says. ' +
        'Left out: 5m where the response has `must-revalidate`, `no-cache` or `no-store` (RFC 9111 §4.2.4), else 1h.',
    ),
  cooldown: duration('0ms', '1h')
    .prefault('5s')
    .describe(
      'Least time between fetches for unknown key ids, counted from the last attempt, failed or not. Whoever has a new key waits for it, 10s at most.',
    ),
  timeout: duration('10ms', '5m').prefault('5s').describe('For one fetch as a whole.'),
  max_bytes: size('1KiB', '16MiB').prefault('256KiB').describe('Largest response that is read.'),
});

const issuerText = visibleText(512);
const name = line(256);
const names = oneOrMore(name, 'texts');

/** What the schema says to editors: all but these profiles need the keys. */
function neededUnless(profiles: readonly Profile[], keys: readonly string[]): object {
  const isOne = { type: 'object', properties: { profile: { enum: profiles } }, required: ['profile'] };
  const hasKeys = { type: 'object', properties: Object.fromEntries(keys.map((key) => [key, {}])), required: keys };
  return { anyOf: [isOne, hasKeys] };
}

/** Every key that an issuer can have; which of them one has, its profile says. */
const issuerSchema = map({
  issuer: issuerText
    .optional()
    .describe(
      'Exact `iss`; of a Core its API domain. Required, but not with `profile: spiffe`: left out there, any `iss` is taken.',
    ),
  ...profileKeys,
  jwks_url: fetchedUrl()
    .nullable()
    .prefault(null)
    .describe(
      'Where its keys are. Without it and `jwks_file`: with `profile: core` `issuer` followed by `/auth/jwt/jwks.json`, else `discovery`.',
    ),
  jwks_url_because: text(
    /^(?=.*\S)[^\x00-\x1f\x7f-\x9f]+$/,
    'why another host speaks for the issuer: 1 to 500 characters in one line',
    500,
  )
    .nullable()
    .prefault(null)
    .describe(
      'Why `jwks_url` or `discovery_url` is on another host than `issuer`, such as the Core’s address in the cluster. `check` warns until it says so.',
    ),
  jwks_file: filePath()
    .nullable()
    .prefault(null)
    .describe('File with its keys, instead of `jwks_url`. Read again when it changes.'),
  audience: names.describe(
    'Exact `aud`: the name of the upstream. With `profile: core` one text, which `aud` has to be; else also a list, and an `aud` that is a list has ' +
      'to hold one of them.',
  ),
  source: names
    .optional()
    .describe('Exact `source`; a list while names change. Required with `profile: core`, and only there.'),
  token_type: names
    .optional()
    .describe('Exact `token_type`; a list while names change. Required with `profile: core`, and only there.'),
  clock_skew: duration('0ms', '60s').prefault('5s').describe('How far the issuer’s clock may be from ours.'),
  max_lifetime: duration('1s', '24h').prefault('2h').describe('Longest life of a token that is accepted.'),
  binding: bindingSchema,
  key_ids: keyIdsSchema.prefault({}).describe('Which key ids count. Others are refused and never cause a fetch.'),
  jwks: jwksSchema.prefault({}).describe('How its keys are fetched and kept.'),
  introspection: introspectionSchema
    .nullable()
    .prefault(null)
    .describe(
      'How the issuer is asked about its opaque tokens (RFC 7662): those that are no JWTs. Only with `profile: oauth`.',
    ),
  ca_file: filePath()
    .nullable()
    .prefault(null)
    .describe(
      'Authorities in PEM that vouch for where keys and metadata are fetched, instead of the system’s. Read again for each fetch. With ' +
        '`profile: kubernetes` and no `discovery_url` or `jwks_url`: those of the pod.',
    ),
  allow_http: flag()
    .prefault(false)
    .describe(
      'Whether keys and metadata may be fetched over http from another host than this: whoever can change the response signs tokens.',
    ),
}).meta({
  allOf: [
    neededUnless(['oauth', 'kubernetes', 'spiffe'], ['source', 'token_type']),
    neededUnless(['spiffe'], ['issuer']),
  ],
});

/** With what a profile always has. */
const schemas: Readonly<Record<Profile, z.ZodType<IssuerFile>>> = {
  core: issuerSchema.extend({
    issuer: issuerText,
    audience: name.transform((audience) => [audience]),
    source: names,
    token_type: names,
  }),
  oauth: issuerSchema.extend({ issuer: issuerText }),
  kubernetes: issuerSchema.extend({ issuer: issuerText }),
  spiffe: issuerSchema.extend({ trust_domain: profileKeys.trust_domain.unwrap() }),
};

/** The schema of an issuer with this `profile`, as it stands in the file; of what is none, every key is known. */
export function issuerSchemaFor(profile: unknown): z.ZodType<IssuerFile> {
  if (profile === undefined || profile === null) return schemas.core;
  const known = profileNames.find((candidate) => candidate === profile);
  return known === undefined ? issuerSchema : schemas[known];
}

/** Names are labels of metrics and parts of log lines. */
export const issuerName = text(
  /^[A-Za-z0-9][A-Za-z0-9._-]*$/,
  '1 to 64 letters, digits, `.`, `_` and `-`, beginning with a letter or digit',
  64,
);

export type IssuerFile = z.output<typeof issuerSchema>;

/** In the order of the file: the audience of the first is part of what users’ idempotency keys are counted by. */
export type Issuers = ReadonlyMap<string, IssuerFile>;

export const issuers = section({
  schema: z
    .record(issuerName, issuerSchema, 'a map of issuers')
    .prefault({})
    .describe('Whose tokens count, by a name of your choice.'),
  check: checkIssuers,
  compile: (_file, { absolute, values }): { readonly issuers: readonly IssuerSettings[] } => ({
    issuers: [...values.issuers].map(([name, issuer]) => compileIssuer(name, issuer, absolute)),
  }),
  // `issuerKeys`, for each of them.
  keys: {},
});

/** Milliseconds for which keys serve on where `max_stale` is left out, by what the issuer says. */
const [leastStaleMs, mostStaleMs] = [staleAllowanceMs(null, true), staleAllowanceMs(null, false)];

/** What a change of each key of an issuer means. */
export const issuerKeys: KeyChanges<IssuerSettings> = {
  profile: { of: ({ rules }) => rules.profile, widens: always },
  issuer: { of: ({ rules }) => rules.issuer, widens: always },
  audience: { of: ({ rules }) => rules.audiences, widens: always },
  source: { of: ({ rules }) => rules.sources, widens: whenAdded },
  token_type: { of: ({ rules }) => rules.tokenTypes, widens: whenAdded },
  clock_skew: { of: ({ rules }) => rules.clockSkewS, widens: whenMore },
  max_lifetime: { of: ({ rules }) => rules.maxLifetimeS, widens: whenMore },
  algorithms: { of: ({ rules }) => rules.algorithms, widens: whenAdded },
  token_typ: { of: ({ rules }) => rules.headerTypes, widens: whenAdded },
  trust_domain: { of: ({ rules }) => rules.trustDomain, widens: always },
  claims: { of: ({ rules }) => rules.claims, widens: always, whole: true },
  'key_ids.accept': { of: ({ rules }) => rules.keyIds.accept, widens: whenAdded },
  'key_ids.reject': { of: ({ rules }) => rules.keyIds.reject, widens: whenRemoved },
  jwks_url: {
    of: ({ keys: { source } }) => (source.kind === 'file' ? source.path : withoutSecrets(source.url)),
    widens: always,
    shownAs: 'keys',
  },
  jwks_url_because: reloaded,
  jwks_file: saidByAnother,
  bundle_url: saidByAnother,
  bundle_file: saidByAnother,
  discovery: saidByAnother,
  discovery_url: saidByAnother,
  jwks_origins: {
    of: ({ keys: { source } }) => (source.kind === 'discovery' ? source.keyOrigins : undefined),
    widens: whenAdded,
  },
  token_file: { of: ({ keys }) => keys.tokenFile, widens: never },
  allow_http: saidByAnother,
  ca_file: { of: ({ keys }) => keys.caFile, widens: always },
  'jwks.min_age': reloaded,
  'jwks.max_age': { of: ({ keys }) => keys.maxAgeMs, widens: whenMore },
  // Left out it is an hour at most: what the issuer says may make it less.
  'jwks.max_stale': {
    of: ({ keys }) => keys.maxStaleMs,
    widens: (from, to) => whenMore(from ?? leastStaleMs, to ?? mostStaleMs),
  },
  'jwks.cooldown': reloaded,
  'jwks.timeout': reloaded,
  'jwks.max_bytes': reloaded,
  ...bindingKeys,
  ...introspectionKeys,
};

function compileIssuer(name: string, file: IssuerFile, absolute: AbsolutePath): IssuerSettings {
  const rules: IssuerRules = {
    name,
    ...compileProfile(file),
    audience: file.audience[0] ?? '',
    audiences: new Set(file.audience),
    sources: new Set(file.source),
    tokenTypes: new Set(file.token_type),
    clockSkewS: file.clock_skew / 1_000,
    maxLifetimeS: file.max_lifetime / 1_000,
    binding: file.binding,
  };
  const access = keyAccessOf(file, absolute);
  return {
    rules,
    introspection: compileIntrospection(file, access.caFile, absolute),
    keys: {
      ...access,
      rules: { algorithms: rules.algorithms, use: file.profile === 'spiffe' ? 'jwt-svid' : 'sig' },
      minAgeMs: minAgeOf(file),
      maxAgeMs: file.jwks.max_age,
      maxStaleMs: file.jwks.max_stale,
      cooldownMs: file.jwks.cooldown,
      timeoutMs: file.jwks.timeout,
      maxBytes: file.jwks.max_bytes,
    },
  };
}

/** Milliseconds. The Core's tokens live an hour or two; a longer life is longer use of a stolen one. */
const usualLifetimeMs = 7_200_000;

/** Milliseconds. A restart of the Core takes less, most outages of a network do. */
const usualOutageMs = 300_000;

/** Least time between refreshes: what is not written never contradicts a shorter `max_age`. */
function minAgeOf({ jwks }: Pick<IssuerFile, 'jwks'>): number {
  return Math.min(jwks.min_age, jwks.max_age);
}

/** Checks what each issuer's settings say together. */
function checkIssuers(parts: ParsedConfig, report: Report): void {
  for (const entry of parts.issuers.values()) {
    if (entry.parsed === null) continue;
    const isPresent = (key: string): boolean => parts.isPresent([...entry.path, key]);
    checkProfile(entry, entry.parsed.value, isPresent, report);
    checkKeySource(entry, entry.parsed.value, report);
    checkKeyHost(entry, entry.parsed.value, report);
    checkIntrospection(entry, entry.parsed.value, fetchesMetadata(entry.parsed.value), report);
    checkExactness(entry, entry.parsed.value, report);
    checkTimes(entry, entry.parsed.value, parts, report);
    checkBinding(entry, entry.parsed.value, report);
  }
  checkOverlaps([...parts.issuers.values()], report);
  checkSameCallers([...parts.issuers.values()], report);
  checkPrefixes([...parts.issuers.values()], report);
  checkSingleUse(parts, report);
}

/** What a URL is made of has to make one; metadata has no query in its way either (RFC 8414 §2). */
function isPlaceFor({ profile, issuer = '' }: IssuerFile, url: string): boolean {
  return fetchedUrl().safeParse(url).success && (profile === 'core' || !issuer.includes('?'));
}

/** Another origin is somebody's decision already; one whose responses anybody may change is one more. */
function checkKeyOrigins(path: Entry<IssuerFile>['path'], issuer: IssuerFile, report: Report): void {
  issuer.jwks_origins.forEach((origin, index) => {
    if (!origin.startsWith('http:') || isLoopback(readUrl(origin)?.hostname ?? '') || issuer.allow_http) return;
    const at = [...path, 'jwks_origins', index];
    report.error(
      at,
      `${nameOf(at)} would have keys fetched over http from another host: whoever can change the response signs tokens`,
      'https, or allow_http: true',
    );
  });
}

/** Files that are there for the keys alone: an issuer that is asked over https is held to `ca_file` as well. */
function filesForKeys(issuer: IssuerFile): readonly ('ca_file' | 'token_file')[] {
  const isAskedOverTls = issuer.introspection?.url?.startsWith('https:') === true;
  return [
    ...(issuer.ca_file === null || isAskedOverTls ? [] : (['ca_file'] as const)),
    ...((issuer.token_file ?? null) === null ? [] : (['token_file'] as const)),
  ];
}

function checkKeySource({ path }: Entry<IssuerFile>, issuer: IssuerFile, report: Report): void {
  const name = nameOf(path);
  const file = issuer.jwks_file === null ? (issuer.bundle_file === null ? null : 'bundle_file') : 'jwks_file';
  if (file !== null) {
    const at = [...path, file];
    const url = file === 'jwks_file' ? 'jwks_url' : 'bundle_url';
    if (issuer[url] !== null) {
      report.keyError(at, `${name}.${file} stands beside ${name}.${url}`, 'one of them');
    }
    for (const key of filesForKeys(issuer)) {
      report.error([...path, key], `${name}.${key} has no use with ${name}.${file}`, url);
    }
    // SPIRE's helpers write the file anew whenever the bundle changes.
    if (file === 'bundle_file') return;
    report.warning(
      at,
      `${name}.jwks_file does not follow the issuer’s key rotation by itself`,
      'jwks_url, where the issuer can be reached',
    );
    return;
  }
  checkKeyOrigins(path, issuer, report);
  const place = fetchedFrom(issuer);
  if (place === null) return;
  const at = [...path, place.key];
  if (!isPlaceFor(issuer, place.url)) {
    report.error(
      at,
      `${name}.issuer is no URL below which ${issuer.profile === 'core' ? 'keys' : 'metadata'} could be: it is ${report.show(at)}`,
      issuer.profile === 'core' ? 'jwks_url or jwks_file beside it' : 'discovery_url, jwks_url or jwks_file beside it',
    );
    return;
  }
  const host = readUrl(place.url)?.hostname ?? '';
  if (!place.url.startsWith('http:')) return;
  for (const key of filesForKeys(issuer)) {
    report.error(
      [...path, key],
      `${name}.${key} has no use without https`,
      `an https ${place.key === 'issuer' ? 'jwks_url' : place.key}`,
    );
  }
  if (isLoopback(host)) return;
  if (issuer.allow_http) {
    report.warning(
      at,
      `keys cross the network in plaintext: ${name} fetches them over http from another host`,
      'https',
    );
  } else {
    report.error(
      at,
      `${name} would fetch keys over http from another host: whoever can change the response signs tokens`,
      'https, or allow_http: true',
    );
  }
}

/**
 * Whoever publishes the keys signs the tokens: another host than the issuer's is somebody's decision, as the Core's
 * address in a cluster is.
 */
function checkKeyHost({ path }: Entry<IssuerFile>, issuer: IssuerFile, report: Report): void {
  // A trust domain names no host.
  if (issuer.profile === 'spiffe') return;
  const key = issuer.discovery_url === null ? 'jwks_url' : 'discovery_url';
  const [at, why] = [
    [...path, key],
    [...path, 'jwks_url_because'],
  ];
  const own = hostOf(hostNamedBy(issuer.issuer ?? ''));
  const url = issuer[key];
  const host = url === null ? null : (readUrl(url)?.hostname ?? null);
  const isElsewhere = host !== null && !isLoopback(host) && hostOf(host) !== own;
  if (issuer.jwks_url_because === null) {
    if (!isElsewhere || report.hasError(at)) return;
    report.warning(
      at,
      `${nameOf(path)} takes keys from another host than its issuer’s: who can publish them there signs tokens in the issuer’s name`,
      'the issuer’s host; or jwks_url_because: "…" beside it, with the reason why that host speaks for the issuer',
    );
  } else if (url === null) {
    report.keyError(why, `${nameOf(why)} has no use without a jwks_url`, 'a jwks_url, or no jwks_url_because');
  }
}

/** The host in an `iss`, which may lack its scheme; the whole of it where it names none. */
function hostNamedBy(iss: string): string {
  // `api.example.com:3567` is a URL too, whose scheme is the host.
  const [url, withScheme] = [readUrl(iss)?.hostname ?? '', readUrl(`https://${iss}`)?.hostname ?? ''];
  return url || withScheme || iss;
}

/** DNS ignores case, and a dot at the end (RFC 4343, RFC 1034 §3.1). */
function hostOf(name: string): string {
  return name.toLowerCase().replace(/\.$/, '');
}

/** The specification has one value of each: every further one lets another kind of token in. */
function checkExactness({ path }: Entry<IssuerFile>, issuer: IssuerFile, report: Report): void {
  for (const key of ['source', 'token_type'] as const) {
    const at = [...path, key];
    const count = new Set(issuer[key] ?? []).size;
    if (count > 1) {
      report.warning(
        at,
        `${nameOf(at)} has ${String(count)} values: tokens with any of them count, with every permission that they have`,
        'one value; a list only while names change; an issuer of its own for what stays different',
      );
    }
  }
}

function checkTimes({ path }: Entry<IssuerFile>, issuer: IssuerFile, parts: ParsedConfig, report: Report): void {
  const name = nameOf(path);
  const { min_age: minAge, max_age: maxAge, max_stale: maxStale, cooldown } = issuer.jwks;
  if (minAge > maxAge && parts.isPresent([...path, 'jwks', 'min_age'])) {
    report.error([...path, 'jwks', 'min_age'], `${name}.jwks.min_age is more than max_age`, 'at most max_age');
  }
  if (maxStale !== null && maxStale < usualOutageMs) {
    const at = [...path, 'jwks', 'max_stale'];
    report.warning(
      at,
      `${name}.jwks.max_stale is short: keys that cannot be refreshed end ${report.show(at)} after their lifetime`,
      '5m or more',
    );
  }
  if (cooldown > longestKeyWaitMs) {
    const at = [...path, 'jwks', 'cooldown'];
    report.warning(
      at,
      `${name}.jwks.cooldown is longer than callers wait: for up to ${report.show(at)} one with a new key is refused`,
      '10s or less',
    );
  }
  if (issuer.max_lifetime > usualLifetimeMs) {
    report.warning(
      [...path, 'max_lifetime'],
      `${name}.max_lifetime is long: a stolen token is of use for ${report.show([...path, 'max_lifetime'])}`,
      '2h or less',
    );
  }
}
