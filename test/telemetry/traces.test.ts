/** What a collector gets of requests, over real sockets. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import * as conventions from '@opentelemetry/semantic-conventions';
import t from 'tap';
import { startCalling, startTarget } from '../app/egress/calling.js';
import { startInProcessProxy } from '../app/in-process-proxy.js';
import { startCollector, type CollectedSpan, type OtlpCollector } from '../support/otlp-collector.js';
import { request } from '../support/raw-client.js';
import { tempDir } from '../support/temp-dir.js';
import type { ConfigTree } from '../support/proxy-process.js';

const [server, client] = [2, 3];
const traceId = '4bf92f3577b34da6a3ce929d0e0e4736';
const parentId = '00f067aa0ba902b7';

function telemetry({ url }: OtlpCollector, more: ConfigTree = {}): ConfigTree {
  return { telemetry: { otlp: { endpoint: url }, traces: { ratio: 1 }, ...more } };
}

/** The names of stable conventions, and ours. */
const known = new Set<unknown>([
  ...Object.entries(conventions).flatMap(([name, value]) => (name.startsWith('ATTR_') ? [value] : [])),
  'sallyport.decision',
  'sallyport.reason',
  'sallyport.route',
  'sallyport.issuer',
  'sallyport.result',
]);

function byKind(spans: readonly CollectedSpan[], kind: number): CollectedSpan {
  const span = spans.find((each) => each.kind === kind);
  if (span === undefined) throw new Error(`no span of kind ${String(kind)} among ${String(spans.length)}`);
  return span;
}

for (const protocol of ['http/protobuf', 'http/json']) {
  t.test(`a request is a SERVER span with a CLIENT span below, over ${protocol}`, async (t) => {
    const collector = await startCollector(t);
    const proxy = await startInProcessProxy(t, {
      config: telemetry(collector, { otlp: { endpoint: collector.url, protocol } }),
    });
    const answer = await proxy.request({
      path: '/orders?secret=hush-query',
      headers: { traceparent: `00-${traceId}-${parentId}-01`, 'User-Agent': 'hush-agent' },
    });
    t.equal(answer.status, 200);
    await proxy.app.stop();
    const spans = collector.spans();
    const [served, sent] = [byKind(spans, server), byKind(spans, client)];
    t.match(served, {
      traceId,
      parentSpanId: parentId,
      name: 'GET /orders',
      status: 0,
      service: 'sallyport',
      attributes: {
        'http.request.method': 'GET',
        'http.route': '/orders',
        'url.path': '/orders',
        'url.scheme': 'http',
        'http.response.status_code': 200,
        'network.protocol.version': '1.1',
        'sallyport.decision': 'forwarded',
      },
    });
    t.match(sent, { traceId, parentSpanId: served.spanId, attributes: { 'server.address': '127.0.0.1' } });
    t.ok(served.startNs <= sent.startNs && sent.endNs <= served.endNs, 'the one is within the other');
    t.same(proxy.receiver.requests.at(-1)?.field('traceparent'), [`00-${traceId}-${sent.spanId}-01`]);
    const line = proxy.logs().find(({ route }) => route !== undefined);
    t.match(line, { trace_id: traceId, span_id: served.spanId });
    for (const { attributes } of spans) for (const name of Object.keys(attributes)) t.ok(known.has(name), name);
    t.notMatch(collector.exports.map(({ bytes }) => bytes.toString('latin1')).join(), /hush-/);
  });
}

t.test('a trace that begins here has no parent, and a refusal has no CLIENT span', async (t) => {
  const collector = await startCollector(t);
  const proxy = await startInProcessProxy(t, { config: telemetry(collector) });
  await request(proxy.port, { path: '/orders' });
  await proxy.app.stop();
  const spans = collector.spans();
  t.equal(spans.length, 1);
  t.match(spans[0], {
    parentSpanId: '',
    attributes: { 'sallyport.decision': 'denied', 'http.response.status_code': 401, 'sallyport.reason': String },
  });
});

