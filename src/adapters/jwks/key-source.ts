import { isDeepStrictEqual as isSameValue } from 'node:util';
import type { KeySourceSettings } from '../../config/types.js';
import { lifetimeMs, longestKeyWaitMs } from '../../decision/http/http-freshness.js';
import { acceptsKeyId } from '../../decision/token/kid-filter.js';
import type { KeyRules } from '../../decision/token/profiles.js';
import type { KeyIdRules } from '../../decision/route/policy.js';
import type { Clock, Files, Log, Timers } from '../../ports/system.js';
import type { KeyAsker, KeyLookup, LookupWait, KeySource, KeySourceState } from '../../ports/auth.js';
import type { Metrics } from '../../ports/observability.js';
import { createDiscoveryOrigin } from './discovery.js';
import { createFileOrigin } from './read-file.js';
import { createBundleOrigin } from './spiffe-bundle.js';
import {
  freshUntilMs,
  holdKeys,
  sameKeys,
  stalePartOf,
  usableUntilMs,
  withdrawnFrom,
  type HeldKeys,
  readKeySet,
  type KeySet,
} from './key-set.js';
import { type KeyOrigin, type LoadedKeySet, createUrlOrigin, type RefreshLimits } from './fetch-url.js';
import { createWaitingRoom, type Waiter } from './waiting-room.js';
import { accept, refuse, type Result } from '../../lib/result.js';

interface KeySourceDeps {
  readonly clock: Clock;
  readonly timers: Timers;
  readonly files: Files;
  readonly log: Log;
  readonly metrics: Pick<Metrics, 'jwksRefresh' | 'jwksWait' | 'discoveryRefresh'>;
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
  /** Answers everybody who waits for a cool-down to be over; from now on nobody does. For the end of the process. */
  readonly endWaits: () => void;
  /** The set in hand, for a source that takes this one's place. */
  readonly held: () => HeldKeys | null;
}

/** Key ids that are remembered as not listed, for as long as they are asked for. */
const maxUnlisted = 1_024;

/** Withdrawn keys that operators are shown. */
const maxWithdrawn = 20;

/** Key ids and reasons that one log line lists. */
const maxListed = 20;

const unknown: KeyLookup = { kind: 'unknown' };
const unavailable: KeyLookup = { kind: 'unavailable' };
const busy: KeyLookup = { kind: 'busy' };

/** Tells whether a running source may be updated from one to the other, so that its keys are kept. */
export function sameSource(a: KeySourceSettings, b: KeySourceSettings): boolean {
  if (!isSameValue(a.rules, b.rules) || !isSameValue(a.source, b.source)) return false;
  // The watch on a file reads as much as it was told to at first.
  return a.source.kind === 'file' ? a.maxBytes === b.maxBytes : a.caFile === b.caFile && a.tokenFile === b.tokenFile;
}

/**
 * Makes the source of one issuer's keys; `issuer` is its name in the config. `initialKeys` came from the
 * same place before: they serve until a fetch succeeds, no longer than if that source had gone on.
 */
