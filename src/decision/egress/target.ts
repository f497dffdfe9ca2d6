/** Which target of the calling side a request is for, and what it is asked there. */

/** Where requests under one prefix go. */
export interface TargetPaths {
  /** `/orders`, of unreserved characters (RFC 3986 §2.3): no spelling of it is another one. */
  readonly prefix: string;
  /** What stands before the rest of the path there: empty, or `/api`. */
  readonly basePath: string;
}

/**
 * Finds the target of a request by how its target begins, byte for byte; `null` where none does. No prefix of a config
 * begins another one, so that there is at most one.
 *
 * @param target path and query as they came, in origin form (RFC 9112 §3.2.1).
 */
export function targetOf<T extends TargetPaths>(targets: readonly T[], target: string): T | null {
  for (const each of targets) {
    if (!target.startsWith(each.prefix)) continue;
    const next = target.charAt(each.prefix.length);
    if (next === '' || next === '/' || next === '?') return each;
  }
  return null;
}

/** The request target that goes out: the prefix makes way for the base path, and the rest stays byte for byte. */
export function outgoingTarget({ prefix, basePath }: TargetPaths, target: string): string {
  const rest = target.slice(prefix.length);
  return `${basePath}${rest.startsWith('/') ? rest : `/${rest}`}`;
}
