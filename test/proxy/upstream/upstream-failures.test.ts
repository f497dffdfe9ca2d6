import { createServer } from 'node:net';
import t from 'tap';
import { listen } from '../../support/listening.js';
import { request } from '../../support/raw-client.js';
import { startProxy } from '../harness.js';
import { okResponse, startRawUpstream } from './raw-upstream.js';

const routes = [
  {
    name: 'any',
    methods: ['GET', 'POST', 'PUT', 'HEAD'],
    path: '/**',
    subjects: ['checkout'],
    permissions: [],
    idempotency: 'none',
  },
];

t.test('an upstream that cannot be reached is 503, with the reason in Proxy-Status and no other word', async (t) => {
  const closing = createServer();
  const { port, close } = await listen(t, closing);
  await close();
  const cases = [
    { name: 'nothing listens', url: `http://127.0.0.1:${String(port)}`, error: 'connection_refused' },
    { name: 'no such name', url: 'http://no-such-host.invalid:80', error: 'dns_error' },
    { name: 'no such socket', url: 'unix:/nowhere/at/all.sock', error: 'connection_refused' },
  ];
  for (const { name, url, error } of cases) {
    const proxy = await startProxy(t, { upstreamUrl: url, config: { routes, upstream: { connect_timeout: '5s' } } });
    for (const method of ['GET', 'POST']) {
      const headers = { ...proxy.authorization(), 'X-Request-Id': `${method}-1` };
      const response = await request(proxy.port, {
        method,
        path: '/a',
        headers,
        ...(method === 'POST' ? { body: 'hello' } : {}),
      });
      t.equal(response.status, 503, name);
      t.equal(response.field('proxy-status'), `sallyport; error=${error}`, name);
      t.equal(response.field('retry-after'), '1', name);
      t.equal(
        response.text,
        '{"type":"urn:sallyport:upstream-unreachable","title":"The receiving service was not reached","status":503}',
      );
      t.match(await proxy.recordOf(`${method}-1`), {
        decision: 'failed',
        reason: 'upstream_unreachable',
        status: 503,
        upstream_ms: null,
      });
    }
    t.equal(proxy.server.counts().inFlight, 0);
  }
});

t.test('an upstream that fails after it was asked is 502, asked once, in our words', async (t) => {
  const secret = 'secret-of-the-receiver';
  const faults: readonly { readonly name: string; readonly bytes: string | null; readonly how?: 'reset' | 'end' }[] = [
    { name: 'closes without a word', bytes: null, how: 'end' },
    { name: 'resets', bytes: null, how: 'reset' },
    { name: 'garbage', bytes: `${secret}\r\n\r\n` },
    { name: 'half a head', bytes: `HTTP/1.1 200 OK\r\nX-A: ${secret}`, how: 'end' },
    { name: 'half a head and a reset', bytes: `HTTP/1.1 200 OK\r\nX-A: ${secret}`, how: 'reset' },
    { name: 'two lengths', bytes: `HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n${secret}` },
    {
      name: 'a length and chunks',
      bytes: `HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n${secret}`,
    },
    {
      name: 'a coding that we do not undo',
      bytes: `HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n5\r\n${secret.slice(0, 5)}\r\n0\r\n\r\n`,
    },
    { name: 'such a coding alone', bytes: `HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n${secret}` },
    { name: 'a status that is none', bytes: `HTTP/1.1 abc OK\r\n\r\n${secret}` },
    { name: 'a status below 100', bytes: 'HTTP/1.1 099 OK\r\nContent-Length: 0\r\n\r\n' },
    { name: 'a control byte in a field', bytes: `HTTP/1.1 200 OK\r\nX-A: \x01${secret}\r\n\r\n` },
    { name: 'a head without end', bytes: `HTTP/1.1 200 OK\r\nX-A: ${'a'.repeat(100_000)}` },
  ];
  for (const { name, bytes, how } of faults) {
    const upstream = await startRawUpstream(t, (socket) => {
      if (bytes !== null) socket.write(bytes);
      if (how === 'end') socket.end();
      if (how === 'reset') setTimeout(() => socket.resetAndDestroy(), 5);
    });
    const proxy = await startProxy(t, { upstreamUrl: upstream.url, config: { routes } });
    for (const [index, method] of ['GET', 'POST', 'PUT'].entries()) {
      const headers = { ...proxy.authorization(), 'X-Request-Id': method };
      const response = await request(proxy.port, {
        method,
        path: '/a',
        headers,
        ...(method === 'GET' ? {} : { body: 'hello' }),
      });
      t.equal(response.status, 502, `${name}, ${method}`);
      t.equal(response.field('proxy-status'), 'sallyport; error=connection_terminated', name);
      t.equal(
        response.text,
        '{"type":"urn:sallyport:upstream-failed","title":"The receiving service broke off; it may have acted","status":502}',
      );
      t.notMatch(response.raw.toString(), secret, name);
      t.equal(upstream.hits(), index + 1, `${name}: asked once`);
      t.match(await proxy.recordOf(method), { decision: 'failed', reason: 'upstream_failed', status: 502 });
    }
    t.notMatch(JSON.stringify(proxy.logged), secret, 'nor does the log say it');
    t.notMatch(JSON.stringify(proxy.logged), 'bug', name);
  }
});

t.test('whatever the upstream answers, it is asked once', async (t) => {
  let status = 200;
  const upstream = await startRawUpstream(t, (socket) => {
    socket.write(okResponse('x', 'Retry-After: 0\r\n').replace('200 OK', `${String(status)} X`));
  });
  const proxy = await startProxy(t, { upstreamUrl: upstream.url, config: { routes } });
  let asked = 0;
  for (const next of [
    200, 201, 206, 301, 302, 304, 307, 400, 401, 403, 404, 408, 409, 421, 425, 429, 500, 501, 502, 503, 504, 599, 999,
  ]) {
    status = next;
    for (const method of ['GET', 'POST']) {
      const response = await request(proxy.port, { method, path: '/a', headers: proxy.authorization() });
      t.equal(response.status, next, `${method} ${String(next)}`);
      t.equal(response.field('proxy-status'), null, "the answer is the receiver's");
      asked += 1;
      t.equal(upstream.hits(), asked, `${method} ${String(next)}: asked once`);
    }
  }
});
