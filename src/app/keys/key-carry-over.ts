import { usableUntilMs, type HeldKeys } from '../../adapters/jwks/key-set.js';
import type { KeyPlace, KeySourceSettings } from '../../config/types.js';
import type { Clock } from '../../ports/system.js';

/**
 * The keys in hand by where they came from, for as long as they would have served. A reload that renames an issuer, or
 * is undone, makes a new source: while the place that it asks is out of reach, these serve on as if nothing had
 * changed.
 */
interface KeyMemory {
  readonly remember: (settings: KeySourceSettings, held: HeldKeys | null) => void;
  readonly recall: (settings: KeySourceSettings) => HeldKeys | null;
}

/** Remembers nothing yet. */
export function createKeyMemory(clock: Pick<Clock, 'monotonic'>): KeyMemory {
  const kept = new Map<string, { readonly held: HeldKeys; readonly untilMs: number }>();

  function forgetOld(): void {
    for (const [place, { untilMs }] of kept) {
      if (untilMs < clock.monotonic()) kept.delete(place);
    }
  }

  return {
    remember: (settings, held) => {
      forgetOld();
      const place = placeOf(settings);
      const known = kept.get(place);
      // What was fetched last says which keys count, whichever issuer fetched it.
      if (held === null || (known !== undefined && known.held.loadedAtMs > held.loadedAtMs)) return;
      const untilMs = usableUntilMs(held, settings);
      kept.set(place, { held, untilMs: known?.held === held ? Math.max(known.untilMs, untilMs) : untilMs });
    },
    recall: (settings) => kept.get(placeOf(settings))?.held ?? null,
  };
}

/** Under other rules other keys of the same place count. */
function placeOf({ source, rules }: KeySourceSettings): string {
  return [...wordsOf(source), rules.use, ...[...rules.algorithms].sort()].join(' ');
}

/**
 * The name of a place. Metadata counts for its issuer and the allowed origins alone: under others, its keys would not
 * have been taken.
 */
function wordsOf(source: KeyPlace): readonly string[] {
  if (source.kind === 'file') return ['file', source.path];
  if (source.kind === 'url') return ['url', source.url];
  return ['discovery', source.url, source.issuer, ...[...source.keyOrigins].sort()];
}
