import { randomBytes } from 'node:crypto';
import type { Mark, Reserve } from '../../src/decision/idempotency/record.js';
import type { ReservationScope } from '../../src/decision/idempotency/scope.js';
import type { Log } from '../../src/ports/system.js';
import type { ReservationStore } from '../../src/ports/idempotency.js';

/** A fresh scope: nothing in the store answers for it yet. */
export function freshScope(): ReservationScope {
  const hash = (): string => randomBytes(32).toString('base64url');
  return { principal: hash(), operation: hash(), token: hash() };
}

export function freshAttempt(): string {
  return randomBytes(16).toString('base64url');
}

/** A reserve command with a key and without a token, changed by what is given. */
export function reserveOf(
  attempt: string,
  key: Partial<NonNullable<Reserve['key']>> = {},
  markerTtlMs: number | null = null,
): Reserve {
  return {
    attempt,
    key: { fingerprint: 'f', route: 'create-order', leaseMs: 60_000, retentionMs: 60_000, takesOver: false, ...key },
    markerTtlMs,
  };
}

/** Marks a write of `reserveOf` as in doubt. */
export function markOf(attempt: string, fence: number): Mark {
  return { attempt, fence, fingerprint: 'f', route: 'create-order', retentionMs: 60_000 };
}

/** Takes a reservation and returns its fence. */
export async function acquire(store: ReservationStore, scope: ReservationScope, command: Reserve): Promise<number> {
  const answer = await store.reserve(scope, command);
  if (!answer.ok || answer.value.reserved.kind !== 'acquired') {
    throw new Error(`not acquired: ${JSON.stringify(answer)}`);
  }
  return answer.value.reserved.fence;
}

/** Collects what an adapter logs. */
export function collectingLog(): Log & { readonly lines: string[] } {
  const lines: string[] = [];
  const add =
    (level: string) =>
    (message: string, fields?: unknown): void =>
      void lines.push(`${level} ${message} ${JSON.stringify(fields ?? {})}`);
  return { lines, debug: add('debug'), info: add('info'), warn: add('warn'), error: add('error') };
}
