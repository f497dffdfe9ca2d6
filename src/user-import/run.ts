/** The import itself: users in the order of the file, several in flight, each step journalled before it can matter. */
import { setMaxListeners } from 'node:events';
import type { Result } from '../lib/result.js';
import type { Clock } from '../ports/system.js';
import type { Core } from './core/requests.js';
import {
  afterFailure,
  afterReply,
  beginFlow,
  createsUser,
  requestOf,
  type Flow,
  type FlowRules,
  type Next,
} from './import-user.js';
import type { DoneRecord, JournalRecord } from './journal.js';
import type { Ledger } from './totals.js';
import {
  countFailure,
  createHealth,
  isRowAtFault,
  noFailures,
  pauseAfter,
  type Health,
  type HealthLimits,
  type RowFailures,
} from './retry.js';
import { createSchedule, type Schedule, type Scheduled } from './schedule.js';
import { judge } from './core/errors.js';
import type { Unit } from './row/rows.js';
import { contactsOf, kindOf, problemText } from './row/user.js';

/** Where records are kept. */
export interface Journal {
  /** Writes soon, in order. */
  readonly append: (record: JournalRecord) => void;
  /** Waits until everything appended is on disk; refuses, in words, where it cannot be. */
  readonly commit: () => Promise<Result<null, string>>;
}

interface RunParts {
  readonly units: AsyncIterable<Unit>;
  readonly ledger: Ledger;
  readonly journal: Journal;
  readonly core: Core;
  readonly clock: Clock;
  /** Waits, or less where the signal comes first. Never rejects. */
  readonly wait: (ms: number, signal: AbortSignal) => Promise<void>;
  /** From 0 to 1. */
  readonly chance: () => number;
  /** Told why calls are tried again. */
  readonly onTrouble: (why: string) => void;
  /** No user is begun after it; those in flight come to their end. */
  readonly signal: AbortSignal;
}

export interface RunRules extends FlowRules, HealthLimits {
  readonly concurrency: number;
}

/** Users between the oldest under way and the newest, for each in flight. */
const windowPerFlight = 16;

/** Runs to the end of the units, and returns why it stopped before; `null` where it did not. */
export async function runImport(parts: RunParts, rules: RunRules): Promise<string | null> {
  const run = createRun(parts, rules);
  try {
    for await (const unit of parts.units) {
      if (!(await run.offer(unit))) break;
    }
  } finally {
    await run.settle();
  }
  return run.stopped();
}

interface Run {
  /** Takes a unit as soon as there is room; `false` where no more are wanted. */
  readonly offer: (unit: Unit) => Promise<boolean>;
  /** Waits for those in flight. */
  readonly settle: () => Promise<void>;
  readonly stopped: () => string | null;
}

interface Shared {
  readonly parts: RunParts;
  readonly rules: RunRules;
  readonly health: Health;
  /** What is known of the rows under way. */
  readonly rows: Map<number, Pick<Unit, 'line' | 'lost'>>;
  /** Aborted when no user may be begun and none tried again. */
  readonly halted: AbortSignal;
  readonly halt: (why: string) => void;
}

function createRun(parts: RunParts, rules: RunRules): Run {
  const { ledger, signal, clock } = parts;
  const schedule: Schedule = createSchedule({
    concurrency: rules.concurrency,
    window: rules.concurrency * windowPerFlight,
  });
  const halting = new AbortController();
  // Every user that waits listens, and each lets go.
  setMaxListeners(0, halting.signal);
  const flights = new Set<Promise<void>>();
  let reason: string | null = null;
  const halt = (why: string): void => {
    reason ??= why;
    halting.abort();
  };
  const onSignal = (): void => halting.abort();
  signal.addEventListener('abort', onSignal, { once: true });
  if (signal.aborted) onSignal();
  const shared: Shared = {
    parts,
    rules,
    health: createHealth(rules, clock.monotonic()),
    rows: new Map(),
    halted: halting.signal,
    halt,
  };

  function launch(): void {
    for (
      let item = halting.signal.aborted ? null : schedule.take();
      item !== null;
      item = halting.signal.aborted ? null : schedule.take()
    ) {
      const flown = item;
      const flight = fly(flown, shared).finally(() => {
        schedule.finish(flown);
        shared.rows.delete(flown.number);
        flights.delete(flight);
        launch();
      });
      flights.add(flight);
    }
  }

  async function roomFor(number: number): Promise<boolean> {
    while (!halting.signal.aborted && !schedule.hasRoom(number)) await Promise.race(flights);
    return !halting.signal.aborted;
  }

  return {
    offer: async ({ number, line, content, lost }) => {
      if (ledger.isDone(number)) return !halting.signal.aborted;
      if (!(await roomFor(number))) return false;
      if (content.ok) {
        shared.rows.set(number, { line, lost });
        schedule.offer({ number, user: content.value, contacts: contactsOf(content.value) });
        launch();
      } else {
        finish(
          { number, line, kind: null, outcome: { result: 'rejected', why: problemText(content.error) }, lost: [] },
          parts,
        );
      }
      return true;
    },
    settle: async () => {
      while (flights.size > 0) await Promise.race(flights);
      schedule.clear();
      signal.removeEventListener('abort', onSignal);
      const kept = await parts.journal.commit();
      if (!kept.ok) halt(kept.error);
    },
    stopped: () => reason,
  };
}

