import { createServer, METHODS, type RequestListener } from 'node:http';
import t from 'tap';
import { createClientApp } from '../../src/proxy/client-app.js';
import { ClientRequest } from '../../src/proxy/inbound/http1-request.js';
import type { Scope } from '../support/scope.js';
import { sendRaw } from '../support/raw-client.js';

async function start(t: Scope, onRequest: RequestListener): Promise<number> {
  const server = createServer({ IncomingMessage: ClientRequest });
  const app = createClientApp({ server, onRequest, onClientError: (_error, socket) => socket.destroy() });
  t.teardown(app.close);
  return (await app.listen({ host: '127.0.0.1', port: 0 })).port;
}

t.test('every request comes in by the hook, as it came but for the target that the router is shown', async (t) => {
  const seen: unknown[] = [];
  const port = await start(t, (req, res) => {
    if (!(req instanceof ClientRequest)) throw new Error('another class');
    seen.push([req.method, req.originalUrl, req.url, req.rawHeaders]);
    res.end();
  });
  const targets = ['/', '/a/%zz?b', '//evil/', 'http://evil/healthz', '/a;b/../c', '*', '/#a'];
  const methods = METHODS.filter((method) => method !== 'CONNECT');
  const lines = [...targets.map((target) => ['GET', target]), ...methods.map((method) => [method, '/x'])];
  for (const [method = '', target = ''] of lines) {
    await sendRaw(port, `${method} ${target} HTTP/1.1\r\nhOST: a\r\nX: 1\r\nX: 2\r\nContent-Length: 0\r\n\r\n`);
  }
  t.same(
    seen,
    lines.map(([method, target]) => [method, target, '/', ['hOST', 'a', 'X', '1', 'X', '2', 'Content-Length', '0']]),
  );
});

t.test('a hook that throws before there is an exchange ends the connection, and the next one is served', async (t) => {
  let isBroken = true;
  const port = await start(t, (_req, res) => {
    if (isBroken) throw new Error('a bug');
    res.end('served');
  });
  t.same(await sendRaw(port, 'GET / HTTP/1.1\r\nHost: a\r\n\r\n', { untilClosed: true }), []);
  isBroken = false;
  t.equal((await sendRaw(port, 'GET / HTTP/1.1\r\nHost: a\r\n\r\n'))[0]?.text, 'served');
});
