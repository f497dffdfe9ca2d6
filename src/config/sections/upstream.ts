/** The section that describes the upstream. */
import type { z } from 'zod';
import type { ParsedConfig } from '../load/parse-sections.js';
import { nameOf, type Report } from '../load/report.js';
import type { Path } from '../load/source-tree.js';
import { isWildcard, readUrl } from '../schema/addresses.js';
import {
  always,
  reloaded,
  saidByAnother,
  towards,
  whenAdded,
  whenRemoved,
  whenReplaced,
  withoutSecrets,
} from '../schema/key-changes.js';
import { duration, filePath, flag, host, integer, list, map, origin, text, word } from '../schema/scalars.js';
import { section } from '../schema/section.js';
import type { UpstreamSettings } from '../types.js';
import { lookAlikeKey } from '../../decision/http/header-names.js';
import { mayPass, mayStrip } from '../../decision/http/header-rules.js';
import { isLoopback } from '../../lib/ip-ranges.js';

const headerName = text(/^[A-Za-z0-9][A-Za-z0-9._-]*$/, 'the name of a header', 64);

/** Of the assertion, where the config gives no other. */
const defaultAssertionName = 'X-Auth-Assertion';

const upstreamSchema = map({
  url: origin().describe('The upstream: `http://HOST:PORT`, `https://HOST:PORT` (verified) or `unix:/PATH`.'),
  ca_file: filePath()
    .nullable()
    .prefault(null)
    .describe(
      'Authorities in PEM that vouch for the upstream, instead of the system’s. Read again when it changes. Only with https.',
    ),
  server_name: host()
    .nullable()
    .prefault(null)
    .describe('Name its certificate has to bear, where that is not the URL’s host. Only with https.'),
  begin_trace: flag()
    .prefault(true)
    .describe(
      'Whether a request without a sound `traceparent` gets a new one. Its flags claim no sampling: services that sample as their parent does ' +
        'then record no trace of it. false: it gets none, and the upstream begins the trace.',
    ),
  host: word('upstream', 'preserve')
    .prefault('upstream')
    .describe('Which `Host` the upstream sees: its own, or the caller’s.'),
  strip_fields: list(headerName, 0, 'header names')
    .prefault([])
    .describe(
      'Headers of callers that it must not get, beside those that are always removed, in any case and with any punctuation.',
    ),
  pass_fields: list(headerName, 0, 'header names')
    .prefault([])
    .describe(
      'Headers that are removed otherwise, and that it gets: what a proxy in front sets of each request, such as `CF-IPCountry`, or ' +
        '`Destination` for WebDAV. Anybody who gets past that proxy can write them; a `Destination` is a path that no route judges.',
    ),
  connect_timeout: duration('10ms', '5m').prefault('1s').describe('Name look-up, connection and TLS together.'),
  response_timeout: duration('10ms', '24h')
    .prefault('30s')
    .describe('From dispatch to the end of the response head. A route may set its own.'),
  idle_timeout: duration('10ms', '24h').prefault('60s').describe('Between bytes of a stream, in either direction.'),
  max_connections: integer(1, 65_536).prefault(128).describe('Connections to the upstream.'),
  http2: flag()
    .prefault(false)
    .describe(
      'Whether HTTP/2 is spoken with the upstream, and nothing else: over https agreed on by ALPN, else from the first byte on (h2c, prior ' +
        'knowledge). An upstream that does not speak it counts as not reached. WebSocket routes need false.',
    ),
  max_streams: integer(1, 1_000)
    .prefault(100)
    .describe(
      'Requests on one HTTP/2 connection at a time, where the upstream does not ask for less. Only with http2.',
    ),
  reuse: word('safe', 'always', 'never')
    .prefault('safe')
    .describe(
      'When a connection carries another request: where it is certain that nothing of the last one is left on it, whenever HTTP allows it, or never. ' +
        'With http2 it means nothing: there nothing of a request is left on its connection.',
    ),
});

type UpstreamFile = z.output<typeof upstreamSchema>;

