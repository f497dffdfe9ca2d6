import { clientHeaders } from '../../decision/http/response-headers.js';
import { statedOutcome, type UpstreamOutcome } from '../../decision/idempotency/settlement.js';
import { storedHeaders, storedTrailers } from '../../decision/idempotency/stored-response.js';
import { sampledTraceparent } from '../../decision/telemetry/trace-context.js';
import { ByteBuffer } from '../inbound/byte-buffer.js';
import type { WholeResponse } from '../inbound/received-request.js';
import { statedLength } from '../upstream/http1/serialize-request.js';
import type { AttemptedWrite } from './write-attempt.js';

/** The upstream's response to a reserved write as it comes in, held while it may be shown again. */
export class BufferedResponse {
  readonly status: number;
  /** Names and values in turn, as the upstream sent them. */
  readonly rawHeaders: readonly string[];
  private readonly write: Omit<AttemptedWrite, 'body'>;
  private readonly announcedBytes: number;
  private readonly body = new ByteBuffer();

  constructor(status: number, rawHeaders: readonly string[], write: Omit<AttemptedWrite, 'body'>) {
    this.status = status;
    this.rawHeaders = rawHeaders;
    this.write = write;
    // A response to HEAD announces a body that does not come.
    const stated = write.method === 'HEAD' ? 0 : (statedLength(rawHeaders) ?? 0);
    // One that cannot be read is more than may be kept.
    this.announcedBytes = Number.isNaN(stated) ? Infinity : stated;
  }

  append(chunk: Buffer): void {
    this.body.append(chunk);
  }

  /** Whether it will not be kept, by what came of it or by what its head announces. */
  isTooLarge(): boolean {
    return Math.max(this.announcedBytes, this.body.length) > this.write.preparation.rules.maxStoredResponseBytes;
  }

  /** What came of the body and goes on to the client; `null` where that is nothing. */
  take(): Buffer | null {
    return this.body.length === 0 ? null : this.body.take();
  }

  /** Returns it as its client gets it, now that all of it is here. */
  whole(trailers: readonly string[] | null): WholeResponse {
    const { status, rawHeaders, write } = this;
    const headers = clientHeaders(status, rawHeaders, write.activeConfig.headerRules, write.admission.requestId);
    return { status, headers, body: this.body.take(), trailers, isReplayed: false };
  }

  /** What is written down of it whole; of one whose headers or end are too much to keep, the status. */
  outcomeOf({ status, headers, body, trailers }: WholeResponse): UpstreamOutcome {
    const { admission, preparation, trace } = this.write;
    const { storeHeaders } = preparation.rules;
    const kept = storedHeaders(headers, storeHeaders);
    // The trailers say how a gRPC call ended. Those of other responses may be dropped (RFC 9110 §6.5.1), and are.
    const end = admission.route.isGrpc
      ? storedTrailers({ headers, trailers: trailers ?? [], hasBody: body.length > 0 }, storeHeaders)
      : [];
    if (kept === null || end === null) return this.cutOff();
    return {
      kind: 'whole',
      response: {
        status,
        headers: kept,
        body,
        ...(end.length === 0 ? {} : { trailers: end }),
        ...(trace === null ? {} : { traceparent: sampledTraceparent(trace.traceId, trace.spanId, false) }),
      },
      outcome: statedOutcome(this.rawHeaders),
    };
  }

  /** What is written down where nothing but the status is kept. */
  cutOff(): UpstreamOutcome {
    return { kind: 'cut_off', status: this.status, outcome: statedOutcome(this.rawHeaders) };
  }
}
