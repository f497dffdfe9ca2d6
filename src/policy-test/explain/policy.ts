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

function approvalWords({ subjects, permissions }: Approval, principal: Principal): readonly string[] {
  const held = new Set(principal.permissions);
  const names = [...subjects].join(' ');
  if (!subjects.has(principal.subject)) return [`subject ${principal.subject}: not approved; approved: ${names}`];
  return [
    `subject ${principal.subject}: approved`,
    ...(permissions.length === 0
      ? ['no permission is needed']
      : permissions.map((name) => `permission ${name}: ${held.has(name) ? 'held' : 'missing'}`)),
  ];
}
