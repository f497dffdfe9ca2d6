import { silentLog } from '../../../ports/system.js';
import { request as requestHttp, type IncomingMessage, type RequestOptions } from 'node:http';
import { request as requestHttps } from 'node:https';
import { systemClock, systemTimers } from '../../../adapters/system/clock.js';
import { localFiles } from '../../../adapters/files/files.js';
import { createKeySource } from '../../../adapters/jwks/key-source.js';
import type { KeySourceSettings, ListenSettings } from '../../../config/types.js';
import { readCaBundle } from '../../../lib/pem.js';
import { acceptsKeyId } from '../../../decision/token/kid-filter.js';
import type { IssuerRules, KeyIdRules } from '../../../decision/route/policy.js';
import { maxPemBytes } from '../../../app/config/named-files.js';
import type { MetadataProblem, MetadataState } from '../../../ports/auth.js';
import { ok, problem, unreachable, warning, type Finding } from './finding.js';

/** The ids of the Core's static keys begin so. */
const staticKeyIds = 's-';

/** `Date` counts in whole seconds, and the response takes a while to come. */
const dateToleranceMs = 1_500;

/** The proxy takes no set of which it accepts no key; here such a set is to be listed. */
const anyKeyId: KeyIdRules = { accept: ['*'], reject: [] };

/** What of an issuer is looked at. */
interface CheckedIssuer {
  readonly rules: Pick<IssuerRules, 'name' | 'keyIds' | 'clockSkewS'>;
  readonly keys: KeySourceSettings;
}

/**
 * Gets the keys of an issuer once, as the proxy would, and compares the clocks.
 *
 * @param dpop how proofs are taken, which count for a shorter time than tokens; `null` where none are.
 */
export async function checkIssuer(
  issuer: CheckedIssuer,
  dpop: Pick<NonNullable<ListenSettings['dpop']>, 'maxAgeMs' | 'clockSkewMs'> | null = null,
): Promise<readonly Finding[]> {
  const { rules, keys: settings } = issuer;
  const subject = `keys ${rules.name}`;
  const source = createKeySource(settings, rules.name, anyKeyId, {
    clock: systemClock,
    timers: systemTimers,
    files: localFiles,
    log: silentLog,
    metrics: { jwksRefresh: () => undefined, discoveryRefresh: () => undefined, jwksWait: () => undefined },
  });
  await source.start();
  const state = source.state();
  await source.close();
  const metadata = metadataFindings(issuer, state.metadata);
  if (state.metadata !== null && state.metadata.keysUrl === null) return metadata;
  const place =
    state.metadata?.keysUrl ?? (settings.source.kind === 'file' ? settings.source.path : hostOf(settings.source.url));
  if (state.emptySet !== null && state.lastError === null) return [...metadata, empty(subject, place)];
  if (state.ageMs === null) return [...metadata, unusable(subject, place, issuer, state.lastError ?? 'no answer')];
  return [
    ...metadata,
    keysFinding(
      subject,
      state.keys.map(({ keyId }) => keyId),
      rules.keyIds,
    ),
    ...(await checkClock(issuer, dpop)),
  ];
}

/** What becomes of the document that names the place of the keys, where there is one. */
function metadataFindings({ rules, keys }: CheckedIssuer, state: MetadataState | null): readonly Finding[] {
  if (state === null || keys.source.kind !== 'discovery') return [];
  const subject = `metadata ${rules.name}`;
  const { keysUrl, lastError, lastProblem } = state;
  if (lastProblem === null) {
    return keysUrl === null ? [] : [ok(subject, `names its keys at ${keysUrl}`)];
  }
  const { url, otherUrl } = keys.source;
  const places = [url, ...(otherUrl === null ? [] : [otherUrl])].map(hostOf).join(' or ');
  const what = `no metadata from ${places}: ${lastError ?? ''}`;
  return [
    lastProblem === 'not_fetched'
      ? unreachable(subject, what, fixes.not_fetched)
      : problem(subject, what, fixes[lastProblem]),
  ];
}

const fixes: Readonly<Record<MetadataProblem, string>> = {
  not_fetched:
    'check issuer, ca_file, token_file and that this machine may connect; discovery_url where the metadata is elsewhere, jwks_url where there is none',
  malformed: 'see what is served there; discovery_url where the metadata is elsewhere, jwks_url where there is none',
  other_issuer:
    'write issuer exactly as the metadata has it, if that is the issuer that you mean; else another discovery_url',
  other_origin:
    'put that origin into jwks_origins, if the issuer says that its keys are there; http is allowed on loopback only, or with allow_http: true',
};

