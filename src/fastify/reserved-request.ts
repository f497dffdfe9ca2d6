import { AsyncResource } from 'node:async_hooks';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { FastifyReply } from 'fastify';
import { withoutHeaders } from '../decision/http/connection-header.js';
import { clientHeaders } from '../decision/http/response-headers.js';
import type { Denial } from '../decision/denial.js';
import type { Admission } from '../proxy/auth/authorize-request.js';
import type { ActiveConfig } from '../proxy/auth/active-config.js';
import type { Lease } from '../proxy/exchange/admission-control.js';
import { withRenewedToken } from '../proxy/exchange/forwarded-messages.js';
import type { ReservedWrites } from '../proxy/idempotency/coordinator.js';
import type { Plan } from '../proxy/idempotency/plan-reservation.js';
import type { WriteClient } from '../proxy/idempotency/reserved-write.js';
import type { BodySource, WholeResponse } from '../proxy/inbound/received-request.js';
import { openBody, type BodyTimeouts, type RequestBody } from '../proxy/inbound/request-body.js';
import { HeldBody } from '../proxy/node-internals/request.js';
import type { Upstream, UpstreamOperation } from '../proxy/upstream/pool/pool.js';
import type { Clock } from '../ports/system.js';
import type { DecidedRequest } from './decided-request.js';
import { ApplicationCall } from './application-call.js';
import { ReplyWriter } from './reply-writer.js';
import { setHeaders } from './request-headers.js';

/** What reserves an application's writes. */
export interface Reserving {
  readonly writes: ReservedWrites;
  readonly bodyTimeouts: BodyTimeouts;
  readonly clock: Clock;
}

/** A request whose route reserves. */
interface ToReserve {
  readonly of: DecidedRequest;
  readonly raw: IncomingMessage;
  readonly reply: FastifyReply;
  readonly admission: Admission;
  readonly plan: Extract<Plan, { kind: 'reserve' }>;
  readonly activeConfig: ActiveConfig;
  readonly lease: Lease;
}

/**
 * A write of an application that is reserved before its handler runs. Its body is read whole, and then by whatever
 * decodes, parses and validates it; then it is reserved, and the handler stands in the place of an upstream.
 */
export class ReservedRequest implements WriteClient {
  private readonly reserving: Reserving;
  private readonly asked: ToReserve;
  private body: RequestBody | null = null;
  private operation: UpstreamOperation | null = null;
  /** Has it reserved; `null` where it has no turn, or not any more. */
  private takeTurn: (() => void) | null = null;
  /** Runs the handler. */
  private goOn: (() => void) | null = null;
  private writer: ReplyWriter | null = null;

  constructor(reserving: Reserving, asked: ToReserve) {
    this.reserving = reserving;
    this.asked = asked;
  }

  /** Reads the body before it is decoded and parsed, and has hooks go on when it is here. */
  readBody(goOn: () => void): void {
    const { admission, plan, raw, of, activeConfig, lease } = this.asked;
    const held = admission.headers.hasBody ? new HeldBody(raw) : null;
    // Bodies end in the context of their connection, and hooks go on in that of their request.
    const onBody = AsyncResource.bind((body: Buffer) => {
      held?.giveBack(body);
      goOn();
    });
    this.body =
      held === null
        ? null
        : openBody({ body: () => sourceOf(held) }, admission.headers, {
            maxBytes: plan.maxBodyBytes,
            timeouts: this.reserving.bodyTimeouts,
            upstreamTimeoutMs: activeConfig.config.upstream.idleTimeoutMs,
            passedTrailers: () => null,
            onBroken: (reason) => of.refuse(reason),
          });
    // What was dispatched keeps its place when the caller leaves.
    lease.retain();
    this.operation = this.reserving.writes.start({
      admission,
      preparation: plan.preparation,
      body: this.body,
      method: of.head.method,
      activeConfig: { ...activeConfig, upstream: this.handlerAsUpstream(onBody) },
      client: this,
      trace: null,
      onOver: () => lease.release(),
    });
  }

