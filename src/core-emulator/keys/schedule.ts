/** When dynamic keys are made, sign and leave the key set. */
export interface KeySchedule {
  /** Milliseconds that a key signs. */
  readonly rotateEveryMs: number;
  /** Milliseconds that a replaced key stays published. */
  readonly overlapMs: number;
}

export interface ScheduledKey {
  /** Milliseconds since the epoch; the key is published from then on. */
  readonly createdMs: number;
  readonly signsFromMs: number;
}

/** So long before it signs, a key is published, that verifiers have it in time. The Core's own figure. */
const mostAheadMs = 60_000;

/** Rotating every second would otherwise publish 7,200 keys, more than a verifier reads. */
const maxReplaced = 12;

/** The key that signs: the newest whose time has come. Keys are given the newest first. */
export function activeConfig<K extends ScheduledKey>(keys: readonly K[], nowMs: number): K | undefined {
  return keys.find((key) => key.signsFromMs <= nowMs);
}

/** Keys whose tokens may still live, and the one that waits for its time. */
export function unexpired<K extends ScheduledKey>(
  keys: readonly K[],
  { overlapMs }: KeySchedule,
  nowMs: number,
): readonly K[] {
  const signing = keys.findIndex((key) => key.signsFromMs <= nowMs);
  return keys.filter((_, index) => {
    const successor = keys[index - 1];
    return (
      index <= signing ||
      successor === undefined ||
      (index <= signing + maxReplaced && nowMs < successor.signsFromMs + overlapMs)
    );
  });
}

/** When the next key is published. */
export function nextKeyDueMs(keys: readonly ScheduledKey[], schedule: KeySchedule): number {
  const [newest] = keys;
  return newest === undefined ? 0 : newest.signsFromMs + schedule.rotateEveryMs - aheadMs(schedule);
}

/** When a key made now signs. Made late, it signs late: no key signs before it was published for a while. */
export function nextSignsFromMs(keys: readonly ScheduledKey[], schedule: KeySchedule, nowMs: number): number {
  const [newest] = keys;
  return newest === undefined
    ? nowMs
    : Math.max(newest.signsFromMs + schedule.rotateEveryMs, nowMs + aheadMs(schedule));
}

function aheadMs({ rotateEveryMs }: KeySchedule): number {
  return Math.min(mostAheadMs, rotateEveryMs / 2);
}
