import t from 'tap';
import { systemClock } from '../../../src/adapters/system/clock.js';
import { isFailure } from '../../../src/decision/denial.js';
import { ExchangeSummary, recordRequest } from '../../../src/proxy/exchange/access-log-record.js';
import type { Metrics, RequestRecord } from '../../../src/ports/observability.js';
import { connectRaw, request, sendRaw } from '../../support/raw-client.js';
import { until } from '../../support/until.js';
import { startProxy } from '../harness.js';

t.test('one line for each request, with what is known of it and nothing secret', async (t) => {
  const proxy = await startProxy(t);
  const token = proxy.bearer();
  const secrets = [token.split(' ')[2] ?? '', 'secret-query', 'secret-cookie', 'secret-body', 'secret-user'];
  const sent = [
    `GET /orders?secret-query HTTP/1.1\r\nHost: a\r\nX-Request-Id: r1\r\nCookie: secret-cookie\r\n${token}\r\n`,
    `POST /orders HTTP/1.1\r\nHost: a\r\nX-Request-Id: r2\r\n${token}Content-Length: 11\r\n\r\nsecret-body`,
    'GET /orders?secret-query HTTP/1.1\r\nHost: a\r\nX-Request-Id: r3\r\n\r\n',
    `GET /nowhere HTTP/1.1\r\nHost: a\r\nX-Request-Id: r4\r\n${token}\r\n`,
    `DELETE /orders HTTP/1.1\r\nHost: a\r\nX-Request-Id: r5\r\n${token}\r\n`,
    `GET http://secret-user:secret-user@evil/x?secret-query HTTP/1.1\r\nHost: a\r\nX-Request-Id: r6\r\n${token}\r\n`,
    'GET /healthz HTTP/1.1\r\nHost: a\r\nX-Request-Id: r7\r\n\r\n',
    'NONSENSE secret-query\r\n\r\n',
  ];
  for (const [index, bytes] of sent.entries()) {
    await sendRaw(proxy.port, bytes);
    await until('it is recorded', () => proxy.records.length === index + 1);
  }
  const caller = { kind: 'service', issuer: 'core', subject: 'checkout', key_id: 'd-1' };
  const nobody = { kind: null, issuer: null, subject: null, key_id: null };
  t.match(proxy.records, [
    {
      request_id: 'r1',
      route: 'list-orders',
      method: 'GET',
      path: '/orders',
      decision: 'forwarded',
      reason: null,
      status: 200,
      ...caller,
    },
    {
      request_id: 'r2',
      route: 'create-order',
      method: 'POST',
      path: '/orders',
      decision: 'forwarded',
      reason: null,
      status: 200,
      ...caller,
    },
    {
      request_id: 'r3',
      route: 'list-orders',
      method: 'GET',
      path: '/orders',
      decision: 'denied',
      reason: 'credential_missing',
      status: 401,
      ...nobody,
    },
    {
      request_id: 'r4',
      route: 'none',
      method: 'GET',
      path: '/nowhere',
      decision: 'denied',
      reason: 'route_unknown',
      status: 403,
      ...caller,
    },
    {
      request_id: 'r5',
      route: 'none',
      method: 'DELETE',
      path: '/orders',
      decision: 'denied',
      reason: 'route_unknown',
      status: 403,
      ...caller,
    },
    {
      route: 'none',
      method: 'GET',
      path: 'evil/x',
      decision: 'denied',
      reason: 'target_malformed',
      status: 400,
      ...nobody,
    },
    {
      request_id: 'r7',
      route: 'health',
      method: 'GET',
      path: '/healthz',
      decision: 'forwarded',
      reason: null,
      status: 200,
      ...nobody,
    },
    { route: 'none', method: '', path: '', decision: 'denied', reason: 'method_malformed', status: 400, ...nobody },
  ]);
  for (const record of proxy.records) {
    t.ok(record.duration_ms >= 0 && (record.upstream_ms === null || record.upstream_ms <= record.duration_ms));
    t.equal(record.upstream_ms === null, record.decision !== 'forwarded', 'null where the receiver was not asked');
    t.equal(record.record, null);
  }
  for (const secret of secrets) t.notMatch(JSON.stringify([proxy.records, proxy.logged]), secret);
  t.same(
    proxy.counted.requests.map(({ route, outcome }) => [route, outcome]),
    proxy.records.map(({ route, decision }) => [route, decision]),
  );
  const reasons = proxy.records.flatMap(({ reason }) => reason ?? []);
  t.same(
    proxy.counted.denials,
    reasons.filter((reason) => !isFailure(reason)),
  );
  t.same(proxy.counted.failures, reasons.filter(isFailure));
});

