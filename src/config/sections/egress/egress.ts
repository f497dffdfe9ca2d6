/** The section that says what the calling side does: attach tokens, and repeat what may be repeated. */
import type { z } from 'zod';
import type { ParsedConfig } from '../../load/parse-sections.js';
import { nameOf, type Report } from '../../load/report.js';
import { always, never, reloaded, whenGone, whenMore } from '../../schema/key-changes.js';
import { duration, filePath, flag, host, integer, list, map, port, size, text } from '../../schema/scalars.js';
import { section, type CompileContext } from '../../schema/section.js';
import type { ListenSettings, TokenSourceSettings } from '../../types.js';
import { mayNameOperation } from '../../../decision/http/header-rules.js';
import { createRouteTable, type RouteTable } from '../../../decision/route/route-table.js';
import { isLoopback } from '../../../lib/ip-ranges.js';
import { listen as callersListener, usualListener } from '../listeners/listen.js';
import { compileTarget, targetSchema, type TargetSettings } from './targets.js';
import { checkTokens, compileTokens, tokensSchema } from './tokens.js';

/** Where the calling side listens instead of a port. */
interface SocketPlace {
  readonly path: string;
  /** Of the socket's file: who may connect. */
  readonly mode: number;
  /** Ids of its user and group; `null` where they are those of the process. */
  readonly owner: { readonly uid: number | null; readonly gid: number | null } | null;
}

/** The calling side, compiled. */
export interface EgressSettings {
  readonly listen: ListenSettings;
  /** `null` where it listens on a port. */
  readonly socket: SocketPlace | null;
  /** Bytes of bodies that are held at a time. */
  readonly totalRetryBufferBytes: number;
  readonly tokens: readonly TokenSourceSettings[];
  readonly targets: readonly TargetSettings[];
  readonly table: RouteTable;
}

const listenSchema = map({
  host: host()
    .prefault('127.0.0.1')
    .describe('Loopback address on which the workload is served: whoever reaches it acts in the workload’s name.'),
  port: port().prefault(8181).describe('Port on which it is served; 0 asks the system for a free one.'),
  unix: filePath()
    .nullable()
    .prefault(null)
    .describe('Path of a Unix socket, instead of host and port. What is left there of an earlier process is replaced.'),
  mode: text(/^0[0-7]{3}$/, 'an octal mode such as "0660", in quotes', 4)
    .prefault('0600')
    .describe('Who may connect to the Unix socket, as the mode of its file.'),
  owner: text(/^(?:\d{1,9}(?::\d{1,9})?|:\d{1,9})$/, 'ids such as "1000", "1000:1000" or ":1000", in quotes', 19)
    .nullable()
    .prefault(null)
    .describe(
      'Ids of user and group that the Unix socket’s file belongs to, as `chown` takes them; those of the process unless given. Another user takes root, or CAP_CHOWN; a group one that the process is in.',
    ),
  http2: flag()
    .prefault(false)
    .describe('Whether HTTP/2 is served beside HTTP/1.1, to callers that know (RFC 9113 §3.3).'),
  max_in_flight: integer(1, 1_000_000)
    .prefault(512)
    .describe('Requests at a time; more are answered 503. Three quarters of them, for all who call are one.'),
  header_timeout: duration('10ms', '10m').prefault('10s').describe('As of `listen`.'),
  keep_alive_timeout: duration('1s', '2h').prefault('75s').describe('As of `listen`.'),
  body_idle_timeout: duration('10ms', '1h').prefault('60s').describe('As of `listen`.'),
});

const egressSchema = map({
  listen: listenSchema.prefault({}).describe('Where the workload is served. Read once, at start.'),
  hold_bodies: size('0B', '16GiB')
    .prefault('64MiB')
    .describe('Of bodies that are held to be sent again, all together; beyond it requests are sent once.'),
  tokens: tokensSchema,
  targets: list(targetSchema, 1, 'targets').describe('Where requests may go, and nowhere else.'),
});

type EgressFile = z.output<typeof egressSchema>;

export const egress = section({
  schema: egressSchema
    .nullable()
    .prefault(null)
    .describe(
      'The calling side: a token and a safe retry for callers that cannot be changed. See [egress.md](egress.md).',
    ),
  check,
  compile: (file, context): { readonly egress: EgressSettings | null } => ({
    egress: file === null ? null : compileEgress(file, context),
  }),
  keys: {
    'listen.host': { restart: true, of: ({ egress }) => egress?.listen.host ?? null },
    'listen.port': { restart: true, of: ({ egress }) => egress?.listen.port ?? null },
    'listen.unix': {
      restart: true,
      of: ({ egress }) => egress?.socket?.path ?? null,
      shown: ({ egress }) => (egress === null ? undefined : (egress.socket?.path ?? null)),
      // A port has no owner and no mode: whoever is on the machine reaches it.
      widens: whenGone,
    },
    'listen.mode': {
      restart: true,
      of: ({ egress }) => egress?.socket?.mode ?? null,
      shown: ({ egress }) => egress?.socket?.mode.toString(8),
      widens: (from, to) => (parseInt(String(to), 8) & ~parseInt(String(from), 8)) !== 0,
    },
    'listen.owner': {
      restart: true,
      of: ({ egress }) => egress?.socket?.owner ?? null,
      shown: ({ egress }) => egress?.socket?.owner,
      widens: always,
    },
    'listen.http2': { restart: true, of: ({ egress }) => egress?.listen.http2 ?? null, widens: never },
    'listen.max_in_flight': {
      restart: true,
      of: ({ egress }) => egress?.listen.maxInFlight ?? null,
      widens: whenMore,
    },
    'listen.header_timeout': { restart: true, of: ({ egress }) => egress?.listen.headerTimeoutMs ?? null },
    'listen.keep_alive_timeout': { restart: true, of: ({ egress }) => egress?.listen.keepAliveTimeoutMs ?? null },
    'listen.body_idle_timeout': { restart: true, of: ({ egress }) => egress?.listen.bodyIdleTimeoutMs ?? null },
    hold_bodies: reloaded,
    // `tokenKeys` and `targetKeys`, for each of them.
    tokens: { whole: true },
    targets: { whole: true },
  },
});

