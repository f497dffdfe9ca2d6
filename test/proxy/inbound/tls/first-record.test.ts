import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import t from 'tap';
import { awaitFirstRecord } from '../../../../src/proxy/inbound/tls/first-record.js';
import { listen } from '../../../support/listening.js';
import type { Scope } from '../../../support/scope.js';
import { until } from '../../../support/until.js';

interface Pair {
  readonly client: Socket;
  readonly server: Socket;
  /** What was put back, once the record is here. */
  readonly record: () => string | null;
}

async function startPair(t: Scope): Promise<Pair> {
  const accepted: Socket[] = [];
  let record: string | null = null;
  const { port } = await listen(
    t,
    createServer((socket) => {
      accepted.push(socket);
      awaitFirstRecord(socket, () => {
        record = (socket.read() as Buffer).toString('latin1');
      });
    }),
  );
  const client = connect(port, '127.0.0.1').on('error', () => undefined);
  t.teardown(() => client.destroy());
  await once(client, 'connect');
  await until('it is accepted', () => accepted.length === 1);
  const [server] = accepted;
  if (server === undefined) throw new Error('nobody came');
  return { client, server, record: () => record };
}

const record = (length: number, sent = length): string =>
  Buffer.from([22, 3, 1, length >> 8, length & 0xff]).toString('latin1') + 'x'.repeat(sent);

t.test('a record is put back once it is whole, in however many pieces it comes', async (t) => {
  const { client, record: found } = await startPair(t);
  const whole = record(300);
  for (const end of [1, 3, 5, 6, 200, 304]) {
    client.write(whole.slice(client.bytesWritten, end), 'latin1');
    await new Promise((resolve) => setTimeout(resolve, 10));
    t.equal(found(), null, `${String(end)} bytes`);
  }
  client.write(whole.slice(304), 'latin1');
  await until('it is here', () => found() !== null);
  t.equal(found(), whole);
});

t.test('what is no record of a handshake is not waited for', async (t) => {
  for (const bytes of ['G', 'GET / HTTP/1.1\r\n\r\n', '\x15\x03\x01\x00\x02', '\x00']) {
    const { client, record: found } = await startPair(t);
    client.write(bytes, 'latin1');
    await until(JSON.stringify(bytes), () => found() !== null);
    t.equal(found(), bytes);
  }
});

t.test('behind the record nothing more is read', async (t) => {
  const { client, server, record: found } = await startPair(t);
  client.write(record(100), 'latin1');
  await until('it is here', () => found() !== null);
  const { bytesRead } = server;
  client.write('y'.repeat(100_000));
  await new Promise((resolve) => setTimeout(resolve, 50));
  t.equal(server.bytesRead, bytesRead);
});

t.test('one that says too much, or no more, is ended', async (t) => {
  const much = await startPair(t);
  much.client.write(record(0xffff, 20_000), 'latin1');
  const ended = await startPair(t);
  ended.client.end(record(100, 99), 'latin1');
  for (const { server, record: found } of [much, ended]) {
    await until('it is ended', () => server.destroyed);
    t.equal(found(), null);
  }
});

t.test('one that is reset while it waits ends nobody', async (t) => {
  const silent = await startPair(t);
  silent.client.resetAndDestroy();
  const waiting = await startPair(t);
  waiting.client.write(record(100), 'latin1');
  await until('it is here', () => waiting.record() !== null);
  waiting.client.resetAndDestroy();
  await until('the silent one is closed', () => silent.server.closed);
  waiting.server.resume();
  waiting.server.destroy();
  await until('so is the other', () => waiting.server.closed);
  t.pass();
});