function unusable(subject: string, place: string, { keys }: CheckedIssuer, error: string): Finding {
  const what = `no keys from ${place}: ${error}`;
  if (keys.source.kind === 'file') return problem(subject, what, 'put the key set of the Core into this file');
  if (keys.source.kind === 'discovery') {
    return unreachable(subject, what, 'check ca_file, token_file and that this machine may connect there');
  }
  const key = keys.rules.use === 'jwt-svid' ? 'bundle_url' : 'jwks_url';
  return unreachable(subject, what, `check ${key}, ca_file and that this machine may connect to the Core`);
}

function empty(subject: string, place: string): Finding {
  return problem(
    subject,
    `the key set of ${place} lists no key that can be used: the issuer has withdrawn them all, so that every token of its is refused`,
    'see what the issuer publishes, and whether that is meant',
  );
}

function keysFinding(subject: string, keyIds: readonly string[], rules: KeyIdRules): Finding {
  const accepted = keyIds.filter((keyId) => acceptsKeyId(rules, keyId));
  const others = keyIds.filter((keyId) => !acceptsKeyId(rules, keyId));
  const listed = `accepted: ${list(accepted)}; not accepted: ${list(others)}`;
  if (accepted.length === 0) {
    return problem(
      subject,
      `no key counts (${listed})`,
      'let key_ids.accept match the key ids of the dynamic keys, and only those',
    );
  }
  const fixed = accepted.filter((keyId) => keyId.startsWith(staticKeyIds));
  if (fixed.length > 0) {
    return warning(
      subject,
      `static keys count (${list(fixed)}): they are never replaced, so that whoever has one signs tokens for ever; ${listed}`,
      'key_ids: { accept: ["d-*"] }, and mint with useStaticSigningKey: false',
    );
  }
  return ok(subject, listed);
}

function list(keyIds: readonly string[]): string {
  return keyIds.length === 0 ? 'none' : keyIds.join(' ');
}

async function checkClock(
  { rules, keys }: CheckedIssuer,
  dpop: Parameters<typeof checkIssuer>[1] = null,
): Promise<readonly Finding[]> {
  if (keys.source.kind === 'file') return [];
  const subject = `clock ${rules.name}`;
  const sentAtMs = Date.now();
  const date = await dateOf(keys.source.url, keys.caFile, keys.timeoutMs);
  if (date === null) {
    return [warning(subject, 'the Core sends no Date to compare the clock with', 'compare the clocks by hand')];
  }
  // The truth lies somewhere between sending and receiving; the nearer end is taken.
  const offsetMs = Math.abs(date - sentAtMs) < Math.abs(date - Date.now()) ? date - sentAtMs : date - Date.now();
  const skewMs = rules.clockSkewS * 1000;
  const words = `${(Math.abs(offsetMs) / 1000).toFixed(0)} s ${offsetMs < 0 ? 'behind' : 'ahead of'} this machine`;
  if (Math.abs(offsetMs) > skewMs + dateToleranceMs) {
    return [
      problem(subject, `the Core's clock is ${words}, which is more than clock_skew`, 'synchronise both clocks (NTP)'),
    ];
  }
  // A proof may be old, and hardly from later.
  const [earliestMs, latestMs] = dpop === null ? [0, 0] : [-dpop.maxAgeMs - dpop.clockSkewMs, dpop.clockSkewMs];
  if (dpop !== null && (offsetMs < earliestMs - dateToleranceMs || offsetMs > latestMs + dateToleranceMs)) {
    const what = `the Core's clock is ${words}, more than listen.dpop allows: of clients with its time no proof counts`;
    return [problem(subject, what, 'synchronise both clocks (NTP)')];
  }
  return [ok(subject, 'agrees with the Core within clock_skew')];
}

/** The `Date` of any response of that server, in milliseconds since the epoch. */
async function dateOf(url: string, caFile: string | null, timeoutMs: number): Promise<number | null> {
  const authorities = caFile === null ? null : await localFiles.read(caFile, { maxBytes: maxPemBytes });
  const ca = authorities?.ok === true ? readCaBundle(authorities.value) : null;
  const options: RequestOptions & { ca?: string[] } = {
    method: 'HEAD',
    agent: false,
    signal: AbortSignal.timeout(timeoutMs),
    ...(ca?.ok === true ? { ca: [...ca.value] } : {}),
  };
  try {
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      const send = url.startsWith('https:') ? requestHttps : requestHttp;
      send(url, options, resolve).on('error', reject).end();
    });
    response.destroy();
    const parsed = Date.parse(response.headers.date ?? '');
    return Number.isNaN(parsed) ? null : parsed;
  } catch {
    return null;
  }
}

/** Without user and query, which may be secret. */
function hostOf(url: string): string {
  const { protocol, host, pathname } = new URL(url);
  return `${protocol}//${host}${pathname}`;
}
