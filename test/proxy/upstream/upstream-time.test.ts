import t from 'tap';
import { connectRaw, request } from '../../support/raw-client.js';
import { startProxy } from '../harness.js';
import { okResponse, startRawUpstream } from './raw-upstream.js';

const routes = [
  { name: 'any', methods: ['GET', 'POST'], path: '/**', subjects: ['checkout'], permissions: [], idempotency: 'none' },
];

t.test('an upstream that is too slow is 504', async (t) => {
  const answers: readonly { readonly name: string; readonly bytes: string }[] = [
    { name: 'nothing', bytes: '' },
    { name: 'half a head', bytes: 'HTTP/1.1 200 OK\r\nX-A: b\r\n' },
    { name: 'interim answers only', bytes: 'HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n' },
  ];
  for (const { name, bytes } of answers) {
    const upstream = await startRawUpstream(t, (socket) => void socket.write(bytes));
    const proxy = await startProxy(t, {
      upstreamUrl: upstream.url,
      config: { routes, upstream: { response_timeout: '150ms' } },
    });
    for (const method of ['GET', 'POST']) {
      const headers = { ...proxy.authorization(), 'X-Request-Id': method };
      const response = await request(proxy.port, {
        method,
        path: '/a',
        headers,
        ...(method === 'POST' ? { body: 'hello' } : {}),
      });
      t.equal(response.status, 504, `${name}, ${method}`);
      t.equal(response.field('proxy-status'), 'sallyport; error=http_response_timeout');
      t.match(await proxy.recordOf(method), { decision: 'failed', reason: 'upstream_timeout', status: 504 });
    }
    t.equal(upstream.hits(), 2, `${name}: asked once each`);
  }
});

t.test('a route may give its upstream more time, or less', async (t) => {
  const upstream = await startRawUpstream(t, (socket, received) => {
    if (received.includes('/slow')) setTimeout(() => socket.write(okResponse('late')), 300);
  });
  const proxy = await startProxy(t, {
    upstreamUrl: upstream.url,
    config: {
      upstream: { response_timeout: '100ms' },
      routes: [
        {
          name: 'slow',
          methods: ['GET'],
          path: '/slow',
          subjects: ['checkout'],
          permissions: [],
          response_timeout: '20s',
        },
        { name: 'usual', methods: ['GET'], path: '/usual', subjects: ['checkout'], permissions: [] },
      ],
    },
  });
  t.equal((await request(proxy.port, { path: '/slow', headers: proxy.authorization() })).text, 'late');
  t.equal((await request(proxy.port, { path: '/usual', headers: proxy.authorization() })).status, 504);
});

t.test('the time for the response begins when the whole request was sent', async (t) => {
  const proxy = await startProxy(t, { config: { routes, upstream: { response_timeout: '1s' } } });
  const connection = await connectRaw(proxy.port);
  t.teardown(connection.end);
  connection.write(`POST /a HTTP/1.1\r\nHost: a\r\n${proxy.bearer()}Content-Length: 8\r\n\r\n`);
  for (let i = 0; i < 8; i++) {
    await new Promise((resolve) => setTimeout(resolve, 160));
    connection.write('x');
  }
  t.equal((await connection.readResponse())?.status, 200);
});
