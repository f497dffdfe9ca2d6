import type { KeySourceSettings } from '../../config/compiled.js';
import { lifetimeMs } from '../../decision/cache-lifetime.js';
import { acceptsKeyId } from '../../decision/key-ids.js';
import type { KeyIdRules } from '../../decision/policy.js';
import { accept, refuse, type Result } from '../../decision/result.js';
import type { Clock, Files, KeyLookup, KeySource, KeySourceState, Log, Metrics, Timers } from '../../ports.js';
import { createFileOrigin } from './file-origin.js';
import { freshUntilMs, holdKeys, sameKeys, usableUntilMs, type HeldKeys } from './held-keys.js';
import type { KeyOrigin } from './key-origin.js';
import { startLoad, type KeyLoad, type LoadedKeys } from './load.js';
import { refreshDelayMs, retryDelayMs } from './schedule.js';
import { createUrlOrigin } from './url-origin.js';

export interface KeySourceDeps {
  readonly clock: Clock;
  readonly timers: Timers;
  readonly files: Files;
  readonly log: Log;
  readonly metrics: Pick<Metrics, 'jwksRefresh'>;
  /** From 0 up to 1; `Math.random` unless given. */
  readonly random?: () => number;
}

/** The keys of one issuer, kept up to date until it is closed. */
export interface RefreshedKeySource extends KeySource {
  /** Settles after the first attempt, good or bad; attempts go on by themselves. Never rejects. */
  readonly start: () => Promise<void>;
  /** Takes other timings and key id rules without letting go of the keys. Only between settings with `sameSource`. */
  readonly update: (settings: KeySourceSettings, keyIds: KeyIdRules) => void;
  /** Ends every attempt. Keys in hand still answer for requests that began before. */
  readonly close: () => Promise<void>;
  /** The set in hand, for a source that takes this one's place. */
  readonly held: () => HeldKeys | null;
}

/**
 * Look-ups that wait for one attempt. Whoever sends tokens with unknown key ids holds these, without a credential, for as
 * long as the source hangs; those above are refused at once.
 */
const maxWaiting = 256;

/** Key ids and reasons that one log line lists. */
const maxListed = 20;

const unknown: KeyLookup = { kind: 'unknown' };
const unavailable: KeyLookup = { kind: 'unavailable' };

/** Tells whether a running source may be updated from one to the other, so that its keys are kept. */
export function sameSource(a: KeySourceSettings, b: KeySourceSettings): boolean {
  if (a.source.kind === 'url') return b.source.kind === 'url' && a.source.url === b.source.url && a.caFile === b.caFile;
  // The watch on a file reads as much as it was told to at first.
  return b.source.kind === 'file' && a.source.path === b.source.path && a.maxBytes === b.maxBytes;
}

/**
 * Makes the source of one issuer's keys; `issuer` is its name in the config. `initialKeys` came from the
 * same place before: they serve until a fetch succeeds, no longer than if that source had gone on.
 */
