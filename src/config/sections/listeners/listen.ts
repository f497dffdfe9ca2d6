/** The section that says where callers are served. */
import type { z } from 'zod';
import type { ParsedConfig } from '../../load/parse-sections.js';
import type { Report } from '../../load/report.js';
import { checkDpop, compileDpop, dpopSchema } from './dpop.js';
import { checkPorts } from './ports.js';
import {
  always,
  never,
  towards,
  whenAdded,
  whenGone,
  whenLess,
  whenMore,
  whenOff,
  whenOn,
} from '../../schema/key-changes.js';
import {
  addressBlock,
  duration,
  filePath,
  flag,
  host,
  integer,
  line,
  list,
  map,
  port,
  size,
  word,
} from '../../schema/scalars.js';
import { section, type AbsolutePath } from '../../schema/section.js';
import { holdEveryAddress, isLoopback } from '../../../lib/ip-ranges.js';

const tlsSchema = map({
  cert_file: filePath().describe('Certificate chain in PEM, the own certificate first. Read again when it changes.'),
  key_file: filePath().describe('Private key in PEM. Read again when it changes.'),
  client_ca_file: filePath()
    .nullable()
    .prefault(null)
    .describe(
      'Authorities in PEM whose client certificates are accepted. Read again when it changes. Without it callers are not asked for one, but under ' +
        '`client_auth: request`.',
    ),
  client_auth: word('require', 'optional', 'request')
    .prefault('require')
    .describe(
      '`require`: a caller without a client certificate is refused. `optional`: one whose certificate does not verify is. Both only with ' +
        '`client_ca_file`. `request`: callers are asked for one, and nobody is refused: it counts for tokens that are bound to it, whoever signed it.',
    ),
});

const listenSchema = map({
  host: host().describe(
    'Address on which callers are served. On any but a loopback address `tls` or `tls_terminated_by` is required.',
  ),
  port: port().describe('Port on which callers are served; 0 asks the system for a free one.'),
  tls: tlsSchema.nullable().prefault(null).describe('TLS for callers, 1.2 or later.'),
  tls_terminated_by: line(100)
    .nullable()
    .prefault(null)
    .describe(
      'Who ends TLS in front of Sallyport, instead of `tls`: requests then count as https. Name it, so that plaintext is never an oversight.',
    ),
  trust_forwarded: list(addressBlock(), 0, 'IP addresses or CIDR blocks')
    .prefault([])
    .describe(
      'Addresses or CIDR blocks of proxies whose `X-Forwarded-For`, `-Proto` and `-Host` are passed on. Those of others are replaced.',
    ),
  client_cert_header: flag()
    .prefault(false)
    .describe(
      'Whether the certificate of a caller is that of `Client-Cert` (RFC 9440) where a proxy of `trust_forwarded` sends the request, which ended TLS and verified ' +
        'it. Of others the header is dropped.',
    ),
  dpop: dpopSchema
    .nullable()
    .prefault(null)
    .describe(
      'How proofs of tokens that are bound to a key are taken (RFC 9449): see [bound-tokens.md](bound-tokens.md). Without it such tokens are refused. ' +
        'It needs `store`.',
    ),
  http2: flag()
    .prefault(false)
    .describe(
      'Whether HTTP/2 is served beside HTTP/1.1: over TLS by ALPN, without TLS on the same port to callers that know (RFC 9113 §3.3).',
    ),
  max_streams: integer(1, 1_000)
    .prefault(100)
    .describe(
      'Requests at a time on one connection of HTTP/2; a caller that sends more has them reset. Only with `http2`.',
    ),
  grpc_health: word('route', 'answer')
    .prefault('route')
    .describe(
      'Who answers `grpc.health.v1.Health`: the upstream, by a route as for any other service, or Sallyport itself, by its readiness, for probes ' +
        'without a credential: see [grpc.md](grpc.md#health). `answer` only with `http2`.',
    ),
  max_header_bytes: size('1KiB', '1MiB')
    .prefault('16KiB')
    .describe('Request line and header section together; more is answered 431.'),
  max_target: size('64B', '64KiB').prefault('8KiB').describe('Request target; more is answered 414.'),
  header_timeout: duration('10ms', '10m')
    .prefault('10s')
    .describe('From the first byte of a request to the end of its header section.'),
  keep_alive_timeout: duration('1s', '2h')
    .prefault('75s')
    .describe(
      'How long a connection stays open without a request. A proxy in front has to close idle ones earlier: ' +
        'see [behind-a-proxy.md](behind-a-proxy.md).',
    ),
  body_idle_timeout: duration('10ms', '1h').prefault('60s').describe('Between bytes of a request body.'),
  body_min_rate: integer(0, 1_000_000_000)
    .prefault(500)
    .describe(
      'Bytes a second that a request body has to come with on average, once its caller has taken twice `body_idle_timeout`; 0 asks for none.',
    ),
  max_in_flight: integer(1, 1_000_000).prefault(512).describe('Requests at a time; more are answered 503.'),
  max_websockets: integer(1, 1_000_000)
    .prefault(1024)
    .describe('WebSocket connections at a time; more are answered 503.'),
  websocket_idle_timeout: duration('10ms', '24h')
    .prefault('5m')
    .describe('How long neither end of a WebSocket connection may send anything.'),
  underscore_fields: word('drop', 'allow', 'refuse')
    .prefault('drop')
    .describe(
      'What becomes of headers with `_` in their name, which many servers read like `-`. Look-alikes of our own are always dropped.',
    ),
  http_1_0: word('refuse', 'allow')
    .prefault('refuse')
    .describe('Whether HTTP/1.0 is served: with one `Host` and without `Transfer-Encoding`.'),
});

