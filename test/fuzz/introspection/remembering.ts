/**
 * Time, what an issuer says and who asks, in any order: for how long each answer counts, and how often it is asked for.
 * docs/introspection.md, "For how long an answer is believed", as a few lines.
 */
import { pick, type Draw } from '../draw.js';

/** What the issuer says of a token at a moment. */
export interface Word {
  readonly active: boolean;
  /** Seconds since the epoch; `null` where it says nothing of it. */
  readonly expS: number | null;
}

/** Settings in milliseconds. */
export interface Memory {
  readonly maxAgeMs: number;
  readonly maxNegativeAgeMs: number;
  readonly skewMs: number;
}

/** What was said last, and when that was asked. */
interface Remembered {
  readonly word: Word;
  readonly askedMs: number;
}

/** What a caller gets, and whether the issuer is asked for it; `null` where either is right. */
export interface Told {
  readonly accepted: boolean;
  readonly asks: boolean | null;
}

/** A memory that follows the page, and nothing else. */
export function createModelMemory({ maxAgeMs, maxNegativeAgeMs, skewMs }: Memory): {
  readonly tell: (token: string, now: Word, nowMs: number) => Told;
  readonly learn: (token: string, word: Word, askedMs: number) => void;
} {
  const known = new Map<string, Remembered>();
  const counts = ({ active, expS }: Word, nowMs: number): boolean =>
    active && expS !== null && nowMs < expS * 1000 + skewMs;
  return {
    tell: (token, now, nowMs) => {
      const last = known.get(token);
      const asked = { accepted: counts(now, nowMs), asks: true };
      if (last === undefined) return asked;
      const { word, askedMs } = last;
      if (!word.active) {
        return nowMs < askedMs + maxNegativeAgeMs ? { accepted: false, asks: false } : asked;
      }
      if (word.expS !== null && nowMs < word.expS * 1000) {
        return nowMs < askedMs + maxAgeMs ? { accepted: true, asks: false } : asked;
      }
      // It was refused when it came, or has expired since.
      const isRefused = word.expS === null || nowMs >= word.expS * 1000 + skewMs;
      return isRefused ? { accepted: asked.accepted, asks: null } : asked;
    },
    learn: (token, word, askedMs) => {
      known.set(token, { word, askedMs });
    },
  };
}

export function someMemory(draw: Draw): Memory {
  return {
    maxAgeMs: pick(draw, [30_000, 30_000, 10_000, 500, 0]),
    maxNegativeAgeMs: pick(draw, [5_000, 5_000, 1_000, 0]),
    skewMs: pick(draw, [0, 5_000, 60_000]),
  };
}

/** What the issuer says from now on. */
export function someWord(draw: Draw, nowMs: number): Word {
  const nowS = Math.floor(nowMs / 1000);
  const ahead = pick(draw, [300, 300, 20, 3, 1, 0, -2, -4, -60]);
  return { active: draw.below(4) > 0, expS: draw.below(10) === 0 ? null : nowS + ahead };
}

/** How far time goes on: to the edges of what is remembered, one millisecond before and behind. */
export function someStepMs(draw: Draw, { maxAgeMs, maxNegativeAgeMs }: Memory): number {
  const edge = pick(draw, [0, 1, 500, 1_000, 4_000, maxAgeMs, maxNegativeAgeMs, maxAgeMs / 2]);
  return Math.max(0, edge + pick(draw, [0, 0, -1, 1]));
}
