import { nameOf, type Report } from '../load/report.js';
import type { Path, SourceNode } from '../load/source-tree.js';

/**
 * Warns of keys with nothing behind them, where the schema takes that for null: it may switch off what somebody was
 * about to write, such as the limits of a route.
 */
export function checkEmptyKeys(root: SourceNode, report: Report): void {
  look(root, [], report);
}

function look(node: SourceNode, path: Path, report: Report): void {
  if (node.kind === 'map') for (const [key, entry] of node.entries) look(entry.node, [...path, key], report);
  else if (node.kind === 'list') node.items.forEach((item, index) => look(item, [...path, index], report));
  else if (node.isEmpty === true && !report.hasError(path)) {
    report.warning(path, `${nameOf(path)} is empty, which counts as null`, 'a value, or null where that is meant');
  }
}