/** The keys that say how connections are made and kept. */
type ConnectionsFile = Pick<
  UpstreamFile,
  | 'ca_file'
  | 'server_name'
  | 'connect_timeout'
  | 'response_timeout'
  | 'idle_timeout'
  | 'max_connections'
  | 'http2'
  | 'max_streams'
  | 'reuse'
>;

export const upstream = section({
  schema: upstreamSchema.describe('The upstream.'),
  check: checkUpstream,
  compile: (file, { absolute, values }): { readonly upstream: UpstreamSettings } => ({
    upstream: compileUpstream(file, absolute, {
      readsBodies: values.receiver.reads_bodies,
      assertionHeader: values.identity.assertion?.header,
    }),
  }),
  keys: {
    url: {
      of: ({ upstream }) => withoutSecrets(upstream.url),
      // Who is let through is not changed by where they go; who can read along is.
      widens: (from, to) =>
        (String(from).startsWith('https:') && !String(to).startsWith('https:')) ||
        (crossesInClear(String(to)) && !crossesInClear(String(from))),
    },
    ca_file: { of: ({ upstream }) => upstream.caFile, widens: whenReplaced },
    // The name that a certificate has to bear is another one then.
    server_name: { of: ({ upstream }) => upstream.serverName, widens: always },
    begin_trace: reloaded,
    host: { of: ({ upstream }) => upstream.host, widens: towards('upstream', 'preserve') },
    strip_fields: { of: ({ upstream }) => upstream.stripFields, widens: whenRemoved },
    pass_fields: { of: ({ upstream }) => upstream.passFields, widens: whenAdded },
    connect_timeout: reloaded,
    response_timeout: saidByAnother,
    idle_timeout: reloaded,
    max_connections: reloaded,
    http2: reloaded,
    max_streams: reloaded,
    // What is left on a connection may be taken for another caller's.
    reuse: { of: ({ upstream }) => upstream.reuse, widens: towards('never', 'safe', 'always') },
  },
});

/** Whether others on the network can read what is sent there. */
function crossesInClear(url: string): boolean {
  return url.startsWith('http:') && !isLoopback(readUrl(url)?.hostname ?? '');
}

/**
 * Whether the upstream reads the body of each request, or else closes. `unless_refused`, of targets of the calling
 * side: as long as the response is a success; otherwise it may have been made from the head alone.
 */
type ReadsBodies = boolean | 'unless_refused';

/** What other sections say of the upstream. */
interface SaidElsewhere {
  readonly readsBodies: ReadsBodies;
  readonly assertionHeader?: string | undefined;
}

type FilePath = string | null;

/** What is compiled of connections with an upstream, and of those with a target of the calling side. */
function compileConnections(file: ConnectionsFile, absolute: (path: FilePath) => FilePath) {
  return {
    caFile: absolute(file.ca_file),
    serverName: file.server_name,
    connectTimeoutMs: file.connect_timeout,
    responseTimeoutMs: file.response_timeout,
    idleTimeoutMs: file.idle_timeout,
    maxConnections: file.max_connections,
    http2: file.http2,
    maxStreams: file.max_streams,
    reuse: file.reuse,
  };
}

function compileUpstream(file: UpstreamFile, absolute: (path: FilePath) => FilePath, said: SaidElsewhere) {
  return {
    ...compileConnections(file, absolute),
    url: file.url.replace(/\/$/, ''),
    host: file.host,
    beginsTrace: file.begin_trace,
    stripFields: file.strip_fields,
    passFields: file.pass_fields,
    // Of these no compression of HTTP/2 may remember anything.
    sensitiveHeaders: ['authorization', (said.assertionHeader ?? defaultAssertionName).toLowerCase()],
    readsBodies: said.readsBodies,
  };
}

export type CompiledUpstream = ReturnType<typeof compileUpstream>;

/** An upstream of which only the origin is given, and the rest is as usual. */
export function usualUpstream(url: string): UpstreamSettings {
  const file = upstreamSchema.parse({ url: 'http://localhost' });
  return { ...compileUpstream(file, (path) => path, { readsBodies: false }), url };
}

