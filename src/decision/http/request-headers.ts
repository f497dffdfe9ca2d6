import { readBearer, saysDpop, tokenIn, type RememberedTokens } from '../token/credential.js';
import { readConnection, withoutHeaders } from './connection-header.js';
import { readCorrelation, type Correlation } from '../telemetry/trace-context.js';
import { denial, type Denial } from '../denial.js';
import type { HeaderRules } from './header-rules.js';
import { combine, isFieldValue, listElements, isHost } from './header-values.js';
import { readFraming, readStreamFraming, type Framing } from './framing.js';
import { http2Version } from '../http2/request-head.js';
import { clientCertHeader, type JudgedHeader } from './header-names.js';
import type { RequestHead } from './request-head.js';
import { accept, refuse, type Result } from '../../lib/result.js';
import { addStripped, nothingStripped, type StrippedHeaders } from './stripped-headers.js';

/** The header section of a request, cleaned. */
export interface RequestHeaders extends Framing, Correlation {
  /**
   * Names and values in turn that may go to the upstream as they came: Content-Type and Idempotency-Key among them, and
   * nothing that Sallyport sets itself.
   */
  readonly passed: readonly string[];
  /** Headers dropped because they are, or look like, what only we set or judge, or for their underscore. */
  readonly stripped: StrippedHeaders;
  /** Headers that are dropped too, as `forwarded`, unless the caller's address is one whose `X-Forwarded-*` count. */
  readonly strippedUnlessTrusted: number;
  readonly authorization: string | null;
  /** The token in it, or why there is none. */
  readonly bearer: Result<string, Denial>;
  /** Whether the scheme says that the token is bound to a key: `DPoP`. */
  readonly saysBound: boolean;
  /** Proofs of the key that the token is bound to (RFC 9449 §4.1), as received: several are joined, and are none. */
  readonly dpop: string | null;
  /** Digest by which that token is remembered, where it was asked for and can be. */
  readonly bearerDigest: string | null;
  /** A sound `uri-host [":" port]`. */
  readonly host: string;
  /** Whether a body comes: a length above 0, or chunks; in HTTP/2 wherever the head does not end the stream. */
  readonly hasBody: boolean;
  /** Whether it came over HTTP/2. What is malformed there is dropped before anybody sees it. */
  readonly isHttp2: boolean;
  /** Whether the caller takes trailers of the response (`TE: trailers`, RFC 9110 §10.1.4). */
  readonly takesTrailers: boolean;
  /** Whether the caller waits for `100 Continue` before it sends the body. */
  readonly expectsContinue: boolean;
  /** The protocols asked for, in lower case, where there are others than `h2c`. */
  readonly upgrade: string | null;
  /** Whether the caller's Connection asks for the upgrade too. */
  readonly upgrades: boolean;
  /** As received: what makes a valid key is not judged here. */
  readonly idempotencyKey: string | null;
  /** What earlier hops said: for trusted addresses only. So are the next three. */
  readonly forwardedFor: string | null;
  readonly forwardedProto: string | null;
  readonly forwardedHost: string | null;
  readonly via: string | null;
  /** The certificate that a proxy in front says its caller showed (RFC 9440): for trusted addresses too. */
  readonly clientCert: string | null;
  /** Whether the caller wants the connection closed after the response. */
  readonly closes: boolean;
}

/** More headers than any honest caller sends (Envoy and Apache stop at 100), few enough to look at each. */
export const maxHeaders = 256;

/** `rawHeaders` has names and values in turn. */
export function hasTooManyHeaders({ rawHeaders }: Pick<RequestHead, 'rawHeaders'>): boolean {
  return rawHeaders.length > 2 * maxHeaders;
}

/** A second line of one of these is a second opinion on whom, where or how much. */
const onlyOnce: ReadonlySet<JudgedHeader> = new Set<JudgedHeader>([
  'authorization',
  'content-length',
  'content-type',
  'host',
  'idempotency-key',
  'transfer-encoding',
]);

const fromEarlierHops: ReadonlySet<JudgedHeader> = new Set<JudgedHeader>([
  clientCertHeader,
  'via',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-proto',
]);

/**
 * Reads and cleans the header section of a request. Refusals are `http_version`, `header_too_large`, `field_malformed`,
 * `field_repeated`, `field_refused`, `host_malformed`, `framing`, `connection_option` and `expectation_unknown`.
 * Whether a body or an upgrade is allowed is the route's to say.
 *
 * @param rememberedTokens where a token is looked for before its characters are read, which takes longer; `null` reads
 *   them.
 */
