/** What becomes of a request, top to bottom: `serve`, `explain` and `test` all ask this. */
import { isOver, refusedCaller, verifiedName, type CallerCertificate } from '../../decision/binding/certificate.js';
import { shownCertificate } from '../../decision/binding/client-cert-header.js';
import { acceptedKinds, acceptsIssuer, authorize } from '../../decision/route/authorize.js';
import { type RememberedTokens, readCredential, type Credential } from '../../decision/token/credential.js';
import { denial, type Denial } from '../../decision/denial.js';
import { identityHeaders, upstreamHeaders } from '../../decision/http/forwarded-headers.js';
import { readMethod, headerBytes, type RequestHead } from '../../decision/http/request-head.js';
import type { Route } from '../../decision/route/policy.js';
import type { Principal } from '../../decision/token/principal.js';
import { readHeaders, type RequestHeaders } from '../../decision/http/request-headers.js';
import { readTarget, type RequestTarget } from '../../decision/http/request-target.js';
import { thenSync } from '../maybe-promise.js';
import { accept, refuse, type Result } from '../../lib/result.js';
import { isRevoked, revocationReasons, tokenDigest } from '../../decision/revocation/match.js';
import { grpcTimeoutOf, hasOtherReading, refusedBody, refusedOnAnyRoute } from '../../decision/route/request-form.js';
import { matchRoute } from '../../decision/route/route-table.js';
import { withoutSessionHeaders } from '../../decision/session/headers.js';
import {
  passesInShadow,
  shadowPass,
  unjudged,
  unmatchedRoute,
  type ShadowPass,
} from '../../decision/route/shadow-mode.js';
import { addStripped, nothingStripped, type StrippedHeaders } from '../../decision/http/stripped-headers.js';
import { traceIdOf } from '../../decision/telemetry/trace-context.js';
import { refusedOrigin } from '../../decision/websocket/handshake.js';
import type { KeyAsker, OpenConnection } from '../../ports/auth.js';
import { provePossession } from './prove-possession.js';
import { dpopVerifier } from './credentials/dpop-proof.js';
import { verifyCredential } from './credentials/service-token.js';
import { newRequestId, newTraceparent } from '../exchange/ids.js';
import type { ActiveConfig } from './active-config.js';
import { asSessionRefusal, verifySession } from './credentials/session.js';
import { findRevokedToken } from './find-revoked-token.js';

/** The other end of the client connection. */
export interface Peer {
  /** As the socket has it; empty on a socket that has none. */
  readonly remoteAddress: string;
  /** Whether TLS was ended here or, as the config says, in front of us. */
  readonly encrypted: boolean;
  /** Whether its `X-Forwarded-*` count. */
  readonly trusted: boolean;
  /** What it showed when TLS began; left out where TLS is not ended here, or by nobody who asks for one. */
  readonly certificate?: CallerCertificate | null;
}

/** What is known of a request, however far it came. */
export interface Findings {
  /** The caller's, or a new one. */
  readonly requestId: string;
  readonly route: Route | null;
  /** Whom a credential that held speaks for. */
  readonly principal: Principal | null;
  /** Headers of the caller that were dropped because only we say or judge such. */
  readonly stripped: StrippedHeaders;
  /**
   * Of the trace that the request belongs to: the caller's, or one begun for the upstream; `null` where there is none.
   */
  readonly traceId: string | null;
  /** The caller's `traceparent`, sound; left out where it sent none. */
  readonly callerTraceparent?: string | null;
  /** The name of the certificate that the caller showed, verified; left out where it showed none. */
  readonly clientCertificate?: string | null;
}

/** What is known of a request before it was read. */
export const unread = {
  route: null,
  principal: null,
  stripped: nothingStripped,
  traceId: null,
} as const satisfies Omit<Findings, 'requestId'>;

