import type { ServerResponse } from 'node:http';
import t from 'tap';
import { connectRaw, requestBytes } from '../../support/raw-client.js';
import { until } from '../../support/until.js';
import { gate } from './faulty-store.js';
import { startReservingProxy, writeOf } from './reserving-proxy.js';

t.test('a caller that leaves before dispatch: the key is free, nothing is sent', async (t) => {
  const proxy = await startReservingProxy(t);
  const held = gate();
  proxy.store.behave('reserve', held.fault);
  const connection = await connectRaw(proxy.port);
  connection.write(requestBytes(proxy.port, writeOf(proxy, { key: 'k' })));
  await until('the store to be asked', () => held.waiting() === 1);
  connection.end();
  await until('its record', () => proxy.records.length === 1);
  t.equal(proxy.server.counts().inFlight, 1, 'its place is taken until the store has answered');
  held.open();
  await until('it to be over', proxy.isIdle);
  t.same(proxy.receiver.requests, []);
  t.same(proxy.results, ['acquired', 'released']);
  t.match(proxy.records[0], { reason: 'caller_gone', status: 0, upstream_ms: null });
  proxy.store.behave('reserve', null);
  t.equal((await proxy.write({ key: 'k' })).field('Idempotent-Replayed'), null, 'a retry runs');
  t.equal(proxy.executions().length, 1);
});

t.test('a caller that leaves in mid-flight: the write is completed, and a retry gets its result', async (t) => {
  const proxy = await startReservingProxy(t);
  const answers: ServerResponse[] = [];
  proxy.receiver.behave((req, res) => {
    req.resume();
    answers.push(res);
  });
  const connection = await connectRaw(proxy.port);
  connection.write(requestBytes(proxy.port, writeOf(proxy, { key: 'k' })));
  await until('the receiver to have it', () => proxy.executions().length === 1);
  connection.end();
  await until('its record', () => proxy.records.length === 1);
  t.match(proxy.records[0], { reason: 'caller_gone', decision: 'forwarded', status: 0 });
  t.equal(proxy.server.counts().inFlight, 1, 'its place is kept until then');
  t.equal((await proxy.write({ key: 'k' })).status, 409);

  answers[0]?.writeHead(201, { 'Content-Type': 'text/plain' });
  answers[0]?.write('ma');
  t.equal(proxy.executions()[0]?.aborted, false);
  answers[0]?.end('de');
  await until('it to be over', proxy.isIdle);
  const retry = await proxy.write({ key: 'k' });
  t.match(
    { status: retry.status, text: retry.text, replayed: retry.field('Idempotent-Replayed') },
    { status: 201, text: 'made', replayed: 'true' },
  );
  t.equal(proxy.executions().length, 1);
});

t.test('a caller that leaves while its result is written down: the result is kept', async (t) => {
  const proxy = await startReservingProxy(t);
  const held = gate();
  proxy.store.behave('complete', held.fault);
  const connection = await connectRaw(proxy.port);
  connection.write(requestBytes(proxy.port, writeOf(proxy, { key: 'k' })));
  await until('the result to be written', () => held.waiting() === 1);
  t.equal(connection.pending().length, 0, 'store before replying');
  connection.end();
  await until('its record', () => proxy.records.length === 1);
  held.open();
  await until('it to be over', proxy.isIdle);
  t.equal((await proxy.write({ key: 'k' })).field('Idempotent-Replayed'), 'true');
});

t.test('callers that leave at any moment leave nothing behind', async (t) => {
  const proxy = await startReservingProxy(t);
  const headers = proxy.authorization();
  for (let round = 0; round < 4; round += 1) {
    await Promise.all(
      Array.from({ length: 50 }, async (_, i) => {
        const connection = await connectRaw(proxy.port);
        const key = { 'Idempotency-Key': `${round}-${i % 25}` };
        const bytes = requestBytes(proxy.port, {
          method: 'POST',
          path: '/orders',
          headers: { ...headers, ...key },
          body: 'abcdef',
        });
        connection.write(i % 6 === 0 ? bytes.subarray(0, -3) : bytes);
        if (i % 2 === 0) connection.end();
        else {
          await connection.readResponse();
          connection.end();
        }
      }),
    );
  }
  await until('everything to be over', () => proxy.isIdle() && proxy.server.counts().connections === 0);
  const perRecord = new Map<string, number>();
  for (const received of proxy.executions()) {
    const record = received.field('Idempotency-Record')[0] ?? '';
    perRecord.set(record, (perRecord.get(record) ?? 0) + 1);
  }
  t.ok(perRecord.size > 0);
  t.same(
    [...perRecord.values()].filter((count) => count > 1),
    [],
    'and nothing ran twice',
  );
  t.same(
    proxy.logged.filter(({ level }) => level === 'error'),
    [],
  );
});
