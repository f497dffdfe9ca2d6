/** The two heads by which a caller and the upstream agree on a WebSocket connection (RFC 6455 §4). */
import { valuesOf, combine, listElements } from '../http/header-values.js';
import { createHash } from 'node:crypto';
import { denial, type Denial } from '../denial.js';
import { trimBlanks } from '../../lib/text.js';
import type { RequestHeaders } from '../http/request-headers.js';
import type { RequestHead } from '../http/request-head.js';
import { accept, refuse, type Result } from '../../lib/result.js';
import type { Route } from '../route/policy.js';
import type { Principal } from '../token/principal.js';

/** The only upgrade there is. */
export const webSocketProtocol = 'websocket';

/** What proves that somebody read the key (RFC 6455 §1.3). */
const guid = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';

/**
 * RFC 6455 §4.2.1: 16 bytes in base64. The last digit has four bits to spare, and they are 0 in the only canonical
 * form.
 */
const keyForm = /^[A-Za-z0-9+/]{21}[AQgw]==$/;

const version = '13';

/** What both ends agreed on, as far as frames tell. */
interface Agreement {
  /** Whether there is an extension, which may give the reserved bits a meaning. */
  readonly extended: boolean;
}

/**
 * Judges a request that asks for another protocol: `null` where it is a sound opening handshake (RFC 6455 §4.2.1).
 * Refusals: `upgrade_refused` where another protocol is meant or no route takes WebSockets, `websocket_version`,
 * `websocket_handshake`.
 */
export function refusedUpgrade(
  { method, httpVersion }: RequestHead,
  headers: RequestHeaders,
  isOffered: boolean,
): Denial | null {
  if (headers.upgrade !== webSocketProtocol || !isOffered) return denial('upgrade_refused');
  if (method !== 'GET' || httpVersion !== '1.1' || !headers.upgrades || headers.hasBody) {
    return denial('websocket_handshake');
  }
  const [versions, keys] = [
    trimmedValues(headers.passed, 'sec-websocket-version'),
    trimmedValues(headers.passed, 'sec-websocket-key'),
  ];
  if (versions.length !== 1 || versions[0] !== version) {
    return denial(versions.length === 1 ? 'websocket_version' : 'websocket_handshake');
  }
  return keys.length === 1 && keyForm.test(keys[0] ?? '') ? null : denial('websocket_handshake');
}

/**
 * Reads the upstream's 101, against what the caller asked for (RFC 6455 §4.1). Refuses with `upstream_failed` where it
 * switched to something else, does not prove that it read the key, or takes a subprotocol or extension that nobody
 * named.
 */
export function readAgreement(asked: readonly string[], responseHeaders: readonly string[]): Result<Agreement, Denial> {
  const failed = refuse(denial('upstream_failed'));
  const one = (name: string): string | null => {
    const values = trimmedValues(responseHeaders, name);
    return values.length === 1 ? (values[0] ?? null) : null;
  };
  if (one('upgrade')?.toLowerCase() !== webSocketProtocol) return failed;
  if (!listElements(trimmedValues(responseHeaders, 'connection').join(',')).includes('upgrade')) return failed;
  if (one('sec-websocket-accept') !== acceptOf(trimmedValues(asked, 'sec-websocket-key')[0] ?? '')) return failed;
  const protocols = trimmedValues(responseHeaders, 'sec-websocket-protocol');
  const named = trimmedValues(asked, 'sec-websocket-protocol')
    .flatMap((value) => value.split(','))
    .map(trimBlanks);
  if (protocols.length > 1 || !protocols.every((protocol) => protocol !== '' && named.includes(protocol))) {
    return failed;
  }
  const extensions = extensionsOf(responseHeaders);
  if (!extensions.every((extension) => extensionsOf(asked).includes(extension))) return failed;
  return accept({ extended: extensions.length > 0 });
}

/** `Sec-WebSocket-Accept` for a key. */
export function acceptOf(key: string): string {
  return createHash('sha1').update(`${key}${guid}`).digest('base64');
}

/** Names of the extensions, without their parameters; no quoted string of a parameter holds a comma (RFC 6455 §9.1). */
function extensionsOf(headers: readonly string[]): readonly string[] {
  return listElements(trimmedValues(headers, 'sec-websocket-extensions').reduce(combine, '')).map((text) =>
    trimBlanks(text.split(';')[0] ?? ''),
  );
}

function trimmedValues(headers: readonly string[], name: string): readonly string[] {
  return valuesOf(headers, name).map(trimBlanks);
}

/**
 * Whether the page that opens a WebSocket may: a browser adds cookies to what any page asks for, and neither CORS nor a
 * header that only one's own pages can send stands in the way of a WebSocket (RFC 6455 §10.2). Where the route names
 * origins, those count; else a session counts only on a page of the same host. Who sends no Origin is no page, and
 * brings no cookie of one.
 */
export function refusedOrigin(headers: RequestHeaders, { origins }: Route, principal: Principal | null): Denial | null {
  if (headers.upgrade === null) return null;
  const given = headers.passed.filter((_text, i) => i % 2 === 1 && headers.passed[i - 1]?.toLowerCase() === 'origin');
  const isSession = principal?.kind === 'session';
  const [origin] = given;
  if (origin === undefined) return isSession && headers.authorization === null ? denial('origin_refused') : null;
  const isAllowed =
    given.length === 1 &&
    (origins === null ? !isSession || isSameHost(origin, headers.host) : origins.has(origin.toLowerCase()));
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
