import type { UpstreamSettings } from '../../../config/types.js';
import type { Denial } from '../../../decision/denial.js';
import { grpcStatusIn } from '../../../decision/grpc/status.js';
import { withTraceparent } from '../../../decision/http/trace-context.js';
import type { RequestTrace, SentSpan } from '../../../ports/tracing.js';
import type { ResponseSink, UpstreamRequest } from '../call.js';
import type { Upstream, UpstreamCall } from './pool.js';

/** The request that it is part of, and what it is sent to. */
interface Traced {
  readonly trace: Pick<RequestTrace, 'send'>;
  readonly settings: Pick<UpstreamSettings, 'url' | 'http2'>;
}

const switchingProtocols = 101;

/** Sends a request as a span of its own, which the upstream is told of, from here to the end of its response. */
export function sendTraced(
  upstream: Pick<Upstream, 'send'>,
  { trace: _, ...request }: UpstreamRequest,
  sink: ResponseSink,
  { trace, settings }: Traced,
): UpstreamCall {
  const span = trace.send({ origin: settings.url, httpVersion: settings.http2 ? '2' : '1.1' });
  const { onUpgrade } = request;
  const traced = new TracedSink(sink, span);
  const call = upstream.send(
    {
      ...request,
      headers: withTraceparent(request.headers, span.traceparent),
      ...(onUpgrade === undefined
        ? {}
        : {
            onUpgrade: (rawHeaders, socket) => {
              span.end({ status: switchingProtocols, grpcStatus: null, reason: null });
              onUpgrade(rawHeaders, socket);
            },
          }),
    },
    traced,
  );
  return {
    resume: () => call.resume(),
    cancel: () => {
      call.cancel();
      traced.end(null, 'caller_gone');
    },
    mayBeSent: () => call.mayBeSent(),
  };
}

/** Hears of the response for the span, and passes it on. */
class TracedSink implements ResponseSink {
  private readonly sink: ResponseSink;
  private readonly span: SentSpan;
  private status = 0;
  private rawHeaders: readonly string[] = [];

  constructor(sink: ResponseSink, span: SentSpan) {
    this.sink = sink;
    this.span = span;
  }

  onHead(status: number, rawHeaders: readonly string[]): void {
    this.status = status;
    this.rawHeaders = rawHeaders;
    this.sink.onHead(status, rawHeaders);
  }

  onData(chunk: Buffer): boolean {
    return this.sink.onData(chunk);
  }

  onEnd(trailers: readonly string[] | null): void {
    this.end(trailers, null);
    this.sink.onEnd(trailers);
  }

  onError(reason: Denial): void {
    this.end(null, reason.reason);
    this.sink.onError(reason);
  }

  end(trailers: readonly string[] | null, reason: string | null): void {
    const { status, rawHeaders: headers } = this;
    this.span.end({ status, grpcStatus: grpcStatusIn(trailers ?? headers) ?? grpcStatusIn(headers), reason });
  }
}
