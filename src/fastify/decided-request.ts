import type { IncomingHttpHeaders, ServerResponse } from 'node:http';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { denial, type Denial } from '../decision/denial.js';
import { valuesOf } from '../decision/http/header-values.js';
import { problemOf, type Challenges } from '../decision/http/problem-details.js';
import type { RequestHead } from '../decision/http/request-head.js';
import { exposedWith, exposes } from '../decision/session/headers.js';
import { placeOf } from '../decision/route/route-table.js';
import type { Principal } from '../decision/token/principal.js';
import { describeBug } from '../lib/errors.js';
import { takeSettled } from '../proxy/maybe-promise.js';
import type { KeyAsker } from '../ports/auth.js';
import type { Log } from '../ports/system.js';
import type { ActiveConfig } from '../proxy/auth/active-config.js';
import { authorizeRequest, type Admission, type AuthResult, type Peer } from '../proxy/auth/authorize-request.js';
import { clientOf, ExchangeSummary, recordRequest, type Recorder } from '../proxy/exchange/access-log-record.js';
import { takeLease, type AcquireLease, type Lease } from '../proxy/exchange/admission-control.js';
import { assertionHeaders, withRenewedToken } from '../proxy/exchange/forwarded-messages.js';
import type { KnownAddresses } from '../proxy/exchange/known-addresses.js';
import { limitBody } from '../proxy/node-internals/request.js';
import { planRequest } from '../proxy/idempotency/plan-reservation.js';
import type { RouteRegister } from './application-routes.js';
import { HeldPlace, hearOfProxied } from './held-place.js';
import type { RequestPrincipal } from './options.js';
import { ReplyWriter } from './reply-writer.js';
import { rewriteHeaders } from './request-headers.js';
import { ReservedRequest, type Reserving } from './reserved-request.js';
import { isReadAlike, literalsOfRouter, type RoutePattern } from './route-pattern.js';

/** What every request of an application is decided with. */
export interface DecidingParts extends Omit<Recorder, 'requestLog'> {
  readonly activeConfig: () => ActiveConfig;
  readonly acquire: AcquireLease;
  readonly challenges: Challenges;
  readonly log: Log;
  readonly requestLog: (record: Parameters<Recorder['requestLog']>[0], request: FastifyRequest) => void;
  readonly peerOf: (request: FastifyRequest) => Peer;
  /** Whether the connection has shown a good credential before. */
  readonly hasAuthenticated: (request: FastifyRequest) => boolean;
  readonly markAuthenticated: (request: FastifyRequest) => void;
  readonly knownAddresses: KnownAddresses;
  readonly routes: Pick<RouteRegister, 'policyOf' | 'isOwn'>;
  readonly patternOf: (url: string) => RoutePattern;
  /** `null` where there is no store. */
  readonly reserving: Reserving | null;
}

/** After these nobody knows whether both ends agree where the next request begins. */
const closing: ReadonlySet<number> = new Set([408, 413]);

/**
 * One request of the application, from its head to the end of its response: `decide`, `acquire`, and then it goes on,
 * or is refused. Whatever happens, it is recorded once.
 */
export class DecidedRequest implements KeyAsker {
  readonly head: RequestHead;
  readonly summary: ExchangeSummary;
  /** Whether its response is complete, or about to be. */
  hasAnswered = false;
  private readonly parts: DecidingParts;
  private readonly request: FastifyRequest;
  private readonly reply: FastifyReply;
  /** The caller's own: a handler whose write is reserved answers into another one. */
  private readonly raw: ServerResponse;
  /** Lets the application's own hooks and handlers have it. */
  private readonly goOn: () => void;
  private readonly peer: Peer;
  private readonly activeConfig: ActiveConfig;
  private lease: Lease | null = null;
  /** Of its handler, where that answers the caller itself. */
  private place: HeldPlace | null = null;
  private reserved: ReservedRequest | null = null;
  /** What hooks before this one saw, where it may have to be shown again: a reservation comes later. */
  private readHeaders: Readonly<IncomingHttpHeaders> | null = null;
  /** Answers in the place of Fastify while a handler runs. */
  private writer: ReplyWriter | null = null;
  private isOver = false;

  constructor(parts: DecidingParts, request: FastifyRequest, reply: FastifyReply, goOn: () => void) {
    const { raw } = request;
    this.parts = parts;
    this.request = request;
    this.reply = reply;
    this.raw = reply.raw;
    this.goOn = goOn;
    this.head = {
      method: raw.method ?? '',
      target: raw.url ?? '',
      httpVersion: raw.httpVersion,
      // The caller's: what handlers read is written over them.
      rawHeaders: [...raw.rawHeaders],
    };
    this.peer = parts.peerOf(request);
    this.activeConfig = parts.activeConfig();
    this.summary = new ExchangeSummary(parts.clock);
    this.summary.begin();
    this.raw.once('close', this.finish);
  }

