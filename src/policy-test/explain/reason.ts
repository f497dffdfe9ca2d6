/** Says of each reason for which a request is refused what was found, and what is accepted. */
import type { Denial } from '../../decision/denial.js';
import type { Explained } from './explanation.js';
import { explainPolicy } from './policy.js';
import {
  bodySizeWords,
  bodyWords,
  credentialWords,
  headerWords,
  headerSizeWords,
  keyWords,
  malformedTargetWords,
  methodWords,
  originWords,
  refusedFieldWords,
  repeatedWords,
  sentWords,
  targetWords,
} from './request.js';
import { explainProof, shownCertificate } from './proof.js';
import { explainRevocation } from './revocation.js';
import { explainRoute } from './route.js';
import { activeWords, explainIntrospection, explainRefusedResponse } from './introspection.js';
import { explainRefusedToken } from './token.js';

/** What explains a reason: at least one sentence for each. */
export function explainReason({ reason, missing, endsConnection }: Denial, explained: Explained): readonly string[] {
  const {
    head,
    activeConfig: { config },
    ruling: { route, principal, listener },
  } = explained;
  switch (reason) {
    case 'target_malformed':
      return malformedTargetWords(explained);
    case 'target_too_long':
      return targetWords(explained);
    case 'method_not_allowed':
      return methodWords(explained, 'TRACE, TRACK, CONNECT and PRI are never forwarded, whatever a route says');
    case 'method_malformed':
      return methodWords(explained, 'accepted: upper-case methods that Node.js knows, such as GET, POST and PROPFIND');
    case 'http_version':
      return [
        `the request is HTTP/${head.httpVersion}; accepted: HTTP/1.1; listen.http_1_0 is ${config.listen.http10}`,
      ];
    case 'framing':
      return headerWords(
        reason,
        'one Content-Length of digits, or Transfer-Encoding: chunked, and not both',
        explained,
      );
    case 'field_malformed':
      return headerWords(reason, 'names of letters, digits and -, and values without controls', explained);
    case 'field_repeated':
      return repeatedWords(explained);
    case 'field_refused':
      return refusedFieldWords(explained);
    case 'host_malformed':
      return sentWords(explained, ['host'], 'one host name or address, with a port where it has one');
    case 'connection_option':
      return sentWords(
        explained,
        ['connection'],
        'options, and names of headers that Sallyport neither sets nor judges',
      );
    case 'upgrade_refused':
      return sentWords(
        explained,
        ['upgrade'],
        `websocket, on a route with websocket: true${route === null ? '' : `, which ${route.name} has not`}`,
      );
    case 'websocket_handshake':
      return sentWords(
        explained,
        ['connection', 'sec-websocket-key', 'sec-websocket-version'],
        'a GET of HTTP/1.1 without a body, with Connection: Upgrade, Sec-WebSocket-Version: 13 and 16 bytes of base64 in Sec-WebSocket-Key',
      );
    case 'websocket_version':
      return sentWords(explained, ['sec-websocket-version'], '13');
    case 'body_not_allowed':
      return bodyWords(explained);
    case 'header_too_large':
      return headerSizeWords(explained);
    case 'expectation_unknown':
      return sentWords(explained, ['expect'], '100-continue');
    case 'content_type_refused':
      return sentWords(explained, ['content-type'], 'application/grpc, for the route has grpc');
    case 'idempotency_key_missing':
    case 'idempotency_key_malformed':
      return keyWords(explained);
    case 'body_too_large':
      return bodySizeWords(explained);

    case 'credential_missing':
    case 'credential_malformed':
      return credentialWords(explained);
    case 'credential_ambiguous':
      return sentWords(explained, ['authorization', 'cookie'], 'Authorization or one session cookie, and not both');
    case 'credential_kind_refused':
      return [`it is a service token; the route takes ${route?.session === null ? 'nobody' : 'sessions'} alone`];
    case 'token_malformed':
    case 'algorithm_refused':
    case 'key_id_refused':
    case 'key_unknown':
    case 'signature_invalid':
    case 'token_expired':
    case 'token_not_yet_valid':
    case 'lifetime_too_long':
    case 'issuer_mismatch':
    case 'issuer_not_accepted':
    case 'audience_mismatch':
    case 'source_mismatch':
    case 'token_type_mismatch':
    case 'claim_mismatch':
    case 'claim_malformed':
    case 'session_claim_present':
    case 'service_claim_present':
    case 'session_expired':
    case 'session_refused':
    case 'anti_csrf_missing':
    case 'keys_unavailable':
    case 'core_unavailable':
      return explainRefusedResponse(reason, explained) ?? explainRefusedToken(reason, explained);
    case 'token_inactive':
    case 'introspection_unavailable':
    case 'introspection_limited':
      return explainIntrospection(reason, explained);
    case 'client_certificate_refused':
      return [
        endsConnection === true
          ? 'the certificate of the connection is over, and client_auth is require'
          : `the route takes callers with one of these certificates, verified: ${[...(route?.clientCertificates ?? [])].join(' · ')}`,
        shownCertificate(explained),
      ];
    case 'binding_unknown':
    case 'binding_missing':
    case 'certificate_missing':
    case 'certificate_mismatch':
    case 'proof_missing':
    case 'proof_malformed':
    case 'proof_mismatch':
    case 'proof_untimely':
    case 'proof_replayed':
    case 'proof_nonce':
      return [...activeWords(explained), ...explainProof(reason, explained)];
    case 'key_revoked':
    case 'subject_revoked':
    case 'token_revoked':
    case 'issue_time_revoked':
      return explainRevocation(explained);
    case 'token_id_missing':
      return [
        'jti is missing; a token for a route with single_use has to have one of 1 to 256 visible ASCII characters',
      ];

    case 'route_unknown':
      return explainRoute(head, config, null);
    case 'subject_not_approved':
    case 'session_claim_missing':
      return explainPolicy(explained.ruling);
    case 'permission_missing':
      return [
        `the token grants ${principal?.permissions.join(' ') || 'nothing'}; it lacks ${missing?.join(' ') ?? 'what the route asks for'}`,
        ...explainPolicy(explained.ruling),
      ];
    case 'origin_refused':
      return originWords(explained);

    // What follows comes up while a request is received, reserved or forwarded, and none is here.
    case 'body_broken':
      return ['the caller broke its body off, or its chunks are malformed'];
    case 'header_timeout':
      return [`the head took longer than listen.header_timeout, ${config.listen.headerTimeoutMs} ms`];
    case 'body_timeout':
      return [`the body paused for longer than listen.body_idle_timeout, ${config.listen.bodyIdleTimeoutMs} ms`];
    case 'grpc_not_unary':
      return ['the body is not exactly one gRPC message; methods that stream need a route with idempotency: none'];
    case 'token_replayed':
      return ['the store says that the token was used before; on this route it passes once'];
    case 'idempotency_in_progress':
      return ['the store says that the same key is under way; the caller repeats after Retry-After'];
    case 'idempotency_outcome_unknown':
      return [
        'the store says that nobody knows whether the first request was applied; an operator resolves it: sallyport record',
      ];
    case 'idempotency_not_replayable':
      return ['the store says that the first request was answered, and the answer was not kept'];
    case 'idempotency_key_reused':
      return ['the store has the key with another request: method, path, query, content or body differ'];
    case 'too_many_pending':
      return ['100 writes of this caller are under way in one process'];
    case 'too_many_kept':
      return [
        'the results of this caller take twice the memory of store.redis.kept_per_caller; they end with their retention',
      ];
    case 'rate_limited':
      return [
        `the caller used up its burst; the limit is ${route?.limits?.rate?.perSecond ?? 'no'} requests per second`,
      ];
    case 'too_many_in_flight':
      return [`the limit is ${route?.limits?.maxInFlight ?? 'no'} requests of one caller at a time`];
    case 'store_unavailable':
      return ['the store did not answer in time, or is not fit: /status says why, and sallyport doctor what to do'];
    case 'revocations_unknown':
      return [
        'the store was not read since the start, so nobody knows what is revoked there; store.redis.start_without_revocations is false',
      ];
    case 'overloaded':
      return [
        `every place was taken: listen.max_in_flight is ${config.listen.maxInFlight}, upstream.max_connections ${config.upstream.maxConnections}`,
      ];
    case 'shutting_down':
      return [`the process ended before the request was sent on; shutdown.grace is ${config.shutdown.graceMs} ms`];
    case 'upstream_unreachable':
      return [`nothing answered at ${config.upstream.url}; nothing was sent`];
    case 'header_too_large_for_http2':
      return ['the upstream speaks HTTP/2, and the header section has more than its 64 KiB; nothing was sent'];
    case 'upstream_failed':
      return ['the upstream broke off, or answered something that is no HTTP; it may have acted'];
    case 'upstream_timeout':
      return [
        `the upstream was slower than response_timeout, ${(route ?? config.upstream).responseTimeoutMs} ms; it may have acted`,
      ];
    case 'authorization_refused':
      return ['the target of egress has a token of its own; only for an exchange the caller sends one'];
    case 'exchange_refused':
      return ['the caller’s own token was not exchanged: it is missing, over, or not taken by the issuer'];
    case 'asking_refused':
      return ['who asks is not in trust of the decide listener; nothing is judged for it'];
    case 'description_malformed':
      return ['the proxy in front has to say once what it asks about, in the headers of its form: docs/decide.md'];
    case 'decide_unsupported':
      return [
        `it needs what only the sidecar can see to, and accept of ${listener?.name ?? 'the decide listener'} does not name that`,
      ];
    case 'token_unavailable':
      return ['the source of the target’s token gives none: /status says why, under egress.tokens'];
    case 'caller_gone':
      return ['the caller left before the end of the answer'];
    case 'internal':
      return ['a bug of Sallyport: the log has a line about it'];
  }
}