type ListenFile = z.output<typeof listenSchema>;

/** What of the settings is open, as the server takes it. */
function compileListen(file: ListenFile, absolute: AbsolutePath) {
  return {
    host: file.host,
    port: file.port,
    tls:
      file.tls === null
        ? null
        : {
            /** Paths of PEM files; read again when they change. */
            certFile: absolute(file.tls.cert_file),
            keyFile: absolute(file.tls.key_file),
            clientCaFile: absolute(file.tls.client_ca_file),
            /** Only with `clientCaFile`, but for `request`. */
            clientAuth: file.tls.client_auth,
          },
    /** Who ends TLS in front of us, or `null`. Requests count as https then. */
    tlsTerminatedBy: file.tls_terminated_by,
    /** Addresses or CIDR blocks whose `X-Forwarded-*` count. */
    trustForwarded: file.trust_forwarded,
    /** `null` where no proof of a key is taken. */
    dpop: compileDpop(file.dpop, absolute),
    /** Whether `Client-Cert` says which certificate a caller has, of those in `trustForwarded`. */
    readsClientCert: file.client_cert_header,
    http2: file.http2,
    /** At a time, on one connection of HTTP/2. */
    maxStreams: file.max_streams,
    /** Whether `grpc.health.v1.Health` is answered here, whoever asks. */
    answersGrpcHealth: file.grpc_health === 'answer',
    /** Request line and header section together. */
    maxHeaderBytes: file.max_header_bytes,
    maxTargetBytes: file.max_target,
    headerTimeoutMs: file.header_timeout,
    /** A client connection without a request. */
    keepAliveTimeoutMs: file.keep_alive_timeout,
    bodyIdleTimeoutMs: file.body_idle_timeout,
    /** Bytes a second of a body that takes long; 0 where none is asked for. */
    bodyMinRate: file.body_min_rate,
    maxInFlight: file.max_in_flight,
    maxWebSockets: file.max_websockets,
    /** Between bytes of a WebSocket connection, in either direction. */
    webSocketIdleTimeoutMs: file.websocket_idle_timeout,
    underscoreFields: file.underscore_fields,
    http10: file.http_1_0,
  };
}

export type CompiledListen = ReturnType<typeof compileListen>;

