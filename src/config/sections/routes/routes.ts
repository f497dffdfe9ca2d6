/** The section that says who may do what. */
import { z } from 'zod';
import type { ParsedConfig, Entry } from '../../load/parse-sections.js';
import type { Path } from '../../load/source-tree.js';
import { checkGrpcRoutes, compileGrpc, grpcSchema } from './grpc.js';
import { checkReservations, compileReservation, idempotencySchema } from './idempotency.js';
import { checkLimitsOfRoutes, compileLimits, limitsSchema } from '../limits.js';
import { checkModeOfRoutes } from '../mode.js';
import { checkClientCertificates, checkRoutes } from './route-checks.js';
import { readRoutePath } from './route-path.js';
import {
  always,
  never,
  saidByAnother,
  towards,
  whenAdded,
  whenLess,
  whenLimitRises,
  whenMore,
  whenOff,
  whenOn,
  whenRemoved,
  type KeyChanges,
} from '../../schema/key-changes.js';
import {
  claimValue,
  duration,
  flag,
  line,
  list,
  map,
  oneOrMore,
  size,
  text,
  visibleText,
  word,
} from '../../schema/scalars.js';
import { section } from '../../schema/section.js';
import { checkSessionsOfRoutes, compileSessionPolicy } from '../sessions.js';
import { readMethod } from '../../../decision/http/request-head.js';
import type { Approval, Limits, Mode, Route, RoutePath } from '../../../decision/route/policy.js';
import { maxApprovedSubjectLength } from '../../../decision/token/principal.js';

/** Names are labels of metrics, values in log lines and scopes of keys. */
const routeName = text(
  /^[A-Za-z0-9][A-Za-z0-9._:/-]*$/,
  '1 to 128 letters, digits and `._:/-`, beginning with a letter or digit',
  128,
);

const methodAllowed = 'an upper-case method other than TRACE, TRACK and CONNECT, or `*`';

/** RFC 6749 §3.3 `scope-token`. */
export const permission = text(
  /^[\x21\x23-\x5b\x5d-\x7e]+$/,
  '1 to 256 visible ASCII characters without blank, `"` and `\\`: another permission grants nothing',
  256,
);

/** What a route may have in `methods`. */
export const method = z
  .string(methodAllowed)
  .refine((value) => value === '*' || readMethod(value) === null, methodAllowed);

/** Longer than any path of a config, and short enough for a problem. */
export const pathText = z
  .string('a path')
  .max(2_048, 'at most 2048 characters')
  .superRefine((text, context) => {
    const path = readRoutePath(text);
    if (!path.ok) {
      context.addIssue({
        code: 'custom',
        message: path.error.allowed,
        params: { fault: path.error.message, hint: path.error.hint },
      });
    }
  });

const sessionSchema = map({
  claims: z
    .record(z.string(), claimValue(), 'a map of claims')
    .describe(
      'Paths into the access token’s payload, such as `st-role.v`, and the value that has to ' +
        'stand there, by itself or in a list. All of them have to hold; `{}` allows every user who has a session.',
    ),
  forward_tokens: flag()
    .prefault(false)
    .describe(
      'Whether the upstream gets the session’s cookies and headers (`sAccessToken`, `st-*`, `anti-csrf`, …), with which it could act as ' +
        'the user.',
    ),
});

/** As browsers write it in `Origin` (RFC 6454 §6.2). */
const pageOrigin = text(
  /^https?:\/\/([a-z0-9.-]+|\[[0-9a-f:.]+\])(:[0-9]{1,5})?$/,
  'an origin such as https://app.example.com, in lower case and without path',
  300,
);

const subjectAllowed = `1 to ${maxApprovedSubjectLength} visible ASCII characters, or { prefix: … }`;

/** Ends where a part of the name does: `orders` would allow `orders-test` as well. */
const subjectPrefix = text(
  /^(?!\/+$|[A-Za-z][A-Za-z0-9+.-]*:\/+$)[\x21-\x7e]*\/$/,
  `2 to ${maxApprovedSubjectLength} visible ASCII characters that end in a slash, and not all that stands before a name`,
  maxApprovedSubjectLength,
);

const subjectOrPrefix = z
  .union(
    [
      visibleText(maxApprovedSubjectLength),
      map({ prefix: subjectPrefix.describe('How the subjects begin: all that do are approved. It ends in a slash.') }),
    ],
    subjectAllowed,
  )
  .meta({ allowed: subjectAllowed });

const subjects = list(subjectOrPrefix, 1, 'subjects');
const permissions = list(permission, 0, 'permissions');