/** A request that may go on. */
export interface Admission extends Findings {
  readonly route: Route;
  readonly target: RequestTarget;
  readonly headers: RequestHeaders;
  /**
   * How long a gRPC caller waits (`grpc-timeout`), milliseconds; `null` where it does not say, and on routes that are
   * not of gRPC.
   */
  readonly grpcTimeoutMs: number | null;
  /** What the upstream gets: names and values in turn. */
  readonly forwarded: string[];
  /** Why it would have been refused; `null` where nothing is wrong. Where it is set, `principal` is `null`. */
  readonly shadow: ShadowPass | null;
  /**
   * How it goes on where a later step would refuse it: without identity and reservation. `null` where that refusal
   * is final.
   */
  readonly shadowAdmission: (reason: Denial) => Admission | null;
  /** By what the caller's credential was revoked since; `null` where nothing was, or there is none. */
  readonly revoked: () => Denial | null;
}

/** A request that ends here. */
interface Refusal extends Findings {
  readonly denial: Denial;
}

export type AuthResult = Result<Admission, Refusal>;

/** The steps of a decision, in order. */
export type Step =
  | 'head'
  | 'method'
  | 'target'
  | 'fields'
  | 'route'
  | 'credential'
  | 'verification'
  | 'proof'
  | 'revocation'
  | 'policy'
  | 'body';

/** Sees what each step said, and returns it. */
export type Observe = <T>(step: Step, result: T) => T;

const unobserved: Observe = (_step, result) => result;

type Verdict = Result<Principal, Denial>;

/** A request as far as it could be read. */
interface ParsedRequest {
  readonly head: RequestHead;
  readonly peer: Peer;
  readonly activeConfig: ActiveConfig;
  readonly observe: Observe;
  readonly asker: KeyAsker | null;
  readonly target: RequestTarget;
  readonly headers: RequestHeaders;
  readonly route: Route | null;
  readonly requestId: string;
  readonly stripped: StrippedHeaders;
  readonly nowMs: number;
  /** As in `authorizeRequest`. */
  readonly provedKey: string | null | undefined;
  readonly again: OpenConnection | null;
  /** What was presented; `null` where nothing was, or nobody asked. */
  token: string | null;
}

/**
 * Decides on a request by its head. Answers at once unless a key has to be fetched. Never throws for what a caller
 * sends.
 *
 * Without a valid credential, every answer that would depend on a protected route's existence or options is a 401, so
 * that nobody learns the routes by asking.
 *
 * @param asker who waits for a key that may be new; `null` waits for a fetch that is allowed now, and no longer.
 * @param provedKey when an admitted request is authorized again: the key that it proved on admission, or `null`. A
 *   proof counts once, so it is not asked for another.
 * @param again what was let in and is authorized again, where it is: it stays open while that takes its time.
 */
