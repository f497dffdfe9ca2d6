import t from 'tap';
import type { RawResponse } from '../../support/raw-client.js';
import { until } from '../../support/until.js';
import { startReservingProxy } from './reserving-proxy.js';

function problem(type: string, title: string, status: number, record?: string | RegExp): object {
  return { type: `urn:sallyport:${type}`, title, status, ...(record === undefined ? {} : { record }) };
}

function members({ text }: RawResponse): unknown {
  return JSON.parse(text);
}

const recordId = /^[\w-]{43}\.[\w-]{43}$/;

t.test('a key that is missing or malformed is 400, and nothing is reserved', async (t) => {
  const proxy = await startReservingProxy(t);
  const missing = await proxy.write({ key: null });
  t.equal(missing.status, 400);
  t.same(members(missing), problem('idempotency-key-missing', 'This operation needs an Idempotency-Key', 400));
  t.equal(missing.field('Proxy-Status'), 'sallyport; error=http_request_error');
  const malformed = [
    '',
    '""',
    'a b',
    'ä',
    '"a',
    'a"',
    '"a";p=1',
    'a,b',
    '"a\\x"',
    '?1',
    'x'.repeat(256),
    `"${'x'.repeat(256)}"`,
  ];
  for (const path of ['/orders', '/optional']) {
    for (const key of malformed) {
      const answer = await proxy.write({ path, key });
      t.equal(answer.status, 400, key);
      t.match(members(answer), { type: 'urn:sallyport:idempotency-key-invalid' });
    }
  }
  const twice = await proxy.write({ key: 'a', headers: { 'idempotency-key': 'b' } });
  t.match(members(twice), { type: 'urn:sallyport:bad-request' }, 'two lines are no key');
  t.same(proxy.store.calls, []);
  t.same(proxy.receiver.requests, []);
  t.equal((await proxy.write({ key: 'x'.repeat(255) })).status, 200);
  t.equal((await proxy.write({ key: `"${'\\"'.repeat(255)}"` })).status, 200, '255 characters unquoted');
});

t.test('an optional key: without one the request streams as on a route that reserves nothing', async (t) => {
  const proxy = await startReservingProxy(t);
  for (const path of ['/optional', '/plain']) {
    for (let i = 0; i < 2; i += 1) t.equal((await proxy.write({ path, key: null })).status, 200);
  }
  t.same(proxy.store.calls, []);
  t.equal(proxy.executions().length, 4);
  t.same(proxy.executions()[0]?.field('Idempotency-Record'), []);
  await proxy.write({ path: '/optional', key: 'sent' });
  t.equal((await proxy.write({ path: '/optional', key: 'sent' })).field('Idempotent-Replayed'), 'true');
  await proxy.write({ path: '/plain', key: 'sent' });
  t.equal(
    (await proxy.write({ path: '/plain', key: 'sent' })).field('Idempotent-Replayed'),
    null,
    'none reserves nothing, whatever is sent',
  );
});

t.test('409 while the first is in progress, 422 for another request; neither changes anything', async (t) => {
  const proxy = await startReservingProxy(t);
  let finish = (): void => undefined;
  proxy.receiver.behave((req, res) => {
    finish = () => void res.writeHead(201, { 'Content-Type': 'text/plain' }).end('made');
    req.resume();
  });
  const first = proxy.write({ key: 'k' });
  await until('the write to be under way', () => proxy.executions().length === 1);

  const second = await proxy.write({ key: 'k' });
  t.equal(second.status, 409);
  t.match(
    members(second),
    problem('idempotency-in-progress', 'A request with this Idempotency-Key is in progress', 409, recordId),
  );
  t.match(second.field('Retry-After'), /^[1-5]$/);
  t.equal(second.field('Proxy-Status'), 'sallyport; error=http_request_denied');
  t.equal(second.field('Cache-Control'), 'no-store');

  const other = await proxy.write({ key: 'k', body: '{"item":2}' });
  t.equal(other.status, 422);
  t.same(
    members(other),
    problem('idempotency-key-reused', 'This Idempotency-Key was used for a different request', 422),
    'it learns nothing of the first',
  );

  finish();
  t.equal((await first).text, 'made');
  t.equal((await proxy.write({ key: 'k', body: '{"item":3}' })).status, 422, 'nor after it is complete');
  const retry = await proxy.write({ key: 'k' });
  t.equal(retry.text, 'made', 'and the result is still there');
  t.equal(retry.status, 201);
  t.equal(proxy.executions().length, 1);
  t.same(proxy.results, ['acquired', 'in_progress', 'mismatch', 'completed', 'mismatch', 'replayed']);
});

t.test('429 when a caller has too many writes pending; its retries, and other callers, are no more', async (t) => {
  const proxy = await startReservingProxy(t);
  proxy.receiver.behave((req) => {
    req.resume();
  });
  const pending = Array.from({ length: 100 }, (_, i) => proxy.write({ key: `p${i}` }).catch(() => null));
  await until('a hundred under way', () => proxy.executions().length === 100);
  const refused = await proxy.write({ key: 'p100' });
  t.equal(refused.status, 429);
  t.same(members(refused), problem('too-many-pending', 'Too many writes of this caller are pending', 429));
  t.equal(refused.field('Retry-After'), '1');
  t.equal(proxy.store.callsOf('reserve'), 100, 'and nothing was reserved for it');
  t.equal((await proxy.write({ key: 'p7' })).status, 409, 'a retry is told that its write is in progress');
  proxy.receiver.behave(null);
  t.equal(
    (await proxy.write({ key: 'p100', claims: { sub: 'migration' } })).status,
    200,
    'another caller has places of its own',
  );
  await proxy.server.drain(0);
  await Promise.all(pending);
});

t.test('without a store a reserving route is 503, others serve on', async (t) => {
  const proxy = await startReservingProxy(t, { withoutStore: true });
  const answer = await proxy.write();
  t.equal(answer.status, 503);
  t.same(members(answer), problem('store-unavailable', 'The store that keeps reservations is unavailable', 503));
  t.equal(answer.field('Retry-After'), '1');
  t.equal((await proxy.write({ path: '/plain', key: null })).status, 200);
  t.equal(proxy.executions().length, 1);
});
