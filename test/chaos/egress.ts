/**
 * Writes of callers that know no tokens and no keys, through both sides, while everything fails; and whether what the
 * callers were told is what happened.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Scope } from '../support/scope.js';
import { callByNode, callByShell, type Caller } from './egress-callers.js';
import { startEgressDeployment, type FaultKind } from './egress-deployment.js';
import {
  startWriteLedger,
  toldBy,
  whatIsWrong,
  type CallerAnswer,
  type TargetName,
  type Violation,
  type Write,
} from './egress-ledger.js';

export interface EgressChaosOptions {
  readonly writes: number;
  /** Callers at once, of which every fourth is a shell. */
  readonly callers?: number;
  /** What goes wrong: everything unless given. */
  readonly kinds?: readonly FaultKind[];
}

export interface EgressChaosReport {
  readonly writes: readonly Write[];
  /** Writes that were carried out. */
  readonly ran: number;
  /** In order of their ends. */
  readonly faults: readonly Fault[];
  readonly network: Readonly<Record<string, number>>;
  /** Tokens that the calling side had fetched, since it was started last. */
  readonly fetches: number;
  readonly seconds: number;
  readonly violations: readonly Violation[];
}

interface Fault {
  readonly name: string;
  /** Seconds since the beginning. */
  readonly fromS: number;
  readonly toS: number;
}

/** Milliseconds between two ends of processes, where writes do not come through. */
const longestLullMs = 10_000;

/** Milliseconds from one fault to the next of its kind. Of tokens, more than a target may refuse in a row for ever. */
const longestPauseMs: Readonly<Record<FaultKind, number>> = { processes: 600, networks: 600, tokens: 8_000 };

/** Of each caller, so that it comes and goes as well. */
const writesPerTurn = 10;

export async function callThroughChaos(
  t: Scope,
  { writes: wanted, callers = 16, kinds = ['processes', 'networks', 'tokens'] }: EgressChaosOptions,
): Promise<EgressChaosReport> {
  const ledger = await startWriteLedger(t);
  const deployment = await startEgressDeployment(t, ledger);
  const writes: Write[] = [];
  const faults: Fault[] = [];
  const startedMs = performance.now();
  let [begun, done, isOver] = [0, 0, false];

  const call = async (number: number): Promise<void> => {
    for (let turn = 0; begun < wanted; turn += 1) {
      const count = Math.min(writesPerTurn, wanted - begun);
      begun += count;
      const target: TargetName = turn % 2 === 0 ? 'orders' : 'ledger';
      const caller: Caller = {
        port: deployment.port,
        target,
        prefix: `${target}-${String(number)}-${String(turn)}`,
        count,
        onWrite: (write) => {
          writes.push(write);
          if (write.target === 'orders' && toldBy(write.answer) === 'done') done += 1;
        },
      };
      await (number % 4 === 0 ? callByShell(caller) : callByNode(caller));
    }
  };
  const isRunning = (): boolean => !isOver;
  const harm = async (kind: FaultKind): Promise<void> => {
    const known = Object.entries(deployment.faults[kind]);
    while (isRunning()) {
      // Where nothing works, there is no process to harm; not for ever, for it may not come back by itself.
      const [before, waitedFromMs] = [done, performance.now()];
      const isLull = (): boolean => done < before + 10 && performance.now() < waitedFromMs + longestLullMs;
      while (isRunning() && kind === 'processes' && isLull()) await sleep(20);
      await sleep(Math.random() * longestPauseMs[kind]);
      const [name, work] = known[Math.floor(Math.random() * known.length)] ?? [];
      if (name === undefined || work === undefined) continue;
      const fromS = secondsSince(startedMs);
      await work();
      faults.push({ name, fromS, toS: secondsSince(startedMs) });
    }
  };
  // Several at a time: what each alone does not find, both together may. Processes end one after the other.
  const harms = kinds.flatMap((kind) => (kind === 'networks' ? [harm(kind), harm(kind)] : [harm(kind)]));
  await Promise.all(Array.from({ length: callers }, async (_, number) => call(number)));
  isOver = true;
  await Promise.all(harms);
  const seconds = secondsSince(startedMs);
  const fetches = await deployment.fetches();
  await deployment.stop();
  const runs = await ledger.runs();
  return {
    writes,
    ran: runs.size,
    faults,
    network: deployment.network(),
    fetches,
    seconds,
    violations: writes.flatMap((write): Violation[] => {
      const count = runs.get(write.id) ?? 0;
      const what = whatIsWrong(write.answer, count);
      return what === null ? [] : [{ what, write, runs: count }];
    }),
  };
}

/** How often each comes. */
export function countsOf(names: readonly string[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const name of [...names].sort()) counts.set(name, (counts.get(name) ?? 0) + 1);
  return counts;
}

/** For a terminal: figures, and a line for each violation. */
export function linesOf({
  writes,
  ran,
  faults,
  network,
  fetches,
  seconds,
  violations,
}: EgressChaosReport): readonly string[] {
  const answered = countsOf(writes.map(({ target, answer }) => `${target}: ${toldBy(answer)}: ${nameOf(answer)}`));
  const repeated = writes.filter(({ answer }) => toldBy(answer) === 'done' && answer.attempts > 1).length;
  return [
    `${String(writes.length)} writes in ${seconds.toFixed(0)} s, ${String(ran)} carried out; ${String(repeated)} done after more than one attempt`,
    ...[...countsOf(writes.map(({ answer, caller }) => `${caller}: ${toldBy(answer)}`))].map(
      ([name, count]) => `told: ${name}: ${String(count)}`,
    ),
    ...[...answered].map(([name, count]) => `answer: ${name}: ${String(count)}`),
    ...[...countsOf(faults.map(({ name }) => name))].map(([name, count]) => `fault: ${name}: ${String(count)}`),
    ...Object.entries(network).map(([name, count]) => `network: ${name}: ${String(count)}`),
    `tokens fetched since the calling side was started last: ${String(fetches)}`,
    ...violations.map(
      ({ what, write: { id, caller, answer }, runs }) =>
        `VIOLATION: ${what}: ${id} by ${caller}, carried out ${String(runs)} times: ${JSON.stringify(answer)}`,
    ),
    ...(violations.length === 0
      ? []
      : faults.map(({ name, fromS, toS }) => `${fromS.toFixed(2)}-${toS.toFixed(2)} s: ${name}`)),
    violations.length === 0 ? 'no violation' : `${String(violations.length)} VIOLATIONS`,
  ];
}

function nameOf({ status, failure, proxyStatus, attempts }: CallerAnswer): string {
  if (status === null) return `connection ${failure ?? ''}`;
  return `${String(status)} ${proxyStatus}`.trimEnd() + (attempts > 1 ? ', repeated' : '');
}

function secondsSince(startedMs: number): number {
  return (performance.now() - startedMs) / 1_000;
}
