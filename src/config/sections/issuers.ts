/** The section that says whose tokens count. */
import { z } from 'zod';
import type { ParsedConfig, Entry } from '../load/parse-sections.js';
import { nameOf, type Report } from '../load/report.js';
import { readUrl } from '../schema/addresses.js';
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
} from '../schema/scalars.js';
import { type AbsolutePath, section } from '../schema/section.js';
import type { IssuerSettings } from '../types.js';
import { longestKeyWaitMs } from '../../decision/http/http-freshness.js';
import type { IssuerRules } from '../../decision/route/policy.js';
import { isLoopback } from '../../lib/ip-ranges.js';

const keyIdPattern = text(/^(?=.)[\x21-\x29\x2b-\x7e]*\*?$/, 'a key id, or its beginning and `*`', 256);

const keyIdsSchema = map({
  accept: list(keyIdPattern, 1, 'key ids')
    .prefault(['d-*'])
    .describe('Key ids that count: whole, or a beginning and `*`. The Core’s dynamic keys begin with `d-`.'),
  reject: list(keyIdPattern, 0, 'key ids')
    .prefault([])
    .describe('Key ids that do not count, though `accept` has them.'),
});

/** How keys are fetched and kept. */
export const jwksSchema = map({
  min_age: duration('0ms', '24h')
    .prefault('10s')
    .describe('Shortest lifetime of fetched keys, whatever the answer’s cache headers say; at most `max_age`.'),
  max_age: duration('100ms', '7d')
    .prefault('10m')
    .describe(
      'Longest lifetime of fetched keys, whatever the answer’s cache headers say; they are refreshed before it is over.',
    ),
  max_stale: duration('0ms', '30d')
    .nullable()
    .prefault(null)
    .describe(
      'How long keys serve beyond their lifetime while their source is out of reach, whatever the answer’s `must-revalidate` says. ' +
        'Left out: 5m where the answer has `must-revalidate`, `no-cache` or `no-store` (RFC 9111 §4.2.4), else 1h.',
    ),
  cooldown: duration('0ms', '1h')
    .prefault('5s')
    .describe(
      'Least time between fetches for unknown key ids, counted from the last attempt, failed or not. Whoever has a new key waits for it, 10s at most.',
    ),
  timeout: duration('10ms', '5m').prefault('5s').describe('For one fetch as a whole.'),
  max_bytes: size('1KiB', '16MiB').prefault('256KiB').describe('Largest answer that is read.'),
});

export const issuerSchema = map({
  issuer: visibleText(512).describe('Exact `iss`: the Core’s API domain.'),
  jwks_url: fetchedUrl()
    .nullable()
    .prefault(null)
    .describe('Where its keys are. Without it and `jwks_file`: `issuer` followed by `/auth/jwt/jwks.json`.'),
  jwks_url_because: text(
    /^(?=.*\S)[^\x00-\x1f\x7f-\x9f]+$/,
    'why another host speaks for the issuer: 1 to 500 characters in one line',
    500,
  )
    .nullable()
    .prefault(null)
    .describe(
      'Why `jwks_url` is on another host than `issuer`, such as the Core’s address in the cluster. `check` warns until it says so.',
    ),
  jwks_file: filePath()
    .nullable()
    .prefault(null)
    .describe('File with its keys, instead of `jwks_url`. Read again when it changes.'),
  audience: line(256).describe('Exact `aud`, one string: the name of the upstream.'),
  source: oneOrMore(line(256), 'texts').describe('Exact `source`; a list while names change.'),
  token_type: oneOrMore(line(256), 'texts').describe('Exact `token_type`; a list while names change.'),
  clock_skew: duration('0ms', '60s').prefault('5s').describe('How far the issuer’s clock may be from ours.'),
  max_lifetime: duration('1s', '24h').prefault('2h').describe('Longest life of a token that is accepted.'),
  key_ids: keyIdsSchema.prefault({}).describe('Which key ids count. Others are refused and never cause a fetch.'),
  jwks: jwksSchema.prefault({}).describe('How its keys are fetched and kept.'),
  ca_file: filePath()
    .nullable()
    .prefault(null)
    .describe('Authorities in PEM that vouch for `jwks_url`, instead of the system’s. Read again for each fetch.'),
  allow_http: flag()
    .prefault(false)
    .describe('Whether `jwks_url` may be http on another host than this: whoever can change the answer signs tokens.'),
});

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
});

