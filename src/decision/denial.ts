/**
 * Every reason for which Sallyport refuses or fails a request: the closed set that the log line, the metric label
 * `reason` and the response share. The response tells a caller less than the reason does.
 */

import type { AttemptsMade } from './egress/attempts.js';

/** The `error` parameter of `Proxy-Status` (RFC 9209 §2.3). */
export type ProxyError =
  | 'http_request_error'
  | 'http_request_denied'
  | 'proxy_internal_error'
  | 'connection_terminated'
  | 'connection_refused'
  | 'connection_timeout'
  | 'dns_error'
  | 'tls_protocol_error'
  | 'tls_certificate_error'
  | 'destination_ip_unroutable'
  | 'http_response_timeout';

/** How one reason is answered. */
export interface RefusalResponse {
  /** HTTP status. */
  readonly status: number;
  /** Last part of `urn:sallyport:…`, or `null` for `about:blank`, which tells nothing but the status. */
  readonly type: string | null;
  /** Short text for people; the same for every occurrence of the reason (RFC 9457 §3.1.3). */
  readonly title: string;
  readonly error: ProxyError;
  /** Seconds for `Retry-After`, where the reason asks for one. */
  readonly retryAfterS?: number;
}

const target = (title: string, status = 400): RefusalResponse => ({
  status,
  type: 'bad-target',
  title,
  error: 'http_request_error',
});
const request = (title: string, status = 400): RefusalResponse => ({
  status,
  type: 'bad-request',
  title,
  error: 'http_request_error',
});
const unauthorized: RefusalResponse = { status: 401, type: null, title: 'Unauthorized', error: 'http_request_denied' };
const forbidden: RefusalResponse = { status: 403, type: null, title: 'Forbidden', error: 'http_request_denied' };
const unavailable = (type: string, title: string, error: ProxyError = 'proxy_internal_error'): RefusalResponse => ({
  status: 503,
  type,
  title,
  error,
  retryAfterS: 1,
});
const conflict = (type: string, title: string): RefusalResponse => ({
  status: 409,
  type,
  title,
  error: 'http_request_denied',
});

