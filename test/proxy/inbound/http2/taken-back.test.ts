/** Uploads that their callers take back while they are held back. */
import { createServer } from 'node:net';
import t from 'tap';
import { connectHttp2 } from '../../../support/http2-client.js';
import { listen } from '../../../support/listening.js';
import { until } from '../../../support/until.js';
import { startProxy } from '../../harness.js';

t.test('an upload that its caller takes back with NO_ERROR while the upstream reads nothing is over', async (t) => {
  const upstream = createServer((socket) => socket.on('error', () => undefined).pause());
  const { port } = await listen(t, upstream);
  const route = {
    ...{ name: 'upload', methods: ['POST'], path: '/upload', subjects: ['checkout'], permissions: [] },
    ...{ max_body: '64MiB', idempotency: { mode: 'none', because: 'a test' } },
  };
  const proxy = await startProxy(t, {
    upstreamUrl: `http://127.0.0.1:${String(port)}`,
    config: { listen: { http2: true }, routes: [route] },
  });
  const session = await connectHttp2(t, `http://127.0.0.1:${String(proxy.port)}`);
  const { Authorization: authorization } = proxy.authorization();
  const stream = session.request({ ':method': 'POST', ':path': '/upload', authorization });
  stream.on('error', () => undefined);
  stream.write(Buffer.alloc(32 * 1024 * 1024));
  let sent = 0;
  let looks = 0;
  // Caller and proxy take turns in this process: however slow it is, both had a hundred of them.
  await until('nothing more is taken', () => {
    const { bytesWritten } = session.socket;
    looks = bytesWritten === sent ? looks + 1 : 0;
    sent = bytesWritten;
    return sent > 65_535 && looks >= 100;
  });
  t.equal(proxy.server.counts().inFlight, 1);
  stream.close(0);
  const isFree = (): boolean => proxy.server.counts().inFlight === 0 && proxy.server.counts().streams === 0;
  await until('nothing is held', isFree, 5_000);
  t.same(
    proxy.records.map(({ reason }) => reason),
    ['caller_gone'],
  );
  t.same(
    proxy.logged.filter(({ level }) => level === 'error'),
    [],
  );
});
