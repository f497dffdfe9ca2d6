import type { DiscoveryPlace } from '../../config/types.js';
import { lifetimeMs, staleAllowanceMs, type KeepingRules } from '../../decision/http/http-freshness.js';
import { refuse, type Result } from '../../lib/result.js';
import type { MetadataState } from '../../ports/auth.js';
import type { Metrics } from '../../ports/observability.js';
import type { Clock, Log, Timers } from '../../ports/system.js';
import {
  createUrlOrigin,
  fetchText,
  type FetchAccess,
  type FetchFailure,
  type KeyOrigin,
  type LoadedKeySet,
  type RefreshLimits,
} from './fetch-url.js';
import { readMetadata, type Metadata, type MetadataFailure } from './metadata-document.js';

interface DiscoveryDeps {
  readonly clock: Clock;
  readonly timers: Timers;
  readonly log: Log;
  readonly metrics: Pick<Metrics, 'discoveryRefresh'>;
}

/** The metadata in force. Times are those of the monotonic clock. */
interface HeldMetadata extends KeepingRules, Metadata {
  readonly loadedAtMs: number;
}

/** Share of its lifetime after which metadata is fetched with the next key set: no later than the keys are. */
const refreshShare = 0.8;

/**
 * Cool-downs between attempts to get metadata before it is due: 30 s with the defaults. A made-up key id, which may
 * cause a fetch of keys once in a cool-down, causes one of metadata in one of six of these.
 */
const cooldownsPerAttempt = 6;

/** Share of the time for all that may be spent on metadata: the rest is for the keys, where the last place serves. */
const metadataShare = 0.5;

/**
 * Keys at the place that an issuer's metadata names (OpenID Connect Discovery §4, RFC 8414 §3). The last good document
 * stays in force while there is no other, for as long past its lifetime as keys do. `issuer` is its name in the config.
 */
