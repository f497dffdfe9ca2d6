import type { IdentityHeaders } from '../route/policy.js';
import type { Principal } from '../token/principal.js';
import { trimBlanks } from '../../lib/text.js';
import { isHost } from './header-values.js';
import type { RequestHeaders } from './request-headers.js';
import { plainAddress } from '../../lib/ip-ranges.js';

/** What a request is forwarded with. */
export interface Forwarding {
  readonly headers: RequestHeaders;
  /** Of the request as it came: `1.1`, or `1.0`. */
  readonly httpVersion: string;
  /** The caller's address as the socket has it; empty on a socket that has none. */
  readonly remoteAddress: string;
  /** Whether that address is one whose `X-Forwarded-*` count. */
  readonly trusted: boolean;
  /** Whether the caller came over TLS, ended here or in front of us. */
  readonly encrypted: boolean;
  /** Which Host the upstream sees; `null` is the caller's. */
  readonly host: string | null;
  /** The caller's, or a new one. */
  readonly requestId: string;
  /** That too, or `null` where there is none. */
  readonly traceparent: string | null;
  readonly forwardsAuthorization: boolean;
  /** Whether the upstream is asked for trailers (RFC 9110 §10.1.4). */
  readonly takesTrailers: boolean;
  /** Names and values in turn; none on public routes. */
  readonly identity: readonly string[];
}

/** RFC 9110 §7.6.3 allows a name that stands for the host. */
const pseudonym = 'sallyport';

/** Text that a list from an earlier hop may hold: nothing that needs quoting or decoding. */
const forwardedText = /^[\t\x20-\x7e]+$/;

/**
 * Builds the header section for the upstream, names and values in turn, but for Transfer-Encoding, which the connection
 * writes. Identity comes last, and nothing of the
 * caller's has one of these names any more.
 */
export function upstreamHeaders(forwarding: Forwarding): string[] {
  const { headers } = forwarding;
  const out = ['Host', forwarding.host ?? headers.host];
  for (const text of headers.passed) out.push(text);
  if (headers.contentLength !== null) out.push('Content-Length', String(headers.contentLength));
  if (forwarding.forwardsAuthorization && headers.authorization !== null) {
    out.push('Authorization', headers.authorization);
  }
  // A proof is worth nothing without its token, and nobody can use the two again: a proof counts once.
  if (forwarding.forwardsAuthorization && headers.dpop !== null) out.push('DPoP', headers.dpop);
  out.push(
    'X-Forwarded-For',
    forwardedFor(forwarding),
    'X-Forwarded-Proto',
    forwardedProto(forwarding),
    'X-Forwarded-Host',
    forwardedHost(forwarding),
    'Via',
    via(forwarding),
    'X-Request-Id',
    forwarding.requestId,
  );
  // WebSockets have no trailers, and their Connection header has another word to say.
  if (forwarding.takesTrailers && headers.upgrade === null) out.push('TE', 'trailers');
  if (forwarding.traceparent !== null) out.push('traceparent', forwarding.traceparent);
  if (headers.tracestate !== null) out.push('tracestate', headers.tracestate);
  for (const text of forwarding.identity) out.push(text);
  return out;
}

/**
 * Earlier addresses are kept from trusted callers only: from anybody else the first of them is what the caller likes.
 */
function forwardedFor({ headers, remoteAddress, trusted }: Forwarding): string {
  const address = plainAddress(remoteAddress) || 'unknown';
  const earlier = headers.forwardedFor;
  return trusted && earlier !== null && forwardedText.test(earlier) ? `${earlier}, ${address}` : address;
}

function forwardedProto({ headers, trusted, encrypted }: Forwarding): string {
  if (trusted && isListOf(headers.forwardedProto, isScheme)) return headers.forwardedProto;
  return encrypted ? 'https' : 'http';
}

function forwardedHost({ headers, trusted }: Forwarding): string {
  return trusted && isListOf(headers.forwardedHost, isHost) ? headers.forwardedHost : headers.host;
}

/**
 * Via protects from loops and tells what earlier hops spoke. From callers that are not trusted it says nothing
 * reliable, and some upstreams switch features off by it (compression, HTTP/1.1), so theirs ends here like
 * `X-Forwarded-*`.
 */
function via({ headers, trusted, httpVersion }: Forwarding): string {
  const own = `${httpVersion} ${pseudonym}`;
  return trusted && headers.via !== null && forwardedText.test(headers.via) ? `${headers.via}, ${own}` : own;
}

function isListOf(value: string | null, isElement: (text: string) => boolean): value is string {
  return value !== null && value.split(',').every((element) => isElement(trimBlanks(element)));
}

function isScheme(text: string): boolean {
  return text === 'http' || text === 'https';
}

/**
 * Returns the headers that tell the upstream who is calling, names and values in turn. Each value is visible ASCII, as
 * the claims were read; permissions keep the token's order.
 *
 * @param certificate the name of the caller's certificate, where one was verified.
 */
export function identityHeaders(
  names: IdentityHeaders,
  principal: Principal,
  certificate: string | null = null,
): readonly string[] {
  const headers: string[] = [];
  if (names.subject !== null) headers.push(names.subject, principal.subject);
  if (names.issuer !== null) headers.push(names.issuer, principal.issuer);
  if (names.permissions !== null) headers.push(names.permissions, principal.permissions.join(' '));
  if (names.tokenId !== null && principal.tokenId !== null) headers.push(names.tokenId, principal.tokenId);
  if (names.kind !== null) headers.push(names.kind, principal.kind);
  const { clientCertificate: name = null } = names;
  if (name !== null && certificate !== null) headers.push(name, certificate);
  return headers;
}
