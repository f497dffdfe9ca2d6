/** Which collector gets what: over TLS, after a reload, by the word of the doctor, and of requests that lie. */
import { copyFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { run } from '../../src/cli/program.js';
import { startInProcessProxy } from '../app/in-process-proxy.js';
import { captureIo } from '../cli/captured-io.js';
import { certificates } from '../support/certificates.js';
import { startCollector, type OtlpCollector } from '../support/otlp-collector.js';
import { request } from '../support/raw-client.js';
import { tempDir } from '../support/temp-dir.js';
import { until } from '../support/until.js';
import { baseConfig, type ConfigTree } from '../support/proxy-process.js';

function telemetry({ url: endpoint }: OtlpCollector, otlp: ConfigTree = {}, ratio = 1): ConfigTree {
  return { telemetry: { otlp: { endpoint, ...otlp }, traces: { ratio } } };
}

t.test('a collector is believed by its authority alone, which is read again', async (t) => {
  const { ca, otherCa, server, dir } = certificates(t);
  const collector = await startCollector(t, { cert: server.cert, key: server.key });
  const file = join(dir, 'collector-ca.pem');
  copyFileSync(otherCa.certFile, file);
  const proxy = await startInProcessProxy(t, { config: telemetry(collector, { ca_file: file }) });
  await proxy.request({ path: '/orders' });
  const lastError = await until('an error', () => proxy.app.status().telemetry?.signals[0]?.last_error);
  t.match(lastError, /certificate|issuer|verif/i);
  t.equal(collector.exports.length, 0, 'not one byte went to somebody else');
  copyFileSync(ca.certFile, file);
  await proxy.app.stop();
  t.ok(collector.spans().length >= 2, 'with the right one they are taken');
});

t.test('a reload takes another ratio over, and a collector waits for the start', async (t) => {
  const collector = await startCollector(t);
  const other = await startCollector(t);
  const proxy = await startInProcessProxy(t, { config: telemetry(collector, {}, 0) });
  await proxy.request({ path: '/orders' });
  proxy.rewrite(telemetry(other, {}, 1));
  await until('the other ratio', async () => {
    const { trace_id: traceId, ...line } = await traced();
    return 'span_id' in line && traceId !== null;
  });
  t.match(JSON.stringify(proxy.app.status()), /telemetry\.otlp\.endpoint/, 'it is said what waits');
  proxy.rewrite(telemetry(other, {}, 0));
  await until('none again', async () => !('span_id' in (await traced())));
  await proxy.app.stop();
  t.ok(collector.spans().length > 0);
  t.equal(other.exports.length, 0);

  async function traced(): Promise<Readonly<Record<string, unknown>>> {
    const before = proxy.logs().filter(({ route }) => route === 'list-orders').length;
    await proxy.request({ path: '/orders' });
    return until('its line', () => proxy.logs().filter(({ route }) => route === 'list-orders')[before]);
  }
});

t.test('the doctor says whether the collector answers', async (t) => {
  const collector = await startCollector(t);
  const examine = async (): Promise<string> => {
    const cwd = tempDir(t);
    writeFileSync(join(cwd, 'sallyport.yaml'), baseConfig(telemetry(collector)));
    const io = captureIo({ cwd });
    await run(['doctor', '--config', 'sallyport.yaml'], io);
    return (
      io
        .out()
        .split('\n')
        .find((line) => line.includes('telemetry')) ?? ''
    );
  };
  t.match(await examine(), /^ok: telemetry: the collector at http:\/\/127\.0\.0\.1:\d+ takes spans/);
  collector.behave((_, res) => res.writeHead(401).end('hush-answer'));
  t.match(await examine(), /^problem: telemetry: .*status 401; fix: check telemetry\.otlp/);
  collector.behave((req) => req.socket.destroy());
  t.match(await examine(), /^problem: telemetry: /);
  t.notMatch(await examine(), /hush/);
});

t.test('what a caller says of its trace is taken whole or not at all, and nothing of it is sent', async (t) => {
  const collector = await startCollector(t);
  const config = { telemetry: { otlp: { endpoint: collector.url }, traces: { ratio: 1 }, logs: true } };
  const proxy = await startInProcessProxy(t, { config });
  const sound = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`;
  const parents: readonly string[] = [
    sound.toUpperCase(),
    `00-${'0'.repeat(32)}-${'b'.repeat(16)}-01`,
    `00-${'a'.repeat(32)}-${'0'.repeat(16)}-01`,
    `ff-${'a'.repeat(32)}-${'b'.repeat(16)}-01`,
    `${sound}-hush`,
    `${sound}, ${sound}`,
    `00-${'a'.repeat(33)}-${'b'.repeat(16)}-01`,
    `00-${'g'.repeat(32)}-${'b'.repeat(16)}-01`,
    `${sound}${'x'.repeat(6_000)}`,
    '',
  ];
  const headers = { Baggage: 'secret=hush-baggage', Tracestate: `vendor=hush-${'s'.repeat(400)}` };
  for (const traceparent of parents) {
    await proxy.request({ path: '/orders', headers: { ...headers, traceparent } });
    await request(proxy.port, { path: `/${'hush-path/'.repeat(20)}`, headers: { ...headers, traceparent } });
  }
  await proxy.request({
    path: '/orders',
    headers: { ...headers, traceparent: `01-${'a'.repeat(32)}-${'b'.repeat(16)}-01-hush` },
  });
  await proxy.app.stop();
  const spans = collector.spans();
  const served = spans.filter(({ kind }) => kind === 2);
  t.equal(served.length, 2 * parents.length + 1);
  t.same(
    served.filter(({ parentSpanId }) => parentSpanId !== '').map(({ parentSpanId }) => parentSpanId),
    ['b'.repeat(16)],
    'a later version is read as far as it is known',
  );
  for (const { traceId, spanId } of spans) {
    t.match(traceId, /^[0-9a-f]{32}$/);
    t.match(spanId, /^[0-9a-f]{16}$/);
  }
  const bytes = collector.exports
    .filter(({ path }) => path === '/v1/traces')
    .map((one) => one.bytes.toString('latin1'));
  t.notMatch(bytes.join(''), /hush/);
  t.notMatch(collector.exports.map((one) => one.bytes.toString('latin1')).join(''), /hush-(baggage|s)/);
});