  /** Reserves it, now that it is parsed and validated. */
  reserve(goOn: () => void): void {
    const { reply } = this.asked;
    const { takeTurn } = this;
    this.takeTurn = null;
    // A handler that says that there is nothing has the hooks run once more.
    if (this.goOn !== null) goOn();
    else if (takeTurn !== null) {
      this.goOn = goOn;
      this.writer = new ReplyWriter(reply.raw, reply.getHeaders());
      takeTurn();
    }
  }

  /** The caller is gone, or was answered. */
  leave(): void {
    this.body?.destroy();
    this.operation?.cancel();
  }

  private handlerAsUpstream(onBody: (body: Buffer) => void): Upstream {
    const { activeConfig, admission, raw, reply, of } = this.asked;
    return {
      ...activeConfig.upstream,
      awaitTurn: ({ body, onTurn }) => {
        this.takeTurn = () => onTurn(() => undefined);
        onBody(body);
        return () => {
          this.takeTurn = null;
        };
      },
      send: (request, sink) => {
        const call = new ApplicationCall(request, sink, {
          request: raw,
          begun: reply.raw,
          run: (response) =>
            of.attempt(() => {
              // What follows on the caller's own: of the reservation, and the assertion, which holds from now on.
              setHeaders(raw, withoutHeaders(request.headers.slice(admission.forwarded.length), ofFraming));
              this.answerInto(response);
            }),
        });
        call.start();
        return call;
      },
    };
  }

  private answerInto(response: ServerResponse): void {
    const { reply, of } = this.asked;
    if (this.writer !== null) of.answerBy(this.writer);
    Object.assign(reply, { raw: response });
    this.goOn?.();
  }

  isGone(): boolean {
    return this.asked.of.isGone();
  }

  refuse(reason: Denial): void {
    this.asked.of.refuse(reason);
  }

  refuseUnreserved(reason: Denial): void {
    const { of } = this.asked;
    of.summary.record = null;
    of.refuse(reason);
  }

  /** Refuses it, or lets its handler answer the caller itself where the route is in shadow mode. */
  refuseUnsent(reason: Denial): void {
    const { of, admission, lease } = this.asked;
    const passed = this.isGone() ? null : admission.shadowAdmission(reason);
    if (passed === null) {
      of.refuse(reason);
      return;
    }
    of.attempt(() => {
      of.summary.passInShadow(passed);
      of.show(passed);
      of.letAnswer(passed, lease);
      this.goOn?.();
    });
  }

  upstreamAsked(): void {
    this.asked.of.summary.upstreamAsked();
  }

  upstreamResponded(): void {
    this.asked.of.summary.upstreamResponded();
  }

  respond({ status, headers, body, isReplayed }: WholeResponse): void {
    this.answer((writer) => {
      const { of } = this.asked;
      of.summary.isReplayed = isReplayed;
      of.hasAnswered = true;
      writer.sendWhole(status, headers, body, this.withRenewed);
    });
  }

  onHead(status: number, rawHeaders: readonly string[]): void {
    const { activeConfig, admission } = this.asked;
    this.answer((writer) => {
      const headers = clientHeaders(status, rawHeaders, activeConfig.headerRules, admission.requestId);
      writer.begin(status, headers, this.withRenewed);
    });
  }

  onData(chunk: Buffer): boolean {
    let flows = true;
    this.answer((writer) => {
      flows = writer.write(chunk, () => this.operation?.resume());
    });
    return flows;
  }

  onEnd(): void {
    this.answer((writer) => {
      this.asked.of.hasAnswered = true;
      writer.end();
    });
  }

  fail(error: unknown): void {
    this.asked.of.fail(error);
  }

  private answer(step: (writer: ReplyWriter) => void): void {
    const { of } = this.asked;
    const { writer } = this;
    if (writer !== null && !of.isGone()) of.attempt(() => step(writer));
  }

  private readonly withRenewed = (headers: string[]): string[] => {
    const { admission, activeConfig } = this.asked;
    return withRenewedToken(headers, admission.principal, activeConfig, this.reserving.clock);
  };
}

/** What hooks and handlers have seen of the body's framing stays as it came. */
const ofFraming: ReadonlySet<string> = new Set(['content-length']);

function sourceOf(held: HeldBody): BodySource {
  return {
    stream: held,
    brokenBy: 'caller_gone',
    isComplete: () => held.isComplete(),
    trailers: () => [],
    // Node has told the caller to go on.
    sendContinue: () => undefined,
  };
}
