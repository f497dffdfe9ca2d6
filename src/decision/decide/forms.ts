/** How each proxy describes the request that it asks about. */
import { denial, type Denial } from '../denial.js';
import type { RequestHead } from '../http/request-head.js';
import { accept, refuse, type Result } from '../../lib/result.js';

/** Proxies that ask, each in its own words. */
export const forms = ['nginx', 'traefik', 'caddy', 'envoy', 'haproxy', 'apache'] as const;

export type Form = (typeof forms)[number];

/** The request that is judged, as the proxy in front describes it. */
export interface DescribedRequest {
  readonly head: RequestHead;
  /** Whether it came over TLS, as the proxy says. */
  readonly encrypted: boolean;
}

/** Names of the headers that describe a request, in lower case; `null` takes it from the asking request itself. */
interface Description {
  readonly method: string | null;
  readonly target: string | null;
  readonly host: string | null;
  readonly scheme: string | null;
  /** Whether the scheme may be left out: nothing is decided by it. */
  readonly needsScheme: boolean;
}

/** Traefik: `pkg/middlewares/auth/forward.go`. Caddy: `modules/caddyhttp/reverseproxy/forwardauth`. */
const forwarded: Description = {
  method: 'x-forwarded-method',
  target: 'x-forwarded-uri',
  host: 'x-forwarded-host',
  scheme: 'x-forwarded-proto',
  needsScheme: true,
};

const descriptions: Readonly<Record<Form, Description>> = {
  // ngx_http_auth_request_module: `proxy_set_header` of the asking location says what it asks about.
  nginx: {
    method: 'x-original-method',
    target: 'x-original-uri',
    host: null,
    scheme: 'x-forwarded-proto',
    needsScheme: false,
  },
  traefik: forwarded,
  caddy: forwarded,
  haproxy: forwarded,
  apache: forwarded,
  // envoy.extensions.filters.http.ext_authz.v3.HttpService: method, path and Host are those of the request itself.
  envoy: { method: null, target: null, host: null, scheme: 'x-forwarded-proto', needsScheme: false },
};

/** Of the asking message alone: what a client says by these names is not told. Only Envoy's gRPC tells it. */
export const untoldNames: ReadonlySet<string> = new Set([
  'content-length',
  'expect',
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
]);

/** Of the asking message or of its connection, and so none of the request that is described. */
const ofAsking: ReadonlySet<string> = new Set([...untoldNames, 'connection', 'host', 'upgrade']);

/** By which a proxy may tell what the client's own `Connection` says. */
const connectionName = 'x-original-connection';

/**
 * Proxies that do not set it: there it is the client's own, and would hide from judgement what it names. They keep
 * `Connection` to themselves.
 */
const withoutConnection: ReadonlySet<Form> = new Set(['traefik', 'envoy']);

/**
 * Reads what a proxy asks about. Refuses with `description_malformed` where a part of the description is missing,
 * comes twice or contradicts the form, or where the client adds to it; with `upgrade_refused` where another protocol
 * than WebSocket is offered, for nobody here knows what the proxy makes of it.
 *
 * @param prefix what stands before the target that is asked about; only in the form of Envoy.
 */
export function describeRequest(asking: RequestHead, form: Form, prefix: string): Result<DescribedRequest, Denial> {
  const { method, target, host, scheme, needsScheme } = descriptions[form];
  const said = new Map<string, string>();
  const rawHeaders: string[] = [];
  let connection: string | null = null;
  let isHandshake = false;
  for (let i = 0; i < asking.rawHeaders.length; i += 2) {
    const name = asking.rawHeaders[i] ?? '';
    const value = asking.rawHeaders[i + 1] ?? '';
    const lowerCase = name.toLowerCase();
    const describes = lowerCase === method || lowerCase === target || lowerCase === host || lowerCase === scheme;
    if (describes || lowerCase === 'host') {
      if (said.has(lowerCase)) return refuse(denial('description_malformed'));
      said.set(lowerCase, value);
    }
    if (lowerCase === connectionName) {
      if (connection !== null || withoutConnection.has(form)) return refuse(denial('description_malformed'));
      connection = value;
    }
    if (isUpgradeRefused(lowerCase, value)) return refuse(denial('upgrade_refused'));
    // Some proxies keep `Upgrade` to themselves; no server takes a handshake without this (RFC 6455 §4.2.1).
    if (lowerCase === 'upgrade' || lowerCase === 'sec-websocket-key') isHandshake = true;
    const isTold = ofAsking.has(lowerCase) || (describes && lowerCase.startsWith('x-original-'));
    if (!isTold && lowerCase !== connectionName) rawHeaders.push(name, value);
  }
  const describedMethod = method === null ? asking.method : said.get(method);
  const describedTarget = target === null ? withoutPrefix(asking.target, prefix) : said.get(target);
  const describedHost = said.get(host ?? 'host');
  const describedScheme = scheme === null ? undefined : said.get(scheme)?.toLowerCase();
  const hasScheme = describedScheme === undefined ? !needsScheme : isScheme(describedScheme);
  if (!describedMethod || !describedTarget || !describedHost || !hasScheme) {
    return refuse(denial('description_malformed'));
  }
  rawHeaders.push('Host', describedHost);
  const options = [
    ...(connection === null || connection === '' ? [] : [connection]),
    ...(isHandshake ? ['Upgrade'] : []),
  ];
  if (options.length > 0) rawHeaders.push('Connection', options.join(', '));
  if (isHandshake) rawHeaders.push('Upgrade', 'websocket');
  return accept({
    head: { method: describedMethod, target: describedTarget, httpVersion: '1.1', rawHeaders },
    encrypted: describedScheme === 'https' || describedScheme === 'wss',
  });
}

/** `null` where it does not begin so. */
function withoutPrefix(target: string, prefix: string): string | null {
  return target.startsWith(`${prefix}/`) ? target.slice(prefix.length) : null;
}

/** Tells whether it is one of HTTP or of WebSocket, in lower case. */
export function isScheme(scheme: string): boolean {
  return scheme === 'http' || scheme === 'https' || scheme === 'ws' || scheme === 'wss';
}

/**
 * Tells whether a header of the described request asks for another protocol than WebSocket. h2c would take every later
 * request of the connection past whoever judges (RFC 7540 §3.2).
 */
export function isUpgradeRefused(lowerCaseName: string, value: string): boolean {
  return lowerCaseName === 'http2-settings' || (lowerCaseName === 'upgrade' && value.toLowerCase() !== 'websocket');
}
