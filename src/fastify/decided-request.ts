import type { FastifyReply, FastifyRequest } from 'fastify';
import { denial, type Denial } from '../decision/denial.js';
import { valuesOf } from '../decision/http/header-values.js';
import { problemOf, type Challenges } from '../decision/http/problem-details.js';
import type { RequestHead } from '../decision/http/request-head.js';
import { placeOf } from '../decision/route/route-table.js';
import type { Principal } from '../decision/token/principal.js';
import { describeBug } from '../lib/errors.js';
import type { Result } from '../lib/result.js';
import type { KeyAsker } from '../ports/auth.js';
import type { Log } from '../ports/system.js';
import type { ActiveConfig } from '../proxy/auth/active-config.js';
import {
  authorizeRequest,
  unread,
  type Admission,
  type Findings,
  type Judgement,
  type Peer,
} from '../proxy/auth/authorize-request.js';
import { clientOf, ExchangeSummary, recordRequest, type Recorder } from '../proxy/exchange/access-log-record.js';
import type { AcquireLease, Lease } from '../proxy/exchange/admission-control.js';
import { assertionHeaders, withRenewedToken } from '../proxy/exchange/credential-headers.js';
import { newRequestId } from '../proxy/exchange/ids.js';
import type { RouteRegister } from './application-routes.js';
import type { RequestPrincipal } from './options.js';
import { rewriteHeaders } from './request-headers.js';
import { isReadAlike, literalSegments, type RoutePattern } from './route-pattern.js';

/** What every request of an application is decided with. */
export interface DecidingParts extends Omit<Recorder, 'requestLog'> {
  readonly activeConfig: () => ActiveConfig;
  readonly acquire: AcquireLease;
  readonly challenges: Challenges;
  readonly log: Log;
  readonly requestLog: (record: Parameters<Recorder['requestLog']>[0], request: FastifyRequest) => void;
  readonly peerOf: (request: FastifyRequest) => Peer;
  /** Whether the connection has shown a good credential before. */
  readonly isKnown: (request: FastifyRequest) => boolean;
  readonly markKnown: (request: FastifyRequest) => void;
  readonly routes: Pick<RouteRegister, 'policyOf' | 'isOwn'>;
  readonly patternOf: (url: string) => RoutePattern;
}

/**
 * One request of the application, from its head to the end of its response: `decide`, `acquire`, and then it goes on,
 * or is refused. Whatever happens, it is recorded once.
 */
export class DecidedRequest implements KeyAsker {
  private readonly parts: DecidingParts;
  private readonly request: FastifyRequest;
  private readonly reply: FastifyReply;
  /** Lets the application's own hooks and handlers have it. */
  private readonly goOn: () => void;
  private readonly head: RequestHead;
  private readonly peer: Peer;
  private readonly summary: ExchangeSummary;
  private readonly activeConfig: ActiveConfig;
  private findings: Findings = { requestId: '', ...unread };
  private lease: Lease | null = null;
  private isOver = false;

  constructor(parts: DecidingParts, request: FastifyRequest, reply: FastifyReply, goOn: () => void) {
    const { raw } = request;
    this.parts = parts;
    this.request = request;
    this.reply = reply;
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
    reply.raw.once('close', this.finish);
  }

  decide(): void {
    this.attempt(() => {
      const now = this.parts.clock.now();
      const decision = authorizeRequest(this.head, this.peer, this.activeConfig, now, undefined, this);
      if (!(decision instanceof Promise)) this.acquire(decision);
      else decision.then((settled) => this.attempt(() => this.acquire(settled)), this.fail);
    });
  }

  private acquire(decision: Judgement): void {
    this.findings = decision.ok ? decision.value : decision.error;
    this.parts.metrics.strippedHeaders(this.findings.stripped);
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
    const acquired = this.parts.acquire(admission);
    if (!(acquired instanceof Promise)) this.onAcquired(admission, acquired);
    else acquired.then((settled) => this.attempt(() => this.onAcquired(admission, settled)), this.fail);
  }

