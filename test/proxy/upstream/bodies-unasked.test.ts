/**
 * Receivers that send a body where the message has none by rule, or a second answer a little later: whoever asks next
 * must not get it.
 */
import { createServer, type Socket } from 'node:net';
import t from 'tap';
import { listen } from '../../support/listening.js';
import { connectRaw, request, sendRaw } from '../../support/raw-client.js';
import type { Scope } from '../../support/scope.js';
import { startProxy } from '../harness.js';
import { okResponse, startRawUpstream } from './raw-upstream.js';

const methods = ['GET', 'HEAD', 'POST', 'DELETE'];
const routes = [
  { name: 'any', methods, path: '/**', subjects: ['checkout', 'other'], permissions: [], idempotency: 'none' },
];

const poison = okResponse('poison');

/** What the first caller asks for, and how it is answered before the bytes that are too much. */
const bodyless = [
  { method: 'HEAD', head: `HTTP/1.1 200 OK\r\nContent-Length: ${String(poison.length)}\r\n\r\n` },
  { method: 'HEAD', head: 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n' },
  { method: 'HEAD', head: 'HTTP/1.1 200 OK\r\n\r\n' },
  { method: 'HEAD', head: 'HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n' },
  { method: 'GET', head: `HTTP/1.1 304 Not Modified\r\nContent-Length: ${String(poison.length)}\r\n\r\n` },
  { method: 'GET', head: 'HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\n\r\n' },
  { method: 'GET', head: 'HTTP/1.1 304 Not Modified\r\n\r\n' },
  { method: 'GET', head: 'HTTP/1.1 204 No Content\r\n\r\n' },
  { method: 'DELETE', head: `HTTP/1.1 204 No Content\r\nContent-Length: ${String(poison.length)}\r\n\r\n` },
];

/** A whole answer, and one more. */
const twice = [
  { method: 'GET', head: okResponse('mine') },
  { method: 'GET', head: 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nmine\r\n0\r\n\r\n' },
  { method: 'DELETE', head: okResponse('mine') },
];

/** When the bytes that are too much come. */
const moments: readonly { readonly name: string; readonly then: (socket: Socket) => void }[] = [
  { name: 'in the next turn', then: (socket) => setImmediate(() => socket.write(poison)) },
  { name: 'some milliseconds later', then: (socket) => setTimeout(() => socket.write(poison), 3) },
  {
    name: 'torn, half of it later',
    then: (socket) => {
      socket.write(poison.slice(0, 20));
      setTimeout(() => socket.write(poison.slice(20)), 3);
    },
  },
];

t.test("a body after a response that has none by rule, or a response too many, is nobody's", async (t) => {
  for (const { method, head } of [...bodyless, ...twice]) {
    for (const { name, then } of moments) {
      const title = `${method}, ${JSON.stringify(head)}, ${name}`;
      const first = await outcomes(t, { method, head, then });
      // A busy system may bring the second segment later than the connection rests, which nobody can tell from the next
      // answer. That comes once in thousands, and not twice.
      const isStray = (first.get('right') ?? 0) === 9;
      if (isStray) t.comment(`once more: ${title}`);
      t.same([...(isStray ? await outcomes(t, { method, head, then }) : first)], [['right', 10]], title);
    }
  }
});

/** What victims were told on the connection that an attacker's request went out on before, ten times. */
async function outcomes(
  t: Scope,
  { method, head, then }: { readonly method: string; readonly head: string; readonly then: (socket: Socket) => void },
): Promise<ReadonlyMap<string, number>> {
  const upstream = await startRawUpstream(t, (socket, received) => {
    const target = [...received.matchAll(/^[A-Z]+ \/(\S*) HTTP/gm)].at(-1)?.[1] ?? '';
    if (target !== 'attack') {
      socket.write(okResponse(`for ${target}`));
      return;
    }
    socket.write(head);
    then(socket);
  });
  const proxy = await startProxy(t, {
    upstreamUrl: upstream.url,
    config: { routes, upstream: { max_connections: 1 } },
  });
  const [attacker, victim] = [await connectRaw(proxy.port), await connectRaw(proxy.port)];
  t.teardown(attacker.end);
  t.teardown(victim.end);
  const bearer = { attacker: proxy.bearer(), victim: proxy.bearer({ sub: 'other' }) };
  const counted = new Map<string, number>();
  for (let i = 0; i < 10; i++) {
    attacker.write(`${method} /attack HTTP/1.1\r\nHost: a\r\n${bearer.attacker}\r\n`);
    await attacker.readResponse({ bodyless: method === 'HEAD' });
    victim.write(`GET /victim${String(i)} HTTP/1.1\r\nHost: a\r\n${bearer.victim}\r\n`);
    const answer = await victim.readResponse();
    const told =
      answer?.status === 200 && answer.text === `for victim${String(i)}`
        ? 'right'
        : `${String(answer?.status)} ${answer?.text ?? ''}`;
    counted.set(told, (counted.get(told) ?? 0) + 1);
  }
  return counted;
}

/**
 * Reads heads and nothing else: what follows one is the next head, unless it was told that there is none, as Python's
 * http.server does it.
 */
async function startHeadReader(t: Scope): Promise<{ readonly port: number; readonly ran: string[] }> {
  const ran: string[] = [];
  const { port } = await listen(
    t,
    createServer((socket) => {
      let text = '';
      let isOver = false;
      socket
        .on('error', () => undefined)
        .on('data', (bytes) => {
          text += bytes.toString('latin1');
          for (let end = text.indexOf('\r\n\r\n'); end >= 0 && !isOver; end = text.indexOf('\r\n\r\n')) {
            const head = text.slice(0, end);
            text = text.slice(end + 4);
            isOver = /^connection: close$/im.test(head);
            ran.push(`${head.split(' HTTP/')[0] ?? ''} as ${/^x-auth-subject: (.*)$/im.exec(head)?.[1] ?? 'nobody'}`);
            socket.write(okResponse(head.split(' ')[1] ?? ''));
            if (isOver) socket.end();
          }
        });
    }),
  );
  return { port, ran };
}

t.test(
  'what an upstream leaves unread of a body is not its next request, with whatever identity the caller wrote there',
  async (t) => {
    const smuggled = 'GET /admin HTTP/1.1\r\nHost: a\r\nX-Auth-Subject: root\r\n\r\n';
    const bodies = [
      `Content-Length: ${String(smuggled.length)}\r\n\r\n${smuggled}`,
      `Transfer-Encoding: chunked\r\n\r\n${smuggled.length.toString(16)}\r\n${smuggled}\r\n0\r\n\r\n`,
      `Content-Length: ${String(smuggled.length + 100_000)}\r\n\r\n${smuggled}${'x'.repeat(100_000)}`,
    ];
    const laxRoutes = routes.map((route) => ({ ...route, body: 'allow' }));
    for (const upstream of [{}, { reuse: 'never' }]) {
      for (const method of ['POST', 'DELETE', 'GET']) {
        for (const body of bodies) {
          const { port, ran } = await startHeadReader(t);
          const proxy = await startProxy(t, {
            upstreamUrl: `http://127.0.0.1:${String(port)}`,
            config: { routes: laxRoutes, upstream },
          });
          for (let i = 0; i < 3; i++) {
            const [answer] = await sendRaw(
              proxy.port,
              `${method} /notes HTTP/1.1\r\nHost: a\r\n${proxy.bearer()}${body}`,
            );
            t.ok(
              answer?.text === '/notes' || answer?.status === 502,
              `${method}: ${String(answer?.status)} ${answer?.text ?? ''}`,
            );
            t.equal(
              (await request(proxy.port, { path: '/other', headers: proxy.authorization({ sub: 'other' }) })).text,
              '/other',
            );
          }
          t.same(
            [...new Set(ran)].sort(),
            ['GET /other as other', `${method} /notes as checkout`].sort(),
            JSON.stringify([method, upstream, body.slice(0, 30)]),
          );
        }
      }
    }
  },
);
