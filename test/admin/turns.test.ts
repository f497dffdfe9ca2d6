/** One request of a connection at a time, one request in each turn of the event loop. */
import t from 'tap';
import { createPageServer, type Page } from '../../src/admin/server.js';
import type { Scope } from '../support/scope.js';
import { connectRaw, request } from '../support/raw-client.js';
import { until } from '../support/until.js';

const silent = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined };
const maxConnections = 8;

async function start(t: Scope, page: () => Page | Promise<Page>, checksHost = false): Promise<number> {
  const listen = { host: '127.0.0.1', port: 0 };
  const server = createPageServer({ listen, checksHost, maxConnections, pages: { '/page': page }, log: silent });
  t.teardown(server.close);
  return (await server.listen()).port;
}

const done: Page = { status: 200, type: 'text/plain', body: 'done' };
const get = 'GET /page HTTP/1.1\r\nHost: a\r\n\r\n';

for (const { name, bytes, status = 200, checksHost = false } of [
  { name: 'a page', bytes: get },
  { name: 'no page', bytes: 'GET /nothing HTTP/1.1\r\nHost: a\r\n\r\n', status: 404 },
  { name: 'another host', bytes: get, status: 421, checksHost: true },
  { name: 'no host', bytes: 'GET /page HTTP/1.1\r\n\r\n', status: 400 },
  { name: 'no host, where it is checked', bytes: 'GET /page HTTP/1.1\r\n\r\n', status: 400, checksHost: true },
  { name: 'an expectation', bytes: 'GET /page HTTP/1.1\r\nHost: a\r\nExpect: x\r\n\r\n' },
  { name: '100-continue', bytes: 'GET /page HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n\r\n' },
  { name: 'a body', bytes: 'POST /page HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx', status: 405 },
]) {
  t.test(`pipelined requests for ${name}: the first is answered, and nothing behind it`, async (t) => {
    let asked = 0;
    const port = await start(
      t,
      () => {
        asked += 1;
        return done;
      },
      checksHost,
    );
    const connection = await connectRaw(port);
    t.teardown(connection.end);
    connection.write(bytes.repeat(Math.floor(65_536 / bytes.length)));
    const first = await connection.readResponse();
    t.match({ status: first?.status, connection: first?.field('connection') }, { status, connection: 'close' });
    t.equal(await connection.readResponse(), null, 'and it ends');
    t.ok(asked <= 1, 'no other was served');
    t.equal((await request(port, { path: '/page', headers: { Host: '127.0.0.1' } })).status, 200, 'others are served');
  });
}

t.test('of a body in tiny chunks nothing is read', async (t) => {
  const port = await start(t, () => done);
  const connection = await connectRaw(port);
  t.teardown(connection.end);
  const head = 'GET /page HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n';
  // What is no chunk would be 400.
  connection.write(`${head}${'1\r\nx\r\n'.repeat(10_000)}nonsense`);
  const first = await connection.readResponse();
  t.match({ text: first?.text, connection: first?.field('connection') }, { text: 'done', connection: 'close' });
  t.equal(await connection.readResponse(), null);
});

t.test('a request that comes while the one before it is answered ends the connection with that response', async (t) => {
  let asked = 0;
  let answer = (): void => undefined;
  const port = await start(t, async () => {
    asked += 1;
    await new Promise<void>((resolve) => (answer = resolve));
    return done;
  });
  const connection = await connectRaw(port);
  t.teardown(connection.end);
  connection.write(get);
  await until('it is asked', () => asked === 1);
  connection.write(get);
  // Comes through the same server behind what was written.
  t.equal((await request(port, { path: '/nothing' })).status, 404);
  answer();
  const first = await connection.readResponse();
  t.match({ text: first?.text, connection: first?.field('connection') }, { text: 'done', connection: 'close' });
  t.equal(await connection.readResponse(), null);
  t.equal(asked, 1);
});

t.test('a kept connection asks as often as it likes, one after the other', async (t) => {
  const port = await start(t, () => done);
  const connection = await connectRaw(port);
  t.teardown(connection.end);
  for (let round = 0; round < 20; round += 1) {
    connection.write(get);
    const got = await connection.readResponse();
    t.match({ text: got?.text, connection: got?.field('connection') }, { text: 'done', connection: 'keep-alive' });
  }
});

t.test('requests of many connections are served one in each turn', async (t) => {
  let turn = 0;
  let isOver = false;
  const count = (): void => {
    turn += 1;
    if (!isOver) setImmediate(count);
  };
  count();
  t.teardown(() => (isOver = true));
  const turns: number[] = [];
  const port = await start(t, () => {
    turns.push(turn);
    return done;
  });
  const crowd = await Promise.all(Array.from({ length: maxConnections }, async () => connectRaw(port)));
  for (const connection of crowd) {
    t.teardown(connection.end);
    connection.write(get);
  }
  for (const connection of crowd) t.equal((await connection.readResponse())?.status, 200);
  t.equal(turns.length, maxConnections);
  t.equal(new Set(turns).size, maxConnections, turns.join(' '));
});

t.test('the request of a connection that is gone before its turn is not served', async (t) => {
  let asked = 0;
  const port = await start(t, () => {
    asked += 1;
    return done;
  });
  // Each takes the place of an older one, which waits for its turn at most.
  const crowd = await Promise.all(Array.from({ length: 4 * maxConnections }, async () => connectRaw(port)));
  for (const connection of crowd) {
    t.teardown(connection.end);
    connection.write(get);
  }
  const answers = await Promise.all(crowd.map(async (connection) => connection.readResponse()));
  t.equal(answers.filter((each) => each !== null).length, asked, 'who was served was answered');
});
