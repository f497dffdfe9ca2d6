import { randomBytes } from 'node:crypto';
import t from 'tap';
import { connectRaw, requestBytes } from '../../support/raw-client.js';
import { fieldValues } from '../../support/upstream-server.js';
import { answering, startReservingProxy, writeOf } from './reserving-proxy.js';

const proxy = await startReservingProxy(t);

t.beforeEach(() => {
  proxy.receiver.behave(null);
  proxy.receiver.requests.length = 0;
  proxy.results.length = 0;
});

t.test('a retry with a new token gets the stored response byte for byte, and nothing runs', async (t) => {
  const body = randomBytes(3_000);
  proxy.receiver.behave(
    answering(
      201,
      {
        'Content-Type': 'application/octet-stream',
        'Content-Encoding': 'identity',
        'Content-Language': 'de',
        Location: '/orders/7',
        'Content-Location': '/orders/7',
        ETag: '"v1"',
        'Last-Modified': 'Sat, 01 Jan 2022 00:00:00 GMT',
        Link: ['</a>; rel="a"', '</b>; rel="b"'],
        'Retry-After': '7',
        Date: 'Sat, 01 Jan 2022 00:00:00 GMT',
        'Set-Cookie': 'session=1',
        'Cache-Control': 'max-age=60',
        'X-Total-Count': '4',
        'WWW-Authenticate': 'Basic',
        'Access-Control-Allow-Origin': '*',
        'RateLimit-Limit': '5',
        traceparent: '00-1-2-3',
      },
      body,
    ),
  );
  const first = await proxy.write({ key: 'bytes', claims: { jti: 'one' } });
  t.equal(first.status, 201);
  t.same(first.body, body);
  t.equal(first.field('Set-Cookie'), 'session=1', "the first answer is the receiver's, whole");
  t.equal(first.field('Idempotent-Replayed'), null);

  const retry = await proxy.write({ key: 'bytes', claims: { jti: 'two', exp: Math.floor(Date.now() / 1000) + 77 } });
  t.equal(retry.status, 201);
  t.same(retry.body, body);
  const names = retry.fields
    .map(([name]) => name.toLowerCase())
    .filter((name) => !['connection', 'keep-alive'].includes(name));
  t.same(
    [...names].sort(),
    [
      'cache-control',
      'content-encoding',
      'content-language',
      'content-length',
      'content-location',
      'content-type',
      'date',
      'etag',
      'idempotency-key',
      'idempotent-replayed',
      'last-modified',
      'link',
      'link',
      'location',
      'retry-after',
      'x-request-id',
    ],
    'no Proxy-Status, no cookie, nothing that belongs to one caller or moment',
  );
  t.equal(retry.field('Idempotent-Replayed'), 'true');
  t.equal(retry.field('Cache-Control'), 'no-store');
  t.equal(retry.field('Idempotency-Key'), 'bytes');
  t.equal(retry.field('Content-Length'), '3000');
  t.equal(retry.field('Link'), '</a>; rel="a", </b>; rel="b"');
  t.not(retry.field('Date'), first.field('Date'), 'a fresh Date');
  t.not(retry.field('X-Request-Id'), first.field('X-Request-Id'));
  t.equal(proxy.executions().length, 1);
  t.same(proxy.results, ['acquired', 'completed', 'replayed']);

  const { decision, reason, record, upstream_ms } = await proxy.recordOf(retry.field('X-Request-Id') ?? '');
  const [earlier] = proxy.records.filter(({ decision }) => decision === 'forwarded');
  t.match({ decision, reason, upstream_ms }, { decision: 'replayed', reason: null, upstream_ms: null });
  t.match(record, /^[\w-]{43}\.[\w-]{43}$/);
  t.equal(record, earlier?.record, 'both lines name the record');
});

t.test('"abc" and abc are one key, echoed as it came', async (t) => {
  await proxy.write({ key: '"quoted"' });
  const retry = await proxy.write({ key: 'quoted' });
  t.equal(retry.field('Idempotent-Replayed'), 'true');
  t.equal(retry.field('Idempotency-Key'), 'quoted');
  t.equal((await proxy.write({ key: '"quoted"' })).field('Idempotency-Key'), '"quoted"');
});

t.test('every complete response is kept, failures too', async (t) => {
  for (const status of [200, 202, 204, 303, 304, 400, 404, 409, 422, 500, 503]) {
    proxy.receiver.behave(
      answering(status, { 'Content-Type': 'text/plain' }, status === 204 || status === 304 ? '' : `it is ${status}`),
    );
    const key = `status-${status}`;
    const first = await proxy.write({ key });
    const retry = await proxy.write({ key });
    t.equal(first.status, status);
    t.match({ status: retry.status, text: retry.text }, { status, text: first.text }, `${status} again`);
    t.equal(retry.field('Idempotent-Replayed'), 'true');
    t.equal(retry.field('Proxy-Status'), null);
  }
  t.equal(proxy.executions().length, 11);
});

