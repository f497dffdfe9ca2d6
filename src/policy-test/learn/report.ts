/** What was learnt, what was not and why, as lines for people. */
import { escapeControls } from '../../lib/text.js';
import type { Findings } from './learner.js';
import { skipWords } from './log-line.js';
import type { Cut } from './path-tree.js';
import type { LeftOut, Proposal, ProposedRoute } from './proposal.js';
import { areUnclear, sightingText } from './write-config.js';

/** Lines that are listed of one kind; the rest are counted. */
const maxListed = 40;

const cutWords: Readonly<Record<keyof Cut, string>> = {
  places: 'paths are too many different ones',
  placesOfCaller: 'one caller has too many different paths',
  pairs: 'pairs of operation and caller are too many',
  callers: 'callers are too many',
  permissionSets: 'sets of permissions are too many',
};

/** Says it all. What is cut from the lists stands in the JSON. */
export function reportLines(findings: Findings, { routes, subjects, leftOut }: Proposal): readonly string[] {
  const { lines, learntFrom, inForce, skipped, unverified, others, cut } = findings;
  const cuts = Object.entries(cut).filter(([, count]) => count > 0) as [keyof Cut, number][];
  return [
    `${String(lines)} lines, ${String(learntFrom)} of them of verified callers that the config refuses, ${String(inForce)} of callers that it allows`,
    ...section('routes that are proposed', routes.map(routeText)),
    ...section(
      'not learnt: which of the permissions that they ask for these routes need; the tokens of their callers had all of them each time',
      routes.filter(({ approvals }) => areUnclear(approvals)).map(unclearText),
    ),
    ...section(
      'subjects that are proposed for routes of the config',
      subjects.map(({ route, seen }) => `${route}: ${sightingText(seen)}`),
    ),
    ...section('seen and not proposed', mostFirst(leftOut).map(leftOutText)),
    ...section('refused for what no route or subject would change', counted(others)),
    ...section('not learnt: nobody verified who called', counted(unverified)),
    ...section(
      'lines that nothing is learnt from',
      [...skipped]
        .toSorted((one, other) => other[1] - one[1] || (one[0] < other[0] ? -1 : 1))
        .map(([why, count]) => `${String(count)} ${skipWords[why]}`),
    ),
    ...section(
      'CUT: what follows was beyond the bounds of memory, and is not learnt',
      cuts.map(([what, count]) => `${String(count)} lines: ${cutWords[what]}`),
    ),
  ].map(escapeControls);
}

function section(title: string, lines: readonly string[]): readonly string[] {
  if (lines.length === 0) return [];
  const more = lines.length - maxListed;
  return [
    '',
    `${title}:`,
    ...lines.slice(0, maxListed).map((line) => `  ${line}`),
    ...(more > 0 ? [`  and ${String(more)} more`] : []),
  ];
}

function routeText({ name, method, path, approvals, seen, besides }: ProposedRoute): string {
  const who = approvals
    .map(
      ({ subjects, permissions }) =>
        `${subjects.join(', ')}${permissions.length === 0 ? '' : ` with ${permissions.join(' ')}`}`,
    )
    .join('; ');
  const count = seen.reduce((sum, one) => sum + one.count, 0);
  const apart = besides === null ? '' : `, kept apart from ${besides}`;
  return `${method} ${path} (${name}): ${who}; ${String(count)} requests${apart}`;
}

function unclearText({ name, method, path, approvals }: ProposedRoute): string {
  const counts = approvals.map(({ permissions }) => String(permissions.length)).join(' or ');
  const callers = approvals.reduce((sum, { subjects }) => sum + subjects.length, 0);
  return `${method} ${path} (${name}): ${counts} permissions, ${String(callers)} ${callers === 1 ? 'caller' : 'callers'}`;
}

function leftOutText({ method, path, subject, count, why }: LeftOut): string {
  return `${method} ${path} by ${subject}, ${String(count)} times: ${why}`;
}

function mostFirst(leftOut: readonly LeftOut[]): readonly LeftOut[] {
  return leftOut.toSorted((one, other) => other.count - one.count);
}

function counted(counts: ReadonlyMap<string, number>): readonly string[] {
  return [...counts]
    .toSorted((one, other) => other[1] - one[1] || (one[0] < other[0] ? -1 : 1))
    .map(([what, count]) => `${String(count)} ${what}`);
}
