/** Sends what is seen to a collector. Loaded where telemetry is on, and nowhere else. */
import type { TelemetrySettings } from '../../decision/telemetry/otel-variables.js';
import type { Clock, Files, Timers } from '../../ports/system.js';
import type { MetricsSnapshot, TelemetryState } from '../../ports/tracing.js';
import { ExportQueue, type ExportOutcome } from './export-queue.js';
import { createResource, readableLine, readableSpan, serializers, type Resource } from './otlp-messages.js';
import { OtlpSender } from './otlp-sender.js';
import { resourceMetrics } from './metrics-export.js';
import { createTracer, type EndedSpan, type RunningTracer } from './tracer.js';

interface TelemetryDeps {
  readonly clock: Clock;
  readonly timers: Timers;
  readonly files: Files;
  /** At least 0 and less than 1. */
  readonly random: () => number;
  /** So many random bytes, in hexadecimal digits. */
  readonly randomHex: (bytes: number) => string;
  /** What the process says of itself. */
  readonly resource: Readonly<Record<string, string>>;
}

/** What is sent while it runs. */
export interface Telemetry {
  readonly tracer: RunningTracer;
  /** Takes lines of the log; `null` where they are not sent. */
  readonly onLine: ((line: string) => void) | null;
  /** Sends what this reads, each minute and at the end, where the config wants that. */
  readonly sendMetrics: (read: () => Promise<MetricsSnapshot>) => void;
  readonly state: () => TelemetryState;
  /** Sends what waits within that time, and ends. */
  readonly close: (withinMs: number) => Promise<void>;
}

/** Lines of 8 KiB and more are for the log alone: a queue of them would not be bounded by their number. */
const maxLineLength = 8 * 1024;

/** How often metrics are sent, milliseconds: the specification's usual interval. */
const metricsEveryMs = 60_000;

/** Begins to send. */
export function openTelemetry(
  settings: TelemetrySettings,
  followedPerSecond: number,
  { resource: own, ...deps }: TelemetryDeps,
): Telemetry {
  const resource = createResource({ ...own, ...settings.resource });
  const sender = new OtlpSender(settings, deps.files);
  const { urls, queue: limits, protocol } = settings;
  const { traces, metrics, logs } = serializers[protocol];
  const startMs = deps.clock.now();
  const metricsUrl = urls.metrics;
  const spans = new ExportQueue<EndedSpan>({
    ...deps,
    signal: 'traces',
    limits,
    send: (items) =>
      send(
        sender,
        urls.traces,
        traces,
        items.map((item) => readableSpan(item, resource)),
        rejectedSpans,
      ),
  });
  const logUrl = urls.logs;
  const lines =
    logUrl === null
      ? null
      : new ExportQueue<string>({
          ...deps,
          signal: 'logs',
          limits,
          send: (items) => send(sender, logUrl, logs, readableLines(items, resource), rejectedLines),
        });
  /** Reads of one minute, the next of which takes the place of none: each is a whole state. */
  const states =
    metricsUrl === null
      ? null
      : new ExportQueue<MetricsSnapshot>({
          ...deps,
          signal: 'metrics',
          limits: { maxItems: 1, maxBatch: 1, delayMs: 1 },
          send: ([snapshot = noMetrics]) => {
            const request = resourceMetrics(snapshot, resource, { startMs, nowMs: deps.clock.now() });
            return send(sender, metricsUrl, metrics, request, () => 0);
          },
        });
  let readMetrics: () => Promise<MetricsSnapshot> = () => Promise.resolve(noMetrics);
  let callOff = (): void => undefined;
  const takeMetrics = async (): Promise<void> => {
    states?.add(await readMetrics());
  };
  const schedule = (): void => {
    callOff = deps.timers.after(metricsEveryMs, () => {
      void takeMetrics();
      schedule();
    });
  };
  const tracer = createTracer(settings.sampling, followedPerSecond, { ...deps, onSpan: (span) => spans.add(span) });
  const queues: readonly Pick<ExportQueue<unknown>, 'state' | 'close'>[] = [
    spans,
    ...(lines === null ? [] : [lines]),
    ...(states === null ? [] : [states]),
  ];
  return {
    tracer,
    onLine:
      lines === null
        ? null
        : (line) => {
            if (line.length <= maxLineLength) lines.add(line);
          },
    sendMetrics: (read) => {
      if (states === null) return;
      readMetrics = read;
      schedule();
    },
    state: () => ({
      endpoint: new URL(urls.traces).origin,
      protocol,
      signals: queues.map((queue) => queue.state()),
      notFollowed: tracer.notFollowed(),
    }),
    close: async (withinMs) => {
      callOff();
      if (states !== null && withinMs > 0) await takeMetrics();
      await Promise.all(queues.map((queue) => queue.close(withinMs)));
      await sender.close();
    },
  };
}

const noMetrics: MetricsSnapshot = { families: [], histograms: [] };

interface Serializer<Request, Response> {
  readonly serializeRequest: (request: Request) => Uint8Array | undefined;
  readonly deserializeResponse: (bytes: Uint8Array) => Response;
}

async function send<Request, Response>(
  sender: OtlpSender,
  url: string,
  serializer: Serializer<Request, Response>,
  request: Request,
  rejectedOf: (response: Response) => number | undefined,
): Promise<ExportOutcome> {
  const bytes = serializer.serializeRequest(request);
  if (bytes === undefined) return { kind: 'failed', why: 'it cannot be written' };
  const sent = await sender.send(url, bytes);
  if (sent.kind !== 'answered') return sent;
  try {
    const rejected = sent.body.length === 0 ? 0 : (rejectedOf(serializer.deserializeResponse(sent.body)) ?? 0);
    return { kind: 'taken', rejected: Number.isFinite(rejected) ? Math.max(0, rejected) : 0 };
  } catch {
    return { kind: 'failed', why: 'the answer of the collector is not one of OTLP' };
  }
}

function rejectedSpans({
  partialSuccess,
}: ReturnType<(typeof serializers)['http/json']['traces']['deserializeResponse']>): number | undefined {
  return partialSuccess?.rejectedSpans;
}

function rejectedLines({
  partialSuccess,
}: ReturnType<(typeof serializers)['http/json']['logs']['deserializeResponse']>): number | undefined {
  return partialSuccess?.rejectedLogRecords;
}

function readableLines(items: readonly string[], resource: Resource): ReturnType<typeof readableLine>[] {
  return items.map((line) => readableLine(line, resource));
}
