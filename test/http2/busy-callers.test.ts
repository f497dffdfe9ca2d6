/** Callers that ask for very much, and nothing but what they need, over one connection. */
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http2';
import { join } from 'node:path';
import t from 'tap';
import { runH2load } from '../support/h2load.js';
import { peakBytes } from '../support/linux.js';
import { listen } from '../support/listening.js';
import { startProxyProcess } from '../support/proxy-process.js';
import { tempDir } from '../support/temp-dir.js';

t.setTimeout(300_000);

const mebibyte = 1024 * 1024;

t.test('100,000 requests on one connection, 100 at a time, are each answered, in bounded memory', async (t) => {
  const server = createServer().on('stream', (stream) => {
    stream.on('error', () => undefined).resume();
    stream.respond({ ':status': 200 });
    stream.end('hello');
  });
  const { port } = await listen(t, server);
  const upstream = { url: `http://127.0.0.1:${String(port)}`, http2: true };
  const proxy = await startProxyProcess(t, { config: { listen: { http2: true }, upstream } });
  const url = `http://127.0.0.1:${String(proxy.port)}/orders`;
  const one = { url, connections: 1, streams: 100 };
  const bodyFile = join(tempDir(t), 'body');
  writeFileSync(bodyFile, 'an order');
  const loads = [
    { name: 'reads', headers: proxy.authorization() },
    { name: 'writes', headers: proxy.authorization({ permissions: ['orders:write'] }), bodyFile },
  ];
  for (const { name, ...load } of loads) {
    await runH2load({ ...one, ...load, requests: 40_000 });
    // The most until then: what has not been collected yet is in both.
    const before = peakBytes(proxy.process.pid);
    const answered = await runH2load({ ...one, ...load, requests: 100_000 });
    t.same(answered, { succeeded: 100_000, broken: 0, statuses: [100_000, 0, 0, 0], bodyBytes: 500_000 }, name);
    const peak = peakBytes(proxy.process.pid);
    t.comment(
      `${name}: ${String(Math.round(before / mebibyte))} MiB at most before, ${String(Math.round(peak / mebibyte))} MiB`,
    );
    // 1 KiB that is kept of each would be 100 MiB more.
    t.ok(peak - before < 80 * mebibyte, `${name}: ${String(Math.round((peak - before) / mebibyte))} MiB more`);
  }
  t.equal(await proxy.metric('sallyport_connections_ended_total{reason="http2_abuse"}'), 0);
  t.equal(await proxy.metric('sallyport_denials_total'), 0);
  t.equal(await proxy.metric('sallyport_requests_total'), 280_000);
});

t.test('after 100,000 requests a connection takes no more, so that others get their share', async (t) => {
  const proxy = await startProxyProcess(t, { config: { listen: { http2: true } } });
  const url = `http://127.0.0.1:${String(proxy.port)}/orders`;
  const load = await runH2load({ url, connections: 1, streams: 100, requests: 101_000, headers: {} });
  const [, , answered = 0] = load.statuses;
  // Those that were on their way when it said so are answered as well.
  t.ok(answered >= 100_000 && answered < 100_300, `${String(answered)} answered`);
  t.equal(await proxy.metric('sallyport_denials_total{reason="credential_missing"}'), answered);
  t.equal(await proxy.metric('sallyport_connections_ended_total{reason="http2_abuse"}'), 0);
});

t.test('1,000 requests of 64 KiB each way on one connection are whole', async (t) => {
  const proxy = await startProxyProcess(t, { config: { listen: { http2: true } } });
  proxy.receiver.behave((req, res) => {
    proxy.receiver.requests.length = 0;
    req.pipe(res);
  });
  const bodyFile = join(tempDir(t), 'body');
  writeFileSync(bodyFile, Buffer.alloc(65_536, 'b'));
  const url = `http://127.0.0.1:${String(proxy.port)}/orders`;
  const headers = proxy.authorization({ permissions: ['orders:write'] });
  const answered = await runH2load({ url, connections: 1, streams: 100, requests: 1_000, headers, bodyFile });
  t.same(answered, { succeeded: 1_000, broken: 0, statuses: [1_000, 0, 0, 0], bodyBytes: 65_536_000 });
  t.equal(await proxy.metric('sallyport_connections_ended_total{reason="http2_abuse"}'), 0);
});
