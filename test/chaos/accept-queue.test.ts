import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import t from 'tap';
import { acceptQueue } from '../../src/proxy/inbound/listener.js';
import { until } from '../support/until.js';
import { startProxyProcess } from '../support/proxy-process.js';

/** Beyond what Node would have waiting by itself, 511. */
const burst = 800;

t.test('a burst of connections that comes while the proxy is busy waits, and is served', async (t) => {
  const allowed = Number(readFileSync('/proc/sys/net/core/somaxconn', 'utf8'));
  if (Math.min(allowed, acceptQueue) <= burst) {
    t.fail(`net.core.somaxconn is ${String(allowed)}: this machine keeps no burst of ${String(burst)}`);
    return;
  }
  const proxy = await startProxyProcess(t);
  proxy.signal('SIGSTOP');
  t.teardown(() => proxy.signal('SIGCONT'));
  const sockets: Socket[] = [];
  for (let i = 0; i < burst; i += 1) {
    const socket = connect(proxy.port, '127.0.0.1');
    t.teardown(() => socket.destroy());
    socket.write('GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n');
    sockets.push(socket);
  }
  // A connection that the system did not take would not be connected before the proxy goes on.
  await until('all are connected', () => sockets.every(({ connecting, pending }) => !connecting && !pending));
  const answers = sockets.map(async (socket) => String((await once(socket, 'data'))[0]).slice(9, 12));
  proxy.signal('SIGCONT');
  t.same(new Set(await Promise.all(answers)), new Set(['200']));
});
