import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { withoutHeaders } from '../decision/http/connection-header.js';
import { valuesOf } from '../decision/http/header-values.js';
import type { HeaderRules } from '../decision/http/header-rules.js';
import { identityHeaders } from '../decision/http/forwarded-headers.js';
import type { IdentityHeaders } from '../decision/route/policy.js';
import type { Admission, Peer } from '../proxy/auth/authorize-request.js';
import { withoutSessionHeaders } from '../decision/session/headers.js';

/** What the headers of a request become by. */
interface Rewriting {
  readonly admission: Admission;
  readonly peer: Peer;
  readonly rules: HeaderRules;
  readonly identity: IdentityHeaders;
  /** Names and values in turn; the signed one, where the config asks for it. */
  readonly assertion: readonly string[];
  readonly came: CallerHeaders;
}

/** What the caller sent: what an earlier rewriting took away is put back where it is shown now. */
interface CallerHeaders {
  /** Names and values in turn. */
  readonly raw: readonly string[];
  /** The same as Node reads them; `null` where nothing was taken away yet. */
  readonly read: Readonly<IncomingHttpHeaders> | null;
}

/**
 * Has all that reads the request from now on see no header of the caller that only we set or judge, and ours in their
 * place: also what passes its headers on, such as @fastify/http-proxy.
 */
export function rewriteHeaders(raw: IncomingMessage, rewriting: Rewriting): void {
  const { admission, identity, assertion, came } = rewriting;
  const { route, headers, principal, requestId, clientCertificate = null } = admission;
  const own = namesIn(came.raw);
  const passed = namesIn(headers.passed);
  const pairs: string[] = [];
  // Hooks of the application may have set others.
  for (const lines of [came.raw, withoutHeaders(raw.rawHeaders, own)]) {
    for (let i = 0; i < lines.length; i += 2) {
      const name = lines[i] ?? '';
      const isOwn = own.has(name.toLowerCase());
      if (isShown(name, isOwn ? passed : null, rewriting)) pairs.push(name, lines[i + 1] ?? '');
    }
  }
  const kept = route.session === null || route.session.forwardsTokens ? pairs : withoutSessionHeaders(pairs);
  const added = [
    'X-Request-Id',
    requestId,
    ...(principal === null ? [] : identityHeaders(identity, principal, clientCertificate)),
    ...assertion,
  ];
  // Node makes it of the raw headers when it is first asked for, by the number that there were at first. What is
  // injected by Fastify's `inject` has none.
  const distinct: NodeJS.Dict<string[]> = 'headersDistinct' in raw ? raw.headersDistinct : {};
  const names = namesIn(kept);
  for (const name of names) {
    if (raw.headers[name] !== undefined || came.read?.[name] === undefined) continue;
    raw.headers[name] = came.read[name];
    distinct[name] = [...valuesOf(kept, name)];
  }
  for (const name of Object.keys(raw.headers)) {
    if (names.has(name)) continue;
    Reflect.deleteProperty(raw.headers, name);
    Reflect.deleteProperty(distinct, name);
  }
  if (kept !== pairs && names.has('cookie')) {
    const cookies = [...valuesOf(kept, 'cookie')];
    distinct['cookie'] = cookies;
    raw.headers.cookie = cookies.join('; ');
  }
  if ('headersDistinct' in raw) raw.headersDistinct = distinct;
  raw.rawHeaders.splice(0, raw.rawHeaders.length, ...kept);
  setHeaders(raw, added);
}

/** Has all that reads the request from now on see these headers, names and values in turn, in the place of others. */
export function setHeaders(raw: IncomingMessage, headers: readonly string[]): void {
  const distinct: NodeJS.Dict<string[]> = 'headersDistinct' in raw ? raw.headersDistinct : {};
  const names = new Set(headers.filter((_, index) => index % 2 === 0).map((name) => name.toLowerCase()));
  const others = withoutHeaders(raw.rawHeaders, names);
  for (let i = 0; i < headers.length; i += 2) {
    const [name = '', value = ''] = headers.slice(i, i + 2);
    raw.headers[name.toLowerCase()] = value;
    distinct[name.toLowerCase()] = [value];
  }
  raw.rawHeaders.splice(0, raw.rawHeaders.length, ...others, ...headers);
}

/** In lower case. */
function namesIn(headers: readonly string[]): ReadonlySet<string> {
  return new Set(headers.filter((_, index) => index % 2 === 0).map((name) => name.toLowerCase()));
}

/**
 * Whether handlers see a header: what frames the message they need; the rest as the upstream of a sidecar sees it.
 *
 * @param passed names that go on as they came; `null` of a header that did not come.
 */
function isShown(
  name: string,
  passed: ReadonlySet<string> | null,
  { admission: { route }, peer, rules }: Rewriting,
): boolean {
  switch (rules.requestKind(name)) {
    case 'host':
    case 'content-length':
    case 'transfer-encoding':
    case 'content-type':
    case 'idempotency-key':
    case 'expect':
    case 'traceparent':
    case 'tracestate':
      return true;
    case 'passed':
      return passed === null || passed.has(name.toLowerCase());
    case 'authorization':
    case 'dpop':
      return route.forwardsAuthorization;
    case 'x-forwarded-for':
    case 'x-forwarded-host':
    case 'x-forwarded-proto':
    case 'via':
      return peer.trusted;
    default:
      return false;
  }
}
