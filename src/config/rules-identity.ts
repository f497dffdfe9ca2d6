import { lookAlikeKey } from '../decision/field-name.js';
import { mayNameIdentity } from '../decision/field-rules.js';
import type { ConfigParts } from './parse.js';
import type { Report } from './report.js';

/** Checks that each identity header is one that nothing else has a use for, and that no two can be taken for one another. */
export function checkIdentity({ identity }: ConfigParts, report: Report): void {
  if (identity === null) return;
  const holders = new Map<string, string>();
  for (const [key, name] of Object.entries(identity.value.headers)) {
    if (name === null) continue;
    const path = ['identity', 'headers', key];
    if (!mayNameIdentity(name)) {
      report.error(path, `identity.headers.${key} is ${report.show(path)}, which has another meaning`, 'a name of its own, such as X-Auth-Subject');
      continue;
    }
    const other = holders.get(lookAlikeKey(name));
    if (other === undefined) holders.set(lookAlikeKey(name), key);
    else report.error(path, `identity.headers.${key} is ${report.show(path)}, too much like identity.headers.${other}`, 'another name');
  }
}