export function createKeySource(
  initialSettings: KeySourceSettings,
  issuer: string,
  initialKeyIds: KeyIdRules,
  deps: KeySourceDeps,
  initialKeys: HeldKeys | null = null,
): RefreshedKeySource {
  const { clock, timers, log, metrics, random = Math.random } = deps;
  const room = createWaitingRoom();
  let settings = initialSettings;
  let keyIds = initialKeyIds;
  let held = initialKeys;
  let lastError: string | null = null;
  let failures = 0;
  /** When the source first said that no key counts, and nobody asked again since. */
  let emptySinceMs: number | null = null;
  /** Ids that a set did not list after they had been asked for, and whether they were asked for since. */
  let unlisted = new Map<string, boolean>();
  let withdrawn: readonly { readonly keyId: string; readonly atMs: number }[] = [];
  let attemptedAtMs = -Infinity;
  let load: KeyLoad | null = null;
  let underWay: Promise<void> | null = null;
  let skipped = '';
  let callOffNext = (): void => undefined;
  let nextAtMs: number | null = null;
  let mayWait = true;
  let closed = false;
  const origin = createOrigin(initialSettings, issuer, deps, () => {
    // An attempt under way may have read what was there before the change.
    void (underWay ?? Promise.resolve()).then(refresh);
  });

  function find(keyId: string, lookupWait: LookupWait = 'fetch'): KeyLookup | Promise<KeyLookup> {
    const found = lookUp(keyId);
    if (found.kind === 'found' || closed || lookupWait === 'now') return found;
    const waitMs = untilFetchMs();
    if (waitMs > 0 && !isWorthWaiting(keyId, lookupWait, waitMs)) {
      return mayWait || unlisted.has(keyId) ? found : unavailable;
    }
    return wait(keyId, lookupWait === 'fetch' ? null : lookupWait, waitMs);
  }

  function lookUp(keyId: string, nowMs = clock.monotonic()): KeyLookup {
    if (held === null || nowMs > usableUntilMs(held, settings)) return unavailable;
    const key = held.keys.get(keyId);
    if (key !== undefined) return key.found;
    // Only a set that is good now can tell that there is no such key.
    return !isInDoubt() && emptySinceMs === null && !closed && nowMs <= freshUntilMs(held, settings)
      ? unknown
      : unavailable;
  }

  /** Whether the set in hand may not be the issuer's last: it, or where it is now, could not be asked. */
  function isInDoubt(): boolean {
    return lastError !== null || (origin.metadata()?.lastError ?? null) !== null;
  }

  /** Milliseconds until a fetch for an unknown key id is allowed; 0 while one is under way. */
  function untilFetchMs(): number {
    return underWay === null ? Math.max(0, attemptedAtMs + settings.cooldownMs - clock.monotonic()) : 0;
  }

  /**
   * Whether the fetch after the cool-down may tell more. Where the last attempt failed, whoever comes is told at once.
   */
  function isWorthWaiting(keyId: string, lookupWait: LookupWait, waitMs: number): boolean {
    if (unlisted.has(keyId)) unlisted.set(keyId, true);
    return (
      lookupWait !== 'fetch' && mayWait && lastError === null && waitMs <= longestKeyWaitMs && !unlisted.has(keyId)
    );
  }

  function wait(keyId: string, asker: KeyAsker | null, waitMs: number): Promise<KeyLookup> {
    const sinceMs = clock.monotonic();
    return new Promise((resolve) => {
      const conclude = (found: KeyLookup): void => {
        callOff();
        metrics.jwksWait(issuer, found.kind);
        asker?.onKeyWait?.({ issuer, startedMs: sinceMs, endedMs: clock.monotonic(), result: found.kind });
        resolve(found);
      };
      const waiter: Waiter = { keyId, sinceMs, asker, resolve: conclude };
      // An attempt ends within its own time limit, which may be longer.
      const callOff =
        asker === null
          ? () => undefined
          : timers.after(longestKeyWaitMs, () => {
              room.settle((other) => (other === waiter ? unavailable : null));
            });
      const hasEntered = room.enter(waiter);
      if (!hasEntered) conclude(busy);
      // With whoever waits in the room, so that the attempt knows of them.
      if (waitMs === 0) void refresh();
      else if (hasEntered) schedule();
    });
  }

  function refresh(): Promise<void> {
    if (closed) return Promise.resolve();
    if (underWay !== null) return underWay;
    const begun = attempt().finally(() => {
      if (underWay === begun) underWay = null;
    });
    underWay = begun;
    return begun;
  }

  async function attempt(): Promise<void> {
    const beganAtMs = clock.monotonic();
    load = startLoad(origin, { ...settings, isAwaited: room.size() > 0 }, settings.rules, timers);
    const loaded = await load.result;
    load = null;
    if (closed) return;
    attemptedAtMs = clock.monotonic();
    const result = loaded.ok ? judge(loaded.value) : 'failed';
    if (!loaded.ok) fail(loaded.error);
    metrics.jwksRefresh(issuer, result);
    // Whoever is answered may ask again at once, and has to find that this attempt is over.
    underWay = null;
    settleWaiting(beganAtMs);
    schedule();
  }

  /**
   * A good response is the issuer's word: what it does not list counts no more. Where no key of it counts, which a
   * fault may cause as well, the source is asked again a cool-down later before it is believed.
   */
  function judge(loaded: LoadedKeys): 'ok' | 'empty' {
    if (hasAccepted(loaded.keys)) {
      emptySinceMs = null;
      take(loaded);
      return 'ok';
    }
    failures = 0;
    lastError = null;
    const isConfirmed = emptySinceMs !== null && attemptedAtMs - emptySinceMs >= settings.cooldownMs;
    // Nothing to lose, and nothing that was not said before.
    if (isConfirmed || isBare()) {
      emptySinceMs = null;
      take(loaded);
    } else if (emptySinceMs === null) {
      emptySinceMs = attemptedAtMs;
      log.warn('the key set lists no key that counts: asked again before the known keys are dropped', {
        issuer,
        listed: [...loaded.keys.keys()].slice(0, maxListed),
        asked_again_in_ms: settings.cooldownMs,
      });
    }
    return 'empty';
  }

  function take(loaded: LoadedKeys): void {
    const before = held;
    held = holdKeys(before, loaded, attemptedAtMs);
    loaded.onTaken?.();
    const left = withdrawnFrom(before, held);
    const isNews = failures > 0 || !sameKeys(before, held);
    failures = 0;
    lastError = null;
    remember(left);
    if (isNews) {
      const listed = { issuer, key_ids: [...held.keys.keys()].slice(0, maxListed), keys: held.keys.size };
      const fields = left.length === 0 ? listed : { ...listed, withdrawn: left.slice(0, maxListed) };
      if (hasAccepted(held.keys)) log.info('keys loaded', fields);
      else log.error('the issuer has withdrawn every key: its tokens are refused', fields);
    }
    const reasons = loaded.skipped.slice(0, maxListed);
    if (reasons.length > 0 && reasons.join() !== skipped) {
      log.warn('keys of the key set were passed over', { issuer, skipped: reasons });
    }
    skipped = reasons.join();
  }

  function remember(left: readonly string[]): void {
    const now = left.map((keyId) => ({ keyId, atMs: attemptedAtMs }));
    withdrawn = [
      ...now,
      ...withdrawn.filter(({ keyId }) => !left.includes(keyId) && held?.keys.has(keyId) !== true),
    ].slice(0, maxWithdrawn);
    const stillAsked = [...unlisted]
      .filter(([keyId, isAsked]) => isAsked && held?.keys.has(keyId) !== true)
      .map(([keyId]) => keyId);
    unlisted = new Map([...left, ...stillAsked].slice(0, maxUnlisted).map((keyId) => [keyId, false]));
  }

  function fail(error: string): void {
    failures += 1;
    lastError = error;
    const serving = held !== null && attemptedAtMs <= usableUntilMs(held, settings);
    log.warn('keys could not be loaded', { issuer, error, failures, known_keys_serve: serving });
  }

  /** Only a fetch that began after somebody had come can tell that their key is none. */
  function settleWaiting(beganAtMs: number): void {
    room.settle(({ keyId, sinceMs, asker }) => {
      const found = lookUp(keyId, attemptedAtMs);
      if (asker === null || found.kind === 'found') return found;
      if (isInDoubt()) return unavailable;
      if (found.kind === 'unknown' && sinceMs <= beganAtMs) {
        if (unlisted.size < maxUnlisted) unlisted.set(keyId, false);
        return found;
      }
      if (!mayWait) return unavailable;
      return settings.cooldownMs <= longestKeyWaitMs ? null : found;
    });
  }

  /** Plans the next attempt, counted from the last. */
  function schedule(): void {
    callOffNext();
    const refreshMs = refreshDelayMs(lifetimeMs(held?.freshnessMs ?? null, settings), random());
    // Without a key that counts a proxy may not be ready, and then no caller comes for whom keys would be fetched: it
    // has to ask by itself.
    const askingMs = isBare()
      ? Math.min(refreshMs, Math.max(retryDelayMs(Infinity, random()), settings.cooldownMs))
      : refreshMs;
    const regularMs = lastError === null ? askingMs : retryMs();
    const isAwaited = lastError === null && (emptySinceMs !== null || room.size() > 0);
    const delayMs = isAwaited ? Math.min(regularMs, settings.cooldownMs) : regularMs;
    nextAtMs = attemptedAtMs + delayMs;
    callOffNext = timers.after(Math.max(0, nextAtMs - clock.monotonic()), () => void refresh());
  }

  function retryMs(): number {
    const delayMs = retryDelayMs(failures, random());
    // While known keys serve there is no hurry, and a source in trouble is asked no more than callers could make us
    // ask.
    return isUsable() ? Math.max(delayMs, settings.cooldownMs) : delayMs;
  }

  function isUsable(): boolean {
    return held !== null && clock.monotonic() <= usableUntilMs(held, settings) && hasAccepted(held.keys);
  }

  function hasAccepted(keys: ReadonlyMap<string, unknown>): boolean {
    return [...keys.keys()].some((keyId) => acceptsKeyId(keyIds, keyId));
  }

  /** Whether the set in hand has no key that counts. */
  function isBare(): boolean {
    return held !== null && !hasAccepted(held.keys);
  }

  function emptySet(): KeySourceState['emptySet'] {
    if (emptySinceMs !== null) return 'unconfirmed';
    return isBare() ? 'confirmed' : null;
  }

  function state(): KeySourceState {
    const nowMs = clock.monotonic();
    const keys = [...(held?.keys ?? [])].map(([keyId, { sinceMs }]) => ({
      keyId,
      ageMs: nowMs - sinceMs,
      accepted: acceptsKeyId(keyIds, keyId),
    }));
    return {
      issuer,
      usable: isUsable(),
      stale: isInDoubt() || emptySinceMs !== null || (held !== null && nowMs > freshUntilMs(held, settings)),
      ageMs: held === null ? null : nowMs - held.loadedAtMs,
      servesForMs: held === null ? null : Math.max(0, usableUntilMs(held, settings) - nowMs),
      nextFetchMs: nextAtMs === null || underWay !== null || closed ? null : Math.max(0, nextAtMs - nowMs),
      stalePart: held === null ? null : stalePartOf(held, settings, nowMs),
      keys,
      withdrawn: withdrawn.map(({ keyId, atMs }) => ({ keyId, ageMs: nowMs - atMs })),
      emptySet: emptySet(),
      lastError,
      waiting: room.size(),
      metadata: origin.metadata(),
    };
  }

  function endWaits(): void {
    mayWait = false;
    // Those for whom keys are fetched already hear what comes of it.
    if (underWay === null) room.settle(() => unavailable);
  }

  return {
    find,
    state,
    endWaits,
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
      room.settle(({ keyId }) => lookUp(keyId));
    },
  };
}