const approvalSchema = map({
  subjects: subjects.describe('Approved callers: exact `sub`s, or `{ prefix: orders/ }` for all that begin so.'),
  permissions: permissions.describe('All of them are needed; `[]` says that none is.'),
});

export const routeSchema = map({
  name: routeName.describe('Unique name: in logs, metrics and problems.'),
  methods: list(method, 1, 'methods')
    .optional()
    .describe(
      'Methods; GET is not HEAD. `["*"]` is all but TRACE and CONNECT. Required, with `path`, unless `grpc` stands instead.',
    ),
  path: oneOrMore(pathText, 'paths')
    .optional()
    .describe(
      'Path, or a list. `{x}` is one whole, non-empty segment; a last `/**` is anything below. Case and a trailing slash count.',
    ),
  grpc: grpcSchema.optional(),
  subjects: subjects
    .optional()
    .describe(
      'Approved callers: exact `sub`s, or `{ prefix: orders/ }` for all that begin so. Required, with `permissions`, unless `any_of` or `access` stands instead.',
    ),
  permissions: permissions.optional().describe('All of them are needed; `[]` says that none is.'),
  any_of: list(approvalSchema, 1, 'pairs of subjects and permissions')
    .optional()
    .describe('Instead of `subjects` and `permissions`: one of several pairs has to hold.'),
  access: word('public')
    .optional()
    .describe('`public` lets everybody through, without any check of credentials; the only way to say so.'),
  client_certificates: list(line(1_024), 1, 'names of certificates')
    .optional()
    .describe(
      'Certificates of which a caller has to show one, verified, beside its credential: SPIFFE IDs, or subjects such as `CN=checkout,O=Shop`. See ' +
        '[bound-tokens.md](bound-tokens.md#certificates-of-callers).',
    ),
  issuers: list(z.string('names of issuers'), 1, 'names of issuers')
    .optional()
    .describe('Issuers whose tokens count here. Default: all.'),
  accept: list(word('service', 'session'), 1, 'kinds of credentials')
    .prefault(['service'])
    .describe(
      'Kinds of credentials that count: `service` tokens, and `session`s of users, which need `sessions` and the route’s `session`.',
    ),
  session: sessionSchema
    .nullable()
    .prefault(null)
    .describe('What sessions have to hold. Required where `accept` has `session`.'),
  mode: word('enforce', 'shadow').optional().describe('Default: the file’s `mode`.'),
  limits: limitsSchema
    .nullable()
    .optional()
    .describe(
      'What each caller may ask of this route, counted for itself; `null` is anything. Default: the file’s `limits`.',
    ),
  body: word('refuse', 'allow').prefault('refuse').describe('Whether GET and HEAD may have a body.'),
  max_body: size('0B', '16GiB').prefault('1MiB').describe('Largest request body; more is answered 413.'),
  websocket: flag()
    .prefault(false)
    .describe(
      'Whether WebSocket connections may be opened here. Only with `methods: [GET]`, and not beside reservations.',
    ),
  origins: list(pageOrigin, 1, 'origins')
    .optional()
    .describe(
      'Origins of web pages that may open WebSocket connections here. Default: any with a service token, and with a session those of the `Host` that is called.',
    ),
  encoded_slashes: word('refuse', 'allow')
    .prefault('refuse')
    .describe(
      'Whether `%2F` may stand in a segment that `{x}` or `**` takes. Only where the upstream does not decode it before it routes.',
    ),
  path_parameters: word('refuse', 'allow')
    .prefault('refuse')
    .describe(
      'Whether `;` may stand in a segment that `{x}` or `**` takes. Only where the upstream does not take `/admin;x` for `/admin`.',
    ),
  forward_authorization: flag()
    .optional()
    .describe(
      'Whether the upstream gets the caller’s `Authorization`. Default: `identity.forward_authorization`; on public routes false.',
    ),
  response_timeout: duration('10ms', '24h').optional().describe('Default: `upstream.response_timeout`.'),
  idempotency: idempotencySchema
    .optional()
    .describe(
      'Whether writes are reserved by their `Idempotency-Key`, so that a repeated one gets the first answer. Has to be written on routes for POST and ' +
        'PATCH.',
    ),
  single_use: flag().prefault(false).describe('Whether a token passes once, ever. It needs a `jti` then.'),
});

export type RouteFile = z.output<typeof routeSchema>;

/** The same as it is written. */
export type RouteInput = z.input<typeof routeSchema>;