export function authorizeRequest(
  head: RequestHead,
  peer: Peer,
  activeConfig: ActiveConfig,
  nowMs: number,
  observe: Observe = unobserved,
  asker: KeyAsker | null = null,
  provedKey?: string | null,
  again: OpenConnection | null = null,
): AuthResult | Promise<AuthResult> {
  const { listen, table } = activeConfig.config;
  const refused = (reason: Denial): AuthResult => refuse({ denial: reason, requestId: newRequestId(), ...unread });
  const tooLarge = headerBytes(head) > listen.maxHeaderBytes ? denial('header_too_large') : null;
  const unfit = observe('head', tooLarge);
  if (unfit !== null) return refused(unfit);
  const method = observe('method', readMethod(head.method));
  if (method !== null) return refused(method);
  const target = observe('target', readTarget(head.target, listen.maxTargetBytes));
  if (!target.ok) return refused(target.error);
  const route = matchRoute(table, head.method, target.value);
  const headers = observe('fields', readHeaders(head, activeConfig.headerRules, rememberedTokens(route, activeConfig)));
  if (!headers.ok) return refused(headers.error);

  const { stripped, strippedUnlessTrusted, requestId } = headers.value;
  const request: ParsedRequest = {
    head,
    peer,
    activeConfig,
    observe,
    asker,
    target: target.value,
    headers: headers.value,
    route: observe('route', route),
    requestId: requestId ?? newRequestId(),
    stripped: peer.trusted ? stripped : addStripped(stripped, 'forwarded', strippedUnlessTrusted),
    nowMs,
    provedKey,
    again,
    token: null,
  };
  const unfitConnection = refusedConnection(listen, peer, nowMs);
  if (unfitConnection !== null) {
    return deny(request, null, observe('head', unfitConnection), peer.certificate);
  }
  const routeIndependentDenial = refusedOnAnyRoute(request, request.route, table);
  if (routeIndependentDenial !== null) return deny(request, null, routeIndependentDenial);
  if (request.route?.access === 'public') return admitTo(request, request.route, null);

  // Nothing here opens with a credential, and `route_unknown` tells no more than the config does.
  if (activeConfig.asksNobody) return deny(request, null, denial('route_unknown'));

  const credential = observe(
    'credential',
    readCredential(headers.value, acceptedKinds(request.route, activeConfig.sessions !== null)),
  );
  if (!credential.ok) return denyUnlessShadowed(request, credential.error);
  request.token = credential.value.token;
  return thenSync(verify(credential.value, request, nowMs), (verdict) =>
    authorizeVerified(request, observe('verification', verdict)),
  );
}

/** The tokens in which this one is looked up before it is read: only where it can be nothing but a service token. */
function rememberedTokens(route: Route | null, activeConfig: ActiveConfig): RememberedTokens | null {
  const { service, session } = acceptedKinds(route, activeConfig.sessions !== null);
  return service && !session && route?.access !== 'public' ? activeConfig.verified : null;
}

function verify(credential: Credential, request: ParsedRequest, nowMs: number): Verdict | Promise<Verdict> {
  if (credential.kind === 'service') return verifyService(credential.token, request, nowMs);
  const {
    activeConfig: { sessions },
    head,
    asker,
    again,
  } = request;
  // A route that accepts them is put in force only where they can be verified.
  return sessions === null
    ? refuse(denial('core_unavailable'))
    : verifySession(credential, head.method, sessions, nowMs, asker, again);
}

/**
 * Verifies the token against every issuer. Where two issuers both accept it and the route takes only the second, the
 * first one's acceptance must not stand in its way.
 */
function verifyService(token: string, request: ParsedRequest, nowMs: number): Verdict | Promise<Verdict> {
  const {
    activeConfig,
    route,
    asker,
    headers: { bearerDigest },
  } = request;
  return thenSync(
    verifyCredential(token, activeConfig.issuers, nowMs, activeConfig.verified, asker, bearerDigest),
    (verdict) => {
      if (!verdict.ok || route === null || acceptsIssuer(route, verdict.value)) return verdict;
      const accepted = activeConfig.issuers.filter(({ rules }) => route.issuers?.has(rules.name) === true);
      const refused = revokedNow(request, verdict.value) ?? denial('issuer_not_accepted');
      return thenSync(verifyCredential(token, accepted, asker?.now() ?? nowMs, null, asker), (second) =>
        second.ok ? second : refuse(refused),
      );
    },
  );
}

function authorizeVerified(request: ParsedRequest, verdict: Verdict): AuthResult | Promise<AuthResult> {
  const { observe } = request;
  if (!verdict.ok) return denyUnlessShadowed(request, verdict.error);
  const principal = verdict.value;
  if (principal.confirmation === undefined && !request.headers.saysBound) return authorizeProved(request, principal);
  return thenSync(provesPossession(request, principal), (refused) => {
    observe('proof', refused);
    // Without proof of possession the token says whose it is, but not who sent it: nobody is taken for the caller.
    return refused === null ? authorizeProved(request, principal) : denyUnlessShadowed(request, refused);
  });
}

