/** Heads of HTTP/2 as large as they may be, as many as may be open, and what the process takes for them. */
import t from 'tap';
import { peakBytes } from '../support/linux.js';
import { startProxyProcess } from '../support/proxy-process.js';
import { connectFrames, frameTypes, headers } from '../support/http2-frames.js';
import { until } from '../support/until.js';
import { asInTheImage } from './strangers.js';

t.setTimeout(120_000);

const connections = 31;
const streams = 100;
const rounds = 3;

t.test('heads whose streams stay open take no more than a pod has that reserves nothing', async (t) => {
  const proxy = await startProxyProcess(t, {
    env: { ...asInTheImage, MALLOC_ARENA_MAX: '1' },
    config: {
      listen: { http2: true },
      routes: [{ name: 'open', methods: ['GET'], path: '/open', access: 'public' }],
    },
  });
  const fields = [
    ...[':method', 'GET', ':scheme', 'http', ':path', '/open', ':authority', 'a'],
    ...Array.from({ length: 230 }, (_, i) => [`x${String(i)}`, 'v'.repeat(50)]).flat(),
  ];
  const clients = await Promise.all(Array.from({ length: connections }, async () => connectFrames(t, proxy.port)));
  for (let round = 0; round < rounds; round += 1) {
    for (const { write } of clients) {
      const first = 1 + round * 2 * streams;
      for (let stream = first; stream < first + 2 * streams; stream += 2) write(headers(stream, fields, false));
    }
    // Those that wait are answered after five seconds, and the others refused at once.
    const ended = (round + 1) * connections * streams;
    await until(
      'every stream is ended',
      () =>
        clients.reduce((sum, { frames }) => sum + frames.filter(({ type }) => type === frameTypes.reset).length, 0) >=
        ended,
      60_000,
    );
  }
  t.notOk(
    clients.some(({ frames }) => frames.some(({ type }) => type === frameTypes.goAway)),
    'no connection is ended for it',
  );
  const mib = peakBytes(proxy.process.pid) / 1024 ** 2;
  t.comment(`${mib.toFixed(0)} MiB`);
  t.ok(mib <= 256, 'at most 256 MiB');
});
