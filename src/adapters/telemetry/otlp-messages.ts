/** Spans, metrics and log lines in the shape that OpenTelemetry's own serializers take. */
/* eslint-disable @typescript-eslint/no-unsafe-enum-assignment -- enums would load their packages for a number */
import {
  JsonLogsSerializer,
  JsonMetricsSerializer,
  JsonTraceSerializer,
  ProtobufLogsSerializer,
  ProtobufMetricsSerializer,
  ProtobufTraceSerializer,
} from '@opentelemetry/otlp-transformer';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { parentSpanOf } from '../../decision/telemetry/trace-context.js';
import type { Protocol } from '../../decision/telemetry/otel-variables.js';
import type { EndedSpan } from './tracer.js';

/** What writes each signal, and reads what the collector says of it. */
export const serializers = {
  'http/protobuf': {
    traces: ProtobufTraceSerializer,
    metrics: ProtobufMetricsSerializer,
    logs: ProtobufLogsSerializer,
  },
  'http/json': { traces: JsonTraceSerializer, metrics: JsonMetricsSerializer, logs: JsonLogsSerializer },
} as const satisfies Readonly<Record<Protocol, object>>;

type ReadableSpan = Parameters<typeof ProtobufTraceSerializer.serializeRequest>[0][number];
type ReadableLogRecord = Parameters<typeof ProtobufLogsSerializer.serializeRequest>[0][number];
export type ResourceMetrics = Parameters<typeof ProtobufMetricsSerializer.serializeRequest>[0];
export type Resource = ReadableSpan['resource'];

/** Who says it all. */
export const scope = { name: 'sallyport' } as const;

/** Numbers of OpenTelemetry's API for kinds and status. */
const kinds = { internal: 0, server: 1, client: 2 } as const satisfies Readonly<Record<EndedSpan['kind'], number>>;
const unset = 0;
const failed = 2;

const sampledFlag = 1;

export function createResource(attributes: Readonly<Record<string, string>>): Resource {
  return resourceFromAttributes(attributes);
}

export function readableSpan(span: EndedSpan, resource: Resource): ReadableSpan {
  const { traceId, spanId, parent, startMs, endMs, link } = span;
  const contextOf = (id: string, isRemote: boolean, trace = traceId) =>
    ({ traceId: trace, spanId: id, traceFlags: sampledFlag, isRemote }) as const;
  const linked = link === null ? null : parentSpanOf(link);
  return {
    name: span.name,
    kind: kinds[span.kind],
    spanContext: () => contextOf(spanId, false),
    ...(parent === null ? {} : { parentSpanContext: contextOf(parent.spanId, parent.isRemote) }),
    startTime: hrTime(startMs),
    endTime: hrTime(endMs),
    duration: hrTime(endMs - startMs),
    ended: true,
    status: { code: span.isError ? failed : unset },
    attributes: span.attributes,
    links: linked === null ? [] : [{ context: contextOf(linked.spanId, true, linked.traceId) }],
    events: [],
    resource,
    instrumentationScope: scope,
    droppedAttributesCount: 0,
    droppedEventsCount: 0,
    droppedLinksCount: 0,
  };
}

/** Severities by the level of a line. */
const severities: Readonly<Record<string, number>> = { debug: 5, info: 9, warn: 13, error: 17, fatal: 21 };

/**
 * A line of the log: all of it is the body, so that nothing that a caller chose is an attribute. It is clean already:
 * it is the very line that was written.
 */
export function readableLine(line: string, resource: Resource): ReadableLogRecord {
  const fields = JSON.parse(line) as Readonly<Record<string, unknown>>;
  const { level, time, trace_id: traceId, span_id: spanId } = fields;
  const at = hrTime(Date.parse(String(time)));
  return {
    hrTime: at,
    hrTimeObserved: at,
    severityText: String(level),
    severityNumber: severities[String(level)] ?? 0,
    body: fields as NonNullable<ReadableLogRecord['body']>,
    ...(typeof traceId === 'string' && typeof spanId === 'string'
      ? { spanContext: { traceId, spanId, traceFlags: sampledFlag } }
      : {}),
    attributes: {},
    resource,
    instrumentationScope: scope,
    droppedAttributesCount: 0,
  };
}

/** Seconds and nanoseconds. */
export function hrTime(ms: number): [number, number] {
  const s = Math.floor(ms / 1000);
  return [s, Math.round((ms - s * 1000) * 1e6) % 1e9];
}