t.test('the overhead is what the request took without the upstream', async (t) => {
  let nowMs = 1000;
  const proxy = await startProxy(t, { clock: { now: () => Date.now(), monotonic: () => nowMs } });
  proxy.receiver.behave((_req, res) => {
    nowMs += 500;
    res.end('ok');
  });
  await request(proxy.port, { path: '/orders', headers: { ...proxy.authorization(), 'X-Request-Id': 'timed' } });
  t.match(await proxy.recordOf('timed'), { duration_ms: 500, upstream_ms: 500 });
  t.match(proxy.counted.requests, [{ durationMs: 500, overheadMs: 0 }]);
  await request(proxy.port, { path: '/orders', headers: { 'X-Request-Id': 'refused' } });
  t.match(await proxy.recordOf('refused'), { duration_ms: 0, upstream_ms: null });
});

t.test("a caller's id is kept where it is sound; else it gets one, and the response names it", async (t) => {
  const proxy = await startProxy(t);
  const ids = [
    { sent: 'a.b_c-1', kept: true },
    { sent: 'x'.repeat(128), kept: true },
    { sent: 'x'.repeat(129), kept: false },
    { sent: 'a b', kept: false },
  ];
  for (const { sent, kept } of ids) {
    for (const headers of [{ 'X-Request-Id': sent }, { ...proxy.authorization(), 'X-Request-Id': sent }]) {
      const before = proxy.records.length;
      const response = await request(proxy.port, { path: '/orders', headers });
      const id = response.field('x-request-id');
      t.equal(id === sent, kept, sent);
      t.match(id, /^[A-Za-z0-9._-]{1,128}$/);
      await until('it is recorded', () => proxy.records.length === before + 1);
      t.equal(proxy.records[before]?.request_id, id);
    }
  }
  t.ok(proxy.receiver.requests.every(({ field }) => field('x-request-id').length === 1));
});

t.test('a record is written once, whichever side ends the connection', async (t) => {
  const proxy = await startProxy(t);
  const ended = await connectRaw(proxy.port);
  ended.write(`GET /orders HTTP/1.1\r\nHost: a\r\nConnection: close\r\n${proxy.bearer()}\r\n`);
  await ended.readResponse();
  const kept = await connectRaw(proxy.port);
  kept.write(`GET /orders HTTP/1.1\r\nHost: a\r\n${proxy.bearer()}\r\n`);
  await kept.readResponse();
  kept.end();
  ended.end();
  await until('both are gone', () => proxy.server.counts().connections === 0);
  t.equal(proxy.records.length, 2);
  t.ok(proxy.records.every(({ decision, reason }) => decision === 'forwarded' && reason === null));
});

t.test('a bug where the client is looked for takes neither line nor count away', (t) => {
  const summary = new ExchangeSummary(systemClock);
  summary.begin();
  const lines: RequestRecord[] = [];
  const counted: string[] = [];
  const recorder = {
    clock: systemClock,
    metrics: { request: (route: string) => counted.push(route) } as Partial<Metrics> as Metrics,
    requestLog: (record: RequestRecord) => lines.push(record),
    findClient: () => {
      throw new Error('a bug');
    },
  };
  const request = {
    head: { method: 'GET', target: '/orders', httpVersion: '1.1', rawHeaders: ['X-Forwarded-For', '192.0.2.1'] },
    peer: { remoteAddress: '10.0.0.1', trusted: true, encrypted: false },
    status: 200,
    grpcStatus: null,
    summary,
    endedMs: systemClock.monotonic(),
  };
  t.throws(() => recordRequest(recorder, request), { message: 'a bug' });
  t.match(lines, [{ path: '/orders', status: 200, client_address: null }]);
  t.same(counted, ['none']);
  t.end();
});
