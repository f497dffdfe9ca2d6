import type { Test } from 'tap';
import type { RawResponse } from '../support/raw-client.js';

/** An answer of Sallyport's own, as docs/contract.md 4 lists them. */
export interface Refusal {
  readonly status: number;
  /** Member `type` of the body. */
  readonly type: string;
  /** Parameter `error` of `Proxy-Status`; a list where any of them is right. */
  readonly error: string | readonly string[];
  /** Whether it says when to come back; unless given, 503 does. */
  readonly retryAfter?: boolean;
  /** Member `record` of the body, where it has one. */
  readonly record?: string;
}

const urn = (status: number, name: string, error: Refusal['error'] = 'http_request_error'): Refusal => ({
  status,
  type: `urn:sallyport:${name}`,
  error,
});

export const refusals = {
  badTarget: urn(400, 'bad-target'),
  badRequest: urn(400, 'bad-request'),
  methodNotAllowed: urn(405, 'method-not-allowed'),
  tooSlow: urn(408, 'bad-request'),
  targetTooLong: urn(414, 'bad-request'),
  expectation: urn(417, 'bad-request'),
  headerTooLarge: urn(431, 'bad-request'),
  bodyTooLarge: urn(413, 'body-too-large'),
  unauthorized: { status: 401, type: 'about:blank', error: 'http_request_denied' },
  forbidden: { status: 403, type: 'about:blank', error: 'http_request_denied' },
  upstreamFailed: urn(502, 'upstream-failed', 'connection_terminated'),
  upstreamTimeout: urn(504, 'upstream-timeout', 'http_response_timeout'),
  upstreamUnreachable: urn(503, 'upstream-unreachable', [
    'connection_refused',
    'connection_timeout',
    'dns_error',
    'tls_protocol_error',
    'tls_certificate_error',
    'destination_ip_unroutable',
  ]),
  keysUnavailable: urn(503, 'keys-unavailable', 'proxy_internal_error'),
  storeUnavailable: urn(503, 'store-unavailable', 'proxy_internal_error'),
  idempotencyKeyMissing: urn(400, 'idempotency-key-missing'),
  idempotencyKeyInvalid: urn(400, 'idempotency-key-invalid'),
  idempotencyInProgress: { ...urn(409, 'idempotency-in-progress', 'http_request_denied'), retryAfter: true },
  idempotencyOutcomeUnknown: urn(409, 'idempotency-outcome-unknown', 'http_request_denied'),
  idempotencyNotReplayable: urn(409, 'idempotency-result-not-replayable', 'http_request_denied'),
  idempotencyKeyReused: urn(422, 'idempotency-key-reused', 'http_request_denied'),
  rateLimited: { ...urn(429, 'rate-limited', 'http_request_denied'), retryAfter: true },
  tooManyInFlight: { ...urn(429, 'too-many-in-flight', 'http_request_denied'), retryAfter: true },
  overloaded: urn(503, 'overloaded', 'proxy_internal_error'),
  shuttingDown: urn(503, 'shutting-down', 'proxy_internal_error'),
} as const satisfies Record<string, Refusal>;

/** Bodies that tell nothing, byte for byte. */
const blankBodies = new Map([
  [401, '{"type":"about:blank","title":"Unauthorized","status":401}'],
  [403, '{"type":"about:blank","title":"Forbidden","status":403}'],
]);

/** Asserts that this is the refusal, with all that every one of them carries. */
export function checkRefusal(t: Test, response: RawResponse, expected: Refusal, name: string): void {
  const body = parseBody(response.text);
  const error =
    /^sallyport; error=([a-z_]+)$/.exec(response.field('proxy-status') ?? '')?.[1] ?? response.field('proxy-status');
  t.same(
    {
      status: response.status,
      type: body['type'],
      statusInBody: body['status'],
      error:
        typeof expected.error !== 'string' && expected.error.some((known) => known === error) ? expected.error : error,
      contentType: response.field('content-type'),
      cacheControl: response.field('cache-control'),
      challenge: response.field('www-authenticate'),
      retryAfter: /^[1-9]\d*$/.test(response.field('retry-after') ?? ''),
      requestId: /^[A-Za-z0-9._-]{1,128}$/.test(response.field('x-request-id') ?? ''),
      members: Object.keys(body),
      record: body['record'],
      complete: response.complete,
      blank: blankBodies.get(response.status) ?? response.text,
    },
    {
      status: expected.status,
      type: expected.type,
      statusInBody: expected.status,
      error: expected.error,
      contentType: 'application/problem+json',
      cacheControl: 'no-store',
      challenge: expected.status === 401 ? 'Bearer realm="sallyport"' : null,
      retryAfter: expected.retryAfter ?? expected.status === 503,
      requestId: true,
      members: ['type', 'title', 'status', ...(expected.record === undefined ? [] : ['record'])],
      record: expected.record,
      complete: true,
      blank: response.text,
    },
    `${name}: ${String(expected.status)} ${expected.type}`,
  );
}

/** The answer's bytes without what may differ: `Date`, `X-Request-Id` and how the connection goes on. */
export function comparable(response: RawResponse): string {
  const text = response.raw.toString('latin1');
  return text.replace(/^(date|x-request-id|connection|keep-alive):.*\r\n/gim, '');
}

function parseBody(text: string): Record<string, unknown> {
  try {
    return JSON.parse(text) as Record<string, unknown>;
  } catch {
    return { unreadable: text };
  }
}
