/** What the config's format has and this version does not do yet: said in those words instead of being ignored. */
import { z } from 'zod';
import type { Report } from './report.js';
import { nameOf } from './report.js';
import { locate, valueOf, type Path, type SourceNode } from './source-tree.js';

interface Unsupported {
  /** `*` is every item or name. */
  readonly path: readonly string[];
  /** Whether a value is one that is not supported. */
  readonly isMeant: (value: unknown) => boolean;
  readonly allowed: string;
}

const isSet = (value: unknown): boolean => value !== null && value !== undefined;

const unsupported: readonly Unsupported[] = [
  { path: ['identity', 'assertion'], isMeant: isSet, allowed: 'null' },
];

/** The schema of a section that is not supported yet: it may only be left out, or be null. */
export function notYet(): z.ZodPrefault<z.ZodNull> {
  return z.null('null').meta({ allowed: 'null' }).prefault(null).describe('Not supported yet.');
}

/** Reports every use of what is not supported yet, and answers where it stood: nothing else is said of it. */
export function refuseUnsupported(root: SourceNode, report: Report): readonly Path[] {
  const refused: Path[] = [];
  for (const { path: pattern, isMeant, allowed } of unsupported) {
    for (const path of expand(root, pattern, [])) {
      const { node } = locate(root, path);
      if (node === null || !isMeant(valueOf(node))) continue;
      report.keyError(path, `${nameOf(path)} is not supported yet${isKeyItself(isMeant) ? '' : `: ${report.show(path)}`}`, allowed);
      refused.push(path);
    }
  }
  return refused;
}

/** Whether the key as such is meant and not one of its values. */
function isKeyItself(isMeant: Unsupported['isMeant']): boolean {
  return isMeant === isSet;
}

function expand(node: SourceNode, pattern: readonly string[], path: Path): readonly Path[] {
  const [step, ...rest] = pattern;
  if (step === undefined) return [path];
  if (step !== '*') {
    const entry = node.kind === 'map' ? node.entries.get(step) : undefined;
    return entry === undefined ? [] : expand(entry.node, rest, [...path, step]);
  }
  return node.kind === 'list' ? node.items.flatMap((item, index) => expand(item, rest, [...path, index])) : [];
}
