/**
 * The store of an exploration: what each command makes of each content, as the decision functions say, worked out once.
 */
import type {
  Complete,
  Completed,
  Marked,
  Release,
  Released,
  Reserve,
  Reserved,
  Resolution,
  Resolved,
  RecordSlot,
} from '../../src/decision/idempotency/record.js';
import type { Machine } from './machine.js';
import { emptySlot, nowMs, shifted, textOf } from './model.js';

/** A command as the decision functions and the Lua scripts take it. */
export type StoreCommand =
  | { readonly kind: 'reserve'; readonly command: Reserve }
  | { readonly kind: 'complete'; readonly command: Complete }
  | { readonly kind: 'release'; readonly command: Release }
  | { readonly kind: 'mark'; readonly command: Parameters<Machine['mark']>[1] }
  | { readonly kind: 'resolve'; readonly command: Resolution };

export type StoreReply = Reserved | Completed | Released | Marked | Resolved;

/** One thing that can happen to a content of the store: a command, or that time passes. */
export interface Transition {
  readonly from: number;
  readonly what: StoreCommand | { readonly kind: 'time'; readonly byMs: number };
  readonly reply: StoreReply | null;
  readonly to: number;
}

export interface ModelStore {
  readonly empty: number;
  readonly slot: (store: number) => RecordSlot;
  readonly run: (store: number, command: StoreCommand) => { readonly reply: StoreReply; readonly store: number };
  /** What is in it when the store's clock has gone on by so many milliseconds; back, where they are negative. */
  readonly after: (store: number, ms: number) => number;
  readonly transitions: () => readonly Transition[];
}

/** Of each command that an exploration makes up, only what tells it from its others. */
function keyOf({ kind, command }: StoreCommand): string {
  switch (kind) {
    case 'reserve':
      return `reserve ${command.attempt} ${command.key?.fingerprint ?? ''}`;
    case 'complete':
      return `complete ${command.attempt} ${command.fence} ${command.state} ${command.response.status} ${Buffer.from(command.response.body).toString()}`;
    case 'release':
      return `release ${command.attempt}`;
    case 'mark':
      return `mark ${command.attempt} ${command.fence}`;
    case 'resolve':
      return `resolve ${command}`;
  }
}

export function createModelStore(machine: Machine): ModelStore {
  const slots: RecordSlot[] = [];
  const numbers = new Map<string, number>();
  const known = new Map<string, Transition>();
  const empty = numberOf(emptySlot);

  return {
    empty,
    slot: (store) => slotAt(store),
    run: (store, command) => {
      const { reply, to } = remembered(`${store} ${keyOf(command)}`, () => {
        const step = apply(slotAt(store), command);
        return { from: store, what: command, reply: step.reply, to: numberOf(step.slot) };
      });
      if (reply === null) throw new Error('a command is answered');
      return { reply, store: to };
    },
    after: (store, ms) =>
      remembered(`${store} +${ms}`, () => ({
        from: store,
        what: { kind: 'time', byMs: ms },
        reply: null,
        to: numberOf(machine.current(shifted(slotAt(store), -ms), nowMs)),
      })).to,
    transitions: () => [...known.values()],
  };

  function apply(
    slot: RecordSlot,
    { kind, command }: StoreCommand,
  ): { readonly slot: RecordSlot; readonly reply: StoreReply } {
    switch (kind) {
      case 'reserve':
        return machine.reserve(slot, command, nowMs);
      case 'complete':
        return machine.complete(slot, command, nowMs);
      case 'release':
        return machine.release(slot, command, nowMs);
      case 'mark':
        return machine.mark(slot, command, nowMs);
      case 'resolve':
        return machine.resolve(slot, command, nowMs);
    }
  }

  function remembered(key: string, work: () => Transition): Transition {
    const found = known.get(key);
    if (found !== undefined) return found;
    const made = work();
    known.set(key, made);
    return made;
  }

  function numberOf(slot: RecordSlot): number {
    // In the order of their names: which came first is of no consequence.
    const sorted = { ...slot, withdrawals: [...slot.withdrawals].sort((a, b) => (a.attempt < b.attempt ? -1 : 1)) };
    const text = textOf(sorted);
    const found = numbers.get(text);
    if (found !== undefined) return found;
    slots.push(sorted);
    numbers.set(text, slots.length - 1);
    return slots.length - 1;
  }

  function slotAt(store: number): RecordSlot {
    const slot = slots[store];
    if (slot === undefined) throw new Error(`there is no store ${store}`);
    return slot;
  }
}
