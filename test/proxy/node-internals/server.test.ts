/**
 * Holds Node to what of its servers is used beside their documented interface: the title begins with the symbol that is
 * gone where the test fails.
 */
import { createServer } from 'node:http';
import { connect } from 'node:net';
import t from 'tap';
import { stopAccepting } from '../../../src/proxy/node-internals/server.js';
import { listen } from '../../support/listening.js';
import { connectRaw } from '../../support/raw-client.js';
import { until } from '../../support/until.js';

t.test(
  'net.Server.prototype.close: stops accepting, and leaves idle connections and the look for late heads as they are',
  async (t) => {
    const server = createServer({ connectionsCheckingInterval: 20, headersTimeout: 60_000 }, (_req, res) =>
      res.end('served'),
    );
    const { port } = await listen(t, server);
    const raw = await connectRaw(port);
    t.teardown(raw.end);
    raw.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
    t.equal((await raw.readResponse())?.text, 'served');
    let isClosed = false;
    stopAccepting(server, () => {
      isClosed = true;
    });
    const late = connect(port, '127.0.0.1');
    await until(
      'a new connection is refused',
      () =>
        new Promise((resolve) => {
          late.once('error', () => resolve(true));
        }),
    );
    raw.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
    t.equal((await raw.readResponse())?.text, 'served', 'an idle connection is not ended');
    server.headersTimeout = 50;
    raw.write('GET / HTTP/1.1\r\n');
    await raw.closed;
    await until('it is told of the last connection', () => isClosed);
  },
);
