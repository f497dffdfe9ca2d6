/** The section that says where proxies that are already there ask for decisions. */
import { z } from 'zod';
import type { ParsedConfig } from '../../load/parse-sections.js';
import { nameOf, type Report } from '../../load/report.js';
import type { Path } from '../../load/source-tree.js';
import { never, whenAdded, type KeyChanges } from '../../schema/key-changes.js';
import { addressBlock, host, line, list, map, port, text, word } from '../../schema/scalars.js';
import { section, type CompileContext } from '../../schema/section.js';
import type { ListenSettings } from '../../types.js';
import { acceptable, type Acceptance } from '../../../decision/decide/limits.js';
import { forms, type Form } from '../../../decision/decide/forms.js';
import { holdEveryAddress, isLoopback } from '../../../lib/ip-ranges.js';
import { checkDecideLimits, checkListenWithoutPlace } from './decide-limits.js';
import { listen as callersListener, usualListener } from './listen.js';
import { collide, decideListeners, egressPlace } from './ports.js';

/** One listener for a proxy that asks, compiled. */
export interface DecideSettings {
  readonly form: Form;
  /** As the server is opened: `trustForwarded` are the addresses that may ask. */
  readonly listen: ListenSettings;
  /** What Envoy puts before the path that it asks about; empty where it puts nothing. */
  readonly prefix: string;
  /** Of the head that is described, as of any request's. */
  readonly maxHeaderBytes: number;
  /** Of one call of Envoy over gRPC, which tells some of a request twice. */
  readonly maxCheckBytes: number;
  /** What this listener cannot do, and the operator accepts. */
  readonly accepts: ReadonlySet<Acceptance>;
}

const prefix = text(
  /^(?:\/(?!\.{1,2}(?:\/|$))[A-Za-z0-9._~-]+)+$/,
  'a path such as /decide, of letters, digits and `-._~`, without a slash at its end',
  256,
);

const listenerSchema = map({
  host: host().prefault('127.0.0.1').describe('Address on which the proxy asks.'),
  port: port().describe('Port on which it asks; 0 asks the system for a free one.'),
  form: word(...forms).describe(
    'Who asks, and so in which words: nginx’ `auth_request`, Traefik’s ForwardAuth, Caddy’s `forward_auth`, Envoy’s `ext_authz` over gRPC and HTTP, ' +
      'or HAProxy or Apache with the scripts of [decide.md](decide.md).',
  ),
  trust: list(addressBlock(), 1, 'IP addresses or CIDR blocks')
    .prefault(['127.0.0.0/8', '::1'])
    .describe('Addresses or CIDR blocks of the proxies that may ask: what they say of a request is believed.'),
  tls_terminated_by: line(100)
    .nullable()
    .prefault(null)
    .describe(
      'What protects the way between the proxy and this listener, where it is not on a loopback address: tokens cross it in plaintext. Name it.',
    ),
  prefix: prefix.nullable().prefault(null).describe('`path_prefix` of Envoy’s HTTP service. Only with `form: envoy`.'),
  accept: list(word(...acceptable), 0, acceptable.join(', '))
    .prefault([])
    .describe(
      'What only the sidecar can do and is done without here: `unreserved` lets writes through that their route would reserve, `reused_tokens` tokens that the route ' +
        'would take once, `connections` WebSockets and gRPC calls that nobody authorizes again; `assertion` gives an assertion for bytes that the proxy may still change. ' +
        'Else such requests are refused, and no assertion is given.',
    ),
});

type ListenerFile = z.output<typeof listenerSchema>;

const allowed = 'a map, or a list of maps';

type DecideListeners = { readonly decide: readonly DecideSettings[] };

/** One key of all listeners, which are opened at start. */
function openedKey(read: (settings: DecideSettings) => unknown): KeyChanges<DecideListeners>[string] {
  return {
    restart: true,
    of: ({ decide }) => JSON.stringify(decide.map(read)),
    shown: ({ decide }) => decide.map(read),
    widens: never,
  };
}

/** The same of a key by which more may come in. What one listener takes says nothing of another, so each is named. */
function guardedKey(read: (settings: DecideSettings) => readonly string[]): KeyChanges<DecideListeners>[string] {
  return {
    ...openedKey(read),
    shown: ({ decide }) =>
      decide.flatMap((listener, index) => read(listener).map((value) => `${addressOf(listener, index)} ${value}`)),
    widens: whenAdded,
  };
}

