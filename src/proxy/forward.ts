import type { Readable } from 'node:stream';
import type { Denial } from '../decision/denial.js';
import { callerFields } from '../decision/response-fields.js';
import { assertionFields } from './assertion-fields.js';
import type { Caller, Onward } from './caller.js';
import type { InForce } from './in-force.js';
import type { Admission } from './pipeline.js';
import type { AnswerSink } from './upstream-call.js';
import type { UpstreamCall } from './upstream.js';

/** A request that streams to the receiver and back. It ends when the caller leaves. */
export class Forward implements AnswerSink, Onward {
  private readonly admission: Admission;
  private readonly inForce: InForce;
  private readonly caller: Caller;
  private call: UpstreamCall | null = null;

  constructor(admission: Admission, inForce: InForce, caller: Caller) {
    this.admission = admission;
    this.inForce = inForce;
    this.caller = caller;
  }

  send(method: string, body: Readable | Buffer | null): void {
    const { target, fields: { contentLength, chunked }, route: { access, responseTimeoutMs } } = this.admission;
    const assertion = assertionFields(this.admission, method, this.inForce);
    const forwarded = assertion.length === 0 ? this.admission.forwarded : [...this.admission.forwarded, ...assertion];
    // A body that was read whole has a length, however it came.
    const fields = Buffer.isBuffer(body) && contentLength === null && chunked ? [...forwarded, 'Content-Length', String(body.length)] : forwarded;
    this.caller.asked();
    this.call = this.inForce.upstream.send({ access, method, target: target.raw, fields, body, responseTimeoutMs }, this);
  }

  resume(): void {
    this.call?.resume();
  }

  leave(): void {
    this.call?.cancel();
  }

  onHead(status: number, rawHeaders: readonly string[]): void {
    this.caller.begin(status, callerFields(status, rawHeaders, this.inForce.fieldRules, this.admission.requestId));
  }

  onBody(chunk: Buffer): boolean {
    return this.caller.write(chunk);
  }

  onEnd(): void {
    this.caller.answered();
    this.caller.end();
  }

  onFailure(reason: Denial): void {
    this.caller.answered();
    this.caller.refuse(reason);
  }
}
