/** Responses that a caller does not take yet: its other requests on the connection are served all the same. */
import t from 'tap';
import { ask, connectHttp2 } from '../../../support/http2-client.js';
import { until } from '../../../support/until.js';
import { startProxy } from '../../harness.js';
import { startReservingProxy } from '../../idempotency/reserving-proxy.js';

t.test('300 large responses that no window is opened for, and then a small one', async (t) => {
  const proxy = await startProxy(t, {
    config: {
      listen: { http2: true, max_streams: 400 },
      upstream: { max_connections: 400 },
    },
  });
  proxy.receiver.behave((_req, res) => res.end(Buffer.alloc(1_000_000)));
  const session = await connectHttp2(t, `http://127.0.0.1:${proxy.port}`, { settings: { initialWindowSize: 0 } });
  const headers = { ':path': '/orders', authorization: proxy.authorization().Authorization };
  let heads = 0;
  for (let i = 0; i < 300; i += 1) {
    const stream = session.request(headers);
    stream.on('error', () => undefined).on('response', () => (heads += 1));
  }
  await until('all are answered', () => heads === 300);
  proxy.receiver.behave((_req, res) => res.writeHead(204).end());
  t.equal((await ask(session, headers)).status, 204);
});

t.test('45 kept responses of 256 KiB that no window is opened for, and then a small one', async (t) => {
  const proxy = await startReservingProxy(t, { config: { listen: { http2: true } } });
  proxy.receiver.behave((req, res) => {
    req.resume().on('end', () => res.end(Buffer.alloc(250_000)));
  });
  const session = await connectHttp2(t, `http://127.0.0.1:${proxy.port}`, { settings: { initialWindowSize: 0 } });
  const headers = {
    ':path': '/orders',
    ':method': 'POST',
    authorization: proxy.authorization().Authorization,
  };
  let heads = 0;
  for (let i = 0; i < 45; i += 1) {
    const stream = session.request({ ...headers, 'idempotency-key': `k${String(i)}` });
    stream.on('error', () => undefined).on('response', () => (heads += 1));
    stream.end('body');
  }
  await until('all are answered', () => heads === 45);
  proxy.receiver.behave((req, res) => {
    req.resume().on('end', () => res.writeHead(204).end());
  });
  t.equal((await ask(session, { ...headers, 'idempotency-key': 'small' }, 'body')).status, 204);
});