/** The response to each reason. */
export const responses = {
  target_malformed: target('The request target is malformed or ambiguous'),
  target_too_long: { ...request('The request target is too long', 414) },
  method_not_allowed: {
    status: 405,
    type: 'method-not-allowed',
    title: 'The method is not allowed',
    error: 'http_request_error',
  },
  method_malformed: request('The method is malformed'),
  http_version: request('The HTTP version is not supported'),
  framing: request('The message framing is malformed'),
  field_malformed: request('A header field is malformed'),
  field_repeated: request('A header field that may occur once is repeated'),
  field_refused: request('A header field name is not allowed here'),
  host_malformed: request('The Host field is missing or malformed'),
  connection_option: request('The Connection field names a field that it may not'),
  upgrade_refused: request('Protocol upgrades are not allowed'),
  websocket_handshake: request('The WebSocket handshake is malformed'),
  websocket_version: request('Only version 13 of the WebSocket protocol is supported', 426),
  body_not_allowed: request('A body is not allowed with this method'),
  body_broken: request('The body ended before it was complete'),
  header_too_large: request('The header section is too large', 431),
  header_too_large_for_http2: request('The header section is too large', 431),
  header_timeout: request('The request was not received in time', 408),
  body_timeout: request('The request body was not received in time', 408),
  content_type_refused: request('This route takes gRPC calls alone', 415),
  grpc_not_unary: request('A reserved call has to have exactly one message'),
  expectation_unknown: request('The expectation is not supported', 417),
  authorization_refused: request('Authorization is set here, and not by callers'),
  description_malformed: request('The description of the request is missing or ambiguous'),
  idempotency_key_missing: {
    status: 400,
    type: 'idempotency-key-missing',
    title: 'This operation needs an Idempotency-Key',
    error: 'http_request_error',
  },
  idempotency_key_malformed: {
    status: 400,
    type: 'idempotency-key-invalid',
    title: 'The Idempotency-Key is malformed',
    error: 'http_request_error',
  },
  body_too_large: {
    status: 413,
    type: 'body-too-large',
    title: 'The body is larger than this route allows',
    error: 'http_request_error',
  },

  credential_missing: unauthorized,
  credential_malformed: unauthorized,
  credential_ambiguous: unauthorized,
  credential_kind_refused: unauthorized,
  token_malformed: unauthorized,
  algorithm_refused: unauthorized,
  key_id_refused: unauthorized,
  key_unknown: unauthorized,
  signature_invalid: unauthorized,
  token_expired: unauthorized,
  token_not_yet_valid: unauthorized,
  lifetime_too_long: unauthorized,
  issuer_mismatch: unauthorized,
  issuer_not_accepted: unauthorized,
  audience_mismatch: unauthorized,
  source_mismatch: unauthorized,
  token_type_mismatch: unauthorized,
  claim_mismatch: unauthorized,
  claim_malformed: unauthorized,
  session_claim_present: unauthorized,
  service_claim_present: unauthorized,
  session_expired: unauthorized,
  session_refused: unauthorized,
  anti_csrf_missing: unauthorized,
  key_revoked: unauthorized,
  subject_revoked: unauthorized,
  token_revoked: unauthorized,
  exchange_refused: unauthorized,
  issue_time_revoked: unauthorized,
  token_inactive: unauthorized,
  binding_unknown: unauthorized,
  binding_missing: unauthorized,
  certificate_missing: unauthorized,
  certificate_mismatch: unauthorized,
  proof_missing: unauthorized,
  proof_malformed: unauthorized,
  proof_mismatch: unauthorized,
  proof_untimely: unauthorized,
  proof_replayed: unauthorized,
  proof_nonce: unauthorized,
  token_id_missing: unauthorized,
  token_replayed: unauthorized,

  route_unknown: forbidden,
  subject_not_approved: forbidden,
  permission_missing: forbidden,
  origin_refused: forbidden,
  client_certificate_refused: forbidden,
  asking_refused: forbidden,
  decide_unsupported: forbidden,
  session_claim_missing: forbidden,

  idempotency_in_progress: conflict('idempotency-in-progress', 'A request with this Idempotency-Key is in progress'),
  idempotency_outcome_unknown: conflict(
    'idempotency-outcome-unknown',
    'Whether the first request with this Idempotency-Key was applied is not known',
  ),
  idempotency_not_replayable: conflict(
    'idempotency-result-not-replayable',
    'The first request with this Idempotency-Key was answered; its result cannot be shown again',
  ),
  idempotency_key_reused: {
    status: 422,
    type: 'idempotency-key-reused',
    title: 'This Idempotency-Key was used for a different request',
    error: 'http_request_denied',
  },
  too_many_pending: {
    status: 429,
    type: 'too-many-pending',
    title: 'Too many writes of this caller are pending',
    error: 'http_request_denied',
    retryAfterS: 1,
  },
  too_many_kept: {
    status: 429,
    type: 'too-many-kept',
    title: 'Too many results of this caller are kept',
    error: 'http_request_denied',
    retryAfterS: 60,
  },
  rate_limited: {
    status: 429,
    type: 'rate-limited',
    title: 'This caller sends too many requests',
    error: 'http_request_denied',
    retryAfterS: 1,
  },
  too_many_in_flight: {
    status: 429,
    type: 'too-many-in-flight',
    title: 'Too many requests of this caller are in flight',
    error: 'http_request_denied',
    retryAfterS: 1,
  },

  store_unavailable: unavailable('store-unavailable', 'The store that keeps reservations is unavailable'),
  revocations_unknown: unavailable('store-unavailable', 'The store that keeps reservations is unavailable'),
  keys_unavailable: unavailable('keys-unavailable', 'The keys that verify credentials are unavailable'),
  core_unavailable: unavailable('keys-unavailable', 'The keys that verify credentials are unavailable'),
  introspection_unavailable: unavailable('keys-unavailable', 'The keys that verify credentials are unavailable'),
  introspection_limited: unavailable('overloaded', 'Too many requests are in flight'),
  token_unavailable: unavailable('token-unavailable', 'The token that the request needs is unavailable'),
  overloaded: unavailable('overloaded', 'Too many requests are in flight'),
  shutting_down: unavailable('shutting-down', 'The proxy is shutting down'),
  upstream_unreachable: unavailable(
    'upstream-unreachable',
    'The receiving service was not reached',
    'connection_refused',
  ),
  upstream_failed: {
    status: 502,
    type: 'upstream-failed',
    title: 'The receiving service broke off; it may have acted',
    error: 'connection_terminated',
  },
  upstream_timeout: {
    status: 504,
    type: 'upstream-timeout',
    title: 'The receiving service was too slow; it may have acted',
    error: 'http_response_timeout',
  },
  caller_gone: request('The caller left before the answer'),
  internal: { status: 500, type: 'internal', title: 'Internal error', error: 'proxy_internal_error' },
} as const satisfies Record<string, RefusalResponse>;

