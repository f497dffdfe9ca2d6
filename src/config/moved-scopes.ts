/** Whose idempotency keys a new config leaves behind. */
import type { CompiledConfig } from './types.js';

type Scoped = Pick<CompiledConfig, 'routes' | 'issuers'>;

/**
 * Whose keys count no more, since what they are counted by has changed: an issuer's `iss` or `audience`, or, for users,
 * the audience of the first issuer. A retry of what they sent before is a new request.
 */
export function movedScopes(before: Scoped, after: Scoped): readonly string[] {
  const moved = before.issuers.filter(
    ({ rules: { name, issuer, audience } }) =>
      keepsKeys(before, (route) => countsAt(route, name)) &&
      !after.issuers.some(({ rules }) => rules.issuer === issuer && rules.audience === audience),
  );
  const users =
    keepsKeys(before, ({ session }) => session !== null) &&
    before.issuers[0]?.rules.audience !== after.issuers[0]?.rules.audience;
  return [...moved.map(({ rules: { name } }) => `callers of issuers.${name}`), ...(users ? ['users'] : [])];
}

type ActiveRoute = CompiledConfig['routes'][number];

function keepsKeys({ routes }: Scoped, counts: (route: ActiveRoute) => boolean): boolean {
  return routes.some((route) => route.reservation !== null && route.reservation.key !== null && counts(route));
}

function countsAt({ acceptsService, issuers }: ActiveRoute, issuerName: string): boolean {
  return acceptsService && (issuers === null || issuers.has(issuerName));
}
