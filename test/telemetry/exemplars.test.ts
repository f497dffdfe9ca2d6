/** Histograms name traced requests, to who asks for OpenMetrics: by a real Prometheus. */
import { randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { startInProcessProxy, type InProcessProxy } from '../app/in-process-proxy.js';
import { startCollector } from '../support/otlp-collector.js';
import { startPrometheus } from '../support/prometheus.js';
import { request, type RawResponse } from '../support/raw-client.js';
import { tempDir } from '../support/temp-dir.js';
import { until } from '../support/until.js';
import type { ConfigTree } from '../support/proxy-process.js';

const openMetrics = 'application/openmetrics-text';
const write = {
  name: 'create-order',
  methods: ['POST'],
  path: '/orders',
  subjects: ['checkout'],
  permissions: ['orders:write'],
  idempotency: 'required',
};
const exemplar =
  /^(\w+)_bucket\{.*\} \d+ # \{trace_id="([0-9a-f]{32})",span_id="([0-9a-f]{16})"\} [\d.e-]+ \d+(\.\d+)?$/;

async function scrape({ adminPort }: InProcessProxy, accept: string): Promise<RawResponse> {
  return request(adminPort, { path: '/metrics', headers: { Accept: accept } });
}

function traced(url: string, ratio: number): ConfigTree {
  return { store: { memory: {} }, routes: [write], telemetry: { otlp: { endpoint: url }, traces: { ratio } } };
}

async function place(proxy: InProcessProxy): Promise<void> {
  await proxy.request({ method: 'POST', path: '/orders', headers: { 'Idempotency-Key': randomUUID() }, body: '{}' });
}

/** Names and labels of all series, but for what the process does at that moment. */
function seriesOf({ text }: RawResponse): readonly string[] {
  const lines = text.split('\n').filter((line) => line !== '' && !/^(#|nodejs_active_|nodejs_gc_)/.test(line));
  return lines.map((line) => line.replace(/ # .*/, '').replace(/ [^ ]*$/, '')).toSorted();
}

t.test('each histogram names spans that the collector got, and the text format names none', async (t) => {
  const collector = await startCollector(t);
  const proxy = await startInProcessProxy(t, { config: traced(collector.url, 1) });
  await place(proxy);
  const text = await scrape(proxy, '*/*');
  const open = await scrape(proxy, openMetrics);
  const again = await scrape(proxy, `${openMetrics};q=0.1, text/plain`);
  t.equal(open.field('content-type'), `${openMetrics}; version=1.0.0; charset=utf-8`);
  t.ok(open.text.endsWith('\n# EOF\n'));
  for (const plain of [text, again]) {
    t.equal(plain.field('content-type'), 'text/plain; version=0.0.4; charset=utf-8');
    t.notMatch(plain.text, /trace_id|# EOF/);
    t.same(seriesOf(plain), seriesOf(open), 'the same series under the same names');
    t.match(plain.text, '# TYPE sallyport_requests_total counter', 'counters keep their names');
  }
  const found = open.text.split('\n').flatMap((line) => {
    const [, name = '', traceId = '', spanId = ''] = exemplar.exec(line) ?? [];
    return name === '' ? [] : [{ name, traceId, spanId }];
  });
  t.same([...new Set(found.map(({ name }) => name))].toSorted(), [
    'sallyport_overhead_seconds',
    'sallyport_request_duration_seconds',
    'sallyport_store_duration_seconds',
  ]);
  t.equal(found.length, open.text.split(' # {').length - 1, 'all of them are of that form');
  await proxy.app.stop();
  const [served] = collector.spans().filter(({ kind }) => kind === 2);
  for (const { traceId, spanId } of found) {
    t.same({ traceId, spanId }, { traceId: served?.traceId, spanId: served?.spanId });
  }
});

t.test('a request that is not traced is no example', async (t) => {
  const collector = await startCollector(t);
  const proxy = await startInProcessProxy(t, { config: traced(collector.url, 0) });
  await place(proxy);
  t.notMatch((await scrape(proxy, openMetrics)).text, / # \{/);
});

t.test('Prometheus takes them', async (t) => {
  const collector = await startCollector(t);
  const proxy = await startInProcessProxy(t, { config: traced(collector.url, 1) });
  await place(proxy);
  const rules = join(tempDir(t), 'rules.yaml');
  writeFileSync(rules, 'groups: []\n');
  const prometheus = await startPrometheus(t, [{ namespace: 'shop', job: 'sallyport', port: proxy.adminPort }], rules);
  const found = await until('examples', async () => {
    const all = await prometheus.exemplars('sallyport_request_duration_seconds_bucket');
    return all.length > 0 && all;
  });
  await proxy.app.stop();
  const [served] = collector.spans().filter(({ kind }) => kind === 2);
  t.same(found[0], { trace_id: served?.traceId, span_id: served?.spanId });
  t.equal(
    (await prometheus.query('sallyport_requests_total{outcome="forwarded",code="2xx",route="create-order"}')).length,
    1,
  );
});