export function createDiscoveryOrigin(
  place: DiscoveryPlace,
  access: FetchAccess,
  issuer: string,
  { clock, timers, log, metrics }: DiscoveryDeps,
): KeyOrigin {
  let held: HeldMetadata | null = null;
  let askedAtMs = -Infinity;
  let failures = 0;
  let last: MetadataFailure | null = null;
  /** Of the last refresh. */
  let limitsInForce: RefreshLimits | null = null;

  async function load(limits: RefreshLimits, signal: AbortSignal): Promise<Result<LoadedKeySet, string>> {
    limitsInForce = limits;
    const mayAsk = clock.monotonic() >= askedAtMs + cooldownsPerAttempt * limits.cooldownMs;
    const hasAsked =
      documentInUse(limits) === null || (isDue(limits) && failures === 0) || (isWanted(limits) && mayAsk);
    if (hasAsked) await ask(limits, signal);
    const known = documentInUse(limits);
    if (known === null) return refuse(`no metadata: ${last?.why ?? 'none was fetched'}`);
    const loaded = await fetchKeys(known, limits, signal);
    if (loaded.ok || hasAsked || !mayAsk || signal.aborted) return loaded;
    // The keys may have moved.
    await ask(limits, signal);
    const next = documentInUse(limits);
    return next === null || next.keysUrl === known.keysUrl ? loaded : fetchKeys(next, limits, signal);
  }

  /** The document that counts now; `null` where there is none, or it is too old. */
  function documentInUse(limits: RefreshLimits): HeldMetadata | null {
    if (held === null) return null;
    const usableMs = lifetimeMs(held.freshnessMs, limits) + staleAllowanceMs(limits.maxStaleMs, held.mustRevalidate);
    return clock.monotonic() <= held.loadedAtMs + usableMs ? held : null;
  }

  function isDue(limits: RefreshLimits): boolean {
    return held === null || clock.monotonic() >= held.loadedAtMs + refreshShare * lifetimeMs(held.freshnessMs, limits);
  }

  function isWanted(limits: RefreshLimits): boolean {
    return limits.isAwaited || failures > 0 || isDue(limits);
  }

  async function ask(limits: RefreshLimits, signal: AbortSignal): Promise<void> {
    askedAtMs = clock.monotonic();
    const timeoutMs = Math.ceil(limits.timeoutMs * metadataShare);
    const deadline = new AbortController();
    const callOff = timers.after(timeoutMs, () => {
      deadline.abort();
    });
    const fetched = await fetchDocument({ ...limits, timeoutMs }, AbortSignal.any([signal, deadline.signal]));
    callOff();
    // The attempt as a whole is over: it said why.
    if (signal.aborted) return;
    if (fetched.ok) take(fetched.value);
    else {
      const late = `no complete response within ${String(timeoutMs)} ms`;
      fail({ why: deadline.signal.aborted ? late : fetched.error.why, problem: 'not_fetched' }, limits);
    }

    function take({ bytes, freshnessMs, mustRevalidate }: LoadedKeySet): void {
      const read = readMetadata(bytes, place);
      if (!read.ok) {
        fail(read.error, limits);
        return;
      }
      const { keysUrl } = read.value;
      const isNews = failures > 0 || held?.keysUrl !== keysUrl;
      held = { ...read.value, loadedAtMs: askedAtMs, freshnessMs, mustRevalidate };
      failures = 0;
      last = null;
      metrics.discoveryRefresh(issuer, 'ok');
      if (isNews) log.info('metadata loaded', { issuer, keys_from: withoutQuery(keysUrl) });
    }
  }

  function fail(failure: MetadataFailure, limits: RefreshLimits): void {
    failures += 1;
    last = failure;
    const isRefused = failure.problem !== 'not_fetched';
    metrics.discoveryRefresh(issuer, isRefused ? 'refused' : 'failed');
    const fields = { issuer, error: failure.why, failures, known_metadata_serves: documentInUse(limits) !== null };
    log.warn(isRefused ? 'metadata was refused' : 'metadata could not be loaded', fields);
  }

  async function fetchDocument(
    limits: RefreshLimits,
    signal: AbortSignal,
  ): Promise<Result<LoadedKeySet, FetchFailure>> {
    const exact = { ...limits, maxRedirects: 0 };
    const first = await fetchText(new URL(place.url), accessTo(place.url, place, access), exact, signal);
    if (first.ok || first.error.status !== 404 || place.otherUrl === null) return first;
    return fetchText(new URL(place.otherUrl), accessTo(place.otherUrl, place, access), exact, signal);
  }

  async function fetchKeys(
    { keysUrl }: HeldMetadata,
    limits: RefreshLimits,
    signal: AbortSignal,
  ): Promise<Result<LoadedKeySet, string>> {
    const loaded = await createUrlOrigin(keysUrl, accessTo(keysUrl, place, access)).load(limits, signal);
    return loaded.ok ? loaded : refuse(`the keys at ${withoutQuery(keysUrl)}: ${loaded.error}`);
  }

  return {
    load,
    metadata: () => ({
      ageMs: held === null ? null : clock.monotonic() - held.loadedAtMs,
      keysUrl: held === null ? null : withoutQuery(held.keysUrl),
      introspection: (limitsInForce === null ? null : documentInUse(limitsInForce)?.introspection) ?? noPlaces,
      lastError: last?.why ?? null,
      lastProblem: last?.problem ?? null,
    }),
    close: () => undefined,
  };
}

/** What keys at this place are fetched with: the token goes to the origins that the config has for it alone. */
function accessTo(keysUrl: string, { tokenOrigins }: DiscoveryPlace, access: FetchAccess): FetchAccess {
  return tokenOrigins.has(new URL(keysUrl).origin) ? access : { ...access, tokenFile: null };
}

const noPlaces: MetadataState['introspection'] = { url: null, mtlsUrl: null };

/** A query may hold what is secret. */
function withoutQuery(text: string): string {
  const { origin, pathname } = new URL(text);
  return `${origin}${pathname}`;
}
