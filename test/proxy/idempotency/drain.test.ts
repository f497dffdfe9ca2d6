import type { ServerResponse } from 'node:http';
import { createServer } from 'node:net';
import t from 'tap';
import { listen } from '../../support/listening.js';
import { connectRaw, requestBytes } from '../../support/raw-client.js';
import { until } from '../../support/until.js';
import { down, gate } from './faulty-store.js';
import { recordOf, startReservingProxy, writeOf, type ReservingProxy } from './reserving-proxy.js';

/** A proxy whose receiver answers when it is told to. */
async function startHeld(
  t: Parameters<typeof startReservingProxy>[0],
  settleTimeoutMs = 100,
): Promise<{ readonly proxy: ReservingProxy; readonly answers: ServerResponse[] }> {
  const proxy = await startReservingProxy(t, { settleTimeoutMs });
  const answers: ServerResponse[] = [];
  proxy.receiver.behave((req, res) => {
    req.resume().on('end', () => answers.push(res));
  });
  return { proxy, answers };
}

t.test('a drain lets writes finish, with and without their caller', async (t) => {
  const { proxy, answers } = await startHeld(t);
  const staying = proxy.write({ key: 'staying' });
  const leaving = await connectRaw(proxy.port);
  leaving.write(requestBytes(proxy.port, writeOf(proxy, { key: 'leaving' })));
  await until('both to be under way', () => answers.length === 2);
  leaving.end();
  await until('its record', () => proxy.records.length === 1);
  const drained = proxy.server.drain(20_000);
  for (const answer of answers) answer.end('done');
  t.equal((await staying).text, 'done');
  await drained;
  t.same(proxy.results, ['acquired', 'acquired', 'completed', 'completed']);
  t.equal(proxy.server.counts().inFlight, 0);
});

t.test('at its end what has no response is in doubt, not free, and the caller is told so', async (t) => {
  const { proxy, answers } = await startHeld(t);
  const staying = proxy.write({ key: 'staying' });
  const leaving = await connectRaw(proxy.port);
  leaving.write(requestBytes(proxy.port, writeOf(proxy, { key: 'leaving' })));
  await until('both to be under way', () => answers.length === 2);
  leaving.end();
  await proxy.server.drain(500);
  const answer = await staying;
  t.equal(answer.status, 504, 'it may have acted');
  t.equal((await proxy.record(recordOf(answer)))?.state, 'unknown');
  t.equal(proxy.unknowns.length, 2);
  t.same(proxy.results, ['acquired', 'acquired']);
});

t.test('at its end what was not sent yet is never sent: 503, and the key is free', async (t) => {
  const { proxy } = await startHeld(t, 750);
  const held = gate();
  proxy.store.behave('reserve', held.fault);
  const asking = proxy.write({ key: 'asking' });
  const sending = await connectRaw(proxy.port);
  t.teardown(sending.end);
  const bytes = requestBytes(proxy.port, writeOf(proxy, { key: 'sending' }));
  sending.write(bytes.subarray(0, -3));
  await until(
    'the store to be asked, and the body to come',
    () => held.waiting() === 1 && proxy.server.counts().inFlight === 2,
  );
  const drained = proxy.server.drain(3_000);
  const refused = await sending.readResponse();
  t.equal(refused?.status, 503, 'the time of those that settle is over');
  t.match(JSON.parse(refused?.text ?? ''), { type: 'urn:sallyport:shutting-down' });
  held.open();
  const answer = await asking;
  t.equal(answer.status, 503);
  t.match(JSON.parse(answer.text), { type: 'urn:sallyport:shutting-down' });
  await drained;
  t.same(proxy.results, ['acquired', 'released']);
  t.same(proxy.receiver.requests, []);
});

t.test('at its end, while the upstream is being connected to: not sent', async (t) => {
  // It accepts, and never says a word of TLS.
  const silent = createServer();
  const { port } = await listen(t, silent);
  let connections = 0;
  silent.on('connection', (socket) => {
    connections += 1;
    t.teardown(() => socket.destroy());
  });
  const proxy = await startReservingProxy(t, {
    settleTimeoutMs: 100,
    config: { upstream: { url: `https://127.0.0.1:${port}`, connect_timeout: '20s' } },
  });
  const answer = proxy.write({ key: 'k' });
  await until('the handshake to begin', () => connections === 1);
  await proxy.server.drain(500);
  t.match(JSON.parse((await answer).text), { type: 'urn:sallyport:shutting-down', status: 503 });
  t.same(proxy.unknowns, []);
  t.same(proxy.results, ['acquired', 'released']);
});

t.test(
  'what the store did not take is offered once more at the end, and given up with a word on what to do',
  async (t) => {
    const { proxy, answers } = await startHeld(t);
    proxy.store.behave('complete', down);
    const kept = proxy.write({ key: 'kept' });
    await until('it to be under way', () => answers.length === 1);
    answers[0]?.end('done');
    t.equal((await kept).text, 'done');
    proxy.store.behave('complete', null);
    await proxy.server.drain(0);
    t.same(proxy.results, ['acquired', 'completed']);

    const { proxy: other, answers: others } = await startHeld(t);
    other.store.behave('complete', down);
    const lost = other.write({ key: 'lost' });
    await until('it to be under way', () => others.length === 1);
    others[0]?.end('done');
    t.equal((await lost).text, 'done');
    await other.server.drain(0);
    t.match(other.logged.at(-1), {
      level: 'error',
      message: /could not be settled/,
      fields: { record: /\./, what_to_do: /record --config FILE resolve/ },
    });
    t.equal(other.unknowns.length, 1, 'it is counted as in doubt');
  },
);

t.test(
  'at its end an endless response to a write with only its token reserved is cut off, with and without its caller',
  async (t) => {
    for (const leaves of [false, true]) {
      const proxy = await startReservingProxy(t);
      let closed = 0;
      proxy.receiver.behave((req, res) => {
        req.resume();
        res.writeHead(200, { 'Content-Type': 'text/event-stream' });
        const events = setInterval(() => res.write('data: 1\n\n'), 20);
        res.on('close', () => {
          clearInterval(events);
          closed += 1;
        });
      });
      const connection = await connectRaw(proxy.port);
      t.teardown(connection.end);
      connection.write(requestBytes(proxy.port, writeOf(proxy, { path: '/single', key: null, claims: { jti: 'x' } })));
      await until('it to be streamed', () => connection.pending().includes('data: 1'));
      if (leaves) connection.end();
      const sinceMs = performance.now();
      await proxy.server.drain(500);
      t.ok(performance.now() - sinceMs < 5_000, `after ${String(performance.now() - sinceMs)} ms`);
      t.ok(performance.now() - sinceMs > 450, 'it had all of the grace');
      await until('the upstream to see it', () => closed === 1);
      t.ok(proxy.isIdle());
      t.equal(proxy.records.length, 1);
    }
  },
);

t.test('what the store never answers is waited for until the end of the grace, and a second', async (t) => {
  const proxy = await startReservingProxy(t);
  const held = gate();
  t.teardown(held.open);
  proxy.store.behave('reserve', held.fault);
  const connection = await connectRaw(proxy.port);
  t.teardown(connection.end);
  connection.write(requestBytes(proxy.port, writeOf(proxy, { key: 'k' })));
  await until('the store to be asked', () => held.waiting() === 1);
  const sinceMs = performance.now();
  await proxy.server.drain(500);
  t.ok(performance.now() - sinceMs < 5_000);
  held.open();
  await until('it to be over', proxy.isIdle);
  t.same(proxy.receiver.requests, [], 'it is not sent any more');
  t.same(proxy.results, ['acquired', 'released']);
});
