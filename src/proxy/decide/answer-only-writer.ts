import type { Denial } from '../../decision/denial.js';
import type { AllowedRequest, ResponseWriter } from '../inbound/received-request.js';

/** Answers whoever asked about a request: it may be forwarded, or is refused. */
export abstract class AnswerOnlyWriter implements ResponseWriter {
  protected readonly inner: ResponseWriter;
  /** Status of the decision: who asks may be told another. */
  protected decided = 0;

  constructor(inner: ResponseWriter) {
    this.inner = inner;
  }

  abstract allow(allowed: AllowedRequest): void;

  abstract refuse(reason: Denial, requestId: string): void;

  isReceived(): boolean {
    return this.inner.isReceived();
  }

  status(): number {
    return this.decided;
  }

  grpcStatus(): null {
    return null;
  }

  isDelivered(): boolean {
    return this.inner.isDelivered();
  }

  abort(): void {
    this.inner.abort();
  }

  breakOff(): void {
    this.inner.abort();
  }

  onDrain(): void {
    this.inner.onDrain();
  }

  /** Nothing is forwarded here: no upstream response ever reaches this method or those below. */
  begin(): boolean {
    return true;
  }

  write(): boolean {
    return true;
  }

  sendWhole(): void {
    this.inner.abort();
  }

  end(): void {
    this.inner.abort();
  }

  switchProtocols(): null {
    return null;
  }

  endUpgraded(): void {
    this.inner.abort();
  }
}
