import { approvesSubject, prefixWords } from '../../decision/route/approval.js';
import type { Route } from '../../decision/route/policy.js';
import type { CaseResult } from './run.js';

/** One thing that a policy says and that a case can show to be so. */
export interface PolicyPoint {
  readonly kind: 'route' | 'subject' | 'permission' | 'session' | 'certificate';
  readonly route: string;
  /** The subject or the permission; empty for a route and for its sessions. */
  readonly name: string;
  readonly covered: boolean;
}

/**
 * What of a policy the cases show. A route: that some request is taken by it. A subject: that one of its tokens is let
 * through. A permission: that a caller who is approved is refused for want of it. Sessions: that one is let through. A
 * certificate: that who shows it is let through.
 */
export function coverageOf(routes: readonly Route[], results: readonly CaseResult[]): readonly PolicyPoint[] {
  return routes.flatMap((route) => {
    const own = results.filter(({ explained: { ruling } }) => ruling.route?.name === route.name);
    const point = (kind: PolicyPoint['kind'], name: string, covered: boolean): PolicyPoint => ({
      kind,
      route: route.name,
      name,
      covered,
    });
    const subjects = new Set(route.approvals.flatMap((approval) => [...approval.subjects]));
    const prefixes = new Set(route.approvals.flatMap((approval) => approval.prefixes));
    const permissions = new Set(route.approvals.flatMap((approval) => approval.permissions));
    return [
      point('route', '', own.length > 0),
      ...[...subjects].map((subject) =>
        point(
          'subject',
          subject,
          own.some((result) => isLetThrough(result, (name) => name === subject)),
        ),
      ),
      ...[...prefixes].map((prefix) =>
        point(
          'subject',
          prefixWords(prefix),
          own.some((result) => isLetThrough(result, (name) => name.startsWith(prefix))),
        ),
      ),
      ...[...permissions].map((permission) =>
        point(
          'permission',
          permission,
          own.some((result) => isRefusedFor(result, route, permission)),
        ),
      ),
      ...(route.session === null ? [] : [point('session', '', own.some(isSessionLetThrough))]),
      ...[...(route.clientCertificates ?? [])].map((name) =>
        point(
          'certificate',
          name,
          own.some(
            ({ explained: { ruling, certificate } }) => ruling.decision === 'allowed' && certificate?.name === name,
          ),
        ),
      ),
    ];
  });
}

/** The share that is covered, in percent. Rounded down: 100 is all. */
export function percentCovered(points: readonly PolicyPoint[]): number {
  return points.length === 0 ? 100 : Math.floor((100 * points.filter(({ covered }) => covered).length) / points.length);
}

/** What is not covered, in words. */
export function gapWords({ kind, route, name }: PolicyPoint): string {
  switch (kind) {
    case 'route':
      return `route ${route}: no case`;
    case 'subject':
      return `route ${route}: subject ${name} is let through by no case`;
    case 'permission':
      return `route ${route}: permission ${name}: no case is refused for want of it`;
    case 'session':
      return `route ${route}: a session is let through by no case`;
    case 'certificate':
      return `route ${route}: certificate ${name}: who shows it is let through by no case`;
  }
}

function isLetThrough(
  {
    explained: {
      ruling: { decision, principal },
    },
  }: CaseResult,
  isMeant: (subject: string) => boolean,
): boolean {
  return decision === 'allowed' && principal?.kind === 'service' && isMeant(principal.subject);
}

function isSessionLetThrough({
  explained: {
    ruling: { decision, principal },
  },
}: CaseResult): boolean {
  return decision === 'allowed' && principal?.kind === 'session';
}

function isRefusedFor(
  {
    explained: {
      ruling: { reason, principal },
    },
  }: CaseResult,
  route: Route,
  permission: string,
): boolean {
  if (reason !== 'permission_missing' || principal === null || principal.permissions.includes(permission)) return false;
  return route.approvals.some(
    (approval) => approvesSubject(approval, principal.subject) && approval.permissions.includes(permission),
  );
}