export function createKeySource(
  initialSettings: KeySourceSettings, issuer: string, initialKeyIds: KeyIdRules, deps: KeySourceDeps, initialKeys: HeldKeys | null = null,
): RefreshedKeySource {
  const { clock, timers, files, log, metrics, random = Math.random } = deps;
  let settings = initialSettings;
  let keyIds = initialKeyIds;
  let held = initialKeys;
  let lastError: string | null = null;
  let failures = 0;
  let attemptedAtMs = -Infinity;
  let load: KeyLoad | null = null;
  let underWay: Promise<void> | null = null;
  let waiting = 0;
  let skipped = '';
  let callOffNext = (): void => undefined;
  let closed = false;
  const origin = createOrigin(initialSettings, files, () => {
    // An attempt under way may have read what was there before the change.
    void (underWay ?? Promise.resolve()).then(refresh);
  });

  function find(keyId: string): KeyLookup | Promise<KeyLookup> {
    const answer = lookUp(keyId);
    if (answer.kind === 'found' || closed) return answer;
    if (underWay === null && clock.monotonic() - attemptedAtMs < settings.cooldownMs) return answer;
    const attempt = refresh();
    if (waiting >= maxWaiting) return unavailable;
    waiting += 1;
    return attempt.then(() => {
      waiting -= 1;
      return lookUp(keyId);
    });
  }

  function lookUp(keyId: string): KeyLookup {
    const nowMs = clock.monotonic();
    if (held === null || nowMs > usableUntilMs(held, settings)) return unavailable;
    const key = held.keys.get(keyId);
    if (key !== undefined) return key.found;
    // Only a set that is good now can tell that there is no such key.
    return lastError === null && !closed && nowMs <= freshUntilMs(held, settings) ? unknown : unavailable;
  }

  function refresh(): Promise<void> {
    if (closed) return Promise.resolve();
    underWay ??= attempt().finally(() => {
      underWay = null;
    });
    return underWay;
  }

  async function attempt(): Promise<void> {
    load = startLoad(origin, settings, timers);
    const loaded = await load.result;
    load = null;
    if (closed) return;
    attemptedAtMs = clock.monotonic();
    const result = loaded.ok ? useful(loaded.value) : loaded;
    if (result.ok) take(result.value);
    else fail(result.error);
    metrics.jwksRefresh(issuer, result.ok ? 'ok' : 'failed');
    schedule();
  }

  /** A set without a key that may count could verify nothing: it is refused, like an empty one. */
  function useful(loaded: LoadedKeys): Result<LoadedKeys, string> {
    return hasAccepted(loaded.keys) ? accept(loaded) : refuse(`key_ids accepts none of the set's ${String(loaded.keys.size)} keys`);
  }

  function take(loaded: LoadedKeys): void {
    const before = held;
    held = holdKeys(before, loaded, attemptedAtMs);
    const isNews = failures > 0 || !sameKeys(before, held);
    failures = 0;
    lastError = null;
    if (isNews) log.info('keys loaded', { issuer, key_ids: [...held.keys.keys()].slice(0, maxListed), keys: held.keys.size });
    const reasons = loaded.skipped.slice(0, maxListed);
    if (reasons.length > 0 && reasons.join() !== skipped) log.warn('keys of the key set were passed over', { issuer, skipped: reasons });
    skipped = reasons.join();
  }

  function fail(error: string): void {
    failures += 1;
    lastError = error;
    const serving = held !== null && attemptedAtMs <= usableUntilMs(held, settings);
    log.warn('keys could not be loaded', { issuer, error, failures, known_keys_serve: serving });
  }

  /** Plans the next attempt, counted from the last. */
  function schedule(): void {
    callOffNext();
    const delayMs = lastError === null ? refreshDelayMs(lifetimeMs(held?.freshnessMs ?? null, settings), random()) : retryMs();
    callOffNext = timers.after(Math.max(0, attemptedAtMs + delayMs - clock.monotonic()), () => void refresh());
  }

  function retryMs(): number {
    const delayMs = retryDelayMs(failures, random());
    // While known keys serve there is no hurry, and a source in trouble is asked no more than callers could make us ask.
    return isUsable() ? Math.max(delayMs, settings.cooldownMs) : delayMs;
  }

  function isUsable(): boolean {
    return held !== null && clock.monotonic() <= usableUntilMs(held, settings) && hasAccepted(held.keys);
  }

  function hasAccepted(keys: ReadonlyMap<string, unknown>): boolean {
    return [...keys.keys()].some((keyId) => acceptsKeyId(keyIds, keyId));
  }

  function state(): KeySourceState {
    const nowMs = clock.monotonic();
    const keys = [...held?.keys ?? []].map(([keyId, { sinceMs }]) => (
      { keyId, ageMs: nowMs - sinceMs, accepted: acceptsKeyId(keyIds, keyId) }
    ));
    return {
      issuer,
      usable: isUsable(),
      stale: lastError !== null || (held !== null && nowMs > freshUntilMs(held, settings)),
      ageMs: held === null ? null : nowMs - held.loadedAtMs,
      keys,
      lastError,
    };
  }

  return {
    find,
    state,
    held: () => held,
    start: refresh,
    update: (nextSettings, nextKeyIds) => {
      settings = nextSettings;
      keyIds = nextKeyIds;
      if (closed || underWay !== null) return;
      // Keys that the old rules had no use for were not worth a fetch; they may be now.
      if (isUsable()) schedule();
      else void refresh();
    },
    close: async () => {
      closed = true;
      callOffNext();
      origin.close();
      load?.callOff();
      await underWay;
    },
  };
}

function createOrigin({ source, caFile }: KeySourceSettings, files: Files, onChange: () => void): KeyOrigin {
  return source.kind === 'url' ? createUrlOrigin(source.url, caFile, files) : createFileOrigin(source.path, files, onChange);
}