/** Whether anything says of a caller's certificate that it is genuine. */
export function verifiesCertificates({
  tls,
  readsClientCert,
}: Pick<CompiledListen, 'tls' | 'readsClientCert'>): boolean {
  return readsClientCert || (tls?.clientCaFile ?? null) !== null;
}

/** Whether callers are asked for certificates, here or in front of us. */
export function asksForCertificates(listen: Pick<CompiledListen, 'tls' | 'readsClientCert'>): boolean {
  return verifiesCertificates(listen) || listen.tls?.clientAuth === 'request';
}

/** A listener of which only the place is given, and the rest is as usual. */
export function usualListener(place: z.input<typeof listenSchema>): ListenFile {
  return listenSchema.parse(place);
}

export const listen = section({
  schema: listenSchema.describe(
    'Where callers are served. Without `host` and `port`, beside `decide` and without `upstream`: how requests are judged that a proxy asks about. Read once, at start.',
  ),
  check: checkListeners,
  compile: (file, { absolute }) => ({ listen: compileListen(file, absolute) }),
  keys: {
    host: { restart: true, of: ({ listen }) => listen.host },
    port: { restart: true, of: ({ listen }) => listen.port },
    tls: { of: ({ listen }) => listen.tls !== null, widens: whenOff },
    'tls.cert_file': { restart: true, of: ({ listen }) => listen.tls?.certFile ?? null },
    'tls.key_file': { restart: true, of: ({ listen }) => listen.tls?.keyFile ?? null },
    'tls.client_ca_file': { restart: true, of: ({ listen }) => listen.tls?.clientCaFile ?? null, widens: always },
    'tls.client_auth': {
      restart: true,
      // Two of three say nothing without the CA.
      of: ({ listen: { tls } }) =>
        tls === null || (tls.clientCaFile === null && tls.clientAuth !== 'request') ? null : tls.clientAuth,
      shown: ({ listen }) => listen.tls?.clientAuth ?? null,
      widens: towards('require', 'optional', 'request'),
    },
    tls_terminated_by: { restart: true, of: ({ listen }) => listen.tlsTerminatedBy, widens: never },
    trust_forwarded: {
      restart: true,
      of: ({ listen }) => listen.trustForwarded.join(' '),
      shown: ({ listen }) => listen.trustForwarded,
      widens: whenAdded,
    },
    client_cert_header: { restart: true, of: ({ listen }) => listen.readsClientCert, widens: whenOn },
    dpop: { restart: true, of: ({ listen }) => listen.dpop !== null, widens: whenOn },
    'dpop.origins': {
      restart: true,
      of: ({ listen }) => [...(listen.dpop?.origins ?? [])].join(' '),
      shown: ({ listen }) => [...(listen.dpop?.origins ?? [])],
      widens: whenAdded,
    },
    'dpop.max_age': { restart: true, of: ({ listen }) => listen.dpop?.maxAgeMs ?? null, widens: whenMore },
    'dpop.nonce_key_file': {
      restart: true,
      of: ({ listen }) => listen.dpop?.nonceKeyFile ?? null,
      shown: ({ listen }) => listen.dpop?.nonceKeyFile,
      widens: whenGone,
    },
    'dpop.clock_skew': { restart: true, of: ({ listen }) => listen.dpop?.clockSkewMs ?? null, widens: whenMore },
    underscore_fields: {
      restart: true,
      of: ({ listen }) => listen.underscoreFields,
      widens: towards('refuse', 'drop', 'allow'),
    },
    http_1_0: { restart: true, of: ({ listen }) => listen.http10, widens: towards('refuse', 'allow') },
    http2: { restart: true, of: ({ listen }) => listen.http2, widens: never },
    max_streams: { restart: true, of: ({ listen }) => listen.maxStreams, widens: whenMore },
    grpc_health: {
      restart: true,
      of: ({ listen }) => (listen.answersGrpcHealth ? 'answer' : 'route'),
      widens: towards('route', 'answer'),
    },
    max_header_bytes: { restart: true, of: ({ listen }) => listen.maxHeaderBytes, widens: whenMore },
    max_target: { restart: true, of: ({ listen }) => listen.maxTargetBytes, widens: whenMore },
    header_timeout: { restart: true, of: ({ listen }) => listen.headerTimeoutMs },
    keep_alive_timeout: { restart: true, of: ({ listen }) => listen.keepAliveTimeoutMs },
    body_idle_timeout: { restart: true, of: ({ listen }) => listen.bodyIdleTimeoutMs },
    body_min_rate: { restart: true, of: ({ listen }) => listen.bodyMinRate, widens: whenLess },
    max_in_flight: { restart: true, of: ({ listen }) => listen.maxInFlight, widens: whenMore },
    max_websockets: { restart: true, of: ({ listen }) => listen.maxWebSockets, widens: whenMore },
    websocket_idle_timeout: { restart: true, of: ({ listen }) => listen.webSocketIdleTimeoutMs },
  },
});

