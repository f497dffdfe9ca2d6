/**
 * What an exploration knows of a moment: the store, the attempts, what is on its way, and what has to be remembered to
 * judge.
 */
import type { Resolution, RecordSlot } from '../../src/decision/idempotency/record.js';

/**
 * The store's clock stands still in every state: what passes is taken off all times instead, so that equal situations
 * are equal states.
 */
export const nowMs = 1_800_000_000_000;

export const leaseMs = 10_000;
/** Of the lease, what the receiver may take. */
export const upstreamMs = 8_000;
/** How far the store's clock is put back. */
export const backMs = 60_000;
/** Longer than everything that happens: what the end of retention forgets is beyond the promise. */
export const retentionMs = 100_000_000;
export const markerTtlMs = 100_000_000;
/** How far the store's clock jumps: all that was to end has ended. */
export const jumpMs = 200_000_000;

export type Receiver = 'plain' | 'reports' | 'deduplicates';

/** Disturbances, each of which happens so often at most. */
export interface Budgets {
  /** No answer of the store in time; the command arrives later, or never. */
  readonly late: number;
  /** A command arrives once more, later. */
  readonly doubled: number;
  /** The receiver is not reached, or its answer is lost or cut off. */
  readonly broken: number;
  /** The receiver refuses without acting. */
  readonly refused: number;
  /** A process is killed. */
  readonly crash: number;
  /** The caller leaves, its token expires or is revoked, before the write is sent on. */
  readonly gone: number;
  /** A lease passes. */
  readonly lease: number;
  /** The store's clock goes back by a minute; forwards by a lease. */
  readonly back: number;
  readonly forwards: number;
  /** The store's clock goes forwards by more than anything lasts. */
  readonly jump: number;
  /** The store falls back to what a replica has. */
  readonly failover: number;
  /** Too few replicas confirm a reservation. */
  readonly unconfirmed: number;
  /** An operator resolves what is in doubt, rightly. */
  readonly resolve: number;
}

export type Disturbance = keyof Budgets;

/** A request of a caller: its fingerprint, and the single-use token it comes with. All of a preset have one key. */
export interface Request {
  readonly fingerprint: string;
  readonly token: string | null;
}

export interface Preset {
  readonly name: string;
  readonly receiver: Receiver;
  readonly requests: readonly Request[];
  /** Whether only the token is reserved. */
  readonly keyless?: boolean;
  readonly budgets: Partial<Budgets>;
  /**
   * Whether a fail-over may lose what replicas confirmed: outside the promise, where losses have to be counted instead.
   */
  readonly forgets?: boolean;
  /** How many of the last writes a replica may lack. */
  readonly lag?: number;
}

/** One command to the store, by an attempt. */
export type Command =
  | { readonly kind: 'reserve' }
  | {
      readonly kind: 'complete';
      readonly state: 'completed' | 'tombstone';
      readonly status: number;
      readonly text: string;
    }
  | { readonly kind: 'release' }
  | { readonly kind: 'mark' };

/**
 * - `idle`: not asked yet
 * - `reserving`: waits for the store's answer to its reserve
 * - `acquired`: has it, nothing is sent on
 * - `sent`: waits for the receiver
 * - `settling`: waits for the store's answer to its settlement
 * - `owing`: that was not answered, and is going to be tried again
 * - `offering`: was settled, and offers that again after a fail-over
 * - `done`, `dead`: over, or its process is
 */
export type Phase = 'idle' | 'reserving' | 'acquired' | 'sent' | 'settling' | 'owing' | 'offering' | 'done' | 'dead';

/** What the caller was told. `refused` without a word of the store that it is taken means that nothing was sent. */
export type Told =
  | { readonly kind: 'answer'; readonly status: number; readonly text: string }
  | { readonly kind: 'replay'; readonly status: number; readonly text: string }
  | {
      readonly kind:
        | 'not sent'
        | 'in doubt'
        | 'cut off'
        | 'in progress'
        | 'unknown'
        | 'not replayable'
        | 'mismatch'
        | 'token replayed';
    };

/** What the receiver has to say to an attempt. */
export interface Answer {
  readonly status: number;
  readonly text: string;
  readonly outcome: string | null;
}

