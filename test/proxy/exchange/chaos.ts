/** Callers and a receiver that do what they like, chosen by a seed, and what has to hold whatever they do. */
import type { Socket } from 'node:net';
import { connectRaw, request } from '../../support/raw-client.js';
import { until } from '../../support/until.js';
import { startProxy, type Harness } from '../harness.js';
import { okResponse, startRawUpstream, type RawUpstream } from '../upstream/raw-upstream.js';
import type { Scope } from '../../support/scope.js';

export interface Chaos {
  readonly proxy: Harness;
  readonly upstream: RawUpstream;
  /** Lets this many callers loose, some at a time, and waits until all is quiet. */
  readonly run: (callers: number) => Promise<void>;
  /** Lets them loose and shuts down in their midst, with this much grace. */
  readonly runIntoDrain: (callers: number, graceMs: number) => Promise<void>;
  /** Resolves once an honest request is served, as it has to be afterwards. */
  readonly serveHonest: () => Promise<void>;
}

/** A sequence of numbers from 0 to 1 that is the same for the same seed (mulberry32). */
export function createRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

const answers: readonly ((socket: Socket) => void)[] = [
  (socket) => socket.write(okResponse('ok')),
  (socket) => socket.write(okResponse('ok')),
  (socket) => socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n'),
  (socket) => socket.write('HTTP/1.1 100 Continue\r\n\r\n' + okResponse('after')),
  (socket) => socket.write(okResponse('x'.repeat(100_000))),
  (socket) => socket.end(okResponse('and close')),
  (socket) => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf'),
  (socket) => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf'),
  (socket) => socket.end('HTTP/1.1 200 OK\r\n\r\nuntil close'),
  (socket) => socket.write('garbage\r\n\r\n'),
  (socket) => socket.resetAndDestroy(),
  (socket) => socket.end(),
  (socket) => socket.write(okResponse('ok') + okResponse('unasked')),
  () => undefined,
];

export async function startChaos(t: Scope, seed: number): Promise<Chaos> {
  const random = createRandom(seed);
  const upTo = (limit: number): number => Math.floor(random() * limit);
  let isHonest = false;
  const upstream = await startRawUpstream(t, (socket) => {
    const answer = answers[isHonest ? 0 : upTo(answers.length)];
    if (random() < 0.3 && !isHonest) setTimeout(() => answer?.(socket), upTo(20));
    else answer?.(socket);
  });
  const proxy = await startProxy(t, {
    upstreamUrl: upstream.url,
    config: {
      listen: { max_in_flight: 20, body_idle_timeout: '150ms', header_timeout: '200ms' },
      upstream: { max_connections: 5, connect_timeout: '200ms', response_timeout: '150ms', idle_timeout: '150ms' },
      routes: [
        {
          name: 'any',
          methods: ['*'],
          path: '/**',
          subjects: ['checkout'],
          permissions: [],
          max_body: '20KiB',
          idempotency: 'none',
        },
        { name: 'open', methods: ['GET'], path: '/open/**', access: 'public' },
      ],
    },
  });

  const message = (): string => {
    const credential = random() < 0.8 ? proxy.bearer() : '';
    const body = 'b'.repeat(upTo(30_000));
    const kinds = [
      `GET /a HTTP/1.1\r\nHost: a\r\n${credential}\r\n`,
      'GET /open/a HTTP/1.1\r\nHost: a\r\n\r\n',
      `HEAD /a HTTP/1.1\r\nHost: a\r\n${credential}\r\n`,
      `POST /a HTTP/1.1\r\nHost: a\r\n${credential}Content-Length: ${String(body.length)}\r\n\r\n${body}`,
      `POST /a HTTP/1.1\r\nHost: a\r\n${credential}Expect: 100-continue\r\nContent-Length: ${String(body.length)}\r\n\r\n${body}`,
      `POST /a HTTP/1.1\r\nHost: a\r\n${credential}Transfer-Encoding: chunked\r\n\r\n${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`,
      `POST /a HTTP/1.1\r\nHost: a\r\n${credential}Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nnonsense`,
      `GET /a HTTP/1.1\r\nHost: a\r\n${credential}Connection: upgrade\r\nUpgrade: h2c\r\n\r\n`,
      `GET /a HTTP/1.1\r\nHost: a\r\n${credential}Connection: close\r\n\r\n`,
      'CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n',
      'nonsense\r\n\r\n',
    ];
    return kinds[upTo(kinds.length)] ?? '';
  };
  const caller = async (): Promise<void> => {
    const connection = await connectRaw(proxy.port);
    let bytes = '';
    for (let i = 0; i <= upTo(4); i++) bytes += message();
    const end = random() < 0.5 ? bytes.length : upTo(bytes.length);
    for (let at = 0; at < end;) {
      const size = 1 + upTo(random() < 0.2 ? 50 : 60_000);
      connection.write(Buffer.from(bytes.slice(at, Math.min(end, at + size)), 'latin1'));
      at += size;
      if (random() < 0.3) await new Promise((resolve) => setTimeout(resolve, upTo(10)));
    }
    if (random() < 0.2) connection.socket.pause();
    await new Promise((resolve) => setTimeout(resolve, upTo(120)));
    const way = upTo(3);
    if (way === 0) connection.socket.resetAndDestroy();
    else if (way === 1) connection.socket.end();
    else connection.end();
    setTimeout(() => {
      connection.end();
    }, 300);
    await connection.closed;
  };
  const isQuiet = async (): Promise<void> => {
    await until('no connection is left', () => proxy.server.counts().connections === 0);
    await until('nothing is under way', () => proxy.server.counts().inFlight === 0);
    await until('the receiver is left alone', () => {
      const { active, waiting } = proxy.activeConfig().upstream.counts();
      return active === 0 && waiting === 0;
    });
  };
  return {
    proxy,
    upstream,
    run: async (callers) => {
      for (let left = callers; left > 0; left -= 25) {
        await Promise.all(Array.from({ length: Math.min(25, left) }, caller));
      }
      await isQuiet();
    },
    runIntoDrain: async (callers, graceMs) => {
      const loose = Array.from({ length: callers }, async () => caller().catch(() => undefined));
      await until('some are served', () => proxy.records.length > callers / 4);
      await proxy.server.drain(graceMs);
      await Promise.all(loose);
      await isQuiet();
    },
    serveHonest: async () => {
      isHonest = true;
      // The time-outs are short here: on a busy machine one or the other honest request may meet one.
      await until(
        'an honest request is served',
        async () => (await request(proxy.port, { path: '/a', headers: proxy.authorization() })).status === 200,
      );
    },
  };
}
