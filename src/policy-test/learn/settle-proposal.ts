/** Takes out of a proposal what the check of configs does not accept. */
import type { Problem } from '../../config/load/report.js';
import type { ConfigValidation } from '../../config/load/validate-config.js';
import type { LeftOut, Proposal, ProposedRoute } from './proposal.js';

interface Written {
  readonly text: string;
  readonly lines: ReadonlyMap<string, readonly [number, number]>;
}

/** A proposal as a config, and what the check says of it. */
interface SettledProposal extends Written {
  readonly proposal: Proposal;
  /** What is wrong with it all the same: nothing that was learnt. */
  readonly validation: ConfigValidation;
}

/**
 * Writes the proposal, and leaves out routes until the check has nothing against those that remain. Of two that are
 * against each other one that was seen too rarely goes first, then the one that lets more through.
 */
export function settleProposal(
  proposal: Proposal,
  write: (proposal: Proposal) => Written,
  validate: (text: string) => ConfigValidation,
): SettledProposal {
  let rest = proposal;
  for (;;) {
    const written = write(rest);
    const validation = validate(written.text);
    const refused = refusedRoutes(validation.problems, written.lines, rest.routes);
    if (refused.size === 0) return { ...written, proposal: rest, validation };
    const stays = ({ name, besides }: ProposedRoute): boolean =>
      !refused.has(name) && (besides === null || !refused.has(besides));
    const gone = rest.routes.filter((route) => !stays(route));
    rest = {
      ...rest,
      routes: rest.routes.filter(stays),
      leftOut: [...rest.leftOut, ...gone.flatMap((route) => leftOutOf(route, refused.get(route.name)))],
    };
  }
}

/** Routes that have to go, each with the problem for which it has to. */
function refusedRoutes(
  problems: readonly Problem[],
  lines: Written['lines'],
  routes: readonly ProposedRoute[],
): ReadonlyMap<string, Problem> {
  const routeAt = (line: number): ProposedRoute | undefined =>
    routes.find(({ name }) => {
      const [from = Infinity, to = 0] = lines.get(name) ?? [];
      return line >= from && line <= to;
    });
  const refused = new Map<string, Problem>();
  for (const problem of problems) {
    const others = [...problem.message.matchAll(/\(line (\d+)\)/g)].map(([, line]) => routeAt(Number(line)));
    const concerned = [routeAt(problem.line), ...others].filter((route) => route !== undefined);
    if (concerned.some(({ name }) => refused.has(name))) continue;
    const goes = concerned.find(({ besides }) => besides !== null) ?? concerned[0];
    if (goes !== undefined) refused.set(goes.name, problem);
  }
  return refused;
}

function leftOutOf({ method, path, seen, besides }: ProposedRoute, problem: Problem | undefined): readonly LeftOut[] {
  const why =
    problem === undefined
      ? `route ${besides ?? ''}, beside which it was to stand, is left out`
      : `the check refuses its route: ${problem.message}; allowed: ${problem.allowed}`;
  return seen.map(({ subject, count }) => ({ method, path, subject, count, why }));
}