export function readHeaders(
  head: RequestHead,
  rules: HeaderRules,
  rememberedTokens: RememberedTokens | null = null,
): Result<RequestHeaders, Denial> {
  const { rawHeaders } = head;
  if (!isServedVersion(head, rules)) {
    return refuse(denial('http_version'));
  }
  if (hasTooManyHeaders(head)) return refuse(denial('header_too_large'));
  const judged = new Map<JudgedHeader, string>();
  const passed: string[] = [];
  let bearer = readBearer(null);
  let bearerDigest: string | null = null;
  let isDpop = false;
  let stripped = nothingStripped;
  let strippedUnlessTrusted = 0;
  let takesTrailers = false;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? '';
    const value = rawHeaders[i + 1] ?? '';
    const kind = rules.requestKind(name);
    // A token is most of a head, and is not checked twice: all of its characters may stand in a value.
    if (kind === 'authorization') {
      bearerDigest = rememberedTokens?.digestOfHeader(value) ?? null;
      isDpop = bearerDigest === null && saysDpop(value);
      bearer =
        bearerDigest !== null && rememberedTokens?.has(bearerDigest) === true
          ? accept(tokenIn(value))
          : readBearer(value);
    }
    if (!(kind === 'authorization' && bearer.ok) && !isFieldValue(value)) return refuse(denial('field_malformed'));
    switch (kind) {
      case 'passed':
        passed.push(name, value);
        break;
      case 'hop-by-hop':
        takesTrailers ||= name.length === 2 && name.toLowerCase() === 'te' && listElements(value).includes('trailers');
        break;
      case 'reserved':
      case 'underscored':
        stripped = addStripped(stripped, rules.strippedKind(name), 1);
        break;
      case 'refused':
        return refuse(denial('field_refused'));
      case 'malformed':
        return refuse(denial('field_malformed'));
      default: {
        const earlier = judged.get(kind);
        if (earlier !== undefined && onlyOnce.has(kind)) return refuse(denial('field_repeated'));
        judged.set(kind, combine(earlier, value));
        if (kind === 'content-type' || kind === 'idempotency-key') passed.push(name, value);
        if (fromEarlierHops.has(kind)) strippedUnlessTrusted++;
      }
    }
  }
  return conclude(head, judged, rules, {
    passed,
    bearer,
    bearerDigest,
    saysBound: isDpop,
    stripped,
    strippedUnlessTrusted,
    takesTrailers,
  });
}

/** A line of HTTP/1 may say that it is HTTP/2.0, and Node's parser takes it: only frames are HTTP/2. */
function isServedVersion({ httpVersion, endsStream }: RequestHead, { http10 }: HeaderRules): boolean {
  if (httpVersion === http2Version) return endsStream !== undefined;
  return httpVersion === '1.1' || (httpVersion === '1.0' && http10 === 'allow');
}

/** Judges what takes the whole section. */
function conclude(
  { httpVersion, endsStream }: RequestHead,
  judged: ReadonlyMap<JudgedHeader, string>,
  rules: HeaderRules,
  read: Pick<
    RequestHeaders,
    'passed' | 'bearer' | 'bearerDigest' | 'saysBound' | 'stripped' | 'strippedUnlessTrusted' | 'takesTrailers'
  >,
): Result<RequestHeaders, Denial> {
  const host = judged.get('host');
  if (host === undefined || !isHost(host)) return refuse(denial('host_malformed'));
  const framing =
    endsStream === undefined
      ? readFraming(judged.get('content-length'), judged.get('transfer-encoding'), httpVersion)
      : readStreamFraming(judged.get('content-length'), endsStream);
  if (!framing.ok) return framing;
  const connection = readConnection(judged.get('connection'), rules.requestKind);
  if (!connection.ok) return connection;
  const expectation = judged.get('expect');
  if (expectation !== undefined && expectation.toLowerCase() !== '100-continue') {
    return refuse(denial('expectation_unknown'));
  }

  const { contentLength, chunked } = framing.value;
  const { closes, keepsAlive, upgrades, removes } = connection.value;
  const correlation = readCorrelation(judged.get('x-request-id'), judged.get('traceparent'), judged.get('tracestate'));
  return accept({
    passed: withoutHeaders(read.passed, removes),
    stripped: addStripped(read.stripped, 'forwarded', correlation.replaced),
    strippedUnlessTrusted: read.strippedUnlessTrusted,
    takesTrailers: read.takesTrailers,
    authorization: judged.get('authorization') ?? null,
    bearer: read.bearer,
    bearerDigest: read.bearerDigest,
    saysBound: read.saysBound,
    dpop: judged.get('dpop') ?? null,
    host,
    contentLength,
    chunked,
    hasBody: endsStream === undefined ? chunked || (contentLength ?? 0) > 0 : !endsStream,
    isHttp2: endsStream !== undefined,
    // Clients of HTTP/1.0 cannot read an interim response (RFC 9110 §10.1.1).
    expectsContinue: expectation !== undefined && httpVersion !== '1.0',
    upgrade: otherUpgrades(judged.get('upgrade')),
    upgrades,
    requestId: correlation.requestId,
    traceparent: correlation.traceparent,
    tracestate: correlation.tracestate,
    idempotencyKey: judged.get('idempotency-key') ?? null,
    forwardedFor: judged.get('x-forwarded-for') ?? null,
    forwardedProto: judged.get('x-forwarded-proto') ?? null,
    forwardedHost: judged.get('x-forwarded-host') ?? null,
    via: judged.get('via') ?? null,
    clientCert: judged.get(clientCertHeader) ?? null,
    closes: closes || (httpVersion === '1.0' && !keepsAlive),
  });
}

/** An offer of HTTP/2 in the clear may be ignored (RFC 9110 §7.8): clients that make it go on in HTTP/1.1. */
function otherUpgrades(value: string | undefined): string | null {
  if (value === undefined) return null;
  const protocols = listElements(value).filter((protocol) => protocol !== 'h2c');
  return protocols.length === 0 ? null : protocols.join(', ');
}
