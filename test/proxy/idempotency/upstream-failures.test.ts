import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:http2';
import t, { type Test } from 'tap';
import { listen } from '../../support/listening.js';
import type { RawResponse } from '../../support/raw-client.js';
import { startUpstreamServer } from '../../support/upstream-server.js';
import { until } from '../../support/until.js';
import { down } from './faulty-store.js';
import { answering, recordOf, startReservingProxy, type ReservingProxy } from './reserving-proxy.js';

/** Sends it again and again: the receiver must not see it any more, and the answer stays. */
async function staysInDoubt(t: Test, proxy: ReservingProxy, key: string, first: RawResponse): Promise<void> {
  const before = proxy.receiver.requests.length;
  for (let i = 0; i < 2; i += 1) {
    const retry = await proxy.write({ key });
    t.equal(retry.status, 409);
    t.match(JSON.parse(retry.text), {
      type: 'urn:sallyport:idempotency-outcome-unknown',
      title: 'Whether the first request with this Idempotency-Key was applied is not known',
      record: recordOf(first),
    });
    t.equal(retry.field('Retry-After'), null, 'waiting does not help');
  }
  t.equal(proxy.receiver.requests.length, before);
}

t.test('what was certainly not sent frees the key: 503', async (t) => {
  const gone = await startUpstreamServer(t);
  const proxy = await startReservingProxy(t, { receiver: gone, config: { upstream: { connect_timeout: '200ms' } } });
  await gone.close();
  const refused = await proxy.write({ key: 'k' });
  t.equal(refused.status, 503);
  t.match(JSON.parse(refused.text), { type: 'urn:sallyport:upstream-unreachable' });
  t.equal(recordOf(refused), '');
  t.equal(refused.field('Proxy-Status'), 'sallyport; error=connection_refused');
  t.equal(refused.field('Retry-After'), '1');
  await startUpstreamServer(t, { port: gone.port });
  t.equal((await proxy.write({ key: 'k' })).status, 200, 'a retry runs');
  t.same(proxy.results, ['acquired', 'released', 'acquired', 'completed']);
  await until('the records', () => proxy.records.length === 2);
  t.match(proxy.records, [{ reason: 'upstream_unreachable', upstream_ms: null }, { reason: null }]);
});

t.test('a head that is too long for an upstream of HTTP/2 was not sent: 431, and the key is free', async (t) => {
  const receiver = createServer((_req, res) => res.end('done'));
  const { port } = await listen(t, receiver);
  const proxy = await startReservingProxy(t, {
    upstreamUrl: `http://127.0.0.1:${String(port)}`,
    config: { listen: { max_header_bytes: '128KiB' }, upstream: { http2: true } },
  });
  const long = await proxy.write({ key: 'k', headers: { 'X-Long': 'a'.repeat(66_000) } });
  t.equal(long.status, 431);
  t.match(JSON.parse(long.text), { type: 'urn:sallyport:bad-request' });
  const short = await proxy.write({ key: 'k' });
  t.same([short.status, short.text], [200, 'done']);
  t.same(proxy.results, ['acquired', 'released', 'acquired', 'completed']);
  await until('the records', () => proxy.records.length === 2);
  t.match(proxy.records, [{ reason: 'header_too_large_for_http2', upstream_ms: null }, { reason: null }]);
});

t.test('no free connection in time was not sent either', async (t) => {
  const proxy = await startReservingProxy(t, {
    config: { upstream: { connect_timeout: '100ms', max_connections: 1 } },
  });
  const held: ServerResponse[] = [];
  proxy.receiver.behave((req, res) => {
    req.resume();
    held.push(res);
  });
  const first = proxy.write({ key: 'first' });
  await until('the only connection to be taken', () => held.length === 1);
  const second = await proxy.write({ key: 'second' });
  t.equal(second.status, 503);
  t.match(JSON.parse(second.text), { type: 'urn:sallyport:overloaded' });
  held[0]?.end('done');
  t.equal((await first).status, 200);
  proxy.receiver.behave(null);
  t.equal((await proxy.write({ key: 'second' })).status, 200);
});