  decide(): void {
    this.attempt(() => {
      const now = this.parts.clock.now();
      const decision = authorizeRequest(this.head, this.peer, this.activeConfig, now, undefined, this);
      takeSettled(decision, this.acquire, this.fail);
    });
  }

  private readonly acquire = (decision: AuthResult): void => {
    const findings = decision.ok ? decision.value : decision.error;
    this.summary.findings = findings;
    this.parts.metrics.strippedHeaders(findings.stripped);
    if (this.isOver) return;
    if (!decision.ok) {
      this.refuse(decision.error.denial);
      return;
    }
    const admission = decision.value;
    const misread = this.misread(admission);
    if (misread !== null) {
      this.refuse(misread);
      return;
    }
    takeLease(this.parts.acquire, admission, this, (lease) => this.onAcquired(admission, lease));
  };

  private onAcquired(admission: Admission, lease: Lease): void {
    this.lease = lease;
    if (admission.principal !== null) this.markAuthenticated();
    this.summary.shadow = admission.shadow;
    this.plan(admission, lease);
  }

  private plan(admission: Admission, lease: Lease): void {
    const { parts, activeConfig, request, reply } = this;
    const { headers } = admission;
    const plan = planRequest(admission, activeConfig, parts.reserving?.writes ?? null, headers.contentLength ?? 0);
    if (plan.kind === 'refuse') {
      this.summary.record = plan.reservationId;
      this.refuse(plan.denial);
      return;
    }
    if (plan.kind === 'reserve' && parts.reserving !== null) {
      this.summary.record = plan.preparation.reservationId;
      const { raw } = request;
      const asked = { of: this, raw, reply, admission, plan, activeConfig, lease };
      this.reserved = new ReservedRequest(parts.reserving, asked);
      this.readHeaders = { ...raw.headers };
      this.show(admission);
      this.reserved.readBody(this.goOn);
      return;
    }
    const passed = plan.kind === 'forward' ? plan.admission : admission;
    if (passed !== admission) this.summary.passInShadow(passed);
    this.summary.upstreamAsked();
    this.show(passed);
    this.letAnswer(passed, lease);
    if (headers.hasBody && headers.contentLength === null) this.limitBody(passed.route.maxBodyBytes);
    if (!this.isGone()) this.goOn();
  }

  /** From now on hooks and the handler answer the caller themselves, and hold its place as long as they run. */
  letAnswer({ principal, route }: Admission, lease: Lease): void {
    const { activeConfig, parts, reply } = this;
    setHeaders(reply, withRenewedToken(this.exposed(), principal, activeConfig, parts.clock));
    const place = new HeldPlace(lease, route.responseTimeoutMs, parts.clock);
    this.place = place;
    hearOfProxied(reply, () => {
      if (this.isOver) place.onAnswered();
    });
  }

  /** What hooks or a handler let pages read of the response, as a header. */
  private exposed(): string[] {
    const value = this.reply.getHeader(exposes);
    return value === undefined ? [] : [value].flat().flatMap((each) => [exposes, String(each)]);
  }

  /** Its handler, or a hook in its stead, has said what the response is. */
  onSend(): void {
    const { place, raw, reply, summary } = this;
    if (place === null) return;
    place.onAnswered();
    const renewed = summary.findings.principal?.session?.renewed ?? null;
    if (renewed === null || raw.headersSent) return;
    // The handler may have set the header anew.
    reply.header(exposes, exposedWith(valuesOf(this.exposed(), exposes.toLowerCase()), renewed.to));
  }

  /** Has hooks and handlers see who calls. */
  show(admission: Admission): void {
    const { activeConfig, peer, request, reply } = this;
    const { principal } = admission;
    rewriteHeaders(request.raw, {
      admission,
      peer,
      rules: activeConfig.headerRules,
      identity: activeConfig.config.identity,
      assertion: assertionHeaders(admission, this.head.method, activeConfig),
      came: { raw: this.head.rawHeaders, read: this.readHeaders },
    });
    request.principal = principal === null ? null : shown(principal);
    reply.header('X-Request-Id', admission.requestId);
  }

  /** Of a length that was not announced: what reads it is heard no more where it is larger, and ends in an error. */
  private limitBody(maxBytes: number): void {
    const { raw } = this.request;
    limitBody(raw, maxBytes, () => {
      this.raw.once('close', () => {
        // An error that nobody listens for would end the process.
        raw.on('error', () => undefined).destroy(new Error('the body is larger than its route allows'));
      });
      this.attempt(() => this.refuseRunning(denial('body_too_large')));
    });
  }

  /** Its handler is about to run. */
  onHandler(goOn: () => void): void {
    const { reserved } = this;
    if (reserved === null) goOn();
    else this.attempt(() => reserved.reserve(goOn));
  }

  /** From now on a handler has the reply, and refusals go past it. */
  answerBy(writer: ReplyWriter): void {
    this.writer = writer;
  }