t.test('an empty body has its length, a response without one has none', async (t) => {
  proxy.receiver.behave(answering(200, {}, ''));
  await proxy.write({ key: 'empty' });
  const empty = await proxy.write({ key: 'empty' });
  t.equal(empty.field('Content-Length'), '0');
  proxy.receiver.behave(answering(204, {}, ''));
  await proxy.write({ key: 'no-content' });
  const none = await proxy.write({ key: 'no-content' });
  t.equal(none.field('Content-Length'), null);
  t.equal(none.field('Transfer-Encoding'), null);
});

t.test('PUT, DELETE and HEAD are reserved as POST is, on the connection that stays open', async (t) => {
  proxy.receiver.behave((req, res) => {
    req.on('end', () =>
      res
        .writeHead(200, { 'Content-Type': 'text/plain', 'Content-Length': '400000' })
        .end(req.method === 'HEAD' ? '' : 'x'.repeat(400_000)),
    );
  });
  const connection = await connectRaw(proxy.port);
  t.teardown(connection.end);
  const { body: _body, ...head } = writeOf(proxy, { method: 'HEAD', key: 'head' });
  for (const replayed of [null, 'true']) {
    connection.write(requestBytes(proxy.port, head));
    const answer = await connection.readResponse({ bodyless: true });
    t.equal(answer?.status, 200);
    t.equal(answer?.field('Idempotent-Replayed'), replayed, 'the length that HEAD announces is no body to keep');
  }
  proxy.receiver.behave(null);
  for (const method of ['PUT', 'DELETE']) {
    for (const replayed of [null, 'true']) {
      connection.write(requestBytes(proxy.port, writeOf(proxy, { method, key: method })));
      const answer = await connection.readResponse();
      t.equal(answer?.field('Idempotent-Replayed'), replayed, method);
    }
  }
  t.equal(proxy.executions().length, 3);
});

t.test('a route adds fields to what is kept, but none that belong to one caller', async (t) => {
  proxy.receiver.behave(
    answering(200, { 'X-Total-Count': '12', 'X-Auth-Subject': 'forged', 'Set-Cookie': 'a=b' }, 'x'),
  );
  await proxy.write({ path: '/headers', key: 'added' });
  const retry = await proxy.write({ path: '/headers', key: 'added' });
  t.equal(retry.field('X-Total-Count'), '12');
  t.equal(retry.field('X-Auth-Subject'), null, 'identity names never come from a receiver');
  t.equal(retry.field('Set-Cookie'), null);
});

t.test('what Connection names is not kept', async (t) => {
  proxy.receiver.behave((req, res) => {
    req.on('end', () => {
      res.socket?.end(
        'HTTP/1.1 200 OK\r\nConnection: close, ETag\r\nETag: "hop"\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nok',
      );
    });
  });
  const first = await proxy.write({ key: 'hop' });
  const retry = await proxy.write({ key: 'hop' });
  for (const answer of [first, retry]) {
    t.equal(answer.status, 200);
    t.equal(answer.text, 'ok');
    t.equal(answer.field('ETag'), null);
  }
});

t.test('the upstream cannot say what only we say', async (t) => {
  proxy.receiver.behave(
    answering(
      200,
      { 'Idempotent-Replayed': 'true', 'Idempotency-Outcome': 'not-applied', 'Proxy-Status': 'sallyport; error=x' },
      'x',
    ),
  );
  const first = await proxy.write({ key: 'liar' });
  t.equal(first.field('Idempotent-Replayed'), null);
  t.equal(first.field('Idempotency-Outcome'), null);
  t.equal(first.field('Proxy-Status'), null);
  t.equal(
    (await proxy.write({ key: 'liar' })).field('Idempotent-Replayed'),
    'true',
    'on a plain route its word does not free the key',
  );
});

t.test('the upstream learns key, record and fence; what the caller says of the last two is dropped', async (t) => {
  await proxy.write({
    key: '"told"',
    claims: { jti: 'verified' },
    headers: {
      'Idempotency-Record': 'forged',
      'Idempotency-Fence': '1',
      Idempotency_Fence: '2',
      'X-Auth-Token-Id': 'forged',
    },
  });
  const [told] = proxy.executions();
  const { record } = await proxy.recordOf(told?.field('X-Request-Id')[0] ?? '');
  t.same(told?.field('Idempotency-Key'), ['"told"'], 'as received');
  t.same(told?.field('Idempotency-Record'), [record]);
  t.match(told?.field('Idempotency-Fence'), [/^\d{13}$/]);
  t.same(told?.field('X-Auth-Token-Id'), ['verified']);
  t.same(fieldValues(told?.rawHeaders ?? [], 'Idempotency_Fence'), []);
  const fence = Number(told?.field('Idempotency-Fence')[0]);
  proxy.clock.step(1);
  await proxy.write({ key: 'later' });
  t.ok(Number(proxy.executions()[1]?.field('Idempotency-Fence')[0]) > fence, 'fences grow');
});