function authorizeProved(request: ParsedRequest, principal: Principal): AuthResult | Promise<AuthResult> {
  const { observe, route } = request;
  const revoked = observe('revocation', revokedNow(request, principal));
  if (revoked !== null) return deny(request, principal, revoked);
  if (route === null) {
    return denyUnlessShadowed(request, denial(isMisread(request) ? 'target_malformed' : 'route_unknown'), principal);
  }
  const refused = observe(
    'policy',
    refusedCaller(route.clientCertificates, certificateOf(request)) ?? authorize(route, principal),
  );
  return refused === null ? admitTo(request, route, principal) : denyUnlessShadowed(request, refused, principal);
}

function isMisread({ target, head, activeConfig }: ParsedRequest): boolean {
  return hasOtherReading(target, head.method, activeConfig.config.table);
}

/**
 * Where nobody may connect without a certificate, nobody goes on with one that ended meanwhile: whoever has another one
 * has to connect anew.
 */
function refusedConnection(
  { tls }: ActiveConfig['config']['listen'],
  { certificate = null }: Peer,
  nowMs: number,
): Denial | null {
  const isNeeded = tls?.clientAuth === 'require' && certificate?.isVerified === true;
  return isNeeded && isOver(certificate, nowMs)
    ? { ...denial('client_certificate_refused'), endsConnection: true }
    : null;
}

function certificateOf({ peer, headers, activeConfig, nowMs }: ParsedRequest): CallerCertificate | null {
  return shownCertificate(peer, headers.clientCert, activeConfig.config.listen.readsClientCert, nowMs);
}

function provesPossession(
  request: ParsedRequest,
  { confirmation, issuerName }: Principal,
): Denial | null | Promise<Denial | null> {
  const { activeConfig, headers, provedKey, asker, nowMs } = request;
  const issuer = activeConfig.issuers.find(({ rules }) => rules.name === issuerName);
  const judgedMs = asker?.now() ?? nowMs;
  return provePossession(
    {
      confirmation,
      saysBound: headers.saysBound,
      verifyProof: dpopVerifier(request, judgedMs),
      certificate: certificateOf(request),
      ignoresBinding: issuer?.rules.binding === 'none',
      nowMs: judgedMs,
      ...(provedKey === undefined ? {} : { provedKey }),
    },
    activeConfig.proofs ?? null,
  );
}

function revokedNow({ activeConfig, token }: ParsedRequest, principal: Principal): Denial | null {
  const revoked = isRevoked(principal, activeConfig.revocations(), () => tokenDigest(token ?? ''));
  if (revoked === null) return activeConfig.knowsRevocations() ? null : denial('revocations_unknown');
  return principal.kind === 'session' ? asSessionRefusal(revoked) : revoked;
}

/** What is left once it is settled that the caller may use the route. */
function admitTo(request: ParsedRequest, route: Route, principal: Principal | null): AuthResult | Promise<AuthResult> {
  const origin = refusedOrigin(request.headers, route, principal);
  if (origin !== null) return denyUnlessShadowed(request, origin, principal);
  const body = request.observe('body', refusedBody(request, route));
  if (body !== null) return deny(request, principal, denial(body));
  if (route.mode !== 'shadow') return accept(admission(request, route, principal, null));
  const admitted = admission(request, route, principal, null, (reason) =>
    passesInShadow(reason) && admitted.revoked() === null
      ? admission(request, unjudged(route), null, shadowPass(reason, principal, route))
      : null,
  );
  return accept(admitted);
}

/** No shadow mode: a refusal is final. */
const keepRefusal = (): null => null;

function admission(
  request: ParsedRequest,
  route: Route,
  principal: Principal | null,
  shadow: ShadowPass | null,
  shadowAdmission: Admission['shadowAdmission'] = keepRefusal,
): Admission {
  const { headers, target, requestId, stripped } = request;
  const traceparent =
    headers.traceparent ?? (request.activeConfig.config.upstream.beginsTrace ? newTraceparent() : null);
  const caller = principal ?? shadow?.principal ?? null;
  return {
    route,
    principal,
    target,
    headers,
    grpcTimeoutMs: grpcTimeoutOf(headers, route),
    requestId,
    stripped,
    traceId: traceIdOf(traceparent),
    callerTraceparent: headers.traceparent,
    clientCertificate: verifiedName(certificateOf(request)),
    forwarded: forwardedHeaders(request, route, principal, traceparent),
    shadow,
    shadowAdmission,
    revoked: () => (caller === null ? null : revokedNow(request, caller)),
  };
}

