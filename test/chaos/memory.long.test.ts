/** docs/idempotency.md "When something fails": what is large, endless or full stays within bounds. */
import type { ServerResponse } from 'node:http';
import t from 'tap';
import { peakBytes } from '../support/linux.js';
import { until } from '../support/until.js';
import { beginWrite, problemOrStatus, shareRedis, write } from './shared-redis.js';

t.setTimeout(120_000);

t.test('10 MiB responses to callers that do not read, and endless ones, take bounded memory', async (t) => {
  const shared = await shareRedis(t, { config: { upstream: { connect_timeout: '1s', response_timeout: '20s' } } });
  const proxy = await shared.startProxy();
  await write(proxy, { key: 'warm' });
  const before = peakBytes(proxy.process.pid);
  let endless = 0;
  shared.receiver.behave((req, res) => {
    req.resume().on('end', () => {
      const isEndless = String(req.headers['idempotency-key']).startsWith('endless');
      if (isEndless) endless += 1;
      pour(res, isEndless ? Number.MAX_SAFE_INTEGER : 10 * 1024 * 1024);
    });
  });
  const stalled = await Promise.all(
    Array.from({ length: 50 }, async (_, i) => {
      const connection = await beginWrite(t, proxy, { key: `large-${i}` });
      connection.socket.pause();
      return connection;
    }),
  );
  const reading = await Promise.all([0, 1, 2].map(async (i) => beginWrite(t, proxy, { key: `endless-${i}` })));
  let bytes = 0;
  // Read and forget: the raw client would keep it.
  for (const { socket } of reading) {
    socket.removeAllListeners('data');
    socket.on('data', (chunk) => (bytes += chunk.length));
  }
  await until('200 MiB of the endless answers', () => bytes > 200 * 1024 * 1024);
  await until(
    'every status to be kept',
    async () => (await shared.states()).filter((state) => state === 'tombstone').length === 53,
  );
  const growth = peakBytes(proxy.process.pid) - before;
  t.ok(growth < 250 * 1024 * 1024, `${Math.round(growth / 1024 / 1024)} MiB more`);
  for (const connection of [...stalled, ...reading]) connection.end();
  await until(
    'all to be let go',
    async () => (await proxy.metric('sallyport_requests_in_flight')) === 0 && shared.receiver.open() <= 128,
  );
  t.equal(endless, 3);
  t.equal(problemOrStatus(await write(proxy, { key: 'large-7' })), 'idempotency-result-not-replayable');
});

t.test('Redis out of memory: new writes are 503, what runs is completed, and what was kept is shown', async (t) => {
  const shared = await shareRedis(t);
  const proxy = await shared.startProxy();
  let held: ServerResponse | null = null;
  t.equal((await write(proxy, { key: 'kept' })).status, 200);
  shared.receiver.behave((req, res) => {
    req.resume().on('end', () => (held = res));
  });
  const connection = await beginWrite(t, proxy, { key: 'running' });
  const answer = await until('the receiver to have it', () => held);
  const { client } = shared.redis;
  await client.config('SET', 'maxmemory', '100000');
  t.equal(problemOrStatus(await write(proxy, { key: 'new' })), 'store-unavailable');
  answer.end('done');
  t.equal((await connection.readResponse())?.text, 'done');
  t.same(await shared.states(), ['completed', 'completed']);
  await client.config('SET', 'maxmemory', '0');
  shared.receiver.behave(null);
  await until('it to take writes again', async () => (await write(proxy, { key: 'new' })).status === 200);
  t.equal((await write(proxy, { key: 'running' })).text, 'done');
  t.equal((await write(proxy, { key: 'kept' })).field('Idempotent-Replayed'), 'true');
});

function pour(res: ServerResponse, bytes: number): void {
  res.writeHead(200, {});
  const chunk = Buffer.alloc(64 * 1024);
  let left = bytes;
  const more = (): void => {
    while (!res.destroyed && left > 0) {
      left -= chunk.length;
      if (!res.write(chunk)) {
        res.once('drain', more);
        return;
      }
    }
    if (!res.destroyed) res.end();
  };
  more();
}