export interface Attempt {
  readonly phase: Phase;
  /** Milliseconds since its reserve was sent, by its own clock; no more than a lease. */
  readonly ageMs: number;
  readonly fence: number;
  readonly takenOver: boolean;
  readonly confirmed: boolean;
  /** `flying`: on its way, and may be acted on. `over`: never will be, or has been answered. */
  readonly request: 'none' | 'flying' | 'over';
  readonly acted: boolean;
  readonly answer: Answer | null;
  /** Whether its proxy knows that nothing was done. */
  readonly nothingDone: boolean;
  /** What it has to write, or has written, and what it tells its caller afterwards. */
  readonly settlement: Command | null;
  readonly tells: Told | null;
  readonly told: Told | null;
  /**
   * Whether its proxy refuses single-use tokens of before, for the store's time in the answer to its reserve was not
   * what it had to be.
   */
  readonly noticed: boolean;
  /** Commands that nobody waits for any more: each may still arrive. */
  readonly strays: readonly Command[];
}

export interface State {
  /** A `Slot`, by number. */
  readonly store: number;
  /** What replicas may have instead. */
  readonly replicas: readonly number[];
  readonly attempts: readonly Attempt[];
  readonly left: Budgets;
  /** Of a receiver that deduplicates: the highest fence it saw, and what it answered when it acted. */
  readonly row: { readonly fence: number; readonly answer: Answer | null };
  /** How often the receiver acted; 2 stands for more. */
  readonly effects: number;
  /** Whether something that had been confirmed was lost. */
  readonly lost: boolean;
  /** Single-use tokens of before are refused. */
  readonly floor: boolean;
  /** Whether the store's clock jumped. What each proxy knows of that clock is from before. */
  readonly jumped: boolean;
  /** What the metrics say: a write ran twice, a reservation was lost, a write is in doubt. */
  readonly counted: { readonly twice: boolean; readonly repaired: boolean; readonly unknown: boolean };
  /** The answer that was shown first, and the one that the store said it keeps. */
  readonly shown: string | null;
  readonly kept: string | null;
  /** The last word of an operator. */
  readonly resolved: Resolution | null;
}

export const noBudgets: Budgets = {
  late: 0,
  doubled: 0,
  broken: 0,
  refused: 0,
  crash: 0,
  gone: 0,
  lease: 0,
  back: 0,
  forwards: 0,
  jump: 0,
  failover: 0,
  unconfirmed: 0,
  resolve: 0,
};

const idle: Attempt = {
  phase: 'idle',
  ageMs: 0,
  fence: 0,
  takenOver: false,
  confirmed: false,
  request: 'none',
  acted: false,
  answer: null,
  nothingDone: false,
  settlement: null,
  tells: null,
  told: null,
  noticed: false,
  strays: [],
};

export const emptySlot: RecordSlot = { record: null, freed: null, marker: null, withdrawals: [] };

export function attemptName(index: number): string {
  return 'ABC'.charAt(index);
}

export function startOf({ requests, budgets }: Preset, emptyStore: number): State {
  return {
    store: emptyStore,
    replicas: [],
    attempts: requests.map(() => idle),
    left: { ...noBudgets, ...budgets },
    row: { fence: 0, answer: null },
    effects: 0,
    lost: false,
    floor: false,
    jumped: false,
    counted: { twice: false, repaired: false, unknown: false },
    shown: null,
    kept: null,
    resolved: null,
  };
}

/**
 * Moves everything that is the store's time by so many milliseconds: fences are, too. Leaves 0, which stands for none.
 */
export function shifted<T>(value: T, byMs: number): T {
  if (value instanceof Uint8Array || typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map((one: unknown) => shifted(one, byMs)) as T;
  return Object.fromEntries(
    Object.entries(value).map(([name, member]: [string, unknown]) => [
      name,
      typeof member === 'number' && member !== 0 && isTime(name) ? member + byMs : shifted(member, byMs),
    ]),
  ) as T;
}

function isTime(name: string): boolean {
  return /[Ff]ence$/.test(name) || name.endsWith('AtMs');
}

/** A text that is the same for equal values. */
export function textOf(value: unknown): string {
  return JSON.stringify(value, (_name, member: unknown) => {
    if (member instanceof Uint8Array) return Buffer.from(member).toString('latin1');
    // What a Buffer makes of itself before it is asked here.
    return isBytes(member) ? Buffer.from(member.data).toString('latin1') : member;
  });
}

function isBytes(value: unknown): value is { readonly data: readonly number[] } {
  return typeof value === 'object' && value !== null && 'type' in value && value.type === 'Buffer' && 'data' in value;
}