function compileIssuer(name: string, file: IssuerFile, absolute: AbsolutePath): IssuerSettings {
  const rules: IssuerRules = {
    name,
    issuer: file.issuer,
    audience: file.audience,
    sources: new Set(file.source),
    tokenTypes: new Set(file.token_type),
    clockSkewS: file.clock_skew / 1_000,
    maxLifetimeS: file.max_lifetime / 1_000,
    keyIds: file.key_ids,
  };
  return {
    rules,
    keys: {
      source:
        file.jwks_file === null
          ? { kind: 'url', url: jwksUrlOf(file) }
          : { kind: 'file', path: absolute(file.jwks_file) },
      caFile: absolute(file.ca_file),
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

const keysPath = '/auth/jwt/jwks.json';

/** Where an issuer's keys are fetched: as written, or below its own address. */
function jwksUrlOf({ issuer, jwks_url: url }: Pick<IssuerFile, 'issuer' | 'jwks_url'>): string {
  return url ?? `${issuer.replace(/\/$/, '')}${keysPath}`;
}

/** Least time between refreshes: what is not written never contradicts a shorter `max_age`. */
function minAgeOf({ jwks }: Pick<IssuerFile, 'jwks'>): number {
  return Math.min(jwks.min_age, jwks.max_age);
}

/** Checks what each issuer's settings say together. */
function checkIssuers(parts: ParsedConfig, report: Report): void {
  for (const entry of parts.issuers.values()) {
    if (entry.parsed === null) continue;
    checkKeySource(entry, entry.parsed.value, report);
    checkKeyHost(entry, entry.parsed.value, report);
    checkExactness(entry, entry.parsed.value, report);
    checkTimes(entry, entry.parsed.value, parts, report);
  }
  checkOverlaps([...parts.issuers.values()], report);
}

/** Where two issuers take the same claims, nothing in a token says which one's keys have to vouch for it. */
function checkOverlaps(entries: readonly Entry<IssuerFile>[], report: Report): void {
  const whole = entries.flatMap(({ path, parsed }) => (parsed === null ? [] : [{ path, ...parsed.value }]));
  for (const [index, { path, issuer, audience, source, token_type: types }] of whole.entries()) {
    const same = whole
      .slice(0, index)
      .find(
        (earlier) =>
          earlier.issuer === issuer &&
          earlier.audience === audience &&
          earlier.source.some((name) => source.includes(name)) &&
          earlier.token_type.some((type) => types.includes(type)),
      );
    if (same === undefined) continue;
    report.warning(
      [...path, 'issuer'],
      `${nameOf(path)} takes the same tokens as ${nameOf(same.path)}: keys of either vouch for them`,
      'another issuer, audience, source or token_type',
    );
  }
}

function checkKeySource({ path }: Entry<IssuerFile>, issuer: IssuerFile, report: Report): void {
  const name = nameOf(path);
  if (issuer.jwks_file !== null) {
    const at = [...path, 'jwks_file'];
    if (issuer.jwks_url !== null) {
      report.keyError(at, `${name}.jwks_file stands beside ${name}.jwks_url`, 'one of them');
    }
    if (issuer.ca_file !== null) {
      report.error([...path, 'ca_file'], `${name}.ca_file has no use with ${name}.jwks_file`, 'jwks_url');
    }
    report.warning(
      at,
      `${name}.jwks_file does not follow the issuer’s key rotation by itself`,
      'jwks_url, where the issuer can be reached',
    );
    return;
  }
  const written = issuer.jwks_url !== null;
  const at = [...path, written ? 'jwks_url' : 'issuer'];
  const url = fetchedUrl().safeParse(jwksUrlOf(issuer));
  if (!url.success) {
    report.error(
      at,
      `${name}.issuer is no URL below which keys could be: it is ${report.show(at)}`,
      'jwks_url or jwks_file beside it',
    );
    return;
  }
  const host = readUrl(url.data)?.hostname ?? '';
  if (!url.data.startsWith('http:')) return;
  if (issuer.ca_file !== null) {
    report.error([...path, 'ca_file'], `${name}.ca_file has no use without https`, 'an https jwks_url');
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
      `${name} would fetch keys over http from another host: whoever can change the answer signs tokens`,
      'https, or allow_http: true',
    );
  }
}

/**
 * Whoever publishes the keys signs the tokens: another host than the issuer's is somebody's decision, as the Core's
 * address in a cluster is.
 */
function checkKeyHost({ path }: Entry<IssuerFile>, issuer: IssuerFile, report: Report): void {
  const [at, why] = [
    [...path, 'jwks_url'],
    [...path, 'jwks_url_because'],
  ];
  const own = hostOf(hostNamedBy(issuer.issuer));
  const host = issuer.jwks_url === null ? null : (readUrl(issuer.jwks_url)?.hostname ?? null);
  const isElsewhere = host !== null && !isLoopback(host) && hostOf(host) !== own;
  if (issuer.jwks_url_because === null) {
    if (!isElsewhere || report.hasError(at)) return;
    report.warning(
      at,
      `${nameOf(path)} takes keys from another host than its issuer’s: who can publish them there signs tokens in the issuer’s name`,
      'the issuer’s host; or jwks_url_because: "…" beside it, with the reason why that host speaks for the issuer',
    );
  } else if (issuer.jwks_url === null) {
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
    const count = new Set(issuer[key]).size;
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
