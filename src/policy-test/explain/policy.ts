import { approvesSubject, subjectWords } from '../../decision/route/approval.js';
import type { Approval, Route } from '../../decision/route/policy.js';
import type { Principal } from '../../decision/token/principal.js';
import { unmetClaims } from '../../decision/session/claim-rules.js';
import type { Ruling } from '../simulate/decide.js';

/**
 * Says of each approval of the route whether it names the caller, and of each permission whether the caller holds it.
 */
export function explainPolicy({ route, principal }: Ruling): readonly string[] {
  if (route === null || principal === null) return [];
  if (principal.kind === 'session') return sessionWords(route, principal);
  const [only] = route.approvals;
  if (route.approvals.length === 1 && only !== undefined) return approvalWords(only, principal);
  return route.approvals.flatMap((approval, index) =>
    approvalWords(approval, principal).map((text) => `any_of ${index + 1}: ${text}`),
  );
}

function sessionWords({ session: policy }: Route, { session }: Principal): readonly string[] {
  if (policy === null || session === undefined) return ['the route takes no sessions'];
  const unmet = unmetClaims(policy, session.claims);
  if (policy.claims.length === 0) return ['every user with a session is let through'];
  return policy.claims.map(
    (rule) => `claim ${rule.path.join('.')}: ${unmet.includes(rule) ? 'is not' : 'is'} ${JSON.stringify(rule.value)}`,
  );
}

function approvalWords(approval: Approval, principal: Principal): readonly string[] {
  const { subjects, prefixes, permissions } = approval;
  const held = new Set(principal.permissions);
  const { subject } = principal;
  if (!approvesSubject(approval, subject)) {
    return [`subject ${subject}: not approved; approved: ${subjectWords(approval).join(' ')}`];
  }
  const prefix = subjects.has(subject) ? undefined : prefixes.find((beginning) => subject.startsWith(beginning));
  return [
    `subject ${subject}: approved${prefix === undefined ? '' : `, as all that begin with ${prefix}`}`,
    ...(permissions.length === 0
      ? ['no permission is needed']
      : permissions.map((name) => `permission ${name}: ${held.has(name) ? 'held' : 'missing'}`)),
  ];
}

/** Says what would be reserved. The store is not asked. */
export function explainReservation({ route, preparation, decision, listener }: Ruling): readonly string[] {
  const rules = route?.reservation ?? null;
  const why = route?.unreservedBecause ?? null;
  const because = why === null ? [] : [`a write that is sent again runs again, because: ${why}`];
  if (rules === null) return ['the route reserves nothing', ...because];
  const asked = [
    ...because,
    ...(rules.key === null
      ? []
      : [`Idempotency-Key ${rules.key}, operation ${rules.operation}, kept for ${words(rules.retentionMs)}`]),
    ...(rules.singleUse ? ['a token passes once'] : []),
  ];
  if (decision !== 'allowed') return asked;
  const unreserved = unreservedWords({ route, decision, listener });
  if (unreserved !== null) return [...asked, unreserved];
  if (preparation === null) {
    return [...asked, 'nothing is reserved: the request has no key, and may run more than once'];
  }
  return [
    ...asked,
    ...(preparation.recordId === null ? [] : [`would reserve record ${preparation.recordId}`]),
    ...(preparation.scope.token === null ? [] : [`would use up token id ${preparation.principal.tokenId ?? ''}`]),
    'the store is not asked: whether the key or the token was used before is not known here',
  ];
}

/** That a decide listener lets through what its route reserves; `null` where it does not. */
export function unreservedWords({
  route,
  decision,
  listener,
}: Pick<Ruling, 'route' | 'decision' | 'listener'>): string | null {
  if (listener === null || decision !== 'allowed' || (route?.reservation ?? null) === null) return null;
  return `nothing is reserved: ${listener.name} only decides, so that the request may run more than once`;
}

function words(ms: number): string {
  return ms % 3_600_000 === 0 ? `${ms / 3_600_000} h` : `${ms / 1_000} s`;
}
