import { UnreadableInput } from '../io/records.js';
import { escapeControls } from '../../lib/text.js';
import { makePlan, plannedKinds, type Plan } from '../plan.js';
import { firstVersionOfIsVerified, isVerifiedField } from '../losses.js';
import type { ImportOptions } from './options.js';
import type { ImportSource } from './source.js';
import type { Io } from '../../cli/io.js';

export interface PlannedImport {
  readonly plan: Plan;
  /** Of the input, hex. */
  readonly sha256: string;
}

/** Problems shown before a run, whose list of rejected rows has them all, and kept for the JSON of a dry run. */
const shownProblems = 20;
const keptProblems = 1_000;

/**
 * Reads everything once and shows what is asked for. A dry run shows every problem. `null` where nothing can be read.
 */
export async function planImport(
  file: string,
  source: ImportSource,
  { dryRun, json }: ImportOptions,
  io: Io,
): Promise<PlannedImport | null> {
  const isDry = dryRun === true;
  const asData = isDry && json === true;
  const print = isDry ? io.stdout : io.stderr;
  const problems: { line: number; record: number; method: number | null; problem: string }[] = [];
  let met = 0;
  const { units, digest } = source.read();
  try {
    const plan = await makePlan(units, ({ line, record, method }, problem) => {
      met += 1;
      if (asData && problems.length < keptProblems) {
        problems.push({ line, record, method: method === 0 ? null : method, problem });
      }
      if (!asData && (isDry || met <= shownProblems)) {
        print(`${placeOf(file, source.place, { line, record, method })}: ${escapeControls(problem)}\n`);
      }
    });
    const byKind = Object.fromEntries(plannedKinds(plan));
    if (asData) {
      print(`${JSON.stringify({ file, users: plan.users, byKind, problemCount: met, problems, ...lossesOf(plan) })}\n`);
    } else print(planText(plan, isDry ? 0 : Math.max(0, met - shownProblems)) + (isDry ? marksText(plan) : ''));
    return { plan, sha256: digest() ?? '' };
  } catch (error) {
    if (!(error instanceof UnreadableInput)) throw error;
    io.stderr(`error: ${escapeControls(`${file}:${error.message}`)}\n`);
    return null;
  }
}

function placeOf(
  file: string,
  place: ImportSource['place'],
  { line, record, method }: { line: number; record: number; method: number },
): string {
  return `${file}:${String(line)}${place === 'user' ? `: user ${String(record)}` : ''}${method === 0 ? '' : `: method ${String(method)}`}`;
}

/** What good rows say and the Core will not have, or only where it speaks a version that carries it. */
function lossesOf({ lost, verified }: Plan): object {
  return {
    notCarried: Object.fromEntries(lost),
    carriedFrom: verified === 0 ? {} : { [isVerifiedField]: { version: firstVersionOfIsVerified, users: verified } },
  };
}

export function usersText(count: number): string {
  return `${String(count)} ${count === 1 ? 'user' : 'users'}`;
}

function planText(plan: Plan, leftOut: number): string {
  const kinds = plannedKinds(plan).map(([kind, count]) => `  ${kind.padEnd(14)} ${String(count).padStart(9)}\n`);
  const lost = [...plan.lost].map(
    ([field, { users, line }]) =>
      `warning: ${escapeControls(field)} of ${usersText(users)} will be lost, first in line ${String(line)}: no call of the Core carries it\n`,
  );
  const more = leftOut === 0 ? '' : `and ${String(leftOut)} more problems, which the list of rejected rows will have\n`;
  return `${more}${String(plan.users)} users, ${String(plan.problems)} of them cannot be imported\n${kinds.join('')}${lost.join('')}`;
}

/** What no dry run can tell: it does not ask the Core what it speaks. */
function marksText({ verified }: Plan): string {
  if (verified === 0) return '';
  return `${isVerifiedField}: true of ${usersText(verified)} needs a Core that speaks version ${firstVersionOfIsVerified} or a later one\n`;
}
