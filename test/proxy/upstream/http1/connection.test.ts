import type { Socket } from 'node:net';
import { PassThrough, Readable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { createServer } from 'node:tls';
import t from 'tap';
import { certificates } from '../../../support/certificates.js';
import { listen } from '../../../support/listening.js';
import { until } from '../../../support/until.js';
import type { UpstreamRequest } from '../../../../src/proxy/upstream/call.js';
import { okResponse, startRawUpstream } from '../raw-upstream.js';
import { rest, startUpstream } from '../upstream-harness.js';

const ok = okResponse('ok');

t.test('a connection carries another request only after a whole response that left nothing open', async (t) => {
  const chunked = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n';
  const cases: readonly {
    readonly answer: string;
    readonly ends?: true;
    readonly isReused: boolean;
    readonly isReusedAlways?: true;
  }[] = [
    { answer: ok, isReused: true },
    { answer: chunked, isReused: true },
    { answer: `HTTP/1.1 100 Continue\r\n\r\n${ok}`, isReused: true },
    { answer: ok.replace('1.1', '1.0'), isReused: false },
    { answer: okResponse('ok', 'Connection: keep-alive\r\n').replace('1.1', '1.0'), isReused: true },
    { answer: okResponse('ok', 'Connection: close\r\n'), isReused: false },
    { answer: okResponse('ok', 'Keep-Alive: timeout=0\r\n'), isReused: false },
    { answer: okResponse('ok', 'Keep-Alive: timeout=1\r\n'), isReused: false },
    { answer: okResponse('ok', 'Keep-Alive: timeout=20\r\n'), isReused: true },
    { answer: `${ok}x`, isReused: false },
    { answer: `${ok}${ok}`, isReused: false },
    { answer: `${chunked}\r\n`, isReused: false },
    { answer: 'HTTP/1.1 204 No Content\r\n\r\n', isReused: false, isReusedAlways: true },
    { answer: 'HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n', isReused: false, isReusedAlways: true },
    { answer: 'HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\n', isReused: false },
    { answer: 'HTTP/1.1 304 Not Modified\r\n\r\n', isReused: false, isReusedAlways: true },
    { answer: 'HTTP/1.1 304 Not Modified\r\nContent-Length: 0\r\n\r\n', isReused: true },
    { answer: 'HTTP/1.1 304 Not Modified\r\nContent-Length: 2\r\n\r\n', isReused: false, isReusedAlways: true },
    {
      answer: 'HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\n\r\n',
      isReused: false,
      isReusedAlways: true,
    },
    { answer: 'HTTP/1.1 200 OK\r\n\r\nok', ends: true, isReused: false },
  ];
  const tried = cases.flatMap((each) => (['safe', 'always', 'never'] as const).map((reuse) => ({ ...each, reuse })));
  await Promise.all(
    tried.map(async ({ answer, ends, isReused, isReusedAlways, reuse }) => {
      const name = `${reuse}: ${JSON.stringify(answer)}`;
      const receiver = await startRawUpstream(t, (socket) => {
        socket.write(answer, 'latin1');
        if (ends === true) socket.end();
      });
      const { ask, upstream } = startUpstream(t, receiver.url, { reuse });
      for (let i = 0; i < 3; i++) {
        t.match(await ask(), /^(?:200 ok|[23]04 )$/, name);
        await rest();
      }
      const isKept = reuse === 'safe' ? isReused : reuse === 'always' && (isReused || isReusedAlways === true);
      t.equal(receiver.connections(), isKept ? 1 : 3, name);
      if (!isKept) await until('none is kept', () => receiver.open() === 0);
      t.same(upstream.counts(), { active: 0, waiting: 0 });
    }),
  );
});

t.test(
  'what may leave something on a connection has one of its own, and the upstream is told that no other request follows',
  async (t) => {
    const body = Buffer.from('hello');
    const cases: readonly {
      readonly request: Partial<UpstreamRequest>;
      readonly isAlone: boolean;
      readonly isAloneWhereBodiesAreRead: boolean;
    }[] = [
      { request: { method: 'GET' }, isAlone: false, isAloneWhereBodiesAreRead: false },
      { request: { method: 'OPTIONS' }, isAlone: false, isAloneWhereBodiesAreRead: false },
      { request: { method: 'DELETE' }, isAlone: false, isAloneWhereBodiesAreRead: false },
      { request: { method: 'POST' }, isAlone: false, isAloneWhereBodiesAreRead: false },
      { request: { method: 'HEAD' }, isAlone: true, isAloneWhereBodiesAreRead: true },
      { request: { method: 'POST', body }, isAlone: true, isAloneWhereBodiesAreRead: false },
      { request: { method: 'PUT', body }, isAlone: true, isAloneWhereBodiesAreRead: false },
      { request: { method: 'PATCH', body }, isAlone: true, isAloneWhereBodiesAreRead: false },
      { request: { method: 'GET', body }, isAlone: true, isAloneWhereBodiesAreRead: true },
      { request: { method: 'DELETE', body }, isAlone: true, isAloneWhereBodiesAreRead: true },
      { request: { method: 'PROPFIND', body }, isAlone: true, isAloneWhereBodiesAreRead: true },
    ];
    const settings = [
      { reuse: 'safe', readsBodies: false },
      { reuse: 'safe', readsBodies: true },
      { reuse: 'always' },
      { reuse: 'never' },
    ] as const;
    const tried = cases.flatMap((each) => settings.map((more) => ({ ...each, more })));
    await Promise.all(
      tried.map(async ({ request, isAlone, isAloneWhereBodiesAreRead, more }) => {
        const name = JSON.stringify([request.method, request.body !== undefined, more]);
        const receiver = await startRawUpstream(t, (socket) =>
          socket.write(request.method === 'HEAD' ? okResponse('') : ok),
        );
        const { ask } = startUpstream(t, receiver.url, more);
        await ask();
        await rest();
        await ask(request);
        await rest();
        await ask();
        const isOwn =
          more.reuse === 'safe' ? (more.readsBodies ? isAloneWhereBodiesAreRead : isAlone) : more.reuse === 'never';
        const closing = receiver.received().filter((bytes) => bytes.includes('Connection: close\r\n'));
        t.equal(receiver.connections(), more.reuse === 'never' ? 3 : isOwn ? 2 : 1, name);
        t.equal(closing.length, more.reuse === 'never' ? 3 : isOwn ? 1 : 0, name);
        t.ok(closing.some((bytes) => bytes.startsWith(`${String(request.method)} `)) === isOwn, name);
      }),
    );
  },
);

t.test('a body that may be left unread by who refuses is on no connection that is kept', async (t) => {
  const body = Buffer.from('hello');
  const cases: readonly {
    readonly status: number;
    readonly request: Partial<UpstreamRequest>;
    readonly isKept: boolean;
  }[] = [
    { status: 200, request: { method: 'POST', body }, isKept: true },
    { status: 299, request: { method: 'DELETE', body }, isKept: true },
    { status: 302, request: { method: 'POST', body }, isKept: false },
    { status: 401, request: { method: 'PUT', body }, isKept: false },
    { status: 503, request: { method: 'POST', body }, isKept: false },
    { status: 401, request: { method: 'POST' }, isKept: true },
    { status: 404, request: { method: 'GET' }, isKept: true },
  ];
  await Promise.all(
    cases.map(async ({ status, request, isKept }) => {
      const answer = ok.replace('200', String(status));
      const receiver = await startRawUpstream(t, (socket) => socket.write(answer));
      const { ask } = startUpstream(t, receiver.url, { reuse: 'always', readsBodies: 'unless_refused' });
      for (let i = 0; i < 3; i += 1) {
        t.equal(await ask(request), `${String(status)} ok`);
        await rest();
      }
      t.equal(receiver.connections(), isKept ? 1 : 3, `${String(request.method)} ${String(status)}`);
    }),
  );
});

t.test(
  'a connection of its own is left to the upstream to end, for a while, and gives way where there is no room',
  async (t) => {
    const receiver = await startRawUpstream(t, (socket) => socket.write(ok));
    const { ask, upstream } = startUpstream(t, receiver.url, { maxConnections: 2, reuse: 'never' });
    t.equal(await ask(), '200 ok');
    t.same([receiver.open(), upstream.counts()], [1, { active: 0, waiting: 0 }]);
    await until('it is ended where the receiver does not', () => receiver.open() === 0);
    for (let i = 0; i < 20; i++) {
      t.equal(await ask(), '200 ok');
      t.ok(receiver.open() <= 3, 'no more than there may be, and one that is on its way');
    }
    await upstream.close();
    await until('all are gone', () => receiver.open() === 0);
  },
);

t.test('a response that comes in many pieces at once is read in their order, and its end behind them', async (t) => {
  const files = certificates(t);
  // Each write is a record of its own, which is unwrapped and handed on by itself, whatever came with it.
  const pieces = [
    'HTTP/1.1 103 Early Hints\r\n\r\n',
    'HTTP/1.1 200 OK\r\nContent-',
    'Length: 9\r\n\r\nab',
    'cd',
    'efghi',
  ];
  const behaviours: readonly ((socket: Socket) => void)[] = [
    () => undefined,
    (socket) => socket.end(),
    (socket) => socket.write('more'),
    (socket) => socket.destroySoon(),
  ];
  for (const [i, behave] of behaviours.entries()) {
    const server = createServer({ key: files.server.key, cert: files.server.cert }, (socket) => {
      socket
        .on('error', () => undefined)
        .on('data', () => {
          socket.cork();
          for (const piece of pieces) socket.write(piece);
          behave(socket);
          socket.uncork();
        });
    });
    const { port } = await listen(t, server);
    const { ask, upstream } = startUpstream(t, `https://127.0.0.1:${String(port)}`, {}, files.ca.cert);
    for (let asked = 0; asked < 3; asked++) t.equal(await ask(), '200 abcdefghi', String(i));
    t.same(upstream.counts(), { active: 0, waiting: 0 });
  }
});

t.test('a sink that stops in what was set aside hears the rest when it goes on', async (t) => {
  const body = 'x'.repeat(5_000);
  const receiver = await startRawUpstream(t, (socket) => {
    socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${String(2 * body.length)}\r\n\r\n${body}`);
    setTimeout(() => socket.write(body), 5);
  });
  const { send } = startUpstream(t, receiver.url);
  const resumes: (() => void)[] = [];
  const heard = send({}, (_bytes, resume) => {
    resumes.push(resume);
    return false;
  });
  await until('the first piece is heard', () => resumes.length === 1);
  await delay(50);
  t.equal(heard.body().length, body.length, 'nothing more is read while it stops');
  t.equal(heard.ends(), 0);
  resumes[0]?.();
  await until('it ends', () => heard.ends() === 1);
  t.equal(heard.body().length, 2 * body.length);
});

t.test('an idle connection on which anything happens is dropped', async (t) => {
  for (const how of ['data', 'end', 'reset'] as const) {
    const receiver = await startRawUpstream(t, (socket, _received, number) => {
      socket.write(ok);
      if (number === 1) return;
      setTimeout(() => {
        if (how === 'data') socket.write('x');
        else if (how === 'end') socket.end();
        else socket.resetAndDestroy();
      }, 5);
    });
    const { ask, upstream } = startUpstream(t, receiver.url, { maxConnections: 1 });
    t.equal(await ask(), '200 ok');
    await rest();
    t.equal(await ask(), '200 ok');
    await until('it is dropped', () => receiver.open() === 0);
    t.equal(await ask(), '200 ok', how);
    t.equal(receiver.connections(), 2);
    t.same(upstream.counts(), { active: 0, waiting: 0 });
  }
});

/** When a request is broken off: what the receiver does by then, and how the moment is known. */
const moments = [
  { name: 'before it is connected', answer: null },
  { name: 'before the first byte of the answer', answer: '' },
  { name: 'in the head', answer: 'HTTP/1.1 200 OK\r\nA' },
  { name: 'after the head', answer: 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n' },
  { name: 'in the body', answer: 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel' },
  {
    name: 'in the body, while it is stopped',
    answer: 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel',
    isStopped: true,
  },
];

t.test('broken off at any moment, a request ends once and leaves neither connection nor timer', async (t) => {
  for (const { name, answer, isStopped } of moments) {
    for (const isUploading of [false, true]) {
      const receiver = await startRawUpstream(t, (socket) => socket.write(answer ?? ''));
      const { upstream, send } = startUpstream(t, receiver.url, { maxConnections: 1 });
      const timers = activeTimers();
      const body = isUploading ? new PassThrough() : null;
      body?.write('half of it');
      const heard = send({ method: 'POST', body }, () => isStopped !== true);
      if (answer !== null) await until(name, () => receiver.hits() === 1);
      if (answer?.includes('\r\n\r\n') === true) await until(name, () => heard.status() !== null);
      if (answer?.endsWith('hel') === true) await until(name, () => heard.body().length === 3);
      if (answer !== null && isUploading) await until(name, () => receiver.received().join('').includes('half of it'));
      heard.call.cancel();
      heard.call.cancel();
      heard.call.resume();
      await until('its place is free', () => upstream.counts().active === 0);
      await until('the connection is gone', () => receiver.open() === 0);
      await until('its timers are gone', () => activeTimers() <= timers);
      t.equal(heard.ends(), 0, `${name}: who cancelled hears nothing`);
      body?.end('and the rest');
      t.equal(receiver.received().join('').includes('rest'), false, 'no more of the body is sent');
    }
  }
});

t.test('an upstream that closes tells each request once, whether it waits or is under way', async (t) => {
  for (const { name, answer, isStopped } of moments) {
    const receiver = await startRawUpstream(t, (socket) => socket.write(answer ?? ''));
    const { upstream, send } = startUpstream(t, receiver.url, { maxConnections: 1 });
    const first = send({}, () => isStopped !== true);
    const second = send();
    if (answer !== null) await until(name, () => receiver.hits() === 1);
    if (answer?.endsWith('hel') === true) await until(name, () => first.body().length === 3);
    await upstream.close();
    await upstream.close();
    t.same(
      [first.ends(), first.failure()?.reason],
      [1, answer === null ? 'upstream_unreachable' : 'upstream_failed'],
      name,
    );
    t.same([second.ends(), second.failure()?.reason], [1, 'shutting_down'], name);
    await until('the connection is gone', () => receiver.open() === 0);
    t.same(upstream.counts(), { active: 0, waiting: 0 });
  }
});

t.test('who cancels too late does not hit the next request on the connection', async (t) => {
  const answers: (() => boolean)[] = [];
  const receiver = await startRawUpstream(t, (socket, _received, number) => {
    if (number === 1) socket.write(ok);
    else answers.push(() => socket.write(ok));
  });
  const { send } = startUpstream(t, receiver.url, { maxConnections: 1 });
  const first = send();
  await until('the first ended', () => first.ends() > 0);
  await rest();
  const second = send();
  await until('the second is there', () => receiver.hits() === 2);
  first.call.cancel();
  first.call.resume();
  for (const answer of answers) answer();
  await until('the second ended', () => second.ends() > 0);
  t.same([first.ends(), second.ends(), second.failure(), second.body().toString()], [1, 1, null, 'ok']);
  t.equal(receiver.connections(), 1);
});

t.test('a response that comes before the body was sent is taken, and its connection is not used again', async (t) => {
  const receiver = await startRawUpstream(t, (socket) => socket.write(ok));
  const { upstream, send, ask } = startUpstream(t, receiver.url);
  for (const length of [null, 10]) {
    const before = receiver.connections();
    const body = new PassThrough();
    body.write('hello');
    const fields = ['Host', 'a', ...(length === null ? [] : ['Content-Length', String(length)])];
    const heard = send({ method: 'POST', headers: fields, body });
    await until('it ended', () => heard.ends() > 0);
    t.same([heard.failure(), heard.body().toString()], [null, 'ok']);
    await rest();
    t.equal(await ask(), '200 ok');
    t.equal(receiver.connections(), before + 2 - (length === null ? 0 : 1), 'the idle one of before is taken first');
    body.destroy(new Error('nobody hears of it'));
    t.same(upstream.counts(), { active: 0, waiting: 0 });
  }
});

t.test('a body goes out as it was said to, or the connection ends', async (t) => {
  const object = (...pieces: readonly string[]): Readable => Readable.from(pieces.map((piece) => Buffer.from(piece)));
  const chunks = 'Transfer-Encoding: chunked\r\n\r\n';
  const ended = object('a').resume();
  await until('it was read by somebody else', () => ended.destroyed);
  const broken = object('hello');
  broken.on('error', () => undefined).destroy(new Error('the caller left'));
  const cases: readonly {
    readonly name: string;
    readonly body: Readable | Buffer;
    readonly length?: number;
    readonly sent: string | null;
  }[] = [
    { name: 'in chunks', body: object('hello', ' world'), sent: `${chunks}5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n` },
    { name: 'in chunks, none of them', body: object(), sent: `${chunks}0\r\n\r\n` },
    {
      name: 'an empty piece is not the last one',
      body: object('a', '', 'b'),
      sent: `${chunks}1\r\na\r\n1\r\nb\r\n0\r\n\r\n`,
    },
    { name: 'with a length', body: object('hel', 'lo'), length: 5, sent: '\r\n\r\nhello' },
    { name: 'with a length of none', body: object(), length: 0, sent: '\r\n\r\n' },
    { name: 'shorter than was said', body: object('hell'), length: 5, sent: null },
    { name: 'longer than was said', body: object('hello', '!'), length: 5, sent: null },
    { name: 'longer in one piece', body: object('hello!'), length: 5, sent: null },
    { name: 'more than none', body: object('hello'), length: 0, sent: null },
    { name: 'ended before', body: ended, sent: null },
    { name: 'broken before', body: broken, sent: null },
    { name: 'whole', body: Buffer.from('hello'), length: 5, sent: '\r\n\r\nhello' },
    { name: 'whole, and nobody said how long', body: Buffer.from('hello'), sent: 'Content-Length: 5\r\n\r\nhello' },
    { name: 'whole and large', body: Buffer.alloc(20_000, 'x'), length: 20_000, sent: `\r\n\r\n${'x'.repeat(20_000)}` },
    { name: 'whole, shorter than was said', body: Buffer.from('hell'), length: 5, sent: null },
    { name: 'whole, longer than was said', body: Buffer.from('hello!'), length: 5, sent: null },
  ];
  for (const { name, body, length, sent } of cases) {
    const receiver = await startRawUpstream(t, (socket) => {
      const wait = setInterval(() => {
        if (sent === null || !receiver.received().join('').endsWith(sent)) return;
        clearInterval(wait);
        socket.write(ok);
      }, 1);
      socket.on('close', () => {
        clearInterval(wait);
      });
    });
    const { upstream, send } = startUpstream(t, receiver.url);
    const heard = send({
      method: 'POST',
      headers: ['Host', 'a', ...(length === undefined ? [] : ['Content-Length', String(length)])],
      body,
    });
    await until('it ended', () => heard.ends() > 0);
    t.equal(heard.failure() === null, sent !== null, name);
    if (sent === null) await until('the connection is gone', () => receiver.open() === 0);
    t.equal(receiver.received().join('').includes('!'), false, 'not one byte more than was said');
    t.same([heard.ends(), upstream.counts()], [1, { active: 0, waiting: 0 }], name);
  }
});

t.test('a head that would say something else than was meant is not sent: 500', async (t) => {
  const receiver = await startRawUpstream(t, (socket) => socket.write(ok));
  const { send, ask } = startUpstream(t, receiver.url);
  for (const fields of [
    ['Host', 'a\r\nX: y'],
    ['Host', 'a', 'Content-Length', '5'],
    ['Host', 'a', 'Transfer-Encoding', 'chunked'],
  ]) {
    const heard = send({ headers: fields });
    await until('it ended', () => heard.ends() > 0);
    t.equal(heard.failure()?.reason, 'internal', JSON.stringify(fields));
  }
  t.equal(receiver.hits(), 0);
  t.equal(await ask(), '200 ok');
});

function activeTimers(): number {
  return process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
}
