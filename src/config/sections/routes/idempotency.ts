/** What a route says of writes that may come twice. */
import { z } from 'zod';
import type { ParsedConfig } from '../../load/parse-sections.js';
import { nameOf, type Report } from '../../load/report.js';
import { isMap, type Path } from '../../load/source-tree.js';
import { isGrpcRoute, writtenMethods } from './grpc.js';
import type { RouteFile } from './routes.js';
import { duration, integer, list, map, size, text, word } from '../../schema/scalars.js';
import { createHeaderRules, mayPass } from '../../../decision/http/header-rules.js';
import { volatileHeaders } from '../../../decision/idempotency/fingerprint.js';
import { whyNeverStored } from '../../../decision/idempotency/stored-response.js';
import type { ReservationRules } from '../../../decision/route/policy.js';
import { safeMethods } from '../../../decision/http/request-head.js';

/** Statuses whose meaning is that nothing was done (RFC 9110 §15.5, RFC 6585 §4, RFC 8470 §5.2). */
const notAppliedStatuses: readonly number[] = [401, 403, 408, 421, 425, 429];

/**
 * What they are in gRPC is less sure: RESOURCE_EXHAUSTED, 429, is also what servers answer that acted, and whose
 * response is too large to be sent.
 */
const notAppliedGrpcStatuses: readonly number[] = [401, 403];

/** Headers that tell two requests apart whether or not a route lists them. */
const alwaysCompared: ReadonlySet<string> = new Set(['content-type', 'content-encoding']);

/** Under any config: names with an underscore may be allowed. */
const headerRules = createHeaderRules({ identityNames: [], underscoreFields: 'allow', http10: 'refuse' });

const headerName = text(/^[A-Za-z0-9._-]+$/, 'the name of a header', 64);

const comparedHeader = headerName.superRefine((name, context) => {
  const why = whyNotCompared(name);
  if (why !== null) refuse(context, name, why, 'another header, such as If-Match');
});

const keptHeader = headerName.superRefine((name, context) => {
  const why = whyNeverStored(name);
  if (why !== null) refuse(context, name, `is never kept: ${why}`, 'another header, such as X-Total-Count');
});

/** Names are scopes of keys, like those of routes. */
const operationName = text(
  /^[A-Za-z0-9][A-Za-z0-9._:/-]*$/,
  '1 to 128 letters, digits and `._:/-`, beginning with a letter or digit',
  128,
);

/** Whoever reads it later has to learn something from it. */
const reason = text(
  /^(?=.*\S)[^\x00-\x1f\x7f-\x9f]+$/,
  'why a write may run again: 1 to 500 characters in one line',
  500,
);

const mode = word('required', 'optional', 'optional_over_http2', 'none');

const settingsSchema = map({
  mode: mode.describe(
    '`required`: without a key the answer is 400. `optional`: reserved where a key is sent; over HTTP/2, where a malformed key ' +
      '[cannot be told from none](http.md#over-http2), as `required`. `optional_over_http2`: as `optional`, and over HTTP/2 a write whose key is ' +
      'malformed is not reserved. `none`: no key counts.',
  ),
  because: reason
    .optional()
    .describe(
      'With `mode: none` on a route that writes: why a repeated write may run again. `check` warns of such a route until it says so.',
    ),
  retention: duration('1h', '31d').prefault('24h').describe('How long a result is kept, and its key taken.'),
  operation: operationName
    .optional()
    .describe(
      'Scope of a key: under another operation it is another key. Default: the route’s name. Routes may share one, which their keys share then.',
    ),
  fields: list(comparedHeader, 0, 'header names')
    .prefault([])
    .describe(
      'Headers that tell two requests with one key apart, beside method, path, query, `Content-Type`, `Content-Encoding` and body. `host` is one of them where `upstream.host` is `preserve`.',
    ),
  store_headers: list(keptHeader, 0, 'header names')
    .prefault([])
    .describe(
      'Headers of the response that are kept, beside `Content-Type`, `Content-Encoding`, `Content-Language`, `Location`, `Content-Location`, ' +
        '`ETag`, `Last-Modified`, `Link` and `Retry-After`.',
    ),
  release_on: list(integer(400, 599), 0, 'statuses from 400 to 599')
    .optional()
    .describe(
      'Statuses of the upstream that mean that nothing was done: the key is free again. Default: `[401, 403, 408, 421, 425, 429]`. On gRPC routes ' +
        'what the call’s code [is in HTTP](grpc.md#writes-that-run-once), by default `[401, 403]`: UNAUTHENTICATED and PERMISSION_DENIED.',
    ),
  receiver: word('plain', 'reports', 'deduplicates')
    .prefault('plain')
    .describe(
      'What the upstream adds: nothing; `Idempotency-Outcome` in its responses; or its own check of `Idempotency-Record`, so that a write in ' +
        'doubt may be sent again.',
    ),
  max_body: size('0B', '16MiB')
    .prefault('1MiB')
    .describe('Largest body of a reserved request, which is read whole. The route’s `max_body` holds as well.'),
  max_stored_response: size('0B', '4MiB')
    .prefault('256KiB')
    .describe('Largest body of a response that is kept. A larger one is passed on and cannot be shown again.'),
});