export const routes = section({
  schema: list(routeSchema, 1, 'routes').describe('Who may do what. What no route allows is refused.'),
  check: (config, report) => {
    checkRoutes(config, report);
    checkGrpcRoutes(config, report);
    checkClientCertificates(config, report);
    checkLimitsOfRoutes(config, report);
    checkModeOfRoutes(config, report);
    checkReservations(config, report);
    checkSessionsOfRoutes(config, report);
  },
  compile: (_file, { table }) => ({
    routes: table.routes,
    /** The routes, arranged for matching. */
    table,
  }),
  // `routeKeys`, for each of them.
  keys: {},
});

/** What a change of each key of a route means. Who may come through is compared caller by caller. */
export const routeKeys: KeyChanges<Route> = {
  name: saidByAnother,
  methods: saidByAnother,
  path: saidByAnother,
  grpc: { of: ({ isGrpc }) => isGrpc, widens: whenOff },
  accept: saidByAnother,
  subjects: saidByAnother,
  permissions: saidByAnother,
  any_of: saidByAnother,
  issuers: saidByAnother,
  client_certificates: {
    of: ({ clientCertificates }) => clientCertificates,
    widens: (from, to) => to === null || (from !== null && whenAdded(from, to)),
  },
  'session.claims': saidByAnother,
  access: { of: ({ access }) => access, widens: towards('protected', 'public') },
  mode: { of: ({ mode }) => mode, widens: towards('enforce', 'shadow') },
  websocket: { of: ({ allowsWebSocket }) => allowsWebSocket, widens: whenOn },
  // None says that any origin will do.
  origins: {
    of: ({ origins }) => origins,
    widens: (from, to) => to === null || (from !== null && whenAdded(from, to)),
  },
  body: { of: ({ allowsBody }) => allowsBody, widens: whenOn },
  encoded_slashes: { of: ({ encodedSlashes }) => encodedSlashes, widens: whenOn },
  path_parameters: { of: ({ pathParameters }) => pathParameters, widens: whenOn },
  forward_authorization: { of: ({ forwardsAuthorization }) => forwardsAuthorization, widens: whenOn },
  max_body: { of: ({ maxBodyBytes }) => maxBodyBytes, widens: whenMore },
  response_timeout: { of: ({ responseTimeoutMs }) => responseTimeoutMs, widens: never },
  'idempotency.mode': {
    of: ({ reservation }) => reservation?.key ?? 'none',
    widens: towards('required', 'optional', 'optional_over_http2', 'none'),
    shownAs: 'idempotency',
  },
  single_use: { of: ({ reservation }) => reservation?.singleUse ?? false, widens: whenOff },
  // Compared where the route reserves before and after.
  'idempotency.operation': { of: ({ reservation }) => reservation?.operation, widens: always },
  'idempotency.retention': { of: ({ reservation }) => reservation?.retentionMs, widens: whenLess },
  'idempotency.fields': { of: ({ reservation }) => reservation?.fields, widens: whenRemoved },
  'idempotency.release_on': { of: ({ reservation }) => reservation?.releaseOn, widens: whenAdded },
  'idempotency.store_headers': { of: ({ reservation }) => reservation?.storeHeaders, widens: never },
  'idempotency.receiver': {
    of: ({ reservation }) => reservation?.receiver,
    widens: towards('plain', 'reports', 'deduplicates'),
  },
  'idempotency.max_body': { of: ({ reservation }) => reservation?.maxBodyBytes, widens: whenMore },
  'idempotency.max_stored_response': { of: ({ reservation }) => reservation?.maxStoredResponseBytes, widens: never },
  'idempotency.because': { of: ({ unreservedBecause }) => unreservedBecause, widens: never },
  'session.forward_tokens': { of: ({ session }) => session?.forwardsTokens ?? false, widens: whenOn },
  'limits.requests_per_second': { of: ({ limits }) => limits?.rate?.perSecond ?? null, widens: whenLimitRises },
  'limits.burst': { of: ({ limits }) => limits?.rate?.burst ?? null, widens: whenLimitRises },
  'limits.shared': { of: ({ limits }) => limits?.rate?.shared ?? null, widens: whenOff },
  'limits.max_in_flight': { of: ({ limits }) => limits?.maxInFlight ?? null, widens: whenLimitRises },
  // What was counted together with other routes is counted for itself, or the other way round.
  limits: {
    of: ({ limits }) => limits !== null && limits.route !== null,
    widens: always,
    shownAs: 'limits of its own',
  },
};

/** Routes as the decision functions read them, and where in the file they came from. */
export interface CompiledRoutes {
  readonly routes: readonly Route[];
  readonly placeOfRoute: ReadonlyMap<Route, Path>;
  readonly placeOfPath: ReadonlyMap<RoutePath, Path>;
  /** Whether every route of the file is among them. */
  readonly complete: boolean;
}

