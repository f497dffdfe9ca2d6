/** What of an issuer says where its keys are, and how they are fetched and kept. */
import { staleAllowanceMs, longestKeyWaitMs } from '../../../decision/http/http-freshness.js';
import { isLoopback } from '../../../lib/ip-ranges.js';
import type { Entry, ParsedConfig } from '../../load/parse-sections.js';
import { nameOf, type Report } from '../../load/report.js';
import { readUrl } from '../../schema/addresses.js';
import {
  always,
  never,
  reloaded,
  saidByAnother,
  secretsIn,
  whenAdded,
  whenMore,
  whenOn,
  withoutSecrets,
  type KeyChanges,
} from '../../schema/key-changes.js';
import { duration, fetchedUrl, map, size } from '../../schema/scalars.js';
import type { AbsolutePath } from '../../schema/section.js';
import type { IssuerSettings, KeyPlace } from '../../types.js';
import type { IssuerFile } from './issuers.js';

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
  max_bytes: size('1KiB', '16MiB').prefault('256KiB').describe('Largest body of a response that is read.'),
});

/** Milliseconds for which keys serve on where `max_stale` is left out, by what the issuer says. */
const [leastStaleMs, mostStaleMs] = [staleAllowanceMs(null, true), staleAllowanceMs(null, false)];

