/** docs/contract.md 4: what callers are told when the receiver breaks off, is too slow or is not there. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import t from 'tap';
import { startUpstreamServer } from '../support/upstream-server.js';
import { until } from '../support/until.js';
import { startProxyProcess } from '../support/proxy-process.js';
import { checkRefusal, refusals, type Refusal } from './refusals.js';
import { checkSilence } from './silence.js';

const first = await startUpstreamServer(t, { alike: true });
const proxy = await startProxyProcess(t, {
  receiver: first,
  config: {
    upstream: { response_timeout: '300ms', idle_timeout: '300ms', connect_timeout: '2s' },
    routes: [
      { name: 'read', methods: ['GET'], path: '/orders', subjects: ['checkout'], permissions: [] },
      {
        name: 'write',
        methods: ['POST'],
        path: '/orders',
        subjects: ['checkout'],
        permissions: [],
        idempotency: 'none',
      },
      {
        name: 'patient',
        methods: ['GET'],
        path: '/patient',
        subjects: ['checkout'],
        permissions: [],
        response_timeout: '20s',
      },
    ],
  },
});

type Fault = (req: IncomingMessage, res: ServerResponse) => void;

const raw =
  (text: string): Fault =>
  (req) =>
    req.socket.end(text);
const faults: readonly { name: string; fault: Fault; expected: Refusal }[] = [
  { name: 'a reset', fault: (req) => req.socket.resetAndDestroy(), expected: refusals.upstreamFailed },
  { name: 'a close', fault: (req) => req.socket.end(), expected: refusals.upstreamFailed },
  { name: 'garbage', fault: raw('garbage marked-secret-5d1f\r\n\r\n'), expected: refusals.upstreamFailed },
  { name: 'half a head', fault: raw('HTTP/1.1 200 OK\r\nContent-Le'), expected: refusals.upstreamFailed },
  {
    name: 'length and chunks',
    fault: raw('HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n'),
    expected: refusals.upstreamFailed,
  },
  {
    name: 'two lengths',
    fault: raw('HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx'),
    expected: refusals.upstreamFailed,
  },
  {
    name: 'a folded field',
    fault: raw('HTTP/1.1 200 OK\r\nX: a\r\n b\r\nContent-Length: 0\r\n\r\n'),
    expected: refusals.upstreamFailed,
  },
  { name: 'silence', fault: () => undefined, expected: refusals.upstreamTimeout },
  {
    name: 'silence after an interim answer',
    fault: (_req, res) => {
      res.writeProcessing();
    },
    expected: refusals.upstreamTimeout,
  },
];

t.test('the upstream broke off (502) or was too slow (504), and got the request once', async (t) => {
  for (const { name, fault, expected } of faults) {
    for (const method of ['GET', 'POST']) {
      proxy.receiver.behave(fault);
      const before = proxy.receiver.requests.length;
      const requestId = `${name.replaceAll(' ', '-')}-${method}`;
      const response = await proxy.request({
        method,
        path: '/orders',
        headers: { ...proxy.authorization(), 'X-Request-Id': requestId },
        ...(method === 'POST' ? { body: 'x' } : {}),
      });
      checkRefusal(t, response, expected, `${name}, ${method}`);
      t.equal(proxy.receiver.requests.length - before, 1, `${name}, ${method}`);
      const reason = expected.status === 502 ? 'upstream_failed' : 'upstream_timeout';
      t.match(
        await proxy.logOf(requestId),
        { decision: 'failed', reason, status: expected.status, subject: 'checkout' },
        'the log says so',
      );
      proxy.receiver.behave(null);
      // On the patient route, since the answer of a busy machine may take longer than this proxy's time-out.
      t.equal(
        (await proxy.request({ path: '/patient', headers: proxy.authorization() })).status,
        200,
        'the next request is none the worse',
      );
    }
  }
});

t.test('a route may have more patience', async (t) => {
  proxy.receiver.behave((_req, res) => setTimeout(() => res.end('late'), 600));
  const response = await proxy.request({ path: '/patient', headers: proxy.authorization() });
  proxy.receiver.behave(null);
  t.match(response, { status: 200, text: 'late' });
});

t.test('a response that stops in the middle does not look whole', async (t) => {
  const stops: readonly (readonly [string, Fault])[] = [
    ['a length that is not reached', raw('HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nfirst')],
    ['chunks without an end', raw('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n')],
    [
      'a reset',
      (req, res) => {
        res.writeHead(200, { 'Content-Length': '10' });
        res.write('first', () => setImmediate(() => req.socket.resetAndDestroy()));
      },
    ],
    [
      'a pause longer than idle_timeout',
      (_req, res) => {
        res.writeHead(200, { 'Content-Length': '10' });
        res.write('first');
      },
    ],
    [
      'a pause between chunks',
      (_req, res) => {
        res.writeHead(200);
        res.write('first');
      },
    ],
  ];
  for (const [name, stop] of stops) {
    proxy.receiver.behave(stop);
    const response = await proxy.request({ path: '/orders', headers: proxy.authorization() }).catch(() => null);
    // A reset may overtake the bytes before it: then there is no answer at all, or 502.
    if (response === null) t.equal(name, 'a reset', name);
    else t.ok(response.status === 502 || !response.complete, name);
  }
  proxy.receiver.behave(null);
});

t.test('the upstream was certainly not reached: 503', async (t) => {
  await proxy.receiver.close();
  for (const method of ['GET', 'POST']) {
    const response = await proxy.request({
      method,
      path: '/orders',
      headers: { ...proxy.authorization(), 'X-Request-Id': `gone-${method}` },
      ...(method === 'POST' ? { body: 'x' } : {}),
    });
    checkRefusal(
      t,
      response,
      { ...refusals.upstreamUnreachable, error: 'connection_refused' },
      `nobody listens, ${method}`,
    );
    t.match(await proxy.logOf(`gone-${method}`), { decision: 'failed', reason: 'upstream_unreachable', status: 503 });
  }
  const again = await startUpstreamServer(t, { port: first.port, alike: true });
  await until(
    'it is back',
    async () => (await proxy.request({ path: '/orders', headers: proxy.authorization() })).status === 200,
  );
  t.not(again.requests.length, 0);
  t.equal(
    (await proxy.metric('sallyport_requests_total{route="read",outcome="failed"}')) > 0,
    true,
    'counted as failed',
  );
});

checkSilence(t, proxy);