  private onAcquired(admission: Admission, acquired: Result<Lease, Denial>): void {
    if (!acquired.ok) {
      this.refuse(acquired.error);
      return;
    }
    if (this.isOver) {
      acquired.value.release();
      return;
    }
    this.lease = acquired.value;
    const { principal } = admission;
    const { activeConfig, peer, request, reply, parts } = this;
    if (principal !== null) parts.markKnown(request);
    this.summary.shadow = admission.shadow;
    this.summary.upstreamAsked();
    rewriteHeaders(request.raw, {
      admission,
      peer,
      rules: activeConfig.headerRules,
      identity: activeConfig.config.identity,
      assertion: assertionHeaders(admission, this.head.method, activeConfig),
    });
    request.principal = principal === null ? null : shown(principal);
    setHeaders(reply, withRenewedToken(['X-Request-Id', admission.requestId], principal, activeConfig, parts.clock));
    this.goOn();
  }

  /**
   * Why the route that the application's router chose is not the one that was judged; `null` where it is. A policy that
   * stands beside a route counts for that route, and that route has no other.
   */
  private misread({ route, target }: Admission): Denial | null {
    const { request, parts, activeConfig } = this;
    const { config } = request.routeOptions;
    const { url, sallyport } = config as Partial<typeof config>;
    if (url === undefined) return parts.routes.isOwn(route.name) ? denial('route_unknown') : null;
    const own = parts.routes.policyOf(this.head.method, url, sallyport);
    if (own === undefined || (own === null ? parts.routes.isOwn(route.name) : own !== route.name)) {
      return denial('route_unknown');
    }
    const read = isReadAlike(parts.patternOf(url), request.params as Record<string, string>, target);
    if (!read) return denial('target_malformed');
    const literals = literalSegments(target);
    const { table } = activeConfig.config;
    const isSamePolicy = literals === null || placeOf(table, this.head.method, literals)?.route === route;
    return isSamePolicy ? null : denial('target_malformed');
  }

  private refuse(reason: Denial): void {
    if (this.isOver) return;
    this.summary.reason = reason.reason;
    this.summary.missing = reason.missing ?? null;
    const { status, headers, body } = problemOf(reason, this.identify(), this.parts.challenges);
    setHeaders(this.reply.code(status), headers);
    // As bytes: of a text Fastify would add to the media type.
    this.reply.send(Buffer.from(body));
  }

  /** A bug: nobody learns more of it, and it is no way in. */
  private readonly fail = (error: unknown): void => {
    this.parts.log.error('bug', { request_id: this.findings.requestId, ...describeBug(error) });
    if (this.reply.sent) this.reply.raw.destroy();
    else this.refuse(denial('internal'));
  };

  private readonly finish = (): void => {
    if (this.isOver) return;
    this.isOver = true;
    this.lease?.release();
    const { raw } = this.reply;
    if (this.summary.reason === null && !raw.writableFinished) this.summary.reason = 'caller_gone';
    if (this.summary.askedMs !== null) this.summary.upstreamResponded();
    this.identify();
    const { findings, head, peer, summary, parts, request } = this;
    recordRequest(
      { ...parts, requestLog: (record) => parts.requestLog(record, request) },
      {
        findings,
        head,
        peer,
        status: raw.headersSent ? raw.statusCode : 0,
        grpcStatus: null,
        summary,
        endedMs: parts.clock.monotonic(),
      },
    );
  };

  private identify(): string {
    if (this.findings.requestId === '') this.findings = { ...this.findings, requestId: newRequestId() };
    return this.findings.requestId;
  }

  private attempt(step: () => void): void {
    try {
      step();
    } catch (error) {
      this.fail(error);
    }
  }

  address(): string {
    return clientOf(this.parts, this.head, this.peer);
  }

  isKnown(): boolean {
    return this.parts.isKnown(this.request);
  }

  isGone(): boolean {
    return this.isOver;
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
