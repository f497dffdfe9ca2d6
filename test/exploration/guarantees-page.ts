/** Rows of the tables of docs/guarantees.md that say what was explored. */
import type { Budgets, Preset } from './model.js';
import { grouped, type Exploration } from './search.js';

const words: Readonly<Record<keyof Budgets, string>> = {
  late: 'unanswered commands',
  doubled: 'doubled commands',
  broken: 'broken answers',
  refused: 'refusals',
  crash: 'crashes',
  gone: 'callers gone',
  lease: 'leases over',
  back: 'clock back',
  forwards: 'clock forwards',
  jump: 'clock past everything',
  failover: 'fail-overs',
  unconfirmed: 'unconfirmed reserves',
  resolve: 'resolutions',
};

/** A preset, its requests, how often what happens at most, and what was seen. */
export function rowOf({ name, requests, budgets }: Preset, { states, transitions, contents }: Exploration): string {
  const happens = (Object.entries(budgets) as [keyof Budgets, number][])
    .map(([what, times]) => `${words[what]} ${times}`)
    .join(', ');
  return `| \`${name}\` | ${requests.length} | ${happens} | ${grouped(states)} | ${grouped(transitions)} | ${grouped(contents)} |`;
}