  /**
   * Why the route that the application's router chose is not the one that was judged; `null` where it is. A policy that
   * stands beside a route counts for that route, and that route has no other.
   */
  private misread({ route, target }: Admission): Denial | null {
    const { request, parts, activeConfig } = this;
    const { method } = this.head;
    const { config } = request.routeOptions;
    const { url, sallyport } = config as Partial<typeof config>;
    if (url === undefined) return parts.routes.isOwn(route.name) ? denial('route_unknown') : null;
    const own = parts.routes.policyOf(method, url, sallyport);
    if (own === undefined || (own === null ? parts.routes.isOwn(route.name) : own !== route.name)) {
      return denial('route_unknown');
    }
    const read = isReadAlike(parts.patternOf(url), request.params as Record<string, string>, target);
    if (!read) return denial('target_malformed');
    const literals = literalsOfRouter(target);
    const { table } = activeConfig.config;
    // Another path of the same route is no better: see `matchRoute`.
    const isSamePath =
      literals === null || placeOf(table, method, literals) === placeOf(table, method, target.segments);
    return isSamePath ? null : denial('target_malformed');
  }

  /** Answers with a problem document or, where a response has begun, breaks that off. */
  refuse(reason: Denial): void {
    if (this.isGone()) return;
    this.summary.refused(reason);
    this.hasAnswered = true;
    const { writer, reply, raw } = this;
    if (reason.reason === 'caller_gone' || raw.headersSent) {
      raw.destroy();
      return;
    }
    const { status, headers, body } = problemOf(reason, this.summary.identify(), this.parts.challenges);
    const sent = closing.has(status) ? [...headers, 'Connection', 'close'] : headers;
    // As bytes: of a text Fastify would add to the media type.
    const bytes = Buffer.from(body);
    if (writer !== null) writer.sendWhole(status, sent, bytes);
    else {
      setHeaders(reply.code(status), sent);
      reply.send(bytes);
    }
  }

  /** The same while a handler, or what parses its body, has the reply: they are heard no more. */
  private refuseRunning(reason: Denial): void {
    if (this.reply.sent) return;
    this.writer = new ReplyWriter(this.raw, this.reply.getHeaders());
    this.reply.hijack();
    this.refuse(reason);
  }

  /** A bug: nobody learns more of it, and it is no way in. */
  readonly fail = (error: unknown): void => {
    this.parts.log.error('bug', { request_id: this.summary.findings.requestId, ...describeBug(error) });
    if (this.hasAnswered) this.raw.destroy();
    else this.refuse(denial('internal'));
  };

  private readonly finish = (): void => {
    if (this.isOver) return;
    this.isOver = true;
    this.reserved?.leave();
    this.lease?.release();
    const { raw } = this;
    this.place?.onClosed(raw.headersSent);
    if (this.summary.reason === null && !raw.writableFinished) this.summary.reason = 'caller_gone';
    if (this.summary.askedMs !== null) this.summary.upstreamResponded();
    const { head, peer, summary, parts, request } = this;
    // Thrown here, by an event of the response, a bug would end the application.
    this.attempt(() => {
      recordRequest(
        { ...parts, requestLog: (record) => parts.requestLog(record, request) },
        {
          head,
          peer,
          status: raw.headersSent ? raw.statusCode : 0,
          grpcStatus: null,
          summary,
          endedMs: parts.clock.monotonic(),
        },
      );
    });
  };

  /** Whether nothing that is said from now on would be heard. */
  isGone(): boolean {
    return this.isOver || this.hasAnswered;
  }

  attempt(step: () => void): void {
    try {
      step();
    } catch (error) {
      this.fail(error);
    }
  }

  address(): string {
    return clientOf(this.parts, this.head, this.peer);
  }

  private markAuthenticated(): void {
    this.parts.markAuthenticated(this.request);
    if (this.peer.trusted) this.parts.knownAddresses.add(this.address());
  }

  /** Of a connection that is a proxy's, its address counts. */
  hasAuthenticated(): boolean {
    return this.peer.trusted
      ? this.parts.knownAddresses.has(this.address())
      : this.parts.hasAuthenticated(this.request);
  }

  now(): number {
    return this.parts.clock.now();
  }
}

function shown({ kind, issuerName, issuer, subject, permissions, tokenId, expiresAtS }: Principal): RequestPrincipal {
  const list = Object.freeze([...permissions]);
  return Object.freeze({ kind, issuerName, issuer, subject, permissions: list, tokenId, expiresAt: expiresAtS });
}

/** @param headers names and values in turn; a name may have several lines. */
function setHeaders(reply: FastifyReply, headers: readonly string[]): void {
  const names = new Set(headers.filter((_, index) => index % 2 === 0));
  for (const name of names) {
    const values = valuesOf(headers, name.toLowerCase());
    reply.header(name, values.length === 1 ? values[0] : [...values]);
  }
}
