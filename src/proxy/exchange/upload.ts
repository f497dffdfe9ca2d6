import type { Readable } from 'node:stream';
import type { Denial } from '../../decision/denial.js';
import type { RequestHead } from '../../decision/http/request-head.js';
import type { ActiveConfig } from '../auth/active-config.js';
import type { Admission } from '../auth/authorize-request.js';
import type { ReceivedRequest } from '../inbound/received-request.js';
import { framedBody, RequestBody, type BodyTimeouts } from '../inbound/request-body.js';
import type { Slot } from './concurrency.js';
import { passedTrailers } from './forwarded-messages.js';

/** The admitted request that the body is of. */
interface UploadingRequest {
  readonly received: Pick<ReceivedRequest, 'body'>;
  readonly head: RequestHead;
  readonly admission: Pick<Admission, 'headers' | 'route'>;
  readonly activeConfig: ActiveConfig;
}

interface UploadLimits {
  readonly maxBytes: number;
  readonly timeouts: BodyTimeouts;
}

/** The body of a request on its way to the upstream, with the place that it takes there until it has come. */
export class Upload {
  readonly body: RequestBody;
  private readonly request: UploadingRequest;
  /** A place among requests whose body is yet to come; given back when it has no connection any more. */
  private streamingSlot: Slot | null = null;

  /** @param onBroken called once, when the body will not be complete. */
  constructor(request: UploadingRequest, { maxBytes, timeouts }: UploadLimits, onBroken: (reason: Denial) => void) {
    const { received, admission, activeConfig } = request;
    this.request = request;
    this.body = new RequestBody(received.body(), admission.headers.expectsContinue, {
      maxBytes,
      timeouts,
      upstreamTimeoutMs: activeConfig.config.upstream.idleTimeoutMs,
      onBroken,
      passedTrailers: (trailers) => passedTrailers('request', trailers, request),
    });
  }

  /**
   * Tells when to send it, and in which form: as it comes, at once, while there is an early place for it, and otherwise
   * once there is something to send.
   */
  start(send: (body: Readable | Buffer) => void): void {
    const { body } = this;
    const { admission, activeConfig } = this.request;
    if (!body.isReceived()) this.streamingSlot = activeConfig.upstream.takeStreamingSlot();
    if (this.streamingSlot !== null) send(body);
    else body.gather((whole) => send(whole === null ? body : framedBody(whole, admission.headers)));
  }

  /** Nobody needs the rest: held back, it would keep its place. */
  close(): void {
    this.streamingSlot?.();
    this.body.destroy();
  }
}