function compileEgress({ listen, hold_bodies, tokens, targets }: EgressFile, context: CompileContext): EgressSettings {
  const { absolute } = context;
  const compiled = targets.map((target) => compileTarget(target, absolute));
  const { host, port, unix, mode, owner, ...rest } = listen;
  const place = usualListener({ host, port });
  return {
    listen: {
      ...callersListener.compile(place, context).listen,
      http2: rest.http2,
      maxInFlight: rest.max_in_flight,
      headerTimeoutMs: rest.header_timeout,
      keepAliveTimeoutMs: rest.keep_alive_timeout,
      bodyIdleTimeoutMs: rest.body_idle_timeout,
    },
    socket:
      unix === null
        ? null
        : { path: absolute(unix), mode: parseInt(mode, 8), owner: owner === null ? null : ownerOf(owner) },
    totalRetryBufferBytes: hold_bodies,
    tokens: compileTokens(tokens, absolute),
    targets: compiled,
    table: createRouteTable(compiled.flatMap(({ routes }) => routes)),
  };
}

function ownerOf(text: string): SocketPlace['owner'] {
  const [uid, gid] = text.split(':').map((id) => (id === '' ? null : Number(id)));
  return { uid: uid ?? null, gid: gid ?? null };
}

/** Checks what the settings say together. */
function check({ egress, isPresent }: ParsedConfig, report: Report): void {
  const file = egress?.value ?? null;
  if (file === null) return;
  const at = ['egress', 'listen', 'host'];
  if (file.listen.unix !== null) {
    for (const key of ['host', 'port']) {
      const path = ['egress', 'listen', key];
      if (isPresent(path)) report.keyError(path, `${nameOf(path)} stands beside egress.listen.unix`, 'one of them');
    }
  } else {
    if (!isLoopback(file.listen.host)) {
      report.error(
        at,
        `whoever reaches the listener acts in the workload’s name: egress.listen.host is ${report.show(at)}`,
        'a loopback address, or egress.listen.unix',
      );
    }
    for (const key of ['mode', 'owner']) {
      const path = ['egress', 'listen', key];
      if (!isPresent(path)) continue;
      report.keyError(path, `${nameOf(path)} has no use without egress.listen.unix`, 'egress.listen.unix beside it');
    }
  }
  checkTokens(file.tokens, ['egress', 'tokens'], report);
  checkTargets(file, report);
}

function checkTargets({ targets, tokens }: EgressFile, report: Report): void {
  const used = new Set<string>();
  targets.forEach((target, index) => {
    const at = (key: string): (string | number)[] => ['egress', 'targets', index, key];
    const url = new URL(target.url);
    if (url.protocol === 'http:' && !isLoopback(url.hostname.replace(/^\[(.*)\]$/, '$1'))) {
      report.error(
        at('url'),
        `tokens would cross the network in plaintext: ${nameOf(at('url'))} is http on another host`,
        'https, or a loopback address',
      );
    }
    if (url.protocol === 'http:') {
      for (const key of ['ca_file', 'server_name', 'cert_file', 'key_file'] as const) {
        if (target[key] !== null) report.error(at(key), `${nameOf(at(key))} has no use without https`, 'an https url');
      }
    }
    for (const [key, other] of [
      ['cert_file', 'key_file'],
      ['key_file', 'cert_file'],
    ] as const) {
      if (target[key] !== null && target[other] === null) {
        report.error(at(key), `${nameOf(at(key))} stands without ${other}`, `${other} beside it`);
      }
    }
    if (target.websocket && target.http2) {
      report.error(
        at('websocket'),
        `${nameOf(at('websocket'))} is true beside http2, and WebSockets go over HTTP/1.1`,
        'one of them',
      );
    }
    const keyFrom = target.key_from;
    if (keyFrom !== null && 'header' in keyFrom && !mayNameOperation(keyFrom.header)) {
      const header = [...at('key_from'), 'header'];
      report.error(
        header,
        `${nameOf(header)} is ${report.show(header)}, which does not go on as the caller sent it`,
        'a header of the caller’s own, such as X-Order-Id',
      );
    }
    if (target.token !== null) {
      used.add(target.token);
      if (!Object.hasOwn(tokens, target.token)) {
        report.error(
          at('token'),
          `${nameOf(at('token'))} is ${report.show(at('token'))}, which egress.tokens does not have`,
          'the name of a token there, or null',
        );
      }
    }
    targets.slice(0, index).forEach((other) => {
      if (other.name === target.name) {
        report.error(at('name'), `${nameOf(at('name'))} is the name of another target`, 'a name of its own');
      }
      if (`${target.prefix}/`.startsWith(`${other.prefix}/`) || `${other.prefix}/`.startsWith(`${target.prefix}/`)) {
        report.error(
          at('prefix'),
          `${nameOf(at('prefix'))} and that of target ${JSON.stringify(other.name)} begin alike`,
          'prefixes of which none begins another',
        );
      }
    });
  });
  for (const name of Object.keys(tokens)) {
    if (used.has(name)) continue;
    const path = ['egress', 'tokens', name];
    report.warning(path, `${nameOf(path)} is a token that no target names`, 'a target with it, or none of it');
  }
}