/**
 * Ends it, unless shadow mode lets it go on and no token in it is revoked. That of a verified caller was judged, and is
 * all that its `Authorization` holds: a session may still come beside it.
 */
function denyUnlessShadowed(
  request: ParsedRequest,
  reason: Denial,
  principal: Principal | null = null,
): AuthResult | Promise<AuthResult> {
  const judgement = denyOrShadow(request, principal, reason);
  if (!judgement.ok) return judgement;
  const { authorization, passed } = request.headers;
  const unjudgedTokens = { authorization: principal === null ? authorization : null, passed };
  return thenSync(findRevokedToken(unjudgedTokens, request.activeConfig, request.asker), (found) =>
    found === null ? judgement : deny(request, principal, request.observe('revocation', found)),
  );
}

/**
 * Ends it, unless shadow mode lets it go on as it came. Target, framing and body are held to what the route says all
 * the same.
 */
function denyOrShadow(request: ParsedRequest, principal: Principal | null, reason: Denial): AuthResult {
  // A revoked token must be assumed stolen, so shadow mode never lets it through.
  if (!passesInShadow(reason) || revocationReasons.has(reason.reason)) return deny(request, principal, reason);
  const {
    route: matched,
    target,
    head: { method },
    activeConfig: {
      config: { unmatched },
    },
  } = request;
  if (matched === null && unmatched !== null && isMisread(request)) {
    return deny(request, principal, denial('target_malformed'));
  }
  const found = matched?.mode === 'shadow' ? unjudged(matched) : null;
  const route = matched === null && unmatched !== null ? unmatchedRoute(unmatched, method, target) : found;
  if (route === null) return deny(request, principal, reason);
  const body = request.observe('body', refusedBody(request, route));
  if (body !== null) return deny(request, principal, denial(body));
  return accept(admission(request, route, null, shadowPass(reason, principal, matched)));
}

function forwardedHeaders(
  request: ParsedRequest,
  route: Route,
  principal: Principal | null,
  traceparent: string | null,
): string[] {
  const { headers, head, peer, activeConfig, requestId } = request;
  const keepsSession = route.session === null || route.session.forwardsTokens;
  return upstreamHeaders({
    headers: keepsSession ? headers : { ...headers, passed: withoutSessionHeaders(headers.passed) },
    httpVersion: head.httpVersion,
    remoteAddress: peer.remoteAddress,
    trusted: peer.trusted,
    encrypted: peer.encrypted,
    host: activeConfig.config.upstream.host === 'preserve' ? null : activeConfig.upstream.host,
    requestId,
    traceparent,
    forwardsAuthorization: route.forwardsAuthorization,
    // Servers of gRPC may refuse calls without it.
    takesTrailers: headers.takesTrailers || route.isGrpc,
    identity:
      principal === null
        ? []
        : identityHeaders(activeConfig.config.identity, principal, verifiedName(certificateOf(request))),
  });
}

/** @param certificate that the log names; without it the one that counts. */
function deny(
  request: ParsedRequest,
  principal: Principal | null,
  reason: Denial,
  certificate: CallerCertificate | null = certificateOf(request),
): AuthResult {
  const { requestId, route, stripped, headers } = request;
  const traceId = traceIdOf(headers.traceparent);
  const clientCertificate = verifiedName(certificate);
  const callerTraceparent = headers.traceparent;
  return refuse({
    denial: reason,
    requestId,
    route,
    principal,
    stripped,
    traceId,
    callerTraceparent,
    clientCertificate,
  });
}