/** What routes take from other sections. */
interface Defaults {
  readonly forwardsAuthorization: boolean;
  readonly responseTimeoutMs: number;
  readonly mode: Mode;
  readonly limits: Limits | null;
}

/** Compiles the routes that could be read. */
export function compileRoutes(parts: ParsedConfig): CompiledRoutes {
  const placeOfRoute = new Map<Route, Path>();
  const placeOfPath = new Map<RoutePath, Path>();
  const defaults: Defaults = {
    forwardsAuthorization: parts.identity?.value.forward_authorization ?? false,
    responseTimeoutMs: parts.upstream?.value.response_timeout ?? 0,
    mode: parts.mode?.value ?? 'enforce',
    limits: compileLimits(parts.limits?.value ?? null, null),
  };
  for (const entry of parts.routes) {
    // A route without a place says nothing of paths, as one that could not be read.
    if (entry.parsed === null || !hasPlace(entry.parsed.value)) continue;
    const paths = compilePlaces(entry, entry.parsed.value, parts, placeOfPath);
    placeOfRoute.set(compileRoute(entry.parsed.value, paths, defaults), entry.path);
  }
  const complete = placeOfRoute.size === parts.routes.length;
  return { routes: [...placeOfRoute.keys()], placeOfRoute, placeOfPath, complete };
}

function hasPlace({ grpc, methods, path }: RouteFile): boolean {
  return grpc !== undefined || (methods !== undefined && path !== undefined);
}

/** Compiles the paths of a route, and remembers where in the file each of them stands. */
function compilePlaces(
  { path }: Entry<RouteFile>,
  route: RouteFile,
  parts: ParsedConfig,
  places: Map<RoutePath, Path>,
): readonly RoutePath[] {
  const key = route.grpc === undefined ? 'path' : 'grpc';
  const isList = parts.isPresent([...path, key, 0]);
  const paths = pathsOf(route);
  paths.forEach((each, index) => places.set(each, isList ? [...path, key, index] : [...path, key]));
  return paths;
}

function pathsOf({ grpc, path = [] }: RouteFile): readonly RoutePath[] {
  if (grpc !== undefined) return compileGrpc(grpc).paths;
  return path.flatMap((text) => {
    const read = readRoutePath(text);
    return read.ok ? [read.value] : [];
  });
}

function methodsOf({ grpc, methods = [] }: RouteFile): ReadonlySet<string> | null {
  if (grpc !== undefined) return compileGrpc(grpc).methods;
  return methods.includes('*') ? null : new Set(methods);
}

function compileRoute(file: RouteFile, paths: readonly RoutePath[], defaults: Defaults): Route {
  const isPublic = file.access === 'public';
  const acceptsService = !isPublic && file.accept.includes('service');
  return {
    name: file.name,
    methods: methodsOf(file),
    paths,
    isGrpc: file.grpc !== undefined,
    access: isPublic ? 'public' : 'protected',
    mode: isPublic ? 'enforce' : (file.mode ?? defaults.mode),
    acceptsService,
    session: isPublic ? null : compileSessionPolicy(file),
    approvals: acceptsService ? approvalsOf(file) : [],
    issuers: file.issuers === undefined ? null : new Set(file.issuers),
    allowsWebSocket: file.websocket,
    origins: file.origins === undefined ? null : new Set(file.origins),
    allowsBody: file.body === 'allow',
    encodedSlashes: file.encoded_slashes === 'allow',
    pathParameters: file.path_parameters === 'allow',
    forwardsAuthorization: file.forward_authorization ?? (isPublic ? false : defaults.forwardsAuthorization),
    maxBodyBytes: file.max_body,
    responseTimeoutMs: file.response_timeout ?? defaults.responseTimeoutMs,
    reservation: compileReservation(file),
    clientCertificates: file.client_certificates === undefined ? null : new Set(file.client_certificates),
    unreservedBecause: file.idempotency?.because ?? null,
    limits: isPublic ? null : file.limits === undefined ? defaults.limits : compileLimits(file.limits, file.name),
  };
}

function approvalsOf(file: RouteFile): readonly Approval[] {
  const pairs = file.any_of ?? [{ subjects: file.subjects ?? [], permissions: file.permissions ?? [] }];
  return pairs.map(({ subjects, permissions }) => ({
    subjects: new Set(subjects.filter((subject) => typeof subject === 'string')),
    prefixes: [...new Set(subjects.flatMap((subject) => (typeof subject === 'string' ? [] : [subject.prefix])))],
    permissions: [...new Set(permissions)],
  }));
}
