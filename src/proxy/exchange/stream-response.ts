import { Readable } from 'node:stream';
import type { Denial } from '../../decision/denial.js';
import { callerFields } from '../../decision/http/response-headers.js';
import { assertionFields } from './assertion-headers.js';
import type { Caller, Onward } from './caller.js';
import type { InForce } from '../auth/active-config.js';
import type { Admission } from '../auth/authorize-request.js';
import type { RequestBody } from '../inbound/request-body.js';
import { holderOf, type Slot } from './concurrency.js';
import type { AnswerSink } from '../upstream/call.js';
import type { UpstreamCall } from '../upstream/pool.js';

/** A request that streams to the receiver and back. It ends when the caller leaves. */
export class Forward implements AnswerSink, Onward {
  private readonly admission: Admission;
  private readonly inForce: InForce;
  private readonly caller: Caller;
  private call: UpstreamCall | null = null;
  /** Given back when it has no connection any more. */
  private earlyPlace: Slot | null = null;
  private hasLeft = false;

  constructor(admission: Admission, inForce: InForce, caller: Caller) {
    this.admission = admission;
    this.inForce = inForce;
    this.caller = caller;
  }

  /**
   * A body that is not here yet is sent on as it comes while there are places for such, and else when there is
   * something to send.
   */
  send(method: string, body: RequestBody | Buffer | null): void {
    if (body === null || Buffer.isBuffer(body)) {
      this.ask(method, body);
      return;
    }
    this.earlyPlace = body.isHere() ? null : this.inForce.upstream.takeEarlyPlace();
    if (this.earlyPlace === null) body.gather((whole) => this.ask(method, whole === null ? body : this.framed(whole)));
    else this.ask(method, body);
  }

  resume(): void {
    this.call?.resume();
  }

  leave(): void {
    this.hasLeft = true;
    this.earlyPlace?.();
    this.call?.cancel();
  }

  onHead(status: number, rawHeaders: readonly string[]): void {
    this.caller.begin(status, callerFields(status, rawHeaders, this.inForce.fieldRules, this.admission.requestId));
  }

  onBody(chunk: Buffer): boolean {
    return this.caller.write(chunk);
  }

  onEnd(): void {
    this.earlyPlace?.();
    this.caller.answered();
    this.caller.end();
  }

  onFailure(reason: Denial): void {
    this.earlyPlace?.();
    this.caller.answered();
    this.caller.refuse(reason);
  }

  private ask(method: string, body: Readable | Buffer | null): void {
    if (this.hasLeft) return;
    const {
      target,
      fields: { contentLength, chunked },
      route: { responseTimeoutMs },
    } = this.admission;
    const assertion = assertionFields(this.admission, method, this.inForce);
    const forwarded = assertion.length === 0 ? this.admission.forwarded : [...this.admission.forwarded, ...assertion];
    // A body that was read for a reservation has a length, however it came.
    const fields =
      Buffer.isBuffer(body) && contentLength === null && chunked
        ? [...forwarded, 'Content-Length', String(body.length)]
        : forwarded;
    this.caller.asked();
    const holder = holderOf(this.admission);
    this.call = this.inForce.upstream.send(
      { holder, method, target: target.raw, fields, body, responseTimeoutMs },
      this,
    );
  }

  /** Keeps the framing that it came in. */
  private framed(whole: Buffer): Readable | Buffer {
    return this.admission.fields.contentLength === null ? Readable.from([whole]) : whole;
  }
}
