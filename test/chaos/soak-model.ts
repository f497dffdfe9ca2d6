/** What the soak knows, and what it therefore holds each answer to. */
import { problemOrStatus } from './shared-redis.js';
import type { RawResponse } from '../support/raw-client.js';

/** Parts that the soak breaks on purpose. */
export type Trouble = 'receiver' | 'redis' | 'keys';

/** Answers that a trouble excuses, and nothing else. */
const excused: Readonly<Record<Trouble, ReadonlySet<string>>> = {
  receiver: new Set([
    'upstream-failed',
    'upstream-timeout',
    'upstream-unreachable',
    'idempotency-in-progress',
    'idempotency-outcome-unknown',
  ]),
  redis: new Set(['store-unavailable', 'idempotency-in-progress', 'idempotency-outcome-unknown']),
  keys: new Set(['keys-unavailable']),
};

/** A request that was answered. */
export interface Asked {
  /** What it was to try. */
  readonly what: string;
  /** When it was sent, by `performance.now()`. */
  readonly sentMs: number;
  readonly answer: RawResponse;
}

export interface SoakModel {
  /** Breaks something while `work` runs, and until what it does has been mended. */
  readonly during: (trouble: Trouble, work: () => Promise<void>) => Promise<void>;
  /** Begins and ends a trouble that was seen and not made. */
  readonly notice: (trouble: Trouble, isOn: boolean) => void;
  /** Whether this was, at any moment since, in trouble, or had just come out of it. */
  readonly troubledSince: (trouble: Trouble, sinceMs: number) => boolean;
  /** Holds an answer to one of these, or to what the troubles since excuse. Says whether it was one of `right`. */
  readonly judge: (asked: Asked, right: readonly string[], sinceMs?: number) => boolean;
  /** Something that must never be. */
  readonly wrong: (text: string) => void;
  readonly count: (what: string) => void;
  readonly wrongs: () => readonly string[];
  readonly counts: () => Readonly<Record<string, number>>;
}

const keptWrongs = 50;

/** So long after its end a trouble may still be felt: proxies look at Redis now and then. */
const aftermathMs = 5_000;

/** Refusals of credentials say no more than their status. */
function wordOf(answer: RawResponse): string {
  const answered = problemOrStatus(answer);
  return answered === 'about:blank' ? String(answer.status) : answered;
}

export function createSoakModel(): SoakModel {
  const counts = new Map<string, number>();
  const wrongs: string[] = [];
  const open = new Map<Trouble, number>();
  const endedMs = new Map<Trouble, number>();

  const count = (what: string): void => {
    counts.set(what, (counts.get(what) ?? 0) + 1);
  };
  const wrong = (text: string): void => {
    count('wrong');
    if (wrongs.length < keptWrongs) wrongs.push(text);
  };
  const troubledSince = (trouble: Trouble, sinceMs: number): boolean =>
    (open.get(trouble) ?? 0) > 0 || (endedMs.get(trouble) ?? -Infinity) >= sinceMs - aftermathMs;
  const change = (trouble: Trouble, by: 1 | -1): void => {
    open.set(trouble, (open.get(trouble) ?? 0) + by);
    if (by === -1) endedMs.set(trouble, performance.now());
  };
  const noticed = new Set<Trouble>();
  return {
    notice: (trouble, isOn) => {
      if (noticed.has(trouble) === isOn) return;
      change(trouble, isOn ? 1 : -1);
      if (isOn) noticed.add(trouble);
      else noticed.delete(trouble);
    },
    during: async (trouble, work) => {
      change(trouble, 1);
      try {
        await work();
      } finally {
        change(trouble, -1);
      }
      count(`trouble of ${trouble}`);
    },
    troubledSince,
    judge: ({ what, sentMs, answer }, right, sinceMs = sentMs) => {
      const answered = wordOf(answer);
      count(`${what}: ${answered}`);
      if (right.includes(answered)) return true;
      const isExcused = Object.entries(excused).some(
        ([trouble, words]) => words.has(answered) && troubledSince(trouble as Trouble, sinceMs),
      );
      if (!isExcused) {
        wrong(
          `${new Date().toISOString()} ${what}: ${answered} where only ${right.join(' or ')} is right; ${answer.text.slice(0, 200)}`,
        );
      }
      return false;
    },
    wrong,
    count,
    wrongs: () => wrongs,
    counts: () => Object.fromEntries([...counts].sort()),
  };
}
