import { createServer, type Server } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import t, { type Test } from 'tap';
import { agentFor, dropBody, isPlain, readBody } from '../../../src/lib/http/requests.js';

/** Starts a server whose responses have this body. Returns its origin, and how many connections it has had. */
async function startServer(t: Test, body: string): Promise<{ origin: string; connections: () => number }> {
  let connections = 0;
  const server: Server = createServer((_req, res) => res.end(body));
  server.on('connection', () => {
    connections += 1;
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => server.close());
  return {
    origin: `http://127.0.0.1:${String((server.address() as AddressInfo).port)}`,
    connections: () => connections,
  };
}

const tls = { ca: null, certificate: null };

void t.test('a body is read up to its bound', async (t) => {
  const { origin } = await startServer(t, 'four');
  const agent = agentFor(tls, { timeoutMs: 5_000, maxConnections: 1 });
  t.teardown(() => agent.destroy());
  const read = async (maxBytes: number): Promise<string | null> => {
    const { body } = await agent.request({ origin, path: '/', method: 'GET' });
    return (await readBody(body, maxBytes))?.toString() ?? null;
  };
  t.equal(await read(4), 'four');
  t.equal(await read(3), null);
  t.equal(await read(4), 'four', 'on another connection, where need be');
});

void t.test('connections are kept, or opened for each request', async (t) => {
  const rows = [
    { maxConnections: 1, expected: 1 },
    { maxConnections: null, expected: 2 },
  ];
  for (const { maxConnections, expected } of rows) {
    const { origin, connections } = await startServer(t, '');
    const agent = agentFor(tls, { timeoutMs: 5_000, maxConnections });
    t.teardown(() => agent.destroy());
    for (let asked = 0; asked < 2; asked += 1) {
      const { body } = await agent.request({ origin, path: '/', method: 'GET' });
      await readBody(body, 1);
    }
    t.equal(connections(), expected);
  }
});

void t.test('a body that nobody reads is dropped without an error', async (t) => {
  const { origin } = await startServer(t, 'x'.repeat(1024 * 1024));
  const agent = agentFor(tls, { timeoutMs: 5_000, maxConnections: null });
  t.teardown(() => agent.destroy());
  const { body } = await agent.request({ origin, path: '/', method: 'GET' });
  const closed = new Promise((resolve) => body.once('close', resolve));
  dropBody(body);
  await closed;
  t.ok(body.destroyed);
});

void t.test('what is compressed is not plain', (t) => {
  t.ok(isPlain({}));
  t.ok(isPlain({ 'content-encoding': 'identity' }));
  t.notOk(isPlain({ 'content-encoding': 'gzip' }));
  t.notOk(isPlain({ 'content-encoding': ['identity', 'gzip'] }));
  t.end();
});
