import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import t from 'tap';
import { certificates } from '../../support/certificates.js';
import { connectRaw, request } from '../../support/raw-client.js';
import type { Scope } from '../../support/scope.js';
import { until } from '../../support/until.js';
import { startProxy, type Harness } from '../harness.js';

const routes = [
  {
    name: 'orders',
    methods: ['GET', 'POST'],
    path: '/orders',
    subjects: ['checkout'],
    permissions: [],
    idempotency: 'none',
  },
  { name: 'open', methods: ['GET'], path: '/open', access: 'public' },
];

const first = 'GET /open HTTP/1.1\r\nHost: a\r\n\r\n';
const paddingBytes = 700;

/** How many of the numbered requests may be parsed before reading stops: what one read brings, and the one before. */
const inOneRead = 1 + Math.ceil((64 * 1024) / paddingBytes);

/** Counts the requests that the parser makes of what callers of this process send to it. */
function countParsed(t: Scope, proxy: Harness): () => number {
  let parsed = 0;
  const count = (message: unknown): void => {
    const { socket } = message as { socket: Socket };
    if (socket.localPort === proxy.port) parsed += 1;
  };
  subscribe('http.server.request.start', count);
  t.teardown(() => unsubscribe('http.server.request.start', count));
  return () => parsed;
}

interface Flood {
  readonly socket: Socket;
  /** What was answered so far. */
  readonly answered: () => string;
  /** Resolves when the other side takes no more. */
  readonly stalled: () => Promise<void>;
}

/** Sends `first`, then each of the requests, as fast as they are taken; reads nothing where it is `deaf`. */
async function flood(
  t: Scope,
  port: number,
  first: string,
  requests: readonly string[],
  { tls = false, deaf = false } = {},
): Promise<Flood> {
  const place = { port, host: '127.0.0.1' };
  const socket = tls ? connectTls({ ...place, rejectUnauthorized: false }) : connect(place);
  const answers: string[] = [];
  if (!deaf) socket.on('data', (chunk: Buffer) => answers.push(chunk.toString('latin1')));
  socket.on('error', () => undefined);
  t.teardown(() => socket.destroy());
  await once(socket, tls ? 'secureConnect' : 'connect');
  const closed = new Promise((resolve) => socket.once('close', resolve));
  let written = 0;
  const write = async (): Promise<void> => {
    socket.write(first);
    for (const request of requests) {
      written += 1;
      if (!socket.write(request)) await Promise.race([new Promise((resolve) => socket.once('drain', resolve)), closed]);
      if (socket.destroyed) return;
    }
  };
  void write();
  return {
    socket,
    answered: () => answers.join(''),
    stalled: async () => {
      let before = 0;
      let looks = 0;
      await until('nothing more is taken', () => {
        looks = socket.writableNeedDrain && written === before ? looks + 1 : 0;
        before = written;
        return looks === 30;
      });
    },
  };
}

/** Requests of about 750 bytes, each with its number as its id. */
function numbered(count: number, head: string): string[] {
  const padding = 'p'.repeat(paddingBytes);
  return Array.from(
    { length: count },
    (_, i) => `${head} HTTP/1.1\r\nHost: a\r\nX-Request-Id: ${String(i)}\r\nX-Padding: ${padding}\r\n\r\n`,
  );
}

t.test(
  'a flood of requests behind a slow response is not read, and is served in order when that is given',
  async (t) => {
    const proxy = await startProxy(t, { config: { routes } });
    const parsed = countParsed(t, proxy);
    const held: ServerResponse[] = [];
    proxy.receiver.behave((_req, res) => held.push(res));
    const caller = await flood(t, proxy.port, first, numbered(50_000, 'GET /orders'));
    await until('the first is with the receiver', () => held.length === 1);
    await caller.stalled();
    t.ok(parsed() <= inOneRead, `${String(parsed())} were parsed`);
    held[0]?.end('first');
    await until('all that one connection may ask is answered', () => caller.socket.closed);
    const ids = caller
      .answered()
      .split('X-Request-Id: ')
      .slice(2)
      .map((rest) => Number(rest.split('\r\n', 1)[0]));
    t.same(
      ids,
      Array.from({ length: 9_999 }, (_, i) => i),
    );
    t.match(caller.answered().slice(-600), 'Connection: close', 'the last one says so');
  },
);

t.test('so is one behind answers that are not read', async (t) => {
  const proxy = await startProxy(t, { config: { routes } });
  const parsed = countParsed(t, proxy);
  proxy.receiver.behave((_req, res) => res.end(Buffer.alloc(64 * 1024)));
  const caller = await flood(t, proxy.port, first, numbered(50_000, 'GET /open'), { deaf: true });
  await caller.stalled();
  const ahead = parsed() - proxy.receiver.requests.length;
  t.ok(ahead <= inOneRead, `${String(ahead)} were parsed ahead`);
});

t.test('so is one over TLS', async (t) => {
  const { server } = certificates(t);
  const proxy = await startProxy(t, {
    config: { listen: { tls: { cert_file: '/tls/tls.crt', key_file: '/tls/tls.key' } }, routes },
    tls: { cert: server.cert, key: server.key, clientCa: null, clientAuth: 'require' },
  });
  const parsed = countParsed(t, proxy);
  const held: ServerResponse[] = [];
  proxy.receiver.behave((_req, res) => held.push(res));
  const caller = await flood(t, proxy.port, first, numbered(30_000, 'GET /orders'), { tls: true });
  await until('the first is with the receiver', () => held.length === 1);
  await caller.stalled();
  t.ok(parsed() <= inOneRead, `${String(parsed())} were parsed`);
  held[0]?.end('first');
  await until('it goes on', () => caller.answered().includes('X-Request-Id: 2000'));
});