/** What a change of each of its keys means. */
export const keyAccessKeys: KeyChanges<Pick<IssuerSettings, 'keys' | 'allowsHttp'>> = {
  jwks_url: {
    of: ({ keys: { source } }) => (source.kind === 'file' ? source.path : withoutSecrets(source.url)),
    hidden: ({ keys: { source } }) => (source.kind === 'file' ? null : secretsIn(source.url)),
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
  allow_http: { of: ({ allowsHttp }) => allowsHttp, widens: whenOn },
  ca_file: { of: ({ keys }) => keys.caFile, widens: always },
  'jwks.min_age': { of: ({ keys }) => keys.minAgeMs, widens: whenMore },
  'jwks.max_age': { of: ({ keys }) => keys.maxAgeMs, widens: whenMore },
  // Left out it is an hour at most: what the issuer says may make it less.
  'jwks.max_stale': {
    of: ({ keys }) => keys.maxStaleMs,
    widens: (from, to) => whenMore(from ?? leastStaleMs, to ?? mostStaleMs),
  },
  'jwks.cooldown': reloaded,
  'jwks.timeout': reloaded,
  'jwks.max_bytes': reloaded,
};

const kubernetesFolder = '/var/run/secrets/kubernetes.io/serviceaccount';

/** What every pod finds the API server by, and knows it by. */
const inCluster = {
  discoveryUrl: 'https://kubernetes.default.svc/.well-known/openid-configuration',
  caFile: `${kubernetesFolder}/ca.crt`,
  tokenFile: `${kubernetesFolder}/token`,
} as const;

/** The Core's keys are below its address. */
const coreKeysPath = '/auth/jwt/jwks.json';

/** How the keys are reached. */
interface KeyAccess {
  readonly source: KeyPlace;
  readonly caFile: string | null;
  readonly tokenFile: string | null;
}

/** Where an issuer's keys are, and what they are reached with. Only for an issuer without errors. */
function keyAccessOf(file: IssuerFile, absolute: AbsolutePath): KeyAccess {
  const access = { caFile: absolute(file.ca_file), tokenFile: absolute(file.token_file ?? null) };
  const path = file.jwks_file ?? file.bundle_file;
  if (path !== null) return { ...access, source: { kind: 'file', path: absolute(path) } };
  const written = file.jwks_url ?? file.bundle_url ?? (file.profile === 'core' ? coreKeysUrl(file) : null);
  if (written !== null) return { ...access, source: { kind: 'url', url: written } };
  const source = discoveryOf(file);
  if (!usesCluster(file)) return { ...access, source };
  return {
    source,
    caFile: access.caFile ?? inCluster.caFile,
    tokenFile: file.token_file === undefined ? inCluster.tokenFile : access.tokenFile,
  };
}

function discoveryOf(file: IssuerFile): KeyPlace {
  const issuer = file.issuer ?? '';
  const [url, otherUrl = null] = discoveryUrls(file);
  const origins = [issuer, url, ...file.jwks_origins].flatMap((named) => readUrl(named) ?? []);
  const isProtected = ({ protocol, hostname }: URL): boolean =>
    protocol === 'https:' || (protocol === 'http:' && (file.allow_http || isLoopback(hostname)));
  const keyOrigins = new Set(origins.filter(isProtected).map(({ origin }) => origin));
  const named = [url, ...file.jwks_origins].flatMap((origin) => readUrl(origin) ?? []);
  const tokenOrigins = new Set(named.filter(({ protocol }) => protocol === 'https:').map(({ origin }) => origin));
  return { kind: 'discovery', url, otherUrl, issuer, keyOrigins, tokenOrigins };
}

function coreKeysUrl({ issuer = '' }: Pick<IssuerFile, 'issuer'>): string {
  return `${issuer.replace(/\/$/, '')}${coreKeysPath}`;
}

/** Whether everything that is fetched is fetched from the cluster that the proxy runs in. */
function usesCluster(file: IssuerFile): boolean {
  return (
    file.profile === 'kubernetes' && file.discovery_url === null && file.jwks_url === null && file.jwks_file === null
  );
}

function discoveryUrls(file: IssuerFile): readonly [string, ...string[]] {
  if (file.discovery_url !== null) return [file.discovery_url];
  if (usesCluster(file)) return [inCluster.discoveryUrl];
  return metadataUrls(file.issuer ?? '');
}

/**
 * Where an issuer's metadata may be: OpenID Connect Discovery §4 puts its path behind the issuer's, RFC 8414 §3 in
 * between.
 */
export function metadataUrls(named: string): readonly [string, ...string[]] {
  const issuer = named.replace(/\/$/, '');
  const [, origin = '', path = ''] = /^([^/]*\/\/[^/?#]*)([^?#]*)/.exec(issuer) ?? [];
  return [`${issuer}/.well-known/openid-configuration`, `${origin}/.well-known/oauth-authorization-server${path}`];
}

/** A place that keys or metadata are fetched from. */
interface FetchedPlace {
  /** The key that says so. */
  readonly key: 'issuer' | 'jwks_url' | 'discovery_url' | 'bundle_url';
  readonly url: string;
}

/** Where keys, or the metadata that names their place, are fetched first; `null` where they come from a file. */
function fetchedFrom(file: IssuerFile): FetchedPlace | null {
  if (file.jwks_file !== null || file.bundle_file !== null) return null;
  if (file.jwks_url !== null) return { key: 'jwks_url', url: file.jwks_url };
  if (file.bundle_url !== null) return { key: 'bundle_url', url: file.bundle_url };
  if (file.profile === 'core') return { key: 'issuer', url: coreKeysUrl(file) };
  if (file.profile === 'spiffe') return null;
  return { key: file.discovery_url === null ? 'issuer' : 'discovery_url', url: discoveryUrls(file)[0] };
}

/** Whether the issuer's metadata says where its keys are, and may say more. */
export function fetchesMetadata(file: IssuerFile): boolean {
  const place = fetchedFrom(file);
  return file.profile !== 'core' && (place?.key === 'issuer' || place?.key === 'discovery_url');
}

/** How its keys are fetched and kept, with the rules that they are held to. */
export function compileKeyAccess(
  file: IssuerFile,
  algorithms: IssuerSettings['rules']['algorithms'],
  absolute: AbsolutePath,
): IssuerSettings['keys'] {
  return {
    ...keyAccessOf(file, absolute),
    rules: { algorithms, use: file.profile === 'spiffe' ? 'jwt-svid' : 'sig' },
    minAgeMs: minAgeOf(file),
    maxAgeMs: file.jwks.max_age,
    maxStaleMs: file.jwks.max_stale,
    cooldownMs: file.jwks.cooldown,
    timeoutMs: file.jwks.timeout,
    maxBytes: file.jwks.max_bytes,
  };
}

/** Least time between refreshes: what is not written never contradicts a shorter `max_age`. */
function minAgeOf({ jwks }: Pick<IssuerFile, 'jwks'>): number {
  return Math.min(jwks.min_age, jwks.max_age);
}

/** Checks where an issuer's keys are, and for how long they count. */
export function checkKeyAccess(
  entry: Entry<IssuerFile>,
  issuer: IssuerFile,
  parts: ParsedConfig,
  report: Report,
): void {
  checkKeySource(entry, issuer, report);
  checkKeyHost(entry, issuer, report);
  checkKeyTimes(entry, issuer, parts, report);
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

/** Milliseconds. A restart of the Core takes less, most outages of a network do. */
const usualOutageMs = 300_000;

function checkKeyTimes({ path }: Entry<IssuerFile>, issuer: IssuerFile, parts: ParsedConfig, report: Report): void {
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
}
