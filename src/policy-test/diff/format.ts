import { escapeControls } from '../../lib/text.js';
import { isWider, type OperationChange, type PolicyDiff } from './policy-diff.js';
import type { SettingChange } from './setting-changes.js';

/** Operations that are listed for one change; the rest are counted. */
const maxListed = 12;

/** A comparison as lines for people: `!` marks what lets through more than before. */
export function diffLines(diff: PolicyDiff): readonly string[] {
  const { operations, settings, added, removed, shadowed, complete } = diff;
  const lines = [
    ...list('routes added', added),
    ...list('routes removed', removed),
    ...list('never reached any more', shadowed),
    ...settings.map((change) => changeLine('', change)),
    ...alike(operations).flatMap(operationLines),
    ...(complete ? [] : ['! the policies have too many paths to compare all of them']),
  ];
  if (lines.length === 0) return ['no change in effect'];
  return [...lines, isWider(diff) ? 'access widens' : 'access does not widen'].map(escapeControls);
}

/** Operations for which the same changes, together. */
function alike(operations: readonly OperationChange[]): readonly (readonly OperationChange[])[] {
  const groups = new Map<string, OperationChange[]>();
  for (const operation of operations) {
    const { from, to, gains, loses, changes } = operation;
    const key = JSON.stringify([from, to, gains, loses, changes]);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [operation]);
    else group.push(operation);
  }
  return [...groups.values()];
}

function operationLines(group: readonly OperationChange[]): readonly string[] {
  const [first] = group;
  if (first === undefined) return [];
  const { from, to, gains, loses, changes } = first;
  const places = group
    .slice(0, maxListed)
    .map(({ method, path }) => `${method} ${path}`)
    .join(', ');
  const more = group.length > maxListed ? ` and ${group.length - maxListed} more` : '';
  const routes = from === to ? (from ?? 'no route') : `${from ?? 'no route'} -> ${to ?? 'no route'}`;
  return [
    `  ${places}${more} (${routes})`,
    ...gains.map((caller) => `!   gains: ${caller}`),
    ...loses.map((caller) => `    loses: ${caller}`),
    ...changes.map((change) => changeLine('  ', change)),
  ];
}

function changeLine(indent: string, { setting, from, to, widens }: SettingChange): string {
  return `${widens ? '!' : ' '} ${indent}${setting}: ${from} -> ${to}`;
}

function list(title: string, names: readonly string[]): readonly string[] {
  return names.length === 0 ? [] : [`  ${title}: ${names.join(', ')}`];
}
