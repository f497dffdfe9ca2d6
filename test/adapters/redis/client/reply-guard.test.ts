import { Redis } from 'ioredis';
import dataHandler from 'ioredis/built/DataHandler.js';
import { createServer, type Socket } from 'node:net';
import { Readable } from 'node:stream';
import { createServer as createTlsServer, type TlsOptions } from 'node:tls';
import t, { type Test } from 'tap';
import { createConnection } from '../../../../src/adapters/redis/client/connection.js';
import { subscribeToRevocations } from '../../../../src/adapters/redis/revocation-channel.js';
import { certificates } from '../../../support/certificates.js';
import { bulk, startFakeRedis } from '../../../support/fake-redis.js';
import { listen } from '../../../support/listening.js';
import { startRedis } from '../../../support/redis-server.js';
import { startRelay } from '../../../support/tcp-relay.js';
import { until } from '../../../support/until.js';
import { acquire, freshScope, reserveOf } from '../../store-commands.js';
import { openStore, redisSettings } from '../redis-store.js';

t.jobs = 4;

const well = `*3\r\n${bulk('subscribe')}${bulk('news')}:1\r\n`;

for (const [name, answer] of [
  ['a number', ':1\r\n'],
  ['null', '$-1\r\n'],
  ['an array of nothing', '*0\r\n'],
  ['a text of one byte', '+O\r\n'],
  ['a message of nulls', `${well}*3\r\n${bulk('message')}$-1\r\n$-1\r\n`],
  ['an array of a null', `${well}*1\r\n$-1\r\n`],
  ['a push of a null', `${well}>1\r\n_\r\n`],
  ['a push to subscribe to null', '>3\r\n$9\r\nsubscribe\r\n_\r\n:1\r\n'],
  ['what is no reply, and a good one behind it', `:1\r\n${well}`],
] as const) {
  t.test(`a subscription that is answered with ${name} is made anew`, async (t) => {
    let asked = 0;
    const { port } = await startFakeRedis(t, () => ((asked += 1) === 1 ? answer : well));
    const address = { host: '127.0.0.1', port };
    const channel = subscribeToRevocations(
      redisSettings(port),
      'news',
      () => address,
      () => undefined,
    );
    t.teardown(() => channel.close());
    await until('it listens again', () => asked > 1 && channel.isOpen());
  });
}

for (const [name, bytes] of [
  ['a null', '$-1\r\n'],
  ['a null of RESP3', '_\r\n'],
  ['a push of a null', '>1\r\n_\r\n'],
  ['a push to subscribe to null', '>3\r\n$9\r\nsubscribe\r\n_\r\n:1\r\n'],
] as const) {
  t.test(`a connection on which comes ${name}, and nobody asked, is made anew`, async (t) => {
    const server = await startRedis(t);
    const relay = await startRelay(t, server.port);
    const { store, log, up } = openStore(t, redisSettings(relay.port));
    await up();
    const before = relay.accepted();
    relay.inject(Buffer.from(bytes));
    await until('another connection', () => relay.accepted() > before);
    await up();
    await acquire(store, freshScope(), reserveOf('a'));
    t.match(log.lines.join('\n'), /the server sends what is (no reply to what it was asked|not RESP 2)/);
  });
}

t.test('what waits for an answer behind a bad one gets none', async (t) => {
  const { port } = await startFakeRedis(t, ([command]) =>
    command === 'subscribe' ? `:1\r\n${bulk('of another')}` : null,
  );
  const connection = createConnection(redisSettings(port), { host: '127.0.0.1', port }, () => 60_000);
  t.teardown(() => connection.disconnect(false));
  connection.on('error', () => undefined);
  await connection.connect();
  void connection.subscribe('news');
  await t.rejects(connection.call('unsubscribe', 'news'), /Reached the max retries|closed/);
});

/** Answers the first question of a connection by these bytes, as fast as they are taken, and says no more. */
async function startTalker(t: Test, answer: () => Iterable<Buffer>, tls: TlsOptions | null = null): Promise<number> {
  const talk = (socket: Socket): void => {
    socket.on('error', () => undefined).once('data', () => Readable.from(answer()).pipe(socket, { end: false }));
  };
  const server = tls === null ? createServer(talk) : createTlsServer(tls, talk);
  return (await listen(t, server)).port;
}

const mebibyte = Buffer.alloc(1024 * 1024, 'a');

const { ca, server } = certificates(t);

