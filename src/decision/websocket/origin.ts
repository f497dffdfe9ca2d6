import { denial, type Denial } from '../denial.js';
import type { Route } from '../route/policy.js';
import type { Principal } from '../token/principal.js';
import type { RequestFields } from '../http/request-headers.js';

/**
 * Whether the page that opens a WebSocket may: a browser adds cookies to what any page asks for, and neither CORS nor a
 * field that only one's own pages can send stands in the way of a WebSocket (RFC 6455 §10.2). Where the route names
 * origins, those count; else a session counts only on a page of the same host. Who sends no Origin is no page, and
 * brings no cookie of one.
 */
export function refusedOrigin(fields: RequestFields, { origins }: Route, principal: Principal | null): Denial | null {
  if (fields.upgrade === null) return null;
  const given = fields.passed.filter((_text, i) => i % 2 === 1 && fields.passed[i - 1]?.toLowerCase() === 'origin');
  const isSession = principal?.kind === 'session';
  const [origin] = given;
  if (origin === undefined) return isSession && fields.authorization === null ? denial('origin_refused') : null;
  const isAllowed =
    given.length === 1 &&
    (origins === null ? !isSession || isSameHost(origin, fields.host) : origins.has(origin.toLowerCase()));
  return isAllowed ? null : denial('origin_refused');
}

/** Compares host and port, with the port that the origin's scheme stands for where one is not written. */
function isSameHost(origin: string, host: string): boolean {
  const [scheme = ''] = origin.split('//');
  const own = `${scheme}//${host}`;
  return (
    URL.canParse(origin) &&
    URL.canParse(own) &&
    new URL(origin).host !== '' &&
    new URL(origin).host === new URL(own).host
  );
}
