import t from 'tap';
import { connectRaw, sendRaw } from '../../support/raw-client.js';
import { until } from '../../support/until.js';
import { startProxy } from '../harness.js';
import { startRawUpstream } from '../upstream/raw-upstream.js';

const get = (bearer: string, id: string, version = '1.1'): string =>
  `GET /orders HTTP/${version}\r\nHost: a\r\nX-Request-Id: ${id}\r\n${bearer}\r\n`;

t.test('a response that breaks off stays broken for the caller', async (t) => {
  const cases: readonly {
    readonly name: string;
    readonly bytes: string;
    readonly how: 'end' | 'reset' | 'stall';
    readonly reason: string;
  }[] = [
    { name: 'a length, closed', bytes: 'Content-Length: 10\r\n\r\n01234', how: 'end', reason: 'upstream_failed' },
    { name: 'a length, reset', bytes: 'Content-Length: 10\r\n\r\n01234', how: 'reset', reason: 'upstream_failed' },
    {
      name: 'a length, nothing more',
      bytes: 'Content-Length: 10\r\n\r\n01234',
      how: 'stall',
      reason: 'upstream_timeout',
    },
    { name: 'a length, nothing at all', bytes: 'Content-Length: 10\r\n\r\n', how: 'stall', reason: 'upstream_timeout' },
    {
      name: 'chunks, closed',
      bytes: 'Transfer-Encoding: chunked\r\n\r\n5\r\n01234\r\n',
      how: 'end',
      reason: 'upstream_failed',
    },
    {
      name: 'chunks, reset',
      bytes: 'Transfer-Encoding: chunked\r\n\r\n5\r\n01234\r\n',
      how: 'reset',
      reason: 'upstream_failed',
    },
    {
      name: 'chunks, nothing more',
      bytes: 'Transfer-Encoding: chunked\r\n\r\n5\r\n01234\r\n',
      how: 'stall',
      reason: 'upstream_timeout',
    },
    {
      name: 'a broken chunk',
      bytes: 'Transfer-Encoding: chunked\r\n\r\n5\r\n01234\r\nzz\r\n',
      how: 'stall',
      reason: 'upstream_failed',
    },
    { name: 'until close, reset', bytes: '\r\n01234', how: 'reset', reason: 'upstream_failed' },
  ];
  for (const { name, bytes, how, reason } of cases) {
    const upstream = await startRawUpstream(t, (socket) => {
      socket.write(`HTTP/1.1 200 OK\r\n${bytes}`);
      if (how === 'end') socket.end();
      if (how === 'reset') setTimeout(() => socket.resetAndDestroy(), 20);
    });
    const proxy = await startProxy(t, {
      upstreamUrl: upstream.url,
      config: { upstream: { idle_timeout: how === 'stall' ? '200ms' : '60s' } },
    });
    const [response] = await sendRaw(proxy.port, get(proxy.bearer(), 'cut'), { untilClosed: true });
    t.equal(response?.status, 200, name);
    t.equal(response?.complete, false, `${name}: not taken for whole`);
    t.match(await proxy.recordOf('cut'), { decision: 'failed', reason, status: 200 }, name);
    t.equal(upstream.hits(), 1, name);
    t.equal(proxy.server.counts().inFlight, 0, name);
    await until('no connection is left', () => proxy.server.counts().connections === 0);
  }
});

t.test('a caller of HTTP/1.0, whose response ends with the connection, is reset', async (t) => {
  const upstream = await startRawUpstream(t, (socket) => {
    socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n01234\r\n');
    setTimeout(() => socket.end(), 20);
  });
  const proxy = await startProxy(t, { upstreamUrl: upstream.url, config: { listen: { http_1_0: 'allow' } } });
  const connection = await connectRaw(proxy.port);
  t.teardown(connection.end);
  const codes: unknown[] = [];
  connection.socket.on('error', (error: NodeJS.ErrnoException) => codes.push(error.code));
  connection.write(get(proxy.bearer(), 'old', '1.0'));
  await connection.closed;
  t.match(connection.pending().toString(), '01234');
  t.same(codes, ['ECONNRESET']);
});

t.test('an idle answer that still moves goes on', async (t) => {
  const upstream = await startRawUpstream(t, (socket) => {
    socket.write('HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n');
    let sent = 0;
    const timer = setInterval(() => {
      socket.write('x');
      if (++sent === 10) clearInterval(timer);
    }, 120);
  });
  const proxy = await startProxy(t, { upstreamUrl: upstream.url, config: { upstream: { idle_timeout: '1s' } } });
  const [response] = await sendRaw(proxy.port, get(proxy.bearer(), 'slow'));
  t.equal(response?.text, 'xxxxxxxxxx');
});
