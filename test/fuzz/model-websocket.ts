/** docs/websockets.md: which opening handshake is one, and which page may open a connection. */
import type { Field } from './model-fields.js';
import type { PolicyRoute } from './model-policy.js';

export interface Handshake {
  readonly method: string;
  readonly version: string;
  readonly passed: readonly Field[];
  /** Protocols that are asked for, but `h2c`. */
  readonly protocols: readonly string[];
  /** Whether `Connection` asks for the upgrade as well. */
  readonly connectionUpgrades: boolean;
  readonly hasBody: boolean;
}

/** What a handshake is refused with, whatever the route; `null` where it is one of RFC 6455 §4.2.1. */
export function refusedHandshake({
  method,
  version,
  passed,
  protocols,
  connectionUpgrades,
  hasBody,
}: Handshake): number | null {
  if (protocols.length !== 1 || protocols[0] !== 'websocket') return 400;
  if (method !== 'GET' || version !== '1.1' || !connectionUpgrades || hasBody) return 400;
  const [versions, keys] = [valuesOf(passed, 'sec-websocket-version'), valuesOf(passed, 'sec-websocket-key')];
  if (versions.length !== 1) return 400;
  if (versions[0] !== '13') return 426;
  const [key = ''] = keys;
  const isKey =
    keys.length === 1 &&
    Buffer.from(key, 'base64').length === 16 &&
    Buffer.from(key, 'base64').toString('base64') === key;
  return isKey ? null : 400;
}

export interface Opener {
  readonly isSession: boolean;
  readonly inCookie: boolean;
  readonly host: string;
}

/** Whether the page that opens the connection may. */
export function mayOpen(
  { origins }: PolicyRoute,
  passed: readonly Field[],
  { isSession, inCookie, host }: Opener,
): boolean {
  const given = passed.filter(([name]) => name.toLowerCase() === 'origin').map(([, value]) => value);
  const [origin] = given;
  if (origin === undefined) return !(isSession && inCookie);
  if (given.length > 1) return false;
  if (origins !== undefined) return origins.includes(origin.toLowerCase());
  return !isSession || isOfHost(origin, host);
}

function isOfHost(origin: string, host: string): boolean {
  const scheme = origin.slice(0, Math.max(0, origin.indexOf('//')));
  if (!URL.canParse(origin) || !URL.canParse(`${scheme}//${host}`)) return false;
  const [page, called] = [new URL(origin), new URL(`${scheme}//${host}`)];
  return page.hostname !== '' && page.hostname === called.hostname && page.port === called.port;
}

function valuesOf(passed: readonly Field[], wanted: string): string[] {
  return passed
    .filter(([name]) => name.toLowerCase() === wanted)
    .map(([, value]) => value.replace(/^[ \t]+/, '').replace(/[ \t]+$/, ''));
}
