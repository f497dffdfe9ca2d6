/** The part of the egress section that says where requests of the calling side may go. */
import { z } from 'zod';
import { baseUrl, duration, filePath, flag, host, integer, list, map, size, text, word } from '../../schema/scalars.js';
import {
  always,
  type KeyChanges,
  never,
  reloaded,
  saidByAnother,
  towards,
  whenAdded,
  whenGiven,
  whenMore,
  whenOn,
  whenReplaced,
} from '../../schema/key-changes.js';
import type { AbsolutePath } from '../../schema/section.js';
import type { UpstreamSettings } from '../../types.js';
import type { MissingKeyPolicy, IdempotencyKeySource } from '../../../decision/egress/key.js';
import type { RetryLimits } from '../../../decision/egress/retry.js';
import type { TargetPaths } from '../../../decision/egress/target.js';
import { openRoute } from '../../../decision/route/open-route.js';
import type { Route, RoutePath } from '../../../decision/route/policy.js';
import { readRoutePath } from '../routes/route-path.js';
import { method, pathText } from '../routes/routes.js';
import { targetUpstream } from '../upstream.js';
import { egressName } from './tokens.js';

/** Files of a certificate, with its chain, and of its private key. */
interface CertificateFiles {
  readonly certFile: string;
  readonly keyFile: string;
}

/** One target, compiled. */
export interface TargetSettings extends TargetPaths {
  readonly name: string;
  readonly upstream: UpstreamSettings;
  /** What it is shown in TLS; `null` where nothing is. */
  readonly certificate: CertificateFiles | null;
  /** Name of the token that its requests bear; `null` where they bear none. */
  readonly token: string | null;
  readonly missingKey: MissingKeyPolicy;
  readonly keyFrom: IdempotencyKeySource | null;
  readonly retries: RetryLimits & { readonly budget: number };
  readonly retryBufferBytes: number;
  /** What may be asked of it, as routes for everybody who reaches the listener. */
  readonly routes: readonly Route[];
}

/** Of unreserved characters (RFC 3986 §2.3), so that it is spelt in one way. */
const prefix = text(
  /^(?:\/(?!\.{1,2}(?:\/|$))[A-Za-z0-9._~-]+)+$/,
  'a path such as /orders, of letters, digits and `-._~`, without a slash at its end',
  256,
);

const percentAllowed = 'a whole percentage from 0% to 100%';
const percentage = text(/^(?:100|[1-9]?[0-9])%$/, percentAllowed, 4);

/** RFC 6901 §3, without the pointer to the whole document. */
const jsonPointer = text(/^(?:\/(?:[^~/\x00-\x1f]|~[01])*)+$/, 'a JSON Pointer such as /order/id', 256);

const headerName = text(/^[A-Za-z0-9][A-Za-z0-9-]*$/, 'the name of a header', 64);

const keyFromAllowed = '{ header: NAME } or { json: POINTER }';

export const targetSchema = map({
  name: egressName.describe('Unique name: in logs as `egress:NAME`, metrics and problems.'),
  prefix: prefix.describe('Requests for paths below it go to this target, without it. None may begin another’s.'),
  url: baseUrl().describe(
    'Where they go: `https://HOST[:PORT][/PATH]`, verified, or `http` on a loopback address. Nothing that a caller or a response says changes it.',
  ),
  ca_file: filePath()
    .nullable()
    .prefault(null)
    .describe(
      'Authorities in PEM that vouch for it, instead of the system’s. Read again when it changes, for connections to come. Only with https.',
    ),
  server_name: host()
    .nullable()
    .prefault(null)
    .describe('Name its certificate has to bear, where that is not the URL’s host. Only with https.'),
  cert_file: filePath()
    .nullable()
    .prefault(null)
    .describe(
      'Certificate in PEM, with its chain, that the target is shown. Taken up when it changes, for connections to come. Only with https.',
    ),
  key_file: filePath().nullable().prefault(null).describe('Its private key in PEM.'),
  token: egressName
    .nullable()
    .prefault(null)
    .describe('Name of the token in `egress.tokens` that its requests bear; null is none.'),
  allow: list(
    map({
      methods: list(method, 1, 'methods').describe('Methods; GET is not HEAD. `["*"]` is all but TRACE and CONNECT.'),
      path: pathText.describe('Path below the prefix, as in routes: `/orders/{id}`, `/**`.'),
    }),
    1,
    'methods and paths',
  ).describe('What may be asked of it; anything else is answered 403 and not sent.'),
  idempotency: word('generate', 'pass', 'require')
    .prefault('pass')
    .describe(
      'Writes without `Idempotency-Key`: `pass` sends them as they are, `generate` gives each a key, `require` answers 400. A write with a key is ' +
        'repeated after 502, 504 and broken connections: only for targets that keep it from running twice.',
    ),
  key_from: z
    .union(
      [
        map({ header: headerName.describe('Header that names the operation.') }),
        map({ json: jsonPointer.describe('Where in the JSON body its name is (RFC 6901).') }),
      ],
      keyFromAllowed,
    )
    .meta({ allowed: keyFromAllowed })
    .nullable()
    .prefault(null)
    .describe(
      'What names the operation, for callers that repeat requests themselves: the same name, method and path make the same key. A write without ' +
        'the name is answered 400.',
    ),
  retries: map({
    attempts: integer(1, 10).prefault(3).describe('Attempts in all; 1 repeats nothing.'),
    within: duration('10ms', '10m').prefault('10s').describe('From the request to the beginning of the last attempt.'),
    budget: percentage.prefault('10%').describe('Of the target’s requests that may be repeated; ten always may.'),
  })
    .prefault({})
    .describe('How often a request is sent again, where that is safe.'),
  hold_body: size('0B', '64MiB')
    .prefault('1MiB')
    .describe('Of a body that is held to be sent again; a request with a larger one is not repeated.'),
  max_body: size('0B', '16GiB').prefault('1GiB').describe('Largest request body; more is answered 413.'),
  websocket: flag().prefault(false).describe('Whether GET may open WebSocket connections. Not with http2.'),
  connect_timeout: duration('10ms', '5m').prefault('1s').describe('Name look-up, connection and TLS together.'),
  response_timeout: duration('10ms', '24h')
    .prefault('30s')
    .describe('Of each attempt, to the end of the response head.'),
  idle_timeout: duration('10ms', '24h').prefault('60s').describe('Between bytes of a stream, in either direction.'),
  max_connections: integer(1, 65_536).prefault(128).describe('Connections to the target.'),
  http2: flag().prefault(false).describe('Whether HTTP/2 is spoken with it, and nothing else.'),
  max_streams: integer(1, 1_000).prefault(100).describe('Requests on one connection of HTTP/2. Only with `http2`.'),
  reuse: word('safe', 'always', 'never')
    .prefault('safe')
    .describe('When a connection carries another request, as `upstream.reuse`. With http2 it means nothing.'),
});

