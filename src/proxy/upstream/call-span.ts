import type { UpstreamSettings } from '../../config/types.js';
import { grpcStatusIn } from '../../decision/grpc/status.js';
import { withTraceparent } from '../../decision/telemetry/trace-context.js';
import type { SentSpan } from '../../ports/tracing.js';
import type { UpstreamRequest } from './call.js';
import { switchingProtocols } from './http1/response-head.js';

/** What a request of a trace is to the upstream: a span of its own, from here to the end of its response. */
export class CallSpan {
  /** What goes out, which tells the upstream of the span. */
  readonly request: UpstreamRequest;
  private readonly span: SentSpan;
  private status = 0;
  private rawHeaders: readonly string[] = [];

  constructor(request: UpstreamRequest, span: SentSpan) {
    this.request = { ...request, headers: withTraceparent(request.headers, span.traceparent) };
    this.span = span;
  }

  head(status: number, rawHeaders: readonly string[]): void {
    this.status = status;
    this.rawHeaders = rawHeaders;
  }

  switched(): void {
    this.span.end({ status: switchingProtocols, grpcStatus: null, reason: null });
  }

  /** `reason` tells why the response is not whole; `null` where it is. */
  end(trailers: readonly string[] | null, reason: string | null): void {
    const { status, rawHeaders: headers } = this;
    this.span.end({ status, grpcStatus: grpcStatusIn(trailers ?? headers) ?? grpcStatusIn(headers), reason });
  }
}

/** Begins the span of a request; `null` where it is not traced, which then costs nothing more. */
export function beginSpan(
  request: UpstreamRequest,
  { url: origin, http2 }: Pick<UpstreamSettings, 'url' | 'http2'>,
): CallSpan | null {
  if (request.trace === undefined) return null;
  return new CallSpan(request, request.trace.send({ origin, httpVersion: http2 ? '2' : '1.1' }));
}