/** A word, or a map that says more. */
export const idempotencySchema = z
  .union([mode, settingsSchema], 'required, optional, optional_over_http2, none, or a map with mode')
  .transform((value) => (typeof value === 'string' ? settingsSchema.parse({ mode: value }) : value))
  .meta({ allowed: '`required`, `optional`, `optional_over_http2`, `none`, or a map with `mode`' });

type IdempotencyFile = z.output<typeof idempotencySchema>;

/** What holds on routes where only the token is reserved. */
const noKeyReserved: IdempotencyFile = settingsSchema.parse({ mode: 'none' });

function whyNotCompared(name: string): string | null {
  const lower = name.toLowerCase();
  if (alwaysCompared.has(lower)) return 'is compared in any case';
  if (volatileHeaders.has(lower)) return 'differs between honest retries';
  // The upstream learns it by another name.
  if (lower === 'host') return null;
  return isPassedOn(name) || mayPass(name) ? null : notPassedOn;
}

const notPassedOn = 'is never passed on as it came';

function isPassedOn(name: string): boolean {
  return headerRules.requestKind(name) === 'passed';
}

function refuse(context: z.core.$RefinementCtx<string>, name: string, why: string, instead: string): void {
  context.addIssue({ code: 'custom', message: instead, params: { fault: `is ${JSON.stringify(name)}, which ${why}` } });
}

const writingMethods: readonly string[] = ['POST', 'PUT', 'PATCH', 'DELETE'];

/** Writing methods that a caller may repeat all the same (RFC 9110 §9.2.2). */
const repeatableMethods: readonly string[] = ['PUT', 'DELETE'];

/** Statuses with which an upstream answers that acted, and then failed. */
const mayHaveActed: readonly number[] = [500, 502, 504];

interface ReservingRoute {
  readonly path: Path;
  readonly parts: ParsedConfig;
  readonly report: Report;
  /** `idempotency` as written: a word, a map or nothing. */
  readonly idempotency: unknown;
  readonly hasKey: boolean;
  readonly isSingleUse: boolean;
}

/** Whether a route of this mode reserves by keys. */
export function takesKeys(mode: unknown): boolean {
  return mode === 'required' || mode === 'optional' || mode === 'optional_over_http2';
}