t.test('any byte sent and no status: in doubt, never sent again', async (t) => {
  const proxy = await startReservingProxy(t, {
    config: { upstream: { connect_timeout: '100ms', response_timeout: '200ms' } },
  });
  const faults: readonly {
    readonly name: string;
    readonly behave: (req: IncomingMessage, res: ServerResponse) => void;
    readonly status: number;
  }[] = [
    { name: 'reset', behave: (req) => req.socket.resetAndDestroy(), status: 502 },
    { name: 'closed', behave: (req) => req.socket.end(), status: 502 },
    { name: 'closed-after-body', behave: (req) => req.resume().on('end', () => req.socket.destroy()), status: 502 },
    { name: 'garbage', behave: (req) => req.socket.end('SSH-2.0-x\r\n'), status: 502 },
    { name: 'half-a-head', behave: (req) => req.socket.end('HTTP/1.1 200 OK\r\nContent-'), status: 502 },
    { name: 'silence', behave: (req) => req.resume(), status: 504 },
    { name: 'interim-only', behave: (_req, res) => res.writeProcessing(), status: 504 },
  ];
  for (const { name, behave, status } of faults) {
    proxy.receiver.behave(behave);
    const before = proxy.receiver.requests.length;
    const first = await proxy.write({ key: name });
    t.equal(first.status, status, name);
    t.match(JSON.parse(first.text), {
      type: `urn:sallyport:${status === 502 ? 'upstream-failed' : 'upstream-timeout'}`,
      record: /^[\w-]{43}\.[\w-]{43}$/,
    });
    t.equal((await proxy.record(recordOf(first)))?.state, 'unknown');
    t.equal(proxy.receiver.requests.length, before + 1, 'sent once');
    proxy.receiver.behave(null);
    await staysInDoubt(t, proxy, name, first);
  }
  t.equal(proxy.unknowns.length, faults.length);
  t.equal(
    proxy.logged.filter(
      ({ level, message, fields }) => level === 'warn' && /not known/.test(message) && 'what_to_do' in fields,
    ).length,
    faults.length,
  );
});

t.test('time is up for the whole response, not only for its head: 504, the status is known', async (t) => {
  const proxy = await startReservingProxy(t, {
    config: { upstream: { connect_timeout: '100ms', response_timeout: '300ms' } },
  });
  proxy.receiver.behave((_req, res) => {
    res.writeHead(201, { 'Content-Type': 'text/plain' });
    const drip = setInterval(() => res.write('x'), 20);
    res.on('close', () => {
      clearInterval(drip);
    });
  });
  const first = await proxy.write({ key: 'dripping' });
  t.equal(first.status, 504);
  t.match(await proxy.record(recordOf(first)), { state: 'tombstone', response: { status: 201 } });
  const retry = await proxy.write({ key: 'dripping' });
  t.equal(retry.status, 409);
  t.match(JSON.parse(retry.text), { type: 'urn:sallyport:idempotency-result-not-replayable', record: recordOf(first) });
  await until(
    'the receiver to be let go',
    () => proxy.receiver.requests[0]?.aborted === true || proxy.receiver.open() === 0,
  );
});

t.test('a response cut off in its body: the status is kept, the caller sees that something is missing', async (t) => {
  const proxy = await startReservingProxy(t);
  const cuts: readonly (readonly [string, string])[] = [
    ['length', 'HTTP/1.1 201 Created\r\nContent-Length: 100\r\n\r\nabc'],
    ['chunks', 'HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n'],
  ];
  for (const [name, bytes] of cuts) {
    proxy.receiver.behave((req) => {
      req.resume().on('end', () => req.socket.end(bytes));
    });
    const first = await proxy.write({ key: name });
    t.equal(first.status, 502, name);
    t.match(await proxy.record(recordOf(first)), { state: 'tombstone', response: { status: 201 } });
    proxy.receiver.behave(null);
    const retry = await proxy.write({ key: name });
    t.match(JSON.parse(retry.text), {
      type: 'urn:sallyport:idempotency-result-not-replayable',
      status: 409,
      record: recordOf(first),
    });
  }
  t.equal(proxy.receiver.requests.length, cuts.length);
  t.same(proxy.results, ['acquired', 'tombstone', 'tombstone', 'acquired', 'tombstone', 'tombstone']);
});

t.test('in doubt with the store away: marked when it is back, in doubt by its lease if not', async (t) => {
  const proxy = await startReservingProxy(t);
  proxy.receiver.behave((req) => req.socket.destroy());
  proxy.store.behave('mark', down);
  const first = await proxy.write({ key: 'k' });
  t.equal(first.status, 502);
  proxy.receiver.behave(null);
  t.match(JSON.parse((await proxy.write({ key: 'k' })).text), { type: 'urn:sallyport:idempotency-in-progress' });
  proxy.store.behave('mark', null);
  await until('the mark', () => proxy.unknowns.length === 1);
  await staysInDoubt(t, proxy, 'k', first);
});

t.test('statuses that mean *not applied* pass through and free the key', async (t) => {
  const proxy = await startReservingProxy(t);
  for (const status of [401, 403, 408, 421, 425, 429]) {
    proxy.receiver.behave(answering(status, { 'Retry-After': '9', 'X-Reason': 'mine' }, 'later'));
    const first = await proxy.write({ key: `s${status}` });
    t.match(
      { status: first.status, text: first.text, reason: first.field('X-Reason') },
      { status, text: 'later', reason: 'mine' },
    );
    t.equal(first.field('Proxy-Status'), null);
    proxy.receiver.behave(null);
    const retry = await proxy.write({ key: `s${status}`, body: 'even another request' });
    t.equal(retry.status, 200, 'the key is free');
  }
  t.equal(proxy.results.filter((result) => result === 'released').length, 6);
});
