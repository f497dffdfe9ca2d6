/** What a target sends beyond its answer is no answer to the next call, whichever user of the workload that is for. */
import type { Socket } from 'node:net';
import t from 'tap';
import { okResponse, startRawUpstream } from '../../proxy/upstream/raw-upstream.js';
import type { Scope } from '../../support/scope.js';
import { request } from '../../support/raw-client.js';
import { startCalling } from './calling.js';

const late = okResponse('of another');

/** What is asked first, and what it is answered before the bytes that are too much. */
const cases = [
  { method: 'HEAD', head: `HTTP/1.1 200 OK\r\nContent-Length: ${String(late.length)}\r\n\r\n` },
  { method: 'GET', head: `HTTP/1.1 304 Not Modified\r\nContent-Length: ${String(late.length)}\r\n\r\n` },
  { method: 'GET', head: 'HTTP/1.1 204 No Content\r\n\r\n' },
  { method: 'GET', head: okResponse('mine') },
] as const;

/** Asks so, and then for something else at once, ten times: connections used, and the answers to the second ones. */
async function outcomes(
  t: Scope,
  { method, head }: (typeof cases)[number],
  reuse: string,
): Promise<{ readonly bodies: ReadonlySet<string>; readonly connections: number }> {
  const isFirst = (text: string): boolean => / \/first HTTP\/1\.1\r\n(?:.+\r\n)*\r\n$/.test(text);
  const target = await startRawUpstream(t, (socket: Socket, text) => {
    if (!isFirst(text)) {
      socket.write(okResponse('right'));
      return;
    }
    // Otherwise the second piece waits until the first is acknowledged, longer than a connection rests.
    socket.setNoDelay().write(head);
    setImmediate(() => socket.write(late));
  });
  const { port } = await startCalling(t, target.url, { reuse });
  const bodies = new Set<string>();
  for (let i = 0; i < 10; i += 1) {
    await request(port, { method, path: '/orders/first' });
    bodies.add((await request(port, { path: '/orders/second' })).text);
  }
  return { bodies, connections: target.connections() };
}

t.test('with `safe`, the default, each call gets its own answer', async (t) => {
  for (const each of cases) {
    const { bodies } = await outcomes(t, each, 'safe');
    t.same([...bodies], ['right'], `${each.method}, ${each.head}`);
  }
});

t.test('`always` is for targets that follow HTTP, and `never` has a connection for each call', async (t) => {
  const target = await startRawUpstream(t, (socket) => socket.write(okResponse('right')));
  for (const [reuse, connections] of [
    ['always', 1],
    ['never', 5],
  ] as const) {
    const before = target.connections();
    const { port } = await startCalling(t, target.url, { reuse });
    for (let i = 0; i < 5; i += 1) t.equal((await request(port, { path: '/orders/any' })).text, 'right');
    t.equal(target.connections() - before, connections, reuse);
  }
});
