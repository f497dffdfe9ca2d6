/** Files that hold secrets, and who else may read them. */
import { secretFileRule } from '../../lib/secret-file-access.js';
import { placeholdersIn } from '../load/placeholders.js';
import { nameOf, secretFileKeys, secretKeys, type Report } from '../load/report.js';
import type { Path, SourceNode } from '../load/source-tree.js';

/**
 * Says who may read or change the file with this path but should not, in words that follow a name of it; `null` where
 * nobody, or where there is no file.
 */
export type FileExposure = (path: string) => string | null;

/** Warns of keys, passwords and API keys that others may read: from their files, or from the environment. */
export function checkSecretFiles(node: SourceNode, exposureOf: FileExposure, report: Report, path: Path = []): void {
  if (node.kind === 'map') {
    for (const [key, entry] of node.entries) checkSecretFiles(entry.node, exposureOf, report, [...path, key]);
  }
  if (node.kind === 'list') {
    for (const [index, item] of node.items.entries()) checkSecretFiles(item, exposureOf, report, [...path, index]);
  }
  if (node.kind !== 'scalar' || typeof node.value !== 'string' || node.faulty || report.hasError(path)) return;
  const key = path.findLast((step) => typeof step === 'string') ?? '';
  if (secretFileKeys.has(key)) warnOfExposure(node.value, 'names', path);
  if (!secretKeys.has(key) || node.written === null) return;
  for (const { kind, name } of placeholdersIn(node.written)) {
    if (kind === 'file') warnOfExposure(name, 'comes from', path);
    else {
      report.warning(
        path,
        `${nameOf(path)} comes from the environment, which other programs of this user, dumps and child processes have too`,
        '${file:PATH}, with a file that others may not read',
      );
    }
  }

  function warnOfExposure(file: string, verb: string, at: Path): void {
    const exposure = exposureOf(file);
    if (exposure !== null) report.warning(at, `${nameOf(at)} ${verb} a file that ${exposure}`, secretFileRule);
  }
}