function createOrigin(
  { source, rules, caFile, tokenFile }: KeySourceSettings,
  issuer: string,
  deps: KeySourceDeps,
  onChange: () => void,
): KeyOrigin {
  const { files, clock } = deps;
  const access = { caFile, tokenFile, files };
  switch (source.kind) {
    case 'url': {
      const origin = createUrlOrigin(source.url, access);
      return rules.use === 'jwt-svid' ? createBundleOrigin(origin, clock) : origin;
    }
    case 'file':
      return createFileOrigin(source.path, files, onChange);
    case 'discovery':
      return createDiscoveryOrigin(source, access, issuer, deps);
  }
}

/** A key set that may replace the one in hand. */
export interface LoadedKeys extends KeySet, Omit<LoadedKeySet, 'bytes'> {}

/** An attempt under way. */
interface KeyLoad {
  /** Settles within the time limit, whatever the origin does; never rejects. */
  readonly result: Promise<Result<LoadedKeys, string>>;
  readonly callOff: () => void;
}

/** Gets and checks a key set. What is none is refused; one without a key that can be used is not. */
function startLoad(origin: KeyOrigin, limits: RefreshLimits, rules: KeyRules, timers: Timers): KeyLoad {
  const controller = new AbortController();
  let stop = (why: string): void => {
    controller.abort(why);
  };
  const result = new Promise<Result<LoadedKeys, string>>((resolve) => {
    const callOffDeadline = timers.after(limits.timeoutMs, () => {
      stop(`no complete response within ${String(limits.timeoutMs)} ms`);
    });
    const end = (outcome: Result<LoadedKeys, string>): void => {
      callOffDeadline();
      resolve(outcome);
    };
    stop = (why) => {
      controller.abort();
      end(refuse(why));
    };
    load(origin, limits, rules, controller.signal).then(end, (error: unknown) => {
      // What a source sends must not end the process, even where it meets a mistake of ours.
      end(refuse(`unexpected ${error instanceof Error ? error.name : 'error'}`));
    });
  });
  return {
    result,
    callOff: () => {
      stop('the attempt was called off');
    },
  };
}