/** Stays while others come and go. Where the system chooses the port, only the place in the list is left. */
function addressOf({ listen: { host, port } }: DecideSettings, index: number): string {
  const place = port === 0 ? `0 (${String(index + 1)})` : String(port);
  return `${host.includes(':') ? `[${host}]` : host}:${place}`;
}

export const decide = section({
  schema: z
    .union([listenerSchema, list(listenerSchema, 1, 'maps'), z.null()], allowed)
    .meta({ allowed })
    .prefault(null)
    .describe(
      'Listeners on which a proxy that is already there asks for decisions, and forwards itself: see [decide.md](decide.md). One, or a list of them. ' +
        'Read once, at start.',
    ),
  check,
  compile: (file, context): { readonly decide: readonly DecideSettings[] } => ({
    decide: decideListeners(file).map((each) => compileListener(each, context)),
  }),
  keys: {
    host: openedKey(({ listen }) => listen.host),
    port: openedKey(({ listen }) => listen.port),
    form: guardedKey(({ form }) => [form]),
    trust: guardedKey(({ listen }) => listen.trustForwarded),
    tls_terminated_by: openedKey(({ listen }) => listen.tlsTerminatedBy),
    prefix: openedKey((settings) => settings.prefix),
    accept: guardedKey(({ accepts }) => [...accepts]),
  },
});

/** A request comes with its description, which repeats its target, and names of a few headers. */
const descriptionBytes = 4 * 1024;

/** What Envoy tells beside the request: addresses, certificates, metadata of routes. */
const contextBytes = 64 * 1024;

function compileListener(file: ListenerFile, context: CompileContext): DecideSettings {
  const { listen: own } = context.values;
  const usual = callersListener.compile(usualListener({ host: file.host, port: file.port }), context).listen;
  return {
    form: file.form,
    listen: {
      ...usual,
      tlsTerminatedBy: file.tls_terminated_by,
      trustForwarded: file.trust,
      // Envoy's gRPC comes over it.
      http2: file.form === 'envoy',
      maxStreams: own.max_streams,
      // As nginx asks unless it is told otherwise.
      http10: 'allow',
      maxHeaderBytes: own.max_header_bytes + own.max_target + descriptionBytes,
      maxInFlight: own.max_in_flight,
      headerTimeoutMs: own.header_timeout,
      keepAliveTimeoutMs: own.keep_alive_timeout,
      bodyIdleTimeoutMs: own.body_idle_timeout,
    },
    prefix: file.prefix ?? '',
    maxHeaderBytes: own.max_header_bytes,
    maxCheckBytes: 2 * (own.max_header_bytes + own.max_target) + contextBytes,
    accepts: new Set(file.accept),
  };
}

/** Checks what the settings say together, and says what this listener cannot do of what the routes ask for. */
function check(parts: ParsedConfig, report: Report): void {
  const file = parts.decide?.value ?? null;
  const isList = Array.isArray(file);
  decideListeners(file).forEach((each, index) => {
    const base: Path = isList ? ['decide', index] : ['decide'];
    checkListener(each, base, report);
    checkDecideLimits(each, base, parts, report);
    checkPort(each, base, parts, report);
  });
  if (file !== null) checkListenWithoutPlace(parts, report);
}

function checkListener(file: ListenerFile, base: Path, report: Report): void {
  if (!isLoopback(file.host) && file.tls_terminated_by === null) {
    const at = [...base, 'host'];
    report.error(
      at,
      `tokens would cross the network in plaintext: ${nameOf(at)} is ${report.show(at)}`,
      'a loopback address, or tls_terminated_by naming what protects the way to it',
    );
  }
  if (file.prefix !== null && file.form !== 'envoy') {
    const at = [...base, 'prefix'];
    report.keyError(at, `${nameOf(at)} has no use with form: ${file.form}`, 'form: envoy beside it');
  }
  if (holdEveryAddress(file.trust)) {
    const at = [...base, 'trust'];
    report.error(
      at,
      `${nameOf(at)} is everybody: who asks says himself what he asked for`,
      'the addresses of the proxy in front',
    );
  }
}

/** One port of an address for two listeners would fail at start. */
function checkPort(own: ListenerFile, base: Path, parts: ParsedConfig, report: Report): void {
  const { listen, admin, probes, decide: file } = parts;
  const before = base.length === 1 ? [] : decideListeners(file?.value ?? null).slice(0, Number(base[1]));
  const others = [listen?.value, admin?.value, probes?.value, egressPlace(parts), ...before];
  if (!others.some((other) => other !== undefined && other !== null && collide(own, other))) return;
  const at = [...base, 'port'];
  report.error(at, `${nameOf(at)} is the port of another listener`, 'a port of its own');
}
