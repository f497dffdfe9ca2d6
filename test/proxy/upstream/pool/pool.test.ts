import { createServer, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import t from 'tap';
import { certificates } from '../../../support/certificates.js';
import { listen } from '../../../support/listening.js';
import { until } from '../../../support/until.js';
import { okResponse, startRawUpstream } from '../raw-upstream.js';
import { startUpstream, type Heard } from '../upstream-harness.js';

const handshake = { upgrade: 'websocket', fields: ['Host', 'a', 'Sec-WebSocket-Version', '13'] };
const refusal = 'HTTP/1.1 400 Bad Request\r\nContent-Length: 2\r\n\r\nno';

t.test('a handshake makes room where all connections are idle, and waits where all are busy', async (t) => {
  const held: Socket[] = [];
  let most = 0;
  const receiver = await startRawUpstream(t, (socket, received) => {
    most = Math.max(most, receiver.open());
    if (/upgrade: websocket/i.test(received)) socket.write(refusal);
    else held.push(socket);
  });
  const { upstream, send, ask } = startUpstream(t, receiver.url, { maxConnections: 2 });
  const answer = async (): Promise<void> => {
    (await until('one is held', () => held.shift())).write(okResponse('ok'));
  };
  const first = [send(), send()];
  const waiting = send(handshake);
  t.same(upstream.counts(), { active: 2, waiting: 1 });
  await answer();
  await until('it had its turn', () => waiting.ends() === 1);
  t.equal(waiting.status(), 400);
  await answer();
  await until('they ended', () => first.every((heard) => heard.ends() === 1));
  t.same(upstream.counts(), { active: 0, waiting: 0 });

  const both = [send(), send()];
  await answer();
  await answer();
  await until('they ended', () => both.every((heard) => heard.ends() === 1));
  const before = receiver.connections();
  t.equal(await ask(handshake), '400 no', 'one of the idle connections made room');
  t.equal(receiver.connections(), before + 1);
  await until('and one is left', () => receiver.open() === 1);
  t.ok(most <= 3, 'one that closes is still seen for a moment');
  t.same(upstream.counts(), { active: 0, waiting: 0 });
});

t.test('however they end, no more connections than may be, in order of their coming, and each ends once', async (t) => {
  const ways = [
    okResponse('ok'),
    okResponse('ok', 'Connection: close\r\n'),
    `${okResponse('ok')}x`,
    'garbage\r\n\r\n',
    'HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhel',
    '',
  ];
  const started: number[] = [];
  let most = 0;
  const { port } = await listen(
    t,
    createServer((socket) => {
      socket
        .on('error', () => undefined)
        .on('data', (head) => {
          const number = Number(/^GET \/(\d+)/.exec(head.toString('latin1'))?.[1]);
          started.push(number);
          const way = ways[number % ways.length] ?? '';
          socket.write(way);
          if (way === '' || way.endsWith('hel')) socket.resetAndDestroy();
        });
    }),
  );
  const { upstream, send } = startUpstream(t, `http://127.0.0.1:${String(port)}`, { maxConnections: 1 });
  const all: Heard[] = [];
  for (let i = 0; i < 120; i++) {
    const heard = send({ target: `/${String(i)}` });
    if (i % 10 === 7) heard.call.cancel();
    all.push(heard);
    most = Math.max(most, upstream.counts().active);
    // No more than wait in their order before it is known for a burst.
    if (i % 15 < 14) continue;
    await until('all ended', () => {
      most = Math.max(most, upstream.counts().active);
      return upstream.counts().active + upstream.counts().waiting === 0;
    });
  }
  t.equal(most, 1);
  t.same(
    all.map((heard) => heard.ends()),
    all.map((_, i) => (i % 10 === 7 ? 0 : 1)),
  );
  t.same(
    started,
    all.map((_, i) => i).filter((i) => i % 10 !== 7),
  );
});

const files = certificates(t);
const kinds = [
  { scheme: 'http', create: (onSocket: (socket: Socket) => void): Server => createServer(onSocket) },
  {
    scheme: 'https',
    create: (onSocket: (socket: Socket) => void): Server =>
      createTlsServer({ cert: files.server.cert, key: files.server.key }, onSocket),
  },
];
for (const { scheme, create } of kinds) {
  t.test(`${scheme}: what comes behind a response is not taken by who is next in line`, async (t) => {
    const { port } = await listen(
      t,
      create((socket) => {
        socket
          .on('error', () => undefined)
          .on('data', (head) => {
            const number = /^GET \/(\d+)/.exec(head.toString('latin1'))?.[1] ?? '';
            // The answer fills one read, so that the rest comes with the next one of the same turn.
            const length = 64 * 1024 - okResponse('x'.repeat(10_000)).length + 10_000;
            socket.write(okResponse(`${number};`.padEnd(length, 'x')) + okResponse('poison'));
          });
      }),
    );
    const { upstream, send } = startUpstream(
      t,
      `${scheme}://127.0.0.1:${String(port)}`,
      { maxConnections: 1 },
      files.ca.cert,
    );
    const all = Array.from({ length: 40 }, (_, i) => send({ target: `/${String(i)}` }));
    await until('all ended', () => all.every((heard) => heard.ends() === 1));
    t.same(
      all.map((heard) => heard.body().toString().split(';')[0]).filter((body, i) => body !== String(i)),
      [],
    );
    t.same(upstream.counts(), { active: 0, waiting: 0 });
  });
}

t.test('while many connections rest, requests wait for one of them, and no other is opened', async (t) => {
  // All are answered in one turn, and the next ones sent in the turn in which these end.
  const asking: Socket[] = [];
  let expected = 0;
  const receiver = await startRawUpstream(t, (socket) => {
    asking.push(socket);
    if (asking.length === expected) for (const one of asking.splice(0)) one.write(okResponse('ok'));
  });
  const { upstream, send } = startUpstream(t, receiver.url, { maxConnections: 200 });
  const askAtOnce = async (count: number): Promise<void> => {
    expected = count;
    const all: Heard[] = [];
    await Promise.all(
      Array.from(
        { length: count },
        () => new Promise<void>((resolve) => void all.push(send({}, undefined, undefined, resolve))),
      ),
    );
    t.same(
      all.map((heard) => heard.status()),
      all.map(() => 200),
    );
  };
  await askAtOnce(40);
  t.equal(receiver.connections(), 40);
  for (let i = 0; i < 20; i++) await askAtOnce(20);
  t.equal(receiver.connections(), 40, 'those that had carried a request a moment before');
  t.same(upstream.counts(), { active: 0, waiting: 0 });
});

t.test('an upstream that was replaced serves its line and keeps nothing', async (t) => {
  const receiver = await startRawUpstream(t, (socket) => socket.write(okResponse('ok')));
  const { upstream, send } = startUpstream(t, receiver.url, { maxConnections: 2 });
  const all = Array.from({ length: 10 }, () => send());
  upstream.retire();
  await until('all ended', () => all.every((heard) => heard.ends() === 1));
  t.same(
    all.map((heard) => heard.failure()),
    all.map(() => null),
  );
  await until('its connections are closed', () => receiver.open() === 0);
  t.same(upstream.counts(), { active: 0, waiting: 0 });
});

t.test('what waits for a connection that rests is served although the upstream is replaced meanwhile', async (t) => {
  const held: Socket[] = [];
  const receiver = await startRawUpstream(t, (socket, received) => {
    if (/^GET \/now /.test(received)) socket.write(okResponse('ok'));
    else held.push(socket);
  });
  const { upstream, send } = startUpstream(t, receiver.url, { maxConnections: 4, connectTimeoutMs: 1_000 });
  for (const holder of ['a', 'b', 'c']) send({ holder });
  await until('three are busy', () => held.length === 3);
  // One that rests for longer would be used at once.
  await new Promise<void>((resolve) => send({ target: '/now' }, undefined, undefined, resolve));
  const waiting = send({ target: '/now' });
  t.same(upstream.counts(), { active: 3, waiting: 1 });
  upstream.retire();
  await until('it ended', () => waiting.ends() === 1);
  t.equal(waiting.failure(), null);
});