t.test('what comes behind a last response is not parsed', async (t) => {
  const proxy = await startProxy(t, { config: { routes } });
  const parsed = countParsed(t, proxy);
  const caller = await flood(t, proxy.port, 'POST /orders HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n', []);
  await until('it is refused', () => caller.answered().includes('Connection: close'));
  await until('our side has ended', () => caller.socket.readableEnded);
  caller.socket.write(`hello${first.repeat(100_000)}`);
  await until('the connection is closed', () => proxy.server.counts().connections === 0);
  t.equal(parsed(), 1);
});

t.test('many connections with small requests behind slow ones do not add up', async (t) => {
  const proxy = await startProxy(t, { config: { listen: { max_in_flight: 64 }, routes } });
  const parsed = countParsed(t, proxy);
  const held: ServerResponse[] = [];
  proxy.receiver.behave((_req, res) => held.push(res));
  const callers: Flood[] = [];
  for (let i = 0; i < 40; i += 1) {
    callers.push(await flood(t, proxy.port, first, ['GET /orders HTTP/1.1\r\n\r\n'.repeat(10_000)]));
  }
  await until('some are given up', () => callers.filter(({ socket }) => socket.closed).length >= 20);
  // Of each connection 100 may wait; those that are ended leave their part of the 1,024 to others.
  t.ok(parsed() <= 101 * callers.length, `${String(parsed())} were parsed`);
  t.ok(proxy.counted.connectionEndings.every((ending) => ending === 'too_much_waiting'));
  t.match(proxy.logged, [{ level: 'warn', message: /^connections were ended/ }]);
  proxy.receiver.behave(null);
  t.equal((await request(proxy.port, { path: '/open' })).status, 200, 'who does not do so is served');
  for (const res of held) res.end('first');
  const left = callers.filter(({ socket }) => !socket.closed);
  t.ok(left.length > 0, 'those that were there first are kept');
  await until('and get their answers', () => left.every(({ answered }) => answered().includes('first')));
});

t.test(
  'the parser stops in the midst of a read that brings too many requests, and those before are answered',
  async (t) => {
    const proxy = await startProxy(t, { config: { routes } });
    const parsed = countParsed(t, proxy);
    const held: ServerResponse[] = [];
    proxy.receiver.behave((_req, res) => held.push(res));
    const caller = await flood(t, proxy.port, first, ['GET /orders HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(1_500)]);
    await until('the first is with the receiver', () => held.length === 1);
    held[0]?.end('first');
    await until('the connection has ended', () => caller.socket.readableEnded);
    t.equal(parsed(), 101, 'the one that was served, and 100 behind it');
    const answers = caller.answered().split('HTTP/1.1 ').slice(1);
    t.equal(answers.length, 101);
    t.match(answers.at(-1), 'Connection: close', 'the caller knows which ones to send again');
  },
);

t.test('a caller that hangs up is noticed, whatever waits behind its request', async (t) => {
  const post = 'POST /orders HTTP/1.1\r\nHost: a\r\nContent-Length: 300000\r\n\r\n';
  const behind = {
    'one request': first,
    many: first.repeat(150),
    'a large body': `${post}${'b'.repeat(300_000)}`,
    'half a head': 'GET /op',
  };
  for (const [name, bytes] of Object.entries(behind)) {
    const proxy = await startProxy(t, { config: { routes } });
    const held: ServerResponse[] = [];
    proxy.receiver.behave((_req, res) => held.push(res));
    const connection = await connectRaw(proxy.port);
    connection.write(`${first}${first}`);
    await until('the first is with the receiver', () => held.length === 1);
    connection.write(bytes);
    connection.end();
    await until(
      `${name}: nothing is in flight`,
      () => proxy.server.counts().inFlight === 0 && proxy.server.counts().connections === 0,
    );
    await until('and the receiver is told', () => held[0]?.closed === true);
    t.match(proxy.records.at(0), { reason: 'caller_gone' }, name);
  }
});

t.test('a head that we did not read is not late, and has its time when we do', async (t) => {
  const proxy = await startProxy(t, { config: { listen: { header_timeout: '200ms' }, routes } });
  const held: ServerResponse[] = [];
  proxy.receiver.behave((_req, res) => held.push(res));
  for (const isCompleted of [true, false]) {
    const connection = await connectRaw(proxy.port);
    t.teardown(connection.end);
    connection.write(`${first}${first}GET /open HTTP/1.1\r\n`);
    const quick = await connectRaw(proxy.port);
    quick.write('GET /open HTTP/1.1\r\n');
    t.equal((await quick.readResponse())?.status, 408, 'by now it is late');
    await until('the first is with the receiver', () => held.length === 1);
    held.shift()?.end('one');
    t.equal((await connection.readResponse())?.text, 'one');
    await until('so is the second', () => held.length === 1);
    held.shift()?.end('two');
    t.equal((await connection.readResponse())?.text, 'two');
    if (!isCompleted) {
      t.equal((await connection.readResponse())?.status, 408);
      continue;
    }
    connection.write('Host: a\r\n\r\n');
    await until('so is the third', () => held.length === 1);
    held.shift()?.end('three');
    t.equal((await connection.readResponse())?.text, 'three');
  }
});
