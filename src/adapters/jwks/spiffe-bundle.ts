import { accept, refuse, type Result } from '../../lib/result.js';
import { defaultMaxDepth, parseStrictJson, type JsonValue } from '../../lib/strict-json.js';
import type { Clock } from '../../ports/system.js';
import { lifetimeMs } from '../../decision/http/http-freshness.js';
import type { KeyOrigin, LoadedKeySet, RefreshLimits } from './fetch-url.js';

/** A week: the longest lifetime that the config allows. */
const longestHintS = 604_800;

/**
 * A SPIFFE bundle that is fetched (SPIFFE Trust Domain and Bundle §4.1). Its `spiffe_refresh_hint`, in seconds,
 * shortens the time for which it is kept. An older one than that in hand, by `spiffe_sequence`, is refused while the
 * one in hand is within its lifetime: that bridges a server that lags behind others. Past that it is taken, since a
 * server that lost its data counts from the beginning.
 */
export function createBundleOrigin(origin: KeyOrigin, clock: Pick<Clock, 'monotonic'>): KeyOrigin {
  let last: { readonly sequence: number; readonly freshUntilMs: number } | null = null;

  async function load(limits: RefreshLimits, signal: AbortSignal): Promise<Result<LoadedKeySet, string>> {
    const loaded = await origin.load(limits, signal);
    if (!loaded.ok) return loaded;
    const { refreshHintMs, sequence } = readBundleMembers(loaded.value.bytes);
    const nowMs = clock.monotonic();
    if (sequence !== null && last !== null && sequence < last.sequence && nowMs < last.freshUntilMs) {
      return refuse(`the bundle is older than the one in hand: its spiffe_sequence is ${String(sequence)}`);
    }
    const freshnessMs = shorter(loaded.value.freshnessMs, refreshHintMs);
    const onTaken = (): void => {
      last = sequence === null ? null : { sequence, freshUntilMs: nowMs + lifetimeMs(freshnessMs, limits) };
    };
    return accept({ ...loaded.value, freshnessMs, onTaken });
  }

  return { load, metadata: origin.metadata, close: origin.close };
}

interface BundleMembers {
  /** `null` where the bundle gives none, or none that is a number of seconds. */
  readonly refreshHintMs: number | null;
  readonly sequence: number | null;
}

/** What is broken is told where the keys are read. */
function readBundleMembers(bytes: Uint8Array): BundleMembers {
  const parsed = parseStrictJson(bytes, { maxDepth: defaultMaxDepth });
  if (!parsed.ok) return { refreshHintMs: null, sequence: null };
  const { spiffe_refresh_hint: hint, spiffe_sequence: sequence } = parsed.value;
  return {
    refreshHintMs: isCount(hint) && hint > 0 ? Math.min(hint, longestHintS) * 1_000 : null,
    sequence: isCount(sequence) ? sequence : null,
  };
}

function isCount(value: JsonValue | undefined): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}

function shorter(one: number | null, other: number | null): number | null {
  return one === null || other === null ? (one ?? other) : Math.min(one, other);
}
