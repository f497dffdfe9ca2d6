import t from 'tap';
import { connectRaw, request, sendRaw } from '../../support/raw-client.js';
import { until } from '../../support/until.js';
import { startProxy } from '../harness.js';

const routes = [{ name: 'open', methods: ['GET'], path: '/open/{x}', access: 'public' }];

/** A request of exactly this many bytes, counted as `max_header_bytes` counts. */
function padded(bytes: number): string {
  const head = 'GET /open/a HTTP/1.1\r\nHost: a\r\nX-Padding: ';
  return `${head}${'p'.repeat(bytes - head.length - 4)}\r\n\r\n`;
}

t.test('request line and header section together are limited', async (t) => {
  const proxy = await startProxy(t, { config: { listen: { max_header_bytes: '2KiB', max_target: '1KiB' }, routes } });
  const cases = [
    { name: 'exactly the limit', bytes: padded(2048), status: 200 },
    { name: 'one byte more', bytes: padded(2049), status: 431 },
    { name: 'far more', bytes: padded(64 * 1024), status: 431 },
    { name: 'many fields', bytes: `GET /open/a HTTP/1.1\r\nHost: a\r\n${'a: b\r\n'.repeat(500)}\r\n`, status: 431 },
    {
      name: 'a target that is larger than all',
      bytes: `GET /open/${'a'.repeat(4096)} HTTP/1.1\r\nHost: a\r\n\r\n`,
      status: 431,
    },
  ];
  for (const { name, bytes, status } of cases) {
    const [response] = await sendRaw(proxy.port, bytes);
    t.equal(response?.status, status, name);
    if (status === 431) {
      t.match(response?.text, '"type":"urn:sallyport:bad-request"', `${name}: a problem document`);
      t.equal(response?.field('proxy-status'), 'sallyport; error=http_request_error');
      t.ok(response?.closed, `${name}: the connection is closed`);
    }
  }
  await until('all are recorded', () => proxy.records.length === cases.length);
  t.same(
    proxy.records.map(({ reason }) => reason),
    [null, 'header_too_large', 'header_too_large', 'header_too_large', 'header_too_large'],
  );
});

t.test('so is white space, which Node does not count', async (t) => {
  const proxy = await startProxy(t, { config: { listen: { max_header_bytes: '2KiB', max_target: '1KiB' }, routes } });
  const request = (before: string, value: string): string =>
    `${before}GET /open/a HTTP/1.1\r\nHost: a\r\nX-Padding:${value}b\r\n\r\n`;
  const large = 1024 * 1024;
  const cases = [
    { name: 'some spaces', bytes: request('', ' '.repeat(1024)), status: 200 },
    { name: 'many spaces', bytes: request('', ' '.repeat(large)), status: 431 },
    { name: 'spaces and tabs behind the value', bytes: request('', `b${' \t'.repeat(large / 2)}`), status: 431 },
    { name: 'some empty lines', bytes: request('\r\n'.repeat(8), ''), status: 200 },
    { name: 'many empty lines', bytes: request('\r\n'.repeat(large / 2), ''), status: 431 },
  ];
  for (const { name, bytes, status } of cases) {
    for (const before of [0, 1]) {
      const connection = await connectRaw(proxy.port);
      t.teardown(connection.end);
      if (before === 1) {
        connection.write(padded(200));
        t.equal((await connection.readResponse())?.status, 200);
      }
      connection.write(bytes);
      const response = await connection.readResponse();
      t.same(
        [response?.status, response?.field('connection')],
        [status, status === 431 ? 'close' : 'keep-alive'],
        `${name}, after ${String(before)}`,
      );
    }
  }
  t.ok(proxy.records.every(({ reason, status }) => reason === (status === 431 ? 'header_too_large' : null)));
});

t.test('nobody waits for the end of such a head', async (t) => {
  const proxy = await startProxy(t, { config: { listen: { header_timeout: '60s' }, routes } });
  for (const { begin, more } of [
    { begin: 'GET /open/a HTTP/1.1\r\nX:', more: ' ' },
    { begin: '', more: '\r\n' },
  ]) {
    const connection = await connectRaw(proxy.port);
    t.teardown(connection.end);
    connection.write(padded(200));
    t.equal((await connection.readResponse())?.status, 200);
    connection.write(begin + more.repeat(200_000));
    t.equal((await connection.readResponse())?.status, 431, JSON.stringify(more));
    await connection.closed;
  }
});

t.test('bodies do not count, nor does what is pipelined', async (t) => {
  const post = { name: 'post', methods: ['POST'], path: '/open/{x}', access: 'public', idempotency: 'none' };
  const proxy = await startProxy(t, {
    config: { listen: { max_header_bytes: '2KiB', max_target: '1KiB' }, routes: [...routes, post] },
  });
  const connection = await connectRaw(proxy.port);
  t.teardown(connection.end);
  const body = 'b'.repeat(900_000);
  const upload = `POST /open/a HTTP/1.1\r\nHost: a\r\nContent-Length: ${String(body.length)}\r\n\r\n${body}`;
  connection.write(`${upload}${padded(2048)}${upload}${upload}${padded(2048)}`);
  for (let i = 0; i < 5; i++) t.equal((await connection.readResponse())?.status, 200, String(i));
});

