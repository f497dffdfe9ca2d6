import { randomBytes } from 'node:crypto';
import t from 'tap';
import { connectRaw, requestBytes, sendRaw } from '../../support/raw-client.js';
import { until } from '../../support/until.js';
import { startReservingProxy, writeOf, type ReservingProxy } from './reserving-proxy.js';

/** The head of a write, with the framing given and without a body. */
function headOf(proxy: ReservingProxy, framing: Readonly<Record<string, string>>, path = '/orders'): string {
  const { body: _body, ...head } = writeOf(proxy, { path, headers: framing });
  return requestBytes(proxy.port, head).toString('latin1');
}

t.test('while the body comes nothing is reserved and nothing is sent', async (t) => {
  const proxy = await startReservingProxy(t);
  const connection = await connectRaw(proxy.port);
  t.teardown(connection.end);
  connection.write(`${headOf(proxy, { 'Content-Length': '6' })}abc`);
  await until('the request to be under way', () => proxy.server.counts().inFlight === 1);
  // One that is served after it has been through everything that this one waits for.
  t.equal((await proxy.write({ claims: { sub: 'migration' } })).status, 200);
  t.same(proxy.store.calls, ['reserve', 'complete']);
  t.equal(proxy.receiver.requests.length, 1);
  connection.write('def');
  t.equal((await connection.readResponse())?.status, 200);
  t.equal(proxy.executions()[1]?.body.toString(), 'abcdef');
});

t.test('a broken, late or too large body reserves nothing and sends nothing', async (t) => {
  const proxy = await startReservingProxy(t, { config: { listen: { body_idle_timeout: '200ms' } } });
  const chunked = { 'Transfer-Encoding': 'chunked' };
  const cases: readonly { readonly name: string; readonly bytes: string; readonly status: number }[] = [
    { name: 'chunks that are none', bytes: `${headOf(proxy, chunked)}3\r\nabc\r\nxyz\r\n`, status: 400 },
    { name: 'a body that stalls', bytes: `${headOf(proxy, { 'Content-Length': '6' })}abc`, status: 408 },
    { name: 'a length over the limit', bytes: headOf(proxy, { 'Content-Length': '1025' }, '/small'), status: 413 },
    {
      name: 'a length over the limit, whose body would wait for a 100',
      bytes: headOf(proxy, { 'Content-Length': '1025', Expect: '100-continue' }, '/small'),
      status: 413,
    },
    {
      name: 'chunks over the limit',
      bytes: `${headOf(proxy, chunked, '/small')}401\r\n${'x'.repeat(1025)}\r\n0\r\n\r\n`,
      status: 413,
    },
  ];
  for (const { name, bytes, status } of cases) {
    const answers = await sendRaw(proxy.port, bytes);
    t.same(
      answers.map((answer) => answer.status),
      [status],
      name,
    );
  }
  t.equal(
    (await proxy.write({ path: '/small', body: 'x'.repeat(1024) })).status,
    200,
    'up to the limit it is not too large',
  );
  t.same(proxy.store.calls, ['reserve', 'complete']);
  t.equal(proxy.receiver.requests.length, 1);
});

t.test('a caller that leaves within its body leaves nothing behind', async (t) => {
  const proxy = await startReservingProxy(t);
  for (const framing of [{ 'Content-Length': '6' }, { 'Transfer-Encoding': 'chunked' }]) {
    const connection = await connectRaw(proxy.port);
    connection.write(`${headOf(proxy, framing)}3\r\nabc\r\n`.slice(0, -3));
    await until('the request to be under way', () => proxy.server.counts().inFlight === 1);
    connection.end();
    await until('it to be over', proxy.isIdle);
  }
  t.same(proxy.store.calls, []);
  t.same(proxy.receiver.requests, []);
  await until('both records', () => proxy.records.length === 2);
  // Which of the two it is depends on which end of the connection is noticed first.
  for (const { reason } of proxy.records) t.match(reason, /^(caller_gone|body_broken)$/);
});

t.test('Expect: 100-continue is answered after the checks and before anything is reserved', async (t) => {
  const proxy = await startReservingProxy(t);
  const refused = await sendRaw(
    proxy.port,
    requestBytes(proxy.port, { ...writeOf(proxy, { key: null, headers: { Expect: '100-continue' } }), body: '' }),
  );
  t.same(
    refused.map(({ status }) => status),
    [400],
    'no key, no 100',
  );
  const connection = await connectRaw(proxy.port);
  t.teardown(connection.end);
  connection.write(headOf(proxy, { Expect: '100-continue', 'Content-Length': '3' }));
  t.equal((await connection.readResponse())?.status, 100);
  t.same(proxy.store.calls, []);
  connection.write('abc');
  t.equal((await connection.readResponse())?.status, 200);
  t.equal(proxy.executions()[0]?.body.toString(), 'abc');
  t.same(proxy.executions()[0]?.field('Expect'), []);
});

t.test('the upstream gets the exact bytes, their length, and no chunks', async (t) => {
  const proxy = await startReservingProxy(t);
  const body = randomBytes(1024 * 1024);
  t.equal((await proxy.write({ body })).status, 200);
  const half = body.subarray(0, 300_000);
  const chunks = Buffer.concat([Buffer.from('493e0\r\n'), half, Buffer.from('\r\n0\r\nX-Trailer: 1\r\n\r\n')]);
  t.equal((await proxy.write({ body: chunks, headers: { 'Transfer-Encoding': 'chunked' } })).status, 200);
  t.equal((await proxy.write({ body: '0\r\n\r\n', headers: { 'Transfer-Encoding': 'chunked' } })).status, 200);
  t.equal((await proxy.write({ body: '' })).status, 200);
  const [whole, part, none, empty] = proxy.executions();
  t.ok(whole?.body.equals(body));
  t.ok(part?.body.equals(half));
  for (const [received, length] of [
    [whole, '1048576'],
    [part, '300000'],
    [none, '0'],
    [empty, '0'],
  ] as const) {
    t.same(received?.field('Content-Length'), [length]);
    t.same(received?.field('Transfer-Encoding'), []);
  }
});