for (const [name, start, isTls] of [
  ['a text', '$99999999999\r\n', false],
  ['a text, over TLS', '$99999999999\r\n', true],
  ['an error', '-ERR ', false],
  ['an error over TLS', '-ERR ', true],
  ['a list', '*99999999\r\n$99999999999\r\n', false],
  ['a list of small parts', `*1000000000\r\n${'$1\r\nA\r\n'.repeat(1_000)}`, false],
  ['lists in lists', '*250000\r\n'.repeat(1_000), true],
] as const) {
  t.test(`a reply without an end is read no further than the largest one may be: ${name}`, async (t) => {
    let sent = 0;
    const talk = function* (): Iterable<Buffer> {
      yield Buffer.from(start);
      for (; sent < 400; sent += 1) yield mebibyte;
    };
    const port = await startTalker(t, talk, isTls ? { cert: server.cert, key: server.key } : null);
    const settings = redisSettings(port, isTls ? { tls: { ca: () => ca.cert, serverName: null } } : {});
    const connection = createConnection(settings, { host: '127.0.0.1', port }, () => 60_000);
    t.teardown(() => connection.disconnect(false));
    const reasons: string[] = [];
    connection.on('error', ({ message }: Error) => reasons.push(message));
    await connection.connect();
    await t.rejects(connection.subscribe('news'));
    t.same(reasons, ['the server sends a reply without an end']);
    t.ok(sent < 150, `${String(sent)} MiB`);
  });
}

t.test('a message without an end is read no further than some 64 KiB, and the subscription is made anew', async (t) => {
  let asked = 0;
  let held = 0;
  const port = await startTalker(t, function* () {
    asked += 1;
    yield Buffer.from(well);
    for (let count = 0; count < 1_000; count += 1) {
      yield Buffer.from(`*3\r\n${bulk('message')}${bulk('news')}$1\r\na\r\n`);
    }
    if (asked > 1) return;
    yield Buffer.from(`*3\r\n${bulk('message')}${bulk('news')}$1000000\r\n`);
    for (; held < 64; held += 1) yield mebibyte;
  });
  let messages = 0;
  const channel = subscribeToRevocations(
    redisSettings(port),
    'news',
    () => ({ host: '127.0.0.1', port }),
    () => (messages += 1),
  );
  t.teardown(() => channel.close());
  // Those that came together with what has no end are not told, but for the news that it listens again.
  await until('all is heard on another connection', () => messages > 1_000 && asked === 2 && channel.isOpen());
  t.ok(held < 32, `${String(held)} MiB`);
});

t.test('lists of revocations as long as they may be are read, one after the other', async (t) => {
  const record = Buffer.from(bulk('a'.repeat(8_192)));
  const port = await startTalker(t, function* () {
    for (let list = 0; list < 2; list += 1) {
      yield Buffer.from('*10000\r\n');
      for (let count = 0; count < 10_000; count += 1) yield record;
    }
  });
  const connection = createConnection(redisSettings(port), { host: '127.0.0.1', port }, () => 60_000);
  t.teardown(() => connection.disconnect(false));
  await connection.connect();
  const lists = await Promise.all([connection.call('list'), connection.call('list')]);
  t.same(
    lists.map((list) => (list as unknown[]).length),
    [10_000, 10_000],
  );
});

t.test('a client that the application has beside ours is as it was', async (t) => {
  const { port } = await startRedis(t);
  const own = new Redis({ host: '127.0.0.1', port, protocol: 3, disconnectTimeout: 50 });
  t.teardown(() => own.disconnect());
  await own.config('SET', 'proto-max-bulk-len', '512mb');
  const list = await own.eval('local t = {} for i = 1, 300000 do t[i] = i end return t', 0);
  t.equal((list as unknown[]).length, 300_000);
});

t.test('DataHandler.dispatch of ioredis: each whole reply goes by it, of whatever kind', async (t) => {
  const handler = dataHandler.default.prototype as unknown as {
    readonly redis: unknown;
    dispatch: (handle: () => void) => void;
  };
  const { dispatch } = handler;
  t.teardown(() => (handler.dispatch = dispatch));
  const replies: unknown[] = [];
  handler.dispatch = function counted(handle) {
    replies.push(this.redis);
    dispatch.call(this, handle);
  };
  const answers = ['+OK\r\n', '-ERR no\r\n', `*1\r\n${bulk('a')}`, '$-1\r\n'];
  let asked = 0;
  const { port } = await startFakeRedis(t, () => answers[asked++] ?? null);
  const connection = createConnection(redisSettings(port), { host: '127.0.0.1', port }, () => 60_000);
  t.teardown(() => connection.disconnect(false));
  await connection.connect();
  const settled = await Promise.allSettled(answers.map(async () => connection.call('ask')));
  t.same(
    settled.map((one) => (one.status === 'fulfilled' ? one.value : 'rejected')),
    ['OK', 'rejected', ['a'], null],
  );
  // Connections of the tests before may end yet.
  t.equal(replies.filter((redis) => redis === connection).length, answers.length);
});
