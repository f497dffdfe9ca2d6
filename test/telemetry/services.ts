/** A caller, its Sallyport, the Sallyport of a service, and the service: one request through all of them, traced. */
import { randomBytes, randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { createServer as createHttp2Server, type Http2ServerRequest, type Http2ServerResponse } from 'node:http2';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { ask, connectHttp2 } from '../support/http2-client.js';
import { rsaKey } from '../support/keys.js';
import { listen } from '../support/listening.js';
import { startCollector } from '../support/otlp-collector.js';
import { request } from '../support/raw-client.js';
import type { Scope } from '../support/scope.js';
import { tempDir } from '../support/temp-dir.js';
import { mintToken } from '../support/tokens.js';
import { startProxyProcess, type ConfigTree } from '../support/proxy-process.js';

/** A span of the trace; of those that the collector got, and of caller and service, which saw their own. */
export interface TracedSpan {
  readonly service: string;
  readonly kind: 'SERVER' | 'CLIENT' | 'INTERNAL';
  readonly name: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string;
  readonly startNs: bigint;
  readonly endNs: bigint;
  readonly attributes: Readonly<Record<string, string | number>>;
}

export const services = ['shop', 'shop-sallyport', 'orders-sallyport', 'orders'] as const;

const kinds = new Map<number, TracedSpan['kind']>([
  [1, 'INTERNAL'],
  [2, 'SERVER'],
  [3, 'CLIENT'],
]);

/** So long works the service, milliseconds: the rest of the way takes a few. */
const workMs = 25;

const untraced = 20;

function nowNs(): bigint {
  return BigInt(Math.round((performance.timeOrigin + performance.now()) * 1e6));
}

/** Sends a reserved write all the way, over one version of HTTP, and collects the spans of it. */
export async function traceOneWrite(t: Scope, version: '1.1' | '2'): Promise<readonly TracedSpan[]> {
  const http2 = version === '2';
  const collector = await startCollector(t);
  const key = rsaKey();
  const tokenFile = join(tempDir(t), 'token');
  writeFileSync(tokenFile, `${mintToken({ key })}\n`, { mode: 0o600 });
  const seen: TracedSpan[] = [];
  const upstreamPort = await startService(t, http2, (span) => seen.push(span));
  // Neither begins a trace: both follow.
  const telemetry = { otlp: { endpoint: collector.url }, traces: { ratio: 0 } };
  const proxy = await startProxyProcess(t, {
    key,
    env: { OTEL_SERVICE_NAME: services[2] },
    config: {
      telemetry,
      listen: { http2 },
      upstream: { url: `http://127.0.0.1:${String(upstreamPort)}`, http2 },
      store: { memory: {} },
      routes: [write],
    },
  });
  const egress = await startProxyProcess(t, {
    key,
    env: { OTEL_SERVICE_NAME: services[1] },
    config: {
      telemetry,
      egress: {
        listen: { port: 0, http2 },
        tokens: { own: { file: tokenFile } },
        targets: [
          {
            name: 'orders',
            prefix: '/api',
            url: `http://127.0.0.1:${String(proxy.port)}`,
            http2,
            token: 'own',
            allow: [{ methods: ['POST'], path: '/orders/{id}' }],
          },
        ],
      },
    },
  });
  const port = await egress.process.port('egress');
  const caller = { traceId: randomBytes(16).toString('hex'), spanId: randomBytes(8).toString('hex') };
  // Before it, some that nobody traces: what is drawn is not the first request of all.
  for (let count = 0; count < untraced; count += 1) {
    await send(t, port, http2, `00-${randomBytes(16).toString('hex')}-${caller.spanId}-00`);
  }
  const startNs = nowNs();
  const status = await send(t, port, http2, `00-${caller.traceId}-${caller.spanId}-01`);
  seen.push({
    service: services[0],
    kind: 'CLIENT',
    name: 'POST',
    ...caller,
    parentSpanId: '',
    startNs,
    endNs: nowNs(),
    attributes: { 'http.response.status_code': status, 'network.protocol.version': version },
  });
  await Promise.all([egress.stop(), proxy.stop()]);
  const exported = collector.spans().map(({ kind, ...span }) => ({ ...span, kind: kinds.get(kind) ?? 'INTERNAL' }));
  return [...seen.filter(({ traceId }) => traceId === caller.traceId), ...exported].toSorted((one, other) =>
    Number(one.startNs - other.startNs),
  );
}

const write: ConfigTree = {
  name: 'create-order',
  methods: ['POST'],
  path: '/orders/{id}',
  subjects: ['checkout'],
  permissions: ['orders:write'],
  idempotency: 'required',
};

async function send(t: Scope, port: number, http2: boolean, traceparent: string): Promise<number> {
  const [path, body] = ['/api/orders/4711', '{"item":1}'];
  const headers = { 'content-type': 'application/json', 'idempotency-key': randomUUID(), traceparent };
  if (!http2) return (await request(port, { method: 'POST', path, headers, body })).status;
  const session = await connectHttp2(t, `http://127.0.0.1:${String(port)}`);
  const answer = await ask(session, { ':method': 'POST', ':path': path, ...headers }, body);
  session.close();
  return answer.status;
}

/** A service with a span of its own, as an SDK would make it: the child of the `traceparent` that came. */
async function startService(t: Scope, http2: boolean, onSpan: (span: TracedSpan) => void): Promise<number> {
  const serve = (
    req: IncomingMessage | Http2ServerRequest,
    res: Pick<ServerResponse | Http2ServerResponse, 'end' | 'statusCode'>,
  ): void => {
    const startNs = nowNs();
    const [, traceId = '', parentSpanId = ''] = String(req.headers['traceparent']).split('-');
    req.resume().on('end', () => {
      setTimeout(() => {
        res.statusCode = 201;
        res.end('{}');
        onSpan({
          service: services[3],
          kind: 'SERVER',
          name: `${String(req.method)} /orders/{id}`,
          traceId,
          spanId: randomBytes(8).toString('hex'),
          parentSpanId,
          startNs,
          endNs: nowNs(),
          attributes: {
            'http.response.status_code': 201,
            'network.protocol.version': req.httpVersion.replace('2.0', '2'),
          },
        });
      }, workMs);
    });
  };
  const server = http2 ? createHttp2Server(serve) : createServer(serve);
  return (await listen(t, server)).port;
}

/** Each span below its parent, in the order in which they began, with how deep it stands. */
export function asTree(spans: readonly TracedSpan[]): readonly (TracedSpan & { readonly depth: number })[] {
  const below = (parent: string, depth: number): readonly (TracedSpan & { readonly depth: number })[] =>
    spans
      .filter(({ parentSpanId }) => parentSpanId === parent)
      .flatMap((span) => [{ ...span, depth }, ...below(span.spanId, depth + 1)]);
  return below('', 0);
}
