import type { Complete, Mark, Release } from '../../decision/idempotency/record.js';
import type { ReservationScope } from '../../decision/idempotency/scope.js';

/** Something to write about a reservation once its request is over. */
export type SettleCommand =
  | { readonly kind: 'complete'; readonly command: Complete }
  /** `wasSent`: the receiver has answered that it did nothing; else nothing went out. */
  | { readonly kind: 'release'; readonly command: Release; readonly wasSent: boolean }
  | { readonly kind: 'mark'; readonly command: Mark };

export interface Settling {
  readonly scope: ReservationScope;
  readonly recordId: string;
  readonly write: SettleCommand;
  /** Monotonic milliseconds; what is not written by then is given up. */
  readonly untilMs: number;
  /** Whether the receiver runs a write once, however often it is sent. */
  readonly deduplicates: boolean;
}

/** What a settlement takes besides its answer, bytes: ids and scope. */
const bytesOfOne = 1_024;

/** What it takes, about: in memory, and on its way to the store. */
export function bytesOf({ write }: Settling): number {
  if (write.kind !== 'complete') return bytesOfOne;
  const { body, fields } = write.command.response;
  return fields.reduce((bytes, field) => bytes + field.length, bytesOfOne + body.byteLength);
}

/** What became of the settlements that were offered to the store once more after a fail-over: how many of them. */
export interface OfferedAgain {
  offered: number;
  /** The store had lost them. */
  repaired: number;
  /** Another attempt had their keys. */
  ranTwice: number;
  /** The store did not take them in time. */
  left: number;
}
