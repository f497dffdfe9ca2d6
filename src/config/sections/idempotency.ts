import type { ConfigParts } from '../load/parse-sections.js';
import { nameOf, type Report } from '../load/report.js';
import type { Path } from '../load/source-tree.js';

/** Methods that a caller may repeat at will (RFC 9110 §9.2.1). */
const safeMethods: readonly string[] = ['GET', 'HEAD', 'OPTIONS'];

const writingMethods: readonly string[] = ['POST', 'PUT', 'PATCH', 'DELETE'];

/** Writing methods that a caller may repeat all the same (RFC 9110 §9.2.2). */
const repeatableMethods: readonly string[] = ['PUT', 'DELETE'];

/** Statuses with which a receiver answers that acted, and then failed. */
const mayHaveActed: readonly number[] = [500, 502, 504];

interface ReservingRoute {
  readonly path: Path;
  readonly parts: ConfigParts;
  readonly report: Report;
  /** `idempotency` as written: a word, a map or nothing. */
  readonly idempotency: unknown;
  readonly hasKey: boolean;
  readonly isSingleUse: boolean;
}

/** Checks what routes say of reservations, as it is written: whether or not something else is wrong with the route. */
export function checkReservations(parts: ConfigParts, report: Report): void {
  for (const { path } of parts.routes) {
    const idempotency = parts.written([...path, 'idempotency']);
    const mode = isMap(idempotency) ? idempotency['mode'] : idempotency;
    const route: ReservingRoute = {
      path,
      parts,
      report,
      idempotency,
      hasKey: mode === 'required' || mode === 'optional',
      isSingleUse: parts.written([...path, 'single_use']) === true,
    };
    if (mode === 'none') {
      checkUseless(route);
      checkUnreserved(route);
    }
    if (route.hasKey || route.isSingleUse) checkReserving(route);
    if (route.hasKey) checkKeyed(route);
    if (route.hasKey && parts.isWritten([...path, 'idempotency', 'because'])) {
      const at = [...path, 'idempotency', 'because'];
      report.keyError(at, `${nameOf(at)} has no use with mode: ${String(mode)}`, 'mode: none, or no because');
    }
  }
}

function checkReserving({ path, parts, report, hasKey }: ReservingRoute): void {
  const at = [...path, hasKey ? 'idempotency' : 'single_use'];
  if (parts.store?.value === null) {
    report.keyError(
      at,
      `${nameOf(at)} needs a place to keep reservations, and no store is configured`,
      'store.redis, or store.memory for development',
    );
  }
  if (parts.isWritten([...path, 'access'])) {
    report.keyError(
      at,
      `${nameOf(at)} stands beside ${nameOf(path)}.access: whose reservation it is would not be known`,
      'a protected route',
    );
  }
}

function checkKeyed({ path, parts, report, idempotency }: ReservingRoute): void {
  const methods = parts.written([...path, 'methods']);
  const safe = Array.isArray(methods)
    ? safeMethods.filter((method) => methods.includes(method) || methods.includes('*'))
    : [];
  if (safe.length > 0) {
    const name = report.show([...path, 'name']);
    report.warning(
      [...path, 'idempotency'],
      `route ${name} keeps results of ${safe.join(', ')}: a repeated read gets the first answer`,
      'routes of their own for reads, with idempotency: none',
    );
  }
  const releaseOn: unknown = isMap(idempotency) ? idempotency['release_on'] : null;
  if (!Array.isArray(releaseOn)) return;
  releaseOn.forEach((status: unknown, index) => {
    if (!mayHaveActed.includes(Number(status))) return;
    const at = [...path, 'idempotency', 'release_on', index];
    report.warning(
      at,
      `${nameOf(at)} is ${report.show(at)}, which a receiver may answer after it acted: the write may then run twice`,
      'statuses that mean that nothing was done',
    );
  });
}

/**
 * A write that nothing keeps from running twice is somebody's decision. PUT and DELETE are repeated without harm where
 * the receiver keeps to RFC 9110 §9.2.2, so that a route with these alone may also say nothing.
 */
function checkUnreserved({ path, parts, report, idempotency, isSingleUse }: ReservingRoute): void {
  if (isMap(idempotency) && (idempotency['because'] ?? null) !== null) return;
  const methods = parts.written([...path, 'methods']);
  const writes = Array.isArray(methods)
    ? writingMethods.filter((method) => methods.includes(method) || methods.includes('*'))
    : [];
  const at = [...path, 'idempotency'];
  if (writes.length === 0 || report.hasError(at)) return;
  const isPublic = parts.isWritten([...path, 'access']);
  const sender = isPublic
    ? 'by anybody'
    : `by a caller that got no answer ${isSingleUse ? 'and has a new token' : 'or whoever has its token'}`;
  const maySayNothing = writes.every((method) => repeatableMethods.includes(method));
  const allowed = [
    ...(isPublic ? [] : ['required']),
    '{ mode: none, because: "…" } with the reason why that does no harm',
    ...(maySayNothing ? [`no idempotency at all where a repeated ${writes.join(' or ')} changes nothing more`] : []),
  ];
  report.warning(
    at,
    `route ${report.show([...path, 'name'])} writes with idempotency: none: a ${writes.join(', ')} that is sent again, ${sender}, runs again`,
    allowed.join('; or '),
  );
}

/** Where only the token is reserved, its request is read whole all the same. */
function checkUseless({ path, report, idempotency, isSingleUse }: ReservingRoute): void {
  if (!isMap(idempotency)) return;
  const used = ['mode', 'because', ...(isSingleUse ? ['max_body', 'max_stored_response'] : [])];
  for (const key of Object.keys(idempotency)) {
    if (used.includes(key)) continue;
    const at = [...path, 'idempotency', key];
    report.keyError(at, `${nameOf(at)} has no use with mode: none`, 'mode: required or optional');
  }
}

function isMap(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