/** Checks what the listeners' settings say together. */
function checkListeners(parts: ParsedConfig, report: Report): void {
  checkCallersListener(parts, report);
  checkPorts(parts, report);
  checkDpop(parts, report);
}

function checkCallersListener(parts: ParsedConfig, report: Report): void {
  const { listen, isPresent, rawValue, applicationVerifies } = parts;
  const has = (key: string): boolean => isPresent(['listen', key]) && rawValue(['listen', key]) !== null;
  if (has('tls') && has('tls_terminated_by')) {
    report.keyError(
      ['listen', 'tls_terminated_by'],
      'listen.tls_terminated_by stands beside listen.tls',
      'one of them',
    );
  }
  if (
    has('tls') &&
    isPresent(['listen', 'tls', 'client_auth']) &&
    rawValue(['listen', 'tls', 'client_auth']) !== 'request' &&
    (rawValue(['listen', 'tls', 'client_ca_file']) ?? null) === null
  ) {
    report.keyError(
      ['listen', 'tls', 'client_auth'],
      'listen.tls.client_auth has no use without listen.tls.client_ca_file',
      'listen.tls.client_ca_file beside it, or request',
    );
  }
  if (listen !== null && listen.value.grpc_health === 'answer' && !listen.value.http2) {
    report.keyError(
      ['listen', 'grpc_health'],
      'listen.grpc_health: answer has no use without listen.http2',
      'listen.http2: true beside it',
    );
  }
  if (listen !== null && listen.value.client_cert_header && listen.value.trust_forwarded.length === 0) {
    report.keyError(
      ['listen', 'client_cert_header'],
      'listen.client_cert_header has no use without listen.trust_forwarded: nobody’s header would be believed',
      'listen.trust_forwarded with the addresses of the proxy in front',
    );
  }
  const tls = listen?.value.tls ?? null;
  // Nobody but the proxy in front has a certificate of that authority. TLS of an application is its own.
  const asksProxy = applicationVerifies === null && tls?.client_auth === 'require' && tls.client_ca_file !== null;
  if (
    listen !== null &&
    listen.value.client_cert_header &&
    !asksProxy &&
    holdEveryAddress(listen.value.trust_forwarded)
  ) {
    report.keyError(
      ['listen', 'client_cert_header'],
      'listen.client_cert_header believes everybody: listen.trust_forwarded is every address, and whoever connects writes Client-Cert',
      'listen.trust_forwarded with the addresses of the proxy in front, or listen.tls.client_ca_file with client_auth: require',
    );
  }
  const at = ['listen', 'host'];
  const host = rawValue(at);
  if (!has('tls') && !has('tls_terminated_by') && typeof host === 'string' && !isLoopback(host)) {
    report.error(
      at,
      `tokens would cross the network in plaintext: listen.host is ${report.show(at)}, without TLS`,
      'listen.tls, listen.tls_terminated_by naming who ends TLS in front, or a loopback address',
    );
  }
  if (listen !== null && listen.value.max_target > listen.value.max_header_bytes) {
    const path = ['listen', 'max_target'];
    report.error(
      path,
      'listen.max_target is more than listen.max_header_bytes, which counts the target too',
      'at most listen.max_header_bytes',
    );
  }
}
