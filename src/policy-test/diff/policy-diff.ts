/** What a policy edit changes in effect: who gains and who loses which operation. */
import type { CompiledConfig } from '../../config/types.js';
import type { Route } from '../../decision/route/policy.js';
import { unreachablePaths } from '../../decision/route/conflicts/unreachable.js';
import { placeOf } from '../../decision/route/route-table.js';
import type { ActiveConfig } from '../../proxy/auth/active-config.js';
import { createCallerTrial, type TrialDeps } from './compare-callers.js';
import { routeChanges, settingsChanges, type SettingChange } from './setting-changes.js';
import { methodsOf, spellingsOf } from './sample-requests.js';

/** What changes for the requests with this method and path. */
export interface OperationChange {
  /** `*` stands for every method that no route names. */
  readonly method: string;
  /** `{any}` stands for every segment that no route names, `**` for anything below. */
  readonly path: string;
  /** Names of the routes that take it; `null` is none. */
  readonly from: string | null;
  readonly to: string | null;
  /** Callers who are let through now and were not. */
  readonly gains: readonly string[];
  /** Callers who were let through and are not any more. */
  readonly loses: readonly string[];
  /** What else is different for those who are let through. */
  readonly changes: readonly SettingChange[];
}

export interface PolicyDiff {
  readonly operations: readonly OperationChange[];
  /** What concerns every request. */
  readonly settings: readonly SettingChange[];
  readonly added: readonly string[];
  readonly removed: readonly string[];
  /** Paths, with their routes, that more specific ones leave nothing from now on. */
  readonly shadowed: readonly string[];
  /** False where the policies have more paths than can be compared. */
  readonly complete: boolean;
}

/** Compares two policies by what they decide on requests that stand for all. */
export async function comparePolicies(deps: TrialDeps): Promise<PolicyDiff> {
  const [from, to] = [deps.from.config, deps.to.config];
  const tables = [from.table, to.table];
  const { all, complete } = spellingsOf(tables);
  const { named, other } = methodsOf(tables);
  const methods = [
    ...named.map((name) => ({ name, shown: name })),
    ...(other === null ? [] : [{ name: other, shown: '*' }]),
  ];
  const trial = createCallerTrial(deps);
  const operations: OperationChange[] = [];
  for (const { target, segments, text } of all) {
    for (const { name: method, shown } of methods) {
      const before = routeOf(deps.from, method, segments);
      const after = routeOf(deps.to, method, segments);
      const result = await trial({ method, target, from: before, to: after });
      const changes = before === null || after === null ? [] : routeChanges(before, after);
      const change = {
        method: shown,
        path: text,
        from: before?.name ?? null,
        to: after?.name ?? null,
        ...result,
        changes,
      };
      if (isChange(change)) operations.push(change);
    }
  }
  return {
    operations,
    settings: settingsChanges(from, to),
    added: namesBeside(to, from),
    removed: namesBeside(from, to),
    shadowed: shadowedPaths(to).filter((path) => !shadowedPaths(from).includes(path)),
    complete,
  };
}

/** Whether somebody may do more than before, or less is guarded. What could not be compared counts as wider. */
export function isWider({ operations, settings, complete }: PolicyDiff): boolean {
  const widens = (change: SettingChange): boolean => change.widens;
  return (
    !complete ||
    settings.some(widens) ||
    operations.some(({ gains, changes }) => gains.length > 0 || changes.some(widens))
  );
}

function isChange({ from, to, gains, loses, changes }: OperationChange): boolean {
  return from !== to || gains.length + loses.length + changes.length > 0;
}

function routeOf({ config }: ActiveConfig, method: string, segments: readonly string[]): Route | null {
  return placeOf(config.table, method, segments)?.route ?? null;
}

function namesBeside(one: CompiledConfig, other: CompiledConfig): readonly string[] {
  const known = new Set(other.routes.map(({ name }) => name));
  return one.routes.map(({ name }) => name).filter((name) => !known.has(name));
}

function shadowedPaths({ table }: CompiledConfig): readonly string[] {
  return unreachablePaths(table).map(({ route, path }) => `${route.name} ${path.text}`);
}
