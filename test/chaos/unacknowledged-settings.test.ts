/** Connections of HTTP/2 whose callers never acknowledge settings, and what is left of them. */
import t from 'tap';
import { timesAtOnce } from '../support/at-once.js';
import { residentBytes } from '../support/linux.js';
import { connectFrames, frameTypes, headers, type Frame } from '../support/http2-frames.js';
import { startProxyProcess } from '../support/proxy-process.js';
import { asInTheImage } from './strangers.js';

t.setTimeout(180_000);

const connections = 4_000;
const atOnce = 8;

const open = [':method', 'GET', ':scheme', 'http', ':path', '/open', ':authority', 'a'];

/** What a caller does behind the preface and its own settings, before it leaves. */
const ways = [
  { name: 'nothing', bytes: [], isEnd: () => true },
  {
    name: 'a request',
    bytes: [headers(1, open)],
    isEnd: ({ type }: Frame) => type === frameTypes.headers,
  },
];

for (const { name, bytes, isEnd } of ways) {
  t.test(`connections that end without it leave nothing behind: ${name}`, async (t) => {
    const proxy = await startProxyProcess(t, {
      env: { ...asInTheImage, MALLOC_ARENA_MAX: '1' },
      config: {
        listen: { http2: true },
        routes: [{ name: 'open', methods: ['GET'], path: '/open', access: 'public' }],
      },
    });
    const once = async (): Promise<void> => {
      const { socket, write, next, closed } = await connectFrames(t, proxy.port);
      for (const each of bytes) write(each);
      await next('what it waits for', isEnd);
      socket.end();
      await closed;
    };
    await timesAtOnce(1_000, atOnce, once);
    const before = residentBytes(proxy.process.pid);
    await timesAtOnce(connections, atOnce, once);
    const grown = (residentBytes(proxy.process.pid) - before) / 1024 ** 2;
    t.comment(`${grown.toFixed(0)} MiB more`);
    t.ok(grown <= 40, 'at most 40 MiB more, which is what a collection finds later');
  });
}