t.test('a stranger decides nothing: neither its flag nor its trace id makes a request traced', async (t) => {
  const collector = await startCollector(t);
  const proxy = await startInProcessProxy(t, { config: telemetry(collector, { traces: { ratio: 0 } }) });
  const traceparent = `00-${'f'.repeat(32)}-${parentId}-01`;
  for (let i = 0; i < 20; i += 1) await request(proxy.port, { path: '/orders', headers: { traceparent } });
  await proxy.request({ path: '/orders', headers: { traceparent: `00-${traceId}-${parentId}-00` } });
  await proxy.request({ path: '/orders' });
  t.same(proxy.receiver.requests[0]?.field('traceparent'), [`00-${traceId}-${parentId}-00`], 'passes as it came');
  await proxy.app.stop();
  t.same(collector.spans(), []);
});

t.test('callers with a good credential are followed, so many in a second', async (t) => {
  const collector = await startCollector(t);
  const traces = { ratio: 0, followed_per_second: 2 };
  const proxy = await startInProcessProxy(t, { config: telemetry(collector, { traces }) });
  const headers = { traceparent: `00-${traceId}-${parentId}-01` };
  for (let i = 0; i < 8; i += 1) await proxy.request({ path: '/orders', headers });
  const notFollowed = await proxy.metric('sallyport_telemetry_not_followed_total');
  await proxy.app.stop();
  const followed = collector.spans().filter(({ kind }) => kind === server).length;
  t.ok(notFollowed > 0);
  t.equal(followed + notFollowed, 8);
});

t.test('on the calling side each attempt is a CLIENT span of its own', async (t) => {
  const collector = await startCollector(t);
  const answers = [503, 200];
  const target = await startTarget(t, (_seen, number, res) => {
    const own = { 'Proxy-Status': 'sallyport; error=proxy_internal_error', 'Retry-After': '0' };
    res.writeHead(answers[number - 1] ?? 200, own).end();
  });
  const calling = await startCalling(t, `${target.url}/v2`, {}, {}, telemetry(collector));
  const answer = await calling.call('/orders/1', {
    method: 'GET',
    headers: { traceparent: `00-${traceId}-${parentId}-01` },
  });
  t.equal(answer.status, 200);
  await calling.proxy.app.stop();
  const spans = collector.spans();
  const served = byKind(spans, server);
  const attempts = spans.filter(({ kind }) => kind === client);
  t.equal(served.parentSpanId, parentId);
  t.same(
    attempts.map(({ attributes }) => [
      attributes['http.response.status_code'],
      attributes['http.request.resend_count'],
    ]),
    [
      [503, undefined],
      [200, 1],
    ],
  );
  t.equal(served.attributes['url.path'], '/orders/**');
  t.same([...new Set(attempts.map(({ attributes }) => attributes['url.full']))], [`${target.url}/v2/**`]);
  t.ok(attempts.every(({ parentSpanId }) => parentSpanId === served.spanId));
  t.same(
    target.seen.map(({ headers }) => headers.traceparent),
    attempts.map(({ spanId }) => `00-${traceId}-${spanId}-01`),
  );
});

t.test('headers of the file go to the collector, are read again, and stand nowhere else', async (t) => {
  const collector = await startCollector(t);
  const file = join(tempDir(t), 'headers');
  writeFileSync(file, '# for the collector\nAuthorization: Bearer hush-first\n', { mode: 0o600 });
  const proxy = await startInProcessProxy(t, {
    config: telemetry(collector, { otlp: { endpoint: collector.url, headers_file: file }, logs: true, metrics: true }),
  });
  await proxy.request({ path: '/orders' });
  const pages = await Promise.all(['/status', '/metrics'].map(async (path) => (await proxy.admin(path)).text));
  writeFileSync(file, 'Authorization: Bearer hush-second\n');
  await proxy.app.stop();
  const paths = new Set(collector.exports.map(({ path }) => path));
  t.same([...paths].sort(), ['/v1/logs', '/v1/metrics', '/v1/traces']);
  for (const { headers } of collector.exports) t.equal(headers.authorization, 'Bearer hush-second');
  const written = [...pages, ...proxy.logs().map((line) => JSON.stringify(line))].join('\n');
  t.notMatch([written, ...collector.exports.map(({ bytes }) => bytes.toString('latin1'))].join('\n'), /hush-/);
  t.ok(readFileSync(file, 'utf8').includes('hush-second'));
  const line = collector.logs().find(({ spanId }) => spanId !== '');
  t.equal(line?.['traceId'], collector.spans()[0]?.traceId, 'a line of a traced request names its trace');
});