t.test('a target over max_target is 414', async (t) => {
  const proxy = await startProxy(t, { config: { listen: { max_header_bytes: '16KiB', max_target: '1KiB' }, routes } });
  for (const { length, status } of [
    { length: 1024, status: 200 },
    { length: 1025, status: 414 },
    { length: 8000, status: 414 },
  ]) {
    const path = `/open/${'a'.repeat(length - '/open/'.length)}`;
    t.equal((await request(proxy.port, { path })).status, status, `${String(length)} bytes`);
  }
});

t.test('no header is dropped without a word, however many there are', async (t) => {
  const proxy = await startProxy(t, { config: { listen: { max_header_bytes: '64KiB' }, routes } });
  const fields = (count: number): string => Array.from({ length: count }, (_, i) => `x${String(i)}: y\r\n`).join('');
  const [within] = await sendRaw(proxy.port, `GET /open/a HTTP/1.1\r\nHost: a\r\n${fields(200)}\r\n`);
  t.equal(within?.status, 200);
  t.equal(proxy.receiver.requests[0]?.field('x199').length, 1);
  // Node keeps a thousand and drops the rest without a word: the length of the body would be among it.
  const [over] = await sendRaw(
    proxy.port,
    `GET /open/a HTTP/1.1\r\nHost: a\r\n${fields(1100)}Content-Length: 5\r\n\r\nhello`,
  );
  t.equal(over?.status, 431);
  t.equal(proxy.receiver.requests.length, 1);
});

t.test('a head that is not complete in time is answered 408, and the connection closed', async (t) => {
  const proxy = await startProxy(t, { config: { listen: { header_timeout: '200ms' }, routes } });
  for (const partial of ['G', 'GET /open/a HTTP/1.1\r\nHos', 'GET /open/a HTTP/1.1\r\nHost: a\r\n']) {
    const connection = await connectRaw(proxy.port);
    t.teardown(connection.end);
    connection.write(partial);
    const response = await connection.readResponse();
    t.equal(response?.status, 408, JSON.stringify(partial));
    t.equal(response?.field('connection'), 'close');
    t.equal(response?.field('content-type'), 'application/problem+json');
    await connection.closed;
  }
  t.same(
    proxy.records.map(({ reason, decision }) => [reason, decision]),
    Array(3).fill(['header_timeout', 'denied']),
  );
});

t.test('bytes that trickle in do not extend the time for the head', async (t) => {
  const proxy = await startProxy(t, { config: { listen: { header_timeout: '300ms' }, routes } });
  const connection = await connectRaw(proxy.port);
  t.teardown(connection.end);
  const trickle = setInterval(() => {
    connection.write('a');
  }, 20);
  t.teardown(() => {
    clearInterval(trickle);
  });
  connection.write('GET /open/a HTTP/1.1\r\nX: ');
  t.equal((await connection.readResponse())?.status, 408);
});

t.test('a later head on a kept connection has to be complete in time too', async (t) => {
  const proxy = await startProxy(t, { config: { listen: { header_timeout: '200ms' }, routes } });
  const connection = await connectRaw(proxy.port);
  t.teardown(connection.end);
  connection.write('GET /open/a HTTP/1.1\r\nHost: a\r\n\r\n');
  t.equal((await connection.readResponse())?.status, 200);
  connection.write('GET /open/b HTTP/1.1\r\n');
  t.equal((await connection.readResponse())?.status, 408);
  await connection.closed;
});

t.test('a connection on which nothing comes is closed without a response or a record', async (t) => {
  const proxy = await startProxy(t, { config: { listen: { header_timeout: '200ms' }, routes } });
  const connection = await connectRaw(proxy.port);
  await connection.closed;
  t.equal(connection.pending().length, 0);
  t.same(proxy.records, []);
});

t.test('many half-open heads keep nobody from being served', async (t) => {
  const proxy = await startProxy(t, { config: { listen: { max_in_flight: 4 }, routes } });
  const half = await Promise.all(Array.from({ length: 200 }, async () => connectRaw(proxy.port)));
  t.teardown(() => {
    for (const connection of half) connection.end();
  });
  for (const connection of half) connection.write('GET /open/a HTTP/1.1\r\nHost: a\r\nX-Slow: ');
  await until('all are connected', () => proxy.server.counts().connections === half.length);
  for (let i = 0; i < 5; i++) t.equal((await request(proxy.port, { path: '/open/honest' })).status, 200);
});