/** Checks what routes say of reservations, as it is written: whether or not something else is wrong with the route. */
export function checkReservations(parts: ParsedConfig, report: Report): void {
  checkCompared(parts, report);
  for (const { path } of parts.routes) {
    const idempotency = parts.rawValue([...path, 'idempotency']);
    const mode = isMap(idempotency) ? idempotency['mode'] : idempotency;
    const route: ReservingRoute = {
      path,
      parts,
      report,
      idempotency,
      hasKey: takesKeys(mode),
      isSingleUse: parts.rawValue([...path, 'single_use']) === true,
    };
    if (mode === 'none') {
      checkUseless(route);
      checkUnreserved(route);
    }
    if (route.hasKey || route.isSingleUse) checkReserving(route);
    if (route.hasKey) checkKeyed(route);
    if (route.hasKey && parts.isPresent([...path, 'idempotency', 'because'])) {
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
  if (parts.isPresent([...path, 'access'])) {
    report.keyError(
      at,
      `${nameOf(at)} stands beside ${nameOf(path)}.access: whose reservation it is would not be known`,
      'a protected route',
    );
  }
}

/** Checks that headers which are to tell requests apart go on to the upstream under this config: others never count. */
function checkCompared(parts: ParsedConfig, report: Report): void {
  const { upstream, listen, identity } = parts;
  if (upstream === null || listen === null || identity === null) return;
  const { headers, assertion } = identity.value;
  const rules = createHeaderRules({
    identityNames: [...Object.values(headers), assertion?.header ?? null].filter((name) => name !== null),
    underscoreFields: listen.value.underscore_fields,
    http10: 'refuse',
    passFields: upstream.value.pass_fields,
  });
  for (const { path, parsed } of parts.routes) {
    parsed?.value.idempotency?.fields.forEach((name, index) => {
      const kind = rules.requestKind(name);
      if (name.toLowerCase() === 'host' || kind === 'passed') return;
      const at = [...path, 'idempotency', 'fields', index];
      // What upstream.strip_fields removes was said.
      if (report.hasError(at)) return;
      const lets =
        kind === 'underscored' || kind === 'refused'
          ? '; or listen.underscore_fields: allow'
          : isPassedOn(name)
            ? ''
            : `; or ${name} in upstream.pass_fields as well`;
      report.error(
        at,
        `${nameOf(at)} is ${report.show(at)}, which ${notPassedOn}`,
        `another header, such as If-Match${lets}`,
      );
    });
  }
}

function checkKeyed({ path, parts, report, idempotency }: ReservingRoute): void {
  const methods = writtenMethods(parts, path);
  const safe = Array.isArray(methods)
    ? [...safeMethods].filter((method) => methods.includes(method) || methods.includes('*'))
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
    if (!mayHaveActed.includes(Number(status)) && !(status === 429 && isGrpcRoute(parts, path))) return;
    const at = [...path, 'idempotency', 'release_on', index];
    report.warning(
      at,
      `${nameOf(at)} is ${report.show(at)}, which an upstream may answer after it acted: the write may then run twice`,
      'statuses that mean that nothing was done',
    );
  });
}

/**
 * A write that nothing keeps from running twice is somebody's decision. PUT and DELETE are repeated without harm where
 * the upstream keeps to RFC 9110 §9.2.2, so that a route with these alone may also say nothing.
 */
function checkUnreserved({ path, parts, report, idempotency, isSingleUse }: ReservingRoute): void {
  if (isMap(idempotency) && (idempotency['because'] ?? null) !== null) return;
  const methods = writtenMethods(parts, path);
  const writes = Array.isArray(methods)
    ? writingMethods.filter((method) => methods.includes(method) || methods.includes('*'))
    : [];
  const at = [...path, 'idempotency'];
  if (writes.length === 0 || report.hasError(at)) return;
  const isPublic = parts.isPresent([...path, 'access']);
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

/** What a route reserves; `null` where nothing is. */
export function compileReservation(route: RouteFile): ReservationRules | null {
  const file = route.idempotency ?? noKeyReserved;
  if (file.mode === 'none' && !route.single_use) return null;
  return {
    key: file.mode === 'none' ? null : file.mode,
    singleUse: route.single_use,
    operation: file.operation ?? route.name,
    retentionMs: file.retention,
    fields: [...new Set(file.fields.map((name) => name.toLowerCase()))],
    storeHeaders: new Set(file.store_headers.map((name) => name.toLowerCase())),
    releaseOn: new Set(file.release_on ?? (route.grpc === undefined ? notAppliedStatuses : notAppliedGrpcStatuses)),
    receiver: file.receiver,
    // What a route refuses for its size is refused whether or not it is reserved.
    maxBodyBytes: Math.min(file.max_body, route.max_body),
    maxStoredResponseBytes: file.max_stored_response,
  };
}
