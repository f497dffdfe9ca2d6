/** Goes through every state that can be reached, once. */
import { startOf, textOf, type Preset, type State } from './model.js';
import { realMachine, type Machine } from './machine.js';
import { createSteps, type Lapse } from './steps.js';
import { createModelStore, type ModelStore } from './store.js';
import { unrestOf, wayOutOf } from './rest.js';

export interface Exploration {
  readonly preset: string;
  readonly states: number;
  readonly transitions: number;
  /** Contents of the store, and what may happen to each. */
  readonly contents: number;
  /** Whether everything was seen; otherwise the limit of states or of violations cut it off. */
  readonly isExhausted: boolean;
  readonly violations: readonly Violation[];
  readonly store: ModelStore;
  /** How often time passes or goes back at most. */
  readonly timeSteps: number;
}

export interface Violation {
  readonly what: string;
  /** The shortest way to it. */
  readonly way: readonly string[];
}

export interface SearchOptions {
  readonly machine?: Machine;
  readonly lapses?: readonly Lapse[];
  readonly maxStates?: number;
  /** After so many different violations it ends. */
  readonly maxViolations?: number;
}

const notFound = -1;

export function explore(preset: Preset, options: SearchOptions = {}): Exploration {
  const { machine = realMachine, lapses = [], maxStates = 20_000_000, maxViolations = 1 } = options;
  const store = createModelStore(machine);
  const stepsFrom = createSteps({ preset, machine, store, lapses: new Set(lapses) });
  const wayOut = wayOutOf(preset, store);
  const texts = createNumbers();
  const attempts = new WeakMap<State['attempts'][number], number>();
  const known = new Map<string, number>();
  const cameFrom: number[] = [];
  const cameBy: number[] = [];
  const labels = createNumbers();
  const violations = new Map<string, Violation>();
  let waiting: { readonly state: State; readonly number: number }[] = [];
  let transitions = 0;
  let isCut = false;

  reach(startOf(preset, store.empty), notFound, 'starts');
  while (waiting.length > 0 && !isCut) {
    const layer = waiting;
    waiting = [];
    for (const { state, number } of layer) {
      const steps = stepsFrom(state);
      for (const what of [...wayOut(state), ...unrestOf(preset, state)]) note(what, number, null);
      for (const { label, to, broken } of steps) {
        transitions += 1;
        for (const what of broken) note(what, number, label);
        if (broken.length === 0) reach(to, number, label);
      }
      if (known.size > maxStates || violations.size >= maxViolations) {
        isCut = true;
        break;
      }
    }
  }
  return {
    preset: preset.name,
    states: known.size,
    transitions,
    contents: store.transitions().length,
    isExhausted: !isCut && violations.size === 0,
    violations: [...violations.values()],
    store,
    timeSteps: timeStepsOf(preset),
  };

  function reach(state: State, from: number, label: string): void {
    const key = keyOf(state);
    if (known.has(key)) return;
    const number = known.size;
    known.set(key, number);
    cameFrom.push(from);
    cameBy.push(labels.of(label));
    waiting.push({ state, number });
  }

  function note(what: string, number: number, label: string | null): void {
    if (violations.has(what)) return;
    const way: string[] = label === null ? [] : [label];
    for (let at = number; at > 0; at = cameFrom[at] ?? 0) way.unshift(labels.text(cameBy[at] ?? 0));
    violations.set(what, { what, way });
  }

  /** States share most of their attempts. */
  function numberOf(attempt: State['attempts'][number]): number {
    const found = attempts.get(attempt);
    if (found !== undefined) return found;
    const number = texts.of(textOf(sortedStrays(attempt)));
    attempts.set(attempt, number);
    return number;
  }

  /** Short, for there are many: each part that states share is a number. */
  function keyOf({
    store: content,
    replicas,
    attempts: all,
    left,
    row,
    effects,
    lost,
    floor,
    jumped,
    counted,
    shown,
    kept,
    resolved,
  }: State): string {
    const noted = [
      row.answer?.text,
      String(lost),
      String(floor),
      String(jumped),
      ...Object.values(counted),
      shown,
      kept,
      resolved,
    ].join();
    const rest = `${Object.values(left).join('')} ${row.fence} ${effects} ${noted}`;
    return `${content}/${replicas.join('.')}/${all.map(numberOf).join('.')}/${texts.of(rest)}`;
  }
}

function sortedStrays(attempt: State['attempts'][number]): State['attempts'][number] {
  return attempt.strays.length < 2
    ? attempt
    : { ...attempt, strays: [...attempt.strays].sort((a, b) => (textOf(a) < textOf(b) ? -1 : 1)) };
}

/** One more: whoever asks whether there is a way out looks ahead. */
function timeStepsOf({ budgets: { lease = 0, back = 0, forwards = 0, jump = 0 } }: Preset): number {
  return lease + back + forwards + jump + 1;
}

function createNumbers(): { readonly of: (text: string) => number; readonly text: (number: number) => string } {
  const numbers = new Map<string, number>();
  const texts: string[] = [];
  return {
    of: (text) => {
      const found = numbers.get(text);
      if (found !== undefined) return found;
      numbers.set(text, texts.length);
      texts.push(text);
      return texts.length - 1;
    },
    text: (number) => texts[number] ?? '',
  };
}

/** A line for a table. */
export function lineOf(
  { preset, states, transitions, contents, isExhausted, violations }: Exploration,
  scripts: number | null = null,
): string {
  const end = isExhausted ? 'exhausted' : violations.length > 0 ? `${violations.length} violations` : 'CUT OFF';
  const ran = scripts === null ? '' : `, ${grouped(scripts)} runs of scripts`;
  return `${preset}: ${grouped(states)} states, ${grouped(transitions)} transitions, ${grouped(contents)} of the store${ran}; ${end}`;
}

export function grouped(number: number): string {
  return number.toLocaleString('en-US');
}
