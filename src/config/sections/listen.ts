/** The sections that say where Sallyport listens. */
import { z } from 'zod';
import { adminDefault, probesDefault } from '../load/listener-addresses.js';
import type { ConfigParts } from '../load/parse-sections.js';
import type { Report } from '../load/report.js';
import type { Path } from '../load/source-tree.js';
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
  text,
  word,
} from './scalars.js';
import { isWildcard, readUrl } from './addresses.js';
import { readTarget } from '../../decision/http/request-target.js';
import { isLoopback } from '../../lib/ip-ranges.js';

const tlsSchema = map({
  cert_file: filePath().describe('Certificate chain in PEM, the own certificate first. Read again when it changes.'),
  key_file: filePath().describe('Private key in PEM. Read again when it changes.'),
  client_ca_file: filePath()
    .nullable()
    .prefault(null)
    .describe(
      'Authorities in PEM whose client certificates are accepted. Read again when it changes. Without it callers are not asked for one.',
    ),
  client_auth: word('require', 'optional')
    .prefault('require')
    .describe('Whether a caller without a client certificate is turned away. Only with `client_ca_file`.'),
});

export const listenSchema = map({
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
      'What becomes of fields with `_` in their name, which many servers read like `-`. Look-alikes of our own are always dropped.',
    ),
  http_1_0: word('refuse', 'allow')
    .prefault('refuse')
    .describe('Whether HTTP/1.0 is served: with one `Host` and without `Transfer-Encoding`.'),
});

export const adminSchema = map({
  host: host().prefault(adminDefault.host).describe('Address of the operators’ listener; its `Host` is checked.'),
  port: port()
    .prefault(adminDefault.port)
    .describe('Port of the operators’ listener: `/livez`, `/readyz`, `/metrics`, `/status`.'),
});

const probeNames = 'a map of names, of 1 to 63 lower-case letters, digits and inner dashes, to paths';
const probeName = text(/^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/, probeNames, 63);

/** The same gate as the targets of requests: what two routers read differently is no probe. */
const probePath = 'a path such as /healthz, unambiguous, of at most 1024 characters; a query may follow';
const probePathSchema = z
  .string(probePath)
  .refine((value) => readTarget(value, 1_024).ok, probePath)
  .meta({ allowed: probePath });

export const probesSchema = map({
  host: host().prefault(probesDefault.host).describe('Address of the listener for probes.'),
  port: port()
    .prefault(probesDefault.port)
    .describe('Port of the listener for probes: `/livez`, `/readyz`, `/metrics`, `/app-probe/NAME`.'),
  app: z
    .record(probeName, probePathSchema, probeNames)
    .prefault({})
    .meta({ allowed: probeNames })
    .describe(
      'Probes of the upstream, which nobody but Sallyport can reach: `/app-probe/NAME` asks it for this path and answers its status. ' +
        'See [deployment.md](deployment.md#probes).',
    ),
});

export const shutdownSchema = map({
  delay: duration('0ms', '10m')
    .prefault('5s')
    .describe('How long the listener stays open after `/readyz` has begun to fail, so that load balancers notice.'),
  grace: duration('0ms', '1h').prefault('25s').describe('How long requests in flight may then take to end.'),
});

export const logSchema = map({
  level: word('debug', 'info', 'warn', 'error').prefault('info').describe('Least severity that is logged.'),
  client_address: flag()
    .prefault(true)
    .describe(
      'Whether the line of a request names its client: the other end of the connection or, behind `listen.trust_forwarded`, whom ' +
        '`X-Forwarded-For` names.',
    ),
  user_agent: flag().prefault(true).describe('Whether it has the start of the `User-Agent`.'),
  refusals_per_second: integer(1, 1_000_000)
    .nullable()
    .prefault(100)
    .describe(
      'Lines for refusals of one reason and caller in a second; more are counted and told of in one line. null: every one has its line.',
    ),
});