async function load(
  origin: KeyOrigin,
  limits: RefreshLimits,
  rules: KeyRules,
  signal: AbortSignal,
): Promise<Result<LoadedKeys, string>> {
  const loaded = await origin.load(limits, signal);
  if (!loaded.ok) return loaded;
  const { bytes, ...keeping } = loaded.value;
  const set = await readKeySet(bytes, rules);
  if (!set.ok) return set;
  return accept({ ...set.value, ...keeping });
}

/** Share of their lifetime after which keys are fetched anew: ahead of expiry, so that no request meets stale keys. */
const earliestShare = 0.8;
const latestShare = 0.9;

/** First and longest wait after an attempt that failed. */
const firstRetryMs = 1_000;
const lastRetryMs = 30_000;

/**
 * Milliseconds from a fetch that succeeded to the next. `random` is from 0 up to 1: proxies that started together
 * spread.
 */
function refreshDelayMs(lifetimeMs: number, random: number): number {
  return lifetimeMs * (earliestShare + (latestShare - earliestShare) * random);
}

/**
 * Milliseconds from the n-th failed attempt in a row (1 and up, `Infinity` for the longest) to the next: 1 s to 30 s,
 * doubling, spread by `random`.
 */
function retryDelayMs(failures: number, random: number): number {
  const longestMs = Math.min(firstRetryMs * 2 ** failures, lastRetryMs);
  return Math.max(firstRetryMs, longestMs * (0.5 + 0.5 * random));
}
