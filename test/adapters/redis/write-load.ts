import type { ReservationScope } from '../../../src/decision/idempotency/scope.js';
import type { ReservationStore } from '../../../src/ports/idempotency.js';
import { until } from '../../support/until.js';
import { freshAttempt, freshScope, reserveOf } from '../store-commands.js';

/** Writes that reserve one after the other, several side by side, while a test breaks the store. */
export interface WriteLoad {
  /** Scopes whose reservation was acquired and confirmed by so many replicas as were asked for. */
  readonly confirmed: readonly ReservationScope[];
  readonly failed: () => number;
  /** Waits for so many more confirmed reservations. */
  readonly more: (count: number) => Promise<unknown>;
  /** Ends it; rejects if a call rejected. */
  readonly stop: () => Promise<void>;
}

export function startWriteLoad(store: ReservationStore, replicas: number, writers = 8): WriteLoad {
  const confirmed: ReservationScope[] = [];
  let failed = 0;
  let running = true;
  const ends = Array.from({ length: writers }, async () => {
    while (running) {
      const scope = freshScope();
      const answer = await store.reserve(scope, reserveOf(freshAttempt(), {}, 600_000));
      if (!answer.ok) failed += 1;
      else if (answer.value.reserved.kind === 'acquired' && (answer.value.confirmedReplicas ?? 0) >= replicas) {
        confirmed.push(scope);
      }
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  });
  return {
    confirmed,
    failed: () => failed,
    more: (count) => {
      const goal = confirmed.length + count;
      return until(`${String(count)} more confirmed reservations`, () => confirmed.length >= goal, 60_000);
    },
    stop: async () => {
      running = false;
      await Promise.all(ends);
    },
  };
}

/** How many of these a second attempt could take, which is none unless the store forgot them. */
export async function countForgotten(store: ReservationStore, scopes: readonly ReservationScope[]): Promise<number> {
  let forgotten = 0;
  for (const scope of scopes) {
    const answer = await until('an answer', async () => {
      const again = await store.reserve(scope, reserveOf(freshAttempt(), {}, 600_000));
      return again.ok ? again.value.reserved : null;
    });
    if (answer.kind !== 'token_replayed') forgotten += 1;
  }
  return forgotten;
}