export const reloadSchema = map({
  least_age: duration('0ms', '1m')
    .prefault('2s')
    .describe(
      'How long an edited file has to stay as it is before it counts, also at SIGHUP; the config in force says it. A moved link need not wait.',
    ),
  end_marker: word('optional', 'required')
    .prefault('optional')
    .describe(
      '`required`: a config counts only if its last line is `...`, YAML’s end of a document, so that a file which was cut off is refused. Asked for ' +
        'where the config in force or the new one says so. Best put first in the file.',
    ),
});

export type ListenFile = z.output<typeof listenSchema>;
export type HostPortFile = z.output<typeof adminSchema>;
export type ProbesFile = z.output<typeof probesSchema>;

/** Checks what the listeners' settings say together. */
export function checkListeners(parts: ConfigParts, report: Report): void {
  checkCallersListener(parts, report);
  checkPorts(parts, report);
  if (parts.admin !== null && !isLoopback(parts.admin.value.host)) {
    const path = parts.isWritten(['admin', 'host']) ? ['admin', 'host'] : ['admin'];
    report.warning(
      path,
      `the operators’ listener can be reached from other machines: admin.host is ${report.show(path)}`,
      'a loopback address',
    );
  }
}

function checkCallersListener({ listen, isWritten, written }: ConfigParts, report: Report): void {
  const has = (key: string): boolean => isWritten(['listen', key]) && written(['listen', key]) !== null;
  if (has('tls') && has('tls_terminated_by')) {
    report.keyError(
      ['listen', 'tls_terminated_by'],
      'listen.tls_terminated_by stands beside listen.tls',
      'one of them',
    );
  }
  if (
    has('tls') &&
    isWritten(['listen', 'tls', 'client_auth']) &&
    (written(['listen', 'tls', 'client_ca_file']) ?? null) === null
  ) {
    report.keyError(
      ['listen', 'tls', 'client_auth'],
      'listen.tls.client_auth has no use without listen.tls.client_ca_file',
      'listen.tls.client_ca_file beside it',
    );
  }
  const at = ['listen', 'host'];
  const host = written(at);
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

/** One port for two listeners would fail at start, or serve `/metrics` to callers. */
function checkPorts({ listen, admin, probes, upstream }: ConfigParts, report: Report): void {
  const listeners: readonly { readonly path: Path; readonly at: HostPortFile | null; readonly job: string }[] = [
    { path: ['listen', 'port'], at: listen?.value ?? null, job: 'itself listens' },
    { path: ['admin', 'port'], at: admin?.value ?? null, job: 'listens for operators' },
    { path: ['probes', 'port'], at: probes?.value ?? null, job: 'listens for probes' },
  ];
  listeners.forEach(({ path, at }, index) => {
    const other = listeners
      .slice(0, index)
      .find((before) => at !== null && before.at !== null && collide(at, before.at));
    if (other !== undefined) {
      report.error(path, `${path.join('.')} is also ${other.path.join('.')}, on the same address`, 'a port of its own');
    }
  });
  const target = upstream === null ? null : addressOf(upstream.value.url);
  const own =
    target === null || !isThisMachine(target.host)
      ? undefined
      : listeners.find(({ at }) => at !== null && collide(target, at));
  if (own !== undefined) {
    report.error(
      ['upstream', 'url'],
      `upstream.url is where Sallyport ${own.job}`,
      'the address of the service behind it',
    );
  }
}

function collide(a: HostPortFile, b: HostPortFile): boolean {
  if (a.port !== b.port || a.port === 0) return false;
  if (a.host.toLowerCase() === b.host.toLowerCase() || isWildcard(a.host) || isWildcard(b.host)) return true;
  return [a.host, b.host].includes('localhost') && isLoopback(a.host) && isLoopback(b.host);
}

function isThisMachine(host: string): boolean {
  return isLoopback(host) || isWildcard(host);
}

function addressOf(origin: string): HostPortFile | null {
  const url = readUrl(origin);
  if (url === null || !url.protocol.startsWith('http')) return null;
  const standardPort = url.protocol === 'https:' ? 443 : 80;
  return { host: url.hostname.replace(/^\[(.*)\]$/, '$1'), port: url.port === '' ? standardPort : Number(url.port) };
}