type TargetFile = z.output<typeof targetSchema>;

/** Compiles one target. */
export function compileTarget(file: TargetFile, absolute: AbsolutePath): TargetSettings {
  const url = new URL(file.url);
  return {
    name: file.name,
    prefix: file.prefix,
    basePath: url.pathname.replace(/\/$/, ''),
    upstream: {
      ...targetUpstream(url.origin, file, absolute),
      sensitiveHeaders: ['authorization'],
      readsBodies: 'unless_refused',
    },
    certificate:
      file.cert_file === null || file.key_file === null
        ? null
        : { certFile: absolute(file.cert_file), keyFile: absolute(file.key_file) },
    token: file.token,
    missingKey: file.idempotency,
    keyFrom: compileKeyFrom(file.key_from),
    retries: {
      attempts: file.retries.attempts,
      withinMs: file.retries.within,
      budget: Number(file.retries.budget.slice(0, -1)) / 100,
    },
    retryBufferBytes: file.hold_body,
    routes: file.allow.map(({ methods, path }) => compileAllowed(file, methods, `${file.prefix}${path}`)),
  };
}

function compileKeyFrom(file: TargetFile['key_from']): IdempotencyKeySource | null {
  if (file === null) return null;
  if ('header' in file) return { kind: 'header', name: file.header.toLowerCase() };
  const tokens = file.json.split('/').slice(1);
  return { kind: 'json', path: tokens.map((token) => token.replaceAll('~1', '/').replaceAll('~0', '~')) };
}

/** What a change of each key of a target means. */
export const targetKeys: KeyChanges<TargetSettings> = {
  name: saidByAnother,
  prefix: { of: (target) => target.prefix, widens: never },
  url: { of: ({ upstream, basePath }) => `${upstream.url}${basePath}`, widens: always },
  ca_file: { of: ({ upstream }) => upstream.caFile, widens: whenReplaced },
  // The name that a certificate has to bear is another one then.
  server_name: { of: ({ upstream }) => upstream.serverName, widens: always },
  cert_file: { of: ({ certificate }) => certificate?.certFile ?? null, widens: whenGiven },
  // One goes with the other.
  key_file: saidByAnother,
  token: { of: ({ token }) => token, widens: whenGiven },
  allow: { of: allowedBy, widens: whenAdded, whole: true },
  idempotency: { of: ({ missingKey }) => missingKey, widens: towards('require', 'generate', 'pass') },
  key_from: { of: ({ keyFrom }) => keyFrom, widens: whenReplaced, whole: true },
  'retries.attempts': reloaded,
  'retries.within': reloaded,
  'retries.budget': reloaded,
  hold_body: reloaded,
  max_body: { of: ({ routes }) => routes[0]?.maxBodyBytes, widens: whenMore },
  websocket: { of: ({ routes }) => routes[0]?.allowsWebSocket, widens: whenOn },
  connect_timeout: reloaded,
  response_timeout: reloaded,
  idle_timeout: reloaded,
  max_connections: reloaded,
  http2: reloaded,
  max_streams: reloaded,
  reuse: { of: ({ upstream }) => upstream.reuse, widens: towards('never', 'safe', 'always') },
};

/** Each method with each path below the prefix. */
function allowedBy({ prefix, routes }: TargetSettings): readonly string[] {
  return routes.flatMap(({ methods, paths }) =>
    [...(methods ?? ['*'])].flatMap((name) => paths.map(({ text }) => `${name}:${text.slice(prefix.length)}`)),
  );
}

/** A prefix followed by a path of the config is one; its literals passed the gate. */
function pathOf(text: string): readonly RoutePath[] {
  const read = readRoutePath(text);
  return read.ok ? [read.value] : [];
}

function compileAllowed(file: TargetFile, methods: readonly string[], path: string): Route {
  return {
    // Its `Authorization` is refused, or what an exchange begins with.
    ...openRoute,
    name: `egress:${file.name}`,
    methods: methods.includes('*') ? null : new Set(methods),
    paths: pathOf(path),
    mode: 'enforce',
    allowsWebSocket: file.websocket,
    maxBodyBytes: file.max_body,
    responseTimeoutMs: file.response_timeout,
  };
}
