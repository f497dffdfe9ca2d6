import { lookAlikeKey } from '../../decision/http/field-name.js';
import { mayNameIdentity } from '../../decision/http/header-rules.js';
import type { ConfigParts } from '../load/parse-sections.js';
import type { Report } from '../load/report.js';

/**
 * Checks that each identity header is one that nothing else has a use for, and that no two can be taken for one
 * another.
 */
export function checkIdentity({ identity }: ConfigParts, report: Report): void {
  if (identity === null) return;
  const holders = new Map<string, string>();
  const { headers, assertion } = identity.value;
  const names = Object.entries(headers).map(([key, name]) => ({
    key: `headers.${key}`,
    path: ['identity', 'headers', key],
    name,
  }));
  if (assertion !== null) {
    names.push({ key: 'assertion.header', path: ['identity', 'assertion', 'header'], name: assertion.header });
  }
  for (const { key, path, name } of names) {
    if (name === null) continue;
    if (!mayNameIdentity(name)) {
      report.error(
        path,
        `identity.${key} is ${report.show(path)}, which has another meaning`,
        'a name of its own, such as X-Auth-Subject',
      );
      continue;
    }
    const other = holders.get(lookAlikeKey(name));
    if (other === undefined) holders.set(lookAlikeKey(name), key);
    else report.error(path, `identity.${key} is ${report.show(path)}, too much like identity.${other}`, 'another name');
  }
}