/** A reason of the closed set. */
export type Reason = keyof typeof responses;

/** Reasons that say of nobody that it was refused: something broke here, at the upstream or at the caller. */
export const failureReasons = [
  'store_unavailable',
  'revocations_unknown',
  'keys_unavailable',
  'core_unavailable',
  'introspection_unavailable',
  'introspection_limited',
  'token_unavailable',
  'overloaded',
  'shutting_down',
  'upstream_unreachable',
  'upstream_failed',
  'upstream_timeout',
  'caller_gone',
  'internal',
] as const satisfies readonly Reason[];

export type FailureReason = (typeof failureReasons)[number];

const failures: ReadonlySet<Reason> = new Set(failureReasons);

/** A refused or failed request. */
export interface Denial {
  readonly reason: Reason;
  /** Replaces the `Proxy-Status` error of the table, where the failure is known more exactly. */
  readonly error?: ProxyError;
  /** Replaces the `Retry-After` of the table. Whole seconds, 1 or more. */
  readonly retryAfterS?: number;
  /** Id of the reservation in question, shown to the caller so that an operator can find it. */
  readonly record?: string;
  /** What the caller can mend of this occurrence (RFC 9457 §3.1.4): in ASCII, and with nothing of the request. */
  readonly detail?: string;
  /** Values of `RateLimit-Policy` and `RateLimit`, where a limit was exceeded. */
  readonly rateLimit?: { readonly policy: string; readonly state: string };
  /** What was tried on the calling side, where anything was. */
  readonly attempts?: AttemptsMade;
  /** Permissions or claims the caller lacks: for the log and `explain`, never for the caller. */
  readonly missing?: readonly string[];
  /** Nobody is served any more on the connection: it ends with the response. */
  readonly endsConnection?: true;
  /**
   * The body that frontends of sessions act on, in the place of the problem document: only for tokens that were a
   * session's.
   */
  readonly session?: SessionResponse;
}

/** What SuperTokens' SDK says of a session that is refused. */
export type SessionResponse =
  | { readonly message: 'try refresh token' | 'unauthorised' }
  /** `claims` are names of claim objects, as validators of frontends have them for ids. */
  | { readonly message: 'invalid claim'; readonly claims: readonly string[] };

/** Names a denial. */
export function denial(reason: Reason): Denial {
  return { reason };
}

/** How a reason is answered. */
export function responseOf(reason: Reason): RefusalResponse {
  return responses[reason];
}

/** Whether something failed here, which says nothing of the caller: what was let in before goes on. */
export function isOurs({ reason }: Denial): boolean {
  return responses[reason].status >= 500;
}

/** Every reason, for metrics that start at zero and for the reference text. */
export const reasons: readonly Reason[] = Object.keys(responses) as Reason[];

/** Those for which a request is refused. */
export const denialReasons: readonly Reason[] = reasons.filter((reason) => !isFailure(reason));

/** Tells whether something broke, where else a request was refused. */
export function isFailure(reason: Reason): reason is FailureReason {
  return failures.has(reason);
}
