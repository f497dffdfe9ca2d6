/**
 * A collector of OTLP over HTTP, which reads what it gets by the schema of `@opentelemetry/otlp-transformer` 0.214.0,
 * the last version that has one: later ones only write.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { SecureContextOptions } from 'node:tls';
import otlp from 'otlp-schema/build/src/generated/root.js';
import { listen } from './listening.js';
import type { Scope } from './scope.js';

interface Message {
  readonly decode: (bytes: Uint8Array) => object;
  readonly toObject: (message: object, options: object) => Readonly<Record<string, unknown>>;
}

/** What the package does not tell of its types. */
interface Schema {
  readonly opentelemetry: {
    readonly proto: {
      readonly collector: {
        readonly trace: { readonly v1: { readonly ExportTraceServiceRequest: Message } };
        readonly logs: { readonly v1: { readonly ExportLogsServiceRequest: Message } };
      };
    };
  };
}

const { trace, logs } = (otlp as unknown as Schema).opentelemetry.proto.collector;
const requests = { Traces: trace.v1.ExportTraceServiceRequest, Logs: logs.v1.ExportLogsServiceRequest } as const;

export interface CollectedSpan {
  readonly name: string;
  readonly kind: number;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string;
  readonly attributes: Readonly<Record<string, string | number>>;
  readonly links: readonly { readonly traceId: string; readonly spanId: string }[];
  readonly status: number;
  readonly startNs: bigint;
  readonly endNs: bigint;
  /** `service.name` of its resource. */
  readonly service: string;
}

export interface CollectedExport {
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  readonly bytes: Buffer;
}

export interface OtlpCollector {
  readonly port: number;
  readonly url: string;
  readonly exports: CollectedExport[];
  readonly spans: () => readonly CollectedSpan[];
  readonly logs: () => readonly Readonly<Record<string, unknown>>[];
  /** Answers in another way than 200. */
  behave: (answer: ((req: IncomingMessage, res: ServerResponse) => unknown) | null) => void;
}

/** Starts one that takes everything, over TLS where it is given a certificate. */
export async function startCollector(t: Scope, tls?: SecureContextOptions): Promise<OtlpCollector> {
  const exports: CollectedExport[] = [];
  let answer: ((req: IncomingMessage, res: ServerResponse) => unknown) | null = null;
  const take = (req: IncomingMessage, res: ServerResponse): void => {
    const chunks: Buffer[] = [];
    req.on('data', (chunk: Buffer) => chunks.push(chunk));
    req.on('end', () => {
      exports.push({ path: req.url ?? '', headers: req.headers, bytes: Buffer.concat(chunks) });
      if (answer === null) res.writeHead(200, { 'content-type': req.headers['content-type'] ?? '' }).end();
      else answer(req, res);
    });
  };
  const server = tls === undefined ? createServer(take) : createTlsServer(tls, take);
  const { port } = await listen(t, server);
  return {
    port,
    url: `${tls === undefined ? 'http' : 'https'}://127.0.0.1:${String(port)}`,
    exports,
    spans: () => exports.filter(({ path }) => path === '/v1/traces').flatMap(spansOf),
    logs: () => exports.filter(({ path }) => path === '/v1/logs').flatMap(logsOf),
    behave: (next) => {
      answer = next;
    },
  };
}

interface Attribute {
  readonly key: string;
  readonly value: Readonly<Record<string, unknown>>;
}

function isJson({ headers }: CollectedExport): boolean {
  return headers['content-type'] === 'application/json';
}

function decode(type: keyof typeof requests, received: CollectedExport): Readonly<Record<string, unknown>> {
  if (isJson(received)) return JSON.parse(received.bytes.toString()) as Readonly<Record<string, unknown>>;
  const message = requests[type];
  return message.toObject(message.decode(received.bytes), { longs: String, bytes: String });
}

function hex(text: unknown, received: CollectedExport): string {
  if (typeof text !== 'string') return '';
  return isJson(received) ? text : Buffer.from(text, 'base64').toString('hex');
}

function attributesOf(attributes: readonly Attribute[] = []): Record<string, string | number> {
  return Object.fromEntries(
    attributes.map(({ key, value }) => {
      const { stringValue, intValue, doubleValue } = value;
      return [key, typeof stringValue === 'string' ? stringValue : Number(intValue ?? doubleValue)];
    }),
  );
}

interface DecodedSpan {
  readonly [key: string]: unknown;
  readonly attributes?: readonly Attribute[];
  readonly links?: readonly { readonly traceId: string; readonly spanId: string }[];
  readonly status?: { readonly code?: number };
}

function spansOf(received: CollectedExport): readonly CollectedSpan[] {
  const { resourceSpans = [] } = decode('Traces', received) as {
    readonly resourceSpans?: readonly {
      readonly resource: { readonly attributes: readonly Attribute[] };
      readonly scopeSpans: readonly { readonly spans: readonly DecodedSpan[] }[];
    }[];
  };
  return resourceSpans.flatMap(({ resource, scopeSpans }) =>
    scopeSpans.flatMap(({ spans }) =>
      spans.map((span) => ({
        name: String(span['name']),
        kind: Number(span['kind']),
        traceId: hex(span['traceId'], received),
        spanId: hex(span['spanId'], received),
        parentSpanId: hex(span['parentSpanId'], received),
        attributes: attributesOf(span.attributes),
        links: (span.links ?? []).map((link) => ({
          traceId: hex(link.traceId, received),
          spanId: hex(link.spanId, received),
        })),
        status: span.status?.code ?? 0,
        startNs: BigInt(String(span['startTimeUnixNano'])),
        endNs: BigInt(String(span['endTimeUnixNano'])),
        service: String(attributesOf(resource.attributes)['service.name']),
      })),
    ),
  );
}

function logsOf(received: CollectedExport): readonly Readonly<Record<string, unknown>>[] {
  const { resourceLogs = [] } = decode('Logs', received) as {
    readonly resourceLogs?: readonly {
      readonly scopeLogs: readonly { readonly logRecords: readonly Readonly<Record<string, unknown>>[] }[];
    }[];
  };
  return resourceLogs.flatMap(({ scopeLogs }) =>
    scopeLogs.flatMap(({ logRecords }) =>
      logRecords.map((record) => ({
        ...record,
        traceId: hex(record['traceId'], received),
        spanId: hex(record['spanId'], received),
      })),
    ),
  );
}
