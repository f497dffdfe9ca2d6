import type { IncomingMessage } from 'node:http';
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
}

/**
 * Has all that reads the request from now on see no header of the caller that only we set or judge, and ours in their
 * place: also what passes its headers on, such as @fastify/http-proxy.
 */
export function rewriteHeaders(raw: IncomingMessage, rewriting: Rewriting): void {
  const { admission, identity, assertion } = rewriting;
  const { route, headers, principal, requestId, clientCertificate = null } = admission;
  const passed = new Set(headers.passed.filter((_, index) => index % 2 === 0).map((name) => name.toLowerCase()));
  const pairs: string[] = [];
  for (let i = 0; i < raw.rawHeaders.length; i += 2) {
    const name = raw.rawHeaders[i] ?? '';
    if (isShown(name, passed, rewriting)) pairs.push(name, raw.rawHeaders[i + 1] ?? '');
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
  const names = new Set(kept.filter((_, index) => index % 2 === 0).map((name) => name.toLowerCase()));
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

/** Whether handlers see a header: what frames the message they need; the rest as the upstream of a sidecar sees it. */
function isShown(name: string, passed: ReadonlySet<string>, { admission: { route }, peer, rules }: Rewriting): boolean {
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
      return passed.has(name.toLowerCase());
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
