/** Spans of what is no plain request: HTTP/2, gRPC, WebSockets, and keys that are waited for. */
import t from 'tap';
import { WebSocket } from 'ws';
import { startInProcessProxy } from '../app/in-process-proxy.js';
import { configOf } from '../grpc/deployment.js';
import { createCaller, prefix, startNodeService } from '../grpc/service.js';
import { clientOf, startWebSocketUpstream, webSocketRoutes } from '../proxy/websocket/websocket-proxy.js';
import { ask, connectHttp2 } from '../support/http2-client.js';
import { rsaKey } from '../support/keys.js';
import { startCollector, type CollectedSpan, type OtlpCollector } from '../support/otlp-collector.js';
import { request } from '../support/raw-client.js';
import { mintToken } from '../support/tokens.js';
import type { ConfigTree } from '../support/proxy-process.js';

const [internal, server, client] = [1, 2, 3];
const traceId = '4bf92f3577b34da6a3ce929d0e0e4736';
const parentId = '00f067aa0ba902b7';
const traceparent = `00-${traceId}-${parentId}-01`;

function telemetry({ url }: OtlpCollector): ConfigTree {
  return { telemetry: { otlp: { endpoint: url }, traces: { ratio: 0 } } };
}

function spanOf(collector: OtlpCollector, kind: number): CollectedSpan {
  const found = collector.spans().filter((span) => span.kind === kind);
  const [span] = found;
  if (span === undefined || found.length > 1) throw new Error(`${String(found.length)} spans of that kind`);
  return span;
}

t.test('a gRPC call is named by its method, and its status is that of the call', async (t) => {
  const collector = await startCollector(t);
  const service = await startNodeService(t);
  const who = { subjects: ['checkout'], permissions: ['orders:write'] };
  const routes = [
    { name: 'one', grpc: 'shop.v1.Orders/Unary', ...who, idempotency: { mode: 'none', because: 'a test' } },
  ];
  const proxy = await startInProcessProxy(t, {
    config: { ...configOf(service.port, { routes }), ...telemetry(collector) },
  });
  const authorization = `Bearer ${proxy.token({ permissions: ['orders:write'] })}`;
  const caller = createCaller(t, proxy.port, authorization);
  const { status } = await caller.unary(`${prefix}Unary`, Buffer.from('order'), { metadata: { traceparent } });
  t.equal(status.code, 0);
  await proxy.app.stop();
  const [served, sent] = [spanOf(collector, server), spanOf(collector, client)];
  for (const { name, attributes } of [served, sent]) {
    t.equal(name, 'shop.v1.Orders/Unary');
    t.match(attributes, {
      'rpc.system.name': 'grpc',
      'rpc.method': 'shop.v1.Orders/Unary',
      'rpc.status_code': 'OK',
      'network.protocol.version': '2',
    });
  }
  t.same([served.parentSpanId, sent.parentSpanId], [parentId, served.spanId]);
});

t.test('a WebSocket is one span of each side, from its handshake to its end', async (t) => {
  const collector = await startCollector(t);
  const receiver = await startWebSocketUpstream(t);
  const proxy = await startInProcessProxy(t, {
    config: {
      ...telemetry(collector),
      upstream: { url: `http://127.0.0.1:${String(receiver.port)}` },
      routes: webSocketRoutes.slice(0, 1),
    },
  });
  const headers = { Authorization: `Bearer ${proxy.token()}`, traceparent };
  const { socket, opened, closed } = clientOf(
    t,
    new WebSocket(`ws://127.0.0.1:${String(proxy.port)}/live`, { headers }),
  );
  await opened;
  socket.close();
  await closed;
  await proxy.app.stop();
  const [served, sent] = [spanOf(collector, server), spanOf(collector, client)];
  for (const { name, attributes } of [served, sent]) {
    t.equal(name, 'GET /live');
    t.match(attributes, { 'http.response.status_code': 101, 'sallyport.route': 'live' });
  }
  t.same([served.traceId, served.parentSpanId, sent.parentSpanId], [traceId, parentId, served.spanId]);
});

t.test('over HTTP/2 each stream is traced by itself', async (t) => {
  const collector = await startCollector(t);
  const proxy = await startInProcessProxy(t, { config: { listen: { http2: true }, ...telemetry(collector) } });
  const session = await connectHttp2(t, `http://127.0.0.1:${String(proxy.port)}`);
  const headers = { ':path': '/orders', authorization: `Bearer ${proxy.token()}` };
  const parents = Array.from({ length: 10 }, (_, at) => `${String(at)}0f067aa0ba902b7`);
  await Promise.all(parents.map((parent) => ask(session, { ...headers, traceparent: `00-${traceId}-${parent}-01` })));
  session.close();
  await proxy.app.stop();
  const served = collector.spans().filter(({ kind }) => kind === server);
  t.same(served.map(({ parentSpanId }) => parentSpanId).toSorted(), parents);
  for (const { attributes } of served) t.equal(attributes['network.protocol.version'], '2');
  const ids = new Set(served.map(({ spanId }) => spanId));
  const sent = collector.spans().filter(({ kind }) => kind === client);
  t.same(new Set(sent.map(({ parentSpanId }) => parentSpanId)), ids, 'each goes on as its own child');
});

t.test('a key that is waited for is a part of the request', async (t) => {
  const collector = await startCollector(t);
  const proxy = await startInProcessProxy(t, {
    config: { ...telemetry(collector), issuers: { core: { jwks: { cooldown: '10ms' } } } },
  });
  const fresh = rsaKey('d-2');
  proxy.jwks.setKeys([rsaKey(), fresh]);
  for (const key of [fresh, fresh]) {
    const headers = { traceparent, Authorization: `Bearer ${mintToken({ key })}` };
    t.equal((await request(proxy.port, { path: '/orders', headers })).status, 200);
  }
  await proxy.app.stop();
  const part = spanOf(collector, internal);
  const [first] = collector.spans().filter(({ kind }) => kind === server);
  t.match(part, {
    name: 'fetch key',
    traceId,
    parentSpanId: first?.spanId,
    attributes: { 'sallyport.issuer': 'core', 'sallyport.result': 'found' },
  });
  t.ok(part.startNs >= (first?.startNs ?? 0n) && part.endNs <= (first?.endNs ?? 0n), 'within the request');
});