/** The upstream that a target of the calling side is: of its own are the origin and the connections. */
export function targetUpstream(
  url: string,
  file: ConnectionsFile,
  absolute: (path: FilePath) => FilePath,
): UpstreamSettings {
  return { ...usualUpstream(url), ...compileConnections(file, absolute) };
}

/** Checks what the upstream's settings say together. */
function checkUpstream(parts: ParsedConfig, report: Report): void {
  if (parts.upstream === null) return;
  const { value: upstream } = parts.upstream;
  const { url, ca_file: caFile, server_name: serverName } = upstream;
  if (!url.startsWith('https:')) {
    if (caFile !== null) {
      report.error(['upstream', 'ca_file'], 'upstream.ca_file has no use without https', 'an https upstream.url');
    }
    if (serverName !== null) {
      report.error(
        ['upstream', 'server_name'],
        'upstream.server_name has no use without https',
        'an https upstream.url',
      );
    }
  }
  const host = url.startsWith('http:') ? readUrl(url)?.hostname : undefined;
  if (host !== undefined && !isLoopback(host) && !isWildcard(host)) {
    report.warning(
      ['upstream', 'url'],
      'requests and identities cross the network in plaintext: upstream.url is http on another host',
      'https, a loopback address or unix:/PATH',
    );
  }
  if (upstream.http2) checkWebSockets(parts, report);
  checkStripped(upstream, parts, report);
  checkPassed(upstream, parts, report);
}

/** Checks that no route needs the upgrade that HTTP/2 does not have (RFC 9113 §8.6). */
function checkWebSockets({ routes }: ParsedConfig, report: Report): void {
  for (const { path, parsed } of routes) {
    if (parsed?.value.websocket !== true) continue;
    report.error(
      [...path, 'websocket'],
      `${nameOf([...path, 'websocket'])} is true beside upstream.http2, and WebSockets go over HTTP/1.1`,
      'upstream.http2: false, or no WebSocket route',
    );
  }
}

/** Checks that nothing is removed that is needed: here, for the body, or to tell two writes apart. */
function checkStripped({ strip_fields: names }: UpstreamFile, { routes }: ParsedConfig, report: Report): void {
  const refuse = (path: Path, why: string, allowed: string): void =>
    report.error(path, `${nameOf(path)} is ${report.show(path)}, ${why}`, allowed);
  names.forEach((name, index) => {
    if (mayStrip(name)) return;
    refuse(
      ['upstream', 'strip_fields', index],
      'which Sallyport reads or sets, or which a body needs',
      'another header, such as X-User',
    );
  });
  const stripped = new Set(names.map(lookAlikeKey));
  for (const { path, parsed } of routes) {
    parsed?.value.idempotency?.fields.forEach((name, index) => {
      if (!stripped.has(lookAlikeKey(name))) return;
      refuse(
        [...path, 'idempotency', 'fields', index],
        'which upstream.strip_fields removes',
        'a header that is passed on',
      );
    });
  }
}

/**
 * Checks that nothing goes on that only Sallyport says, and nothing that would have another request carried out than
 * was judged.
 */
function checkPassed(
  { strip_fields: stripFields, pass_fields: names }: UpstreamFile,
  { identity }: ParsedConfig,
  report: Report,
): void {
  const stripped = new Set(stripFields.map(lookAlikeKey));
  const headers =
    identity === null ? [] : [...Object.values(identity.value.headers), identity.value.assertion?.header ?? null];
  const own = new Set(headers.map((name) => lookAlikeKey(name ?? '')));
  names.forEach((name, index) => {
    const path = ['upstream', 'pass_fields', index];
    const refuse = (why: string): void =>
      report.error(
        path,
        `${nameOf(path)} is ${report.show(path)}, ${why}`,
        'a header that a proxy in front sets, such as CF-IPCountry, or Destination',
      );
    if (own.has(lookAlikeKey(name))) refuse('which is an identity header');
    else if (stripped.has(lookAlikeKey(name))) refuse('which upstream.strip_fields removes');
    else if (!mayPass(name)) refuse('which is not removed, or never passed on');
  });
}