/** Nobody waits for this to be on disk: a user whose end is lost is asked for again, and found. */
function finish({ lost, ...finished }: Required<Omit<DoneRecord, 'type'>>, { journal, ledger }: RunParts): void {
  const record: JournalRecord = { type: 'done', ...finished, ...(lost.length === 0 ? {} : { lost }) };
  journal.append(record);
  ledger.take(record);
}

/** Takes one user through its calls. Returns early, with the user unfinished, where the run is halted. */
async function fly({ number, user }: Scheduled, shared: Shared): Promise<void> {
  const { parts, rules, halt, halted } = shared;
  let flow = beginFlow(user, parts.ledger.begun(number), rules);
  let isBegun = flow.mayBeOurs;
  let failures = noFailures;
  for (;;) {
    if (createsUser(flow) && !isBegun) {
      if (halted.aborted) return;
      const begun = await begin(number, shared);
      if (begun === null) return;
      flow = { ...flow, begunAtMs: begun };
      isBegun = true;
    }
    const turn = await callTurn(number, flow, failures, shared);
    if (turn === null) return;
    failures = turn.failures;
    if (turn.next.step === 'end') {
      const { line = 0, lost = [] } = shared.rows.get(number) ?? {};
      finish(
        { number, line, kind: kindOf(user), outcome: turn.next.outcome, lost: [...lost, ...turn.next.lost] },
        parts,
      );
      if (turn.next.stop !== null) halt(inLine(number, turn.next.stop, shared));
      return;
    }
    flow = noted(number, flow, turn.next.flow, parts);
  }
}

/** Lets the journal know that the Core may have the user from now on, before it can. */
async function begin(number: number, { parts: { journal, ledger, clock }, halt }: Shared): Promise<number | null> {
  const record: JournalRecord = { type: 'begun', number, atMs: clock.now() };
  journal.append(record);
  ledger.take(record);
  const kept = await journal.commit();
  if (kept.ok) return record.atMs;
  halt(kept.error);
  return null;
}

interface Turn {
  readonly next: Next;
  readonly failures: RowFailures;
}

/** Makes the flow's next call, and waits after one that failed. `null` where the run is halted. */
async function callTurn(number: number, flow: Flow, failures: RowFailures, shared: Shared): Promise<Turn | null> {
  const {
    parts: { core, clock, ledger, wait, chance, onTrouble },
    rules,
    health,
    halt,
    halted,
  } = shared;
  const delayMs = health.nextCallAtMs(clock.monotonic()) - clock.monotonic();
  if (delayMs > 0) await wait(delayMs, halted);
  if (halted.aborted && failures.count > 0) return null;
  const begunMs = clock.monotonic();
  const verdict = judge(await core.call(requestOf(flow, rules)), {
    flow,
    hostedScryptWorks: ledger.hasTaken('hosted_scrypt'),
  });
  const nowMs = clock.monotonic();
  if (verdict.kind === 'reply') {
    health.succeeded(nowMs);
    return { next: afterReply(flow, verdict.reply, rules), failures };
  }
  if (verdict.kind === 'stop') {
    halt(inLine(number, verdict.why, shared));
    return null;
  }
  health.failed(begunMs);
  const counted = countFailure(failures, verdict.isCoreReached, health.successes());
  if (isRowAtFault(counted, health.successes(), rules.concurrency)) {
    const why = `the Core failed on it each time, and may have it all the same: ${verdict.why}`;
    return { next: { step: 'end', outcome: { result: 'rejected', why }, stop: null, lost: [] }, failures: counted };
  }
  if (health.isHopeless(nowMs)) {
    halt(`the Core has not answered well for ${String(Math.round(rules.giveUpAfterMs / 1_000))} s: ${verdict.why}`);
  }
  if (halted.aborted) return null;
  onTrouble(verdict.why);
  const pauseMs = pauseAfter(counted.count, verdict.retryAfterMs, chance());
  if (verdict.retryAfterMs !== null) health.pause(nowMs + pauseMs);
  await wait(pauseMs, halted);
  return { next: { step: 'call', flow: afterFailure(flow, verdict.mayHaveRun) }, failures: counted };
}

function inLine(number: number, why: string, { rows }: Shared): string {
  return `line ${String(rows.get(number)?.line ?? 0)}: ${why}`;
}

/** A user that is there and lacks a contact is known by its id from now on. */
function noted(number: number, before: Flow, after: Flow, { journal, ledger }: RunParts): Flow {
  if (after.stage !== 'add_contact' || before.stage === 'add_contact' || after.userId === null) return after;
  const record: JournalRecord = { type: 'user', number, userId: after.userId, existed: after.existed };
  journal.append(record);
  ledger.take(record);
  return after;
}
