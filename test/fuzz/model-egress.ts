/** docs/egress.md, "Where requests go", as plainly as it can be said. Shares nothing with the code that it judges. */
import { readTargetSlowly } from './model-target.js';

export interface ModelTarget {
  readonly prefix: string;
  readonly basePath: string;
}

/** - `maybe`: whether such a path is allowed is a matter of `allow`; where it is, this is where it goes. */
export type Destination =
  | { readonly kind: 'refused' }
  | { readonly kind: 'sent' | 'maybe'; readonly target: ModelTarget; readonly url: string };

/** Where a request may go, by its request target alone. */
export function destinationOf(requestTarget: string, targets: readonly ModelTarget[]): Destination {
  const read = readTargetSlowly(requestTarget, 8_192);
  if (read.status !== null || read.hasEncodedSlash || read.hasParameters) return { kind: 'refused' };
  for (const target of targets) {
    const { prefix, basePath } = target;
    if (requestTarget.slice(0, prefix.length) !== prefix) continue;
    const rest = requestTarget.slice(prefix.length);
    if (rest === '' || rest.startsWith('?')) return { kind: 'maybe', target, url: `${basePath}/${rest}` };
    if (!rest.startsWith('/')) continue;
    const isRoot = rest === '/' || rest.startsWith('/?');
    return { kind: isRoot ? 'maybe' : 'sent', target, url: `${basePath}${rest}` };
  }
  return { kind: 'refused' };
}
