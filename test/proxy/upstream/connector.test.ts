import { createServer } from 'node:net';
import { join } from 'node:path';
import { createServer as createTlsServer, TLSSocket } from 'node:tls';
import t from 'tap';
import { createConnector, type Connector } from '../../../src/proxy/upstream/connector.js';
import { certificates } from '../../support/certificates.js';
import { listen } from '../../support/listening.js';
import { startUpstreamServer } from '../../support/upstream-server.js';
import { tempDir } from '../../support/temp-dir.js';
import { until } from '../../support/until.js';
import { rest, settingsOf, startUpstream, uncaughtErrors } from './upstream-harness.js';

const files = certificates(t);

/** Connects, waits until a session may have come, and says how it went. */
async function attempt({ connect }: Connector): Promise<string> {
  return new Promise((resolve) => {
    connect((outcome) => {
      if (outcome instanceof Error) {
        resolve('code' in outcome ? String(outcome.code) : outcome.message);
        return;
      }
      const { socket } = outcome;
      const told = socket instanceof TLSSocket && socket.isSessionReused() ? 'resumed' : 'connected';
      // The answer comes behind the tickets.
      socket
        .on('error', () => undefined)
        .once('data', () => {
          socket.destroy();
          resolve(told);
        })
        .write('x');
    });
  });
}

for (const maxVersion of ['TLSv1.2', 'TLSv1.3'] as const) {
  t.test(`${maxVersion}: a session stands in for a certificate that was accepted, and for no other`, async (t) => {
    const server = createTlsServer({ cert: files.server.cert, key: files.server.key, maxVersion }, (socket) => {
      socket.on('error', () => undefined).on('data', () => socket.write('x'));
    });
    const { port } = await listen(t, server);
    const settings = settingsOf(`https://127.0.0.1:${String(port)}`);
    const connector = createConnector(settings, files.ca.cert);
    t.same(
      [await attempt(connector), await attempt(connector), await attempt(connector)],
      ['connected', 'resumed', 'resumed'],
    );
    const strict = createConnector(settings, files.otherCa.cert);
    for (let i = 0; i < 2; i++) {
      t.match(
        await attempt(strict),
        /UNABLE_TO_VERIFY_LEAF_SIGNATURE|UNABLE_TO_GET_ISSUER/,
        'another CA: nothing is shared',
      );
    }
    const named = createConnector({ ...settings, serverName: 'other.example' }, files.ca.cert);
    for (let i = 0; i < 2; i++) {
      t.equal(await attempt(named), 'ERR_TLS_CERT_ALTNAME_INVALID', 'another name: a refused one leaves no session');
    }
    t.equal(await attempt(connector), 'resumed');
  });

  t.test(`${maxVersion}: after ten minutes the certificate has to be shown again`, async (t) => {
    const server = createTlsServer({ cert: files.server.cert, key: files.server.key, maxVersion }, (socket) => {
      socket.on('error', () => undefined).on('data', () => socket.write('x'));
    });
    const { port } = await listen(t, server);
    const connector = createConnector(settingsOf(`https://127.0.0.1:${String(port)}`), files.ca.cert);
    let laterMs = 0;
    const now = performance.now.bind(performance);
    t.intercept(performance, 'now', { value: () => now() + laterMs });
    t.equal(await attempt(connector), 'connected');
    server.setSecureContext({
      cert: files.strangerServer.cert,
      key: files.strangerServer.key,
      maxVersion,
      ticketKeys: server.getTicketKeys(),
    });
    laterMs = 9 * 60_000;
    t.equal(await attempt(connector), 'resumed');
    laterMs = 11 * 60_000;
    t.match(
      await attempt(connector),
      /UNABLE_TO_VERIFY_LEAF_SIGNATURE/,
      'sessions that were resumed in between prolong nothing',
    );
    server.setSecureContext({
      cert: files.renewed.cert,
      key: files.renewed.key,
      maxVersion,
      ticketKeys: server.getTicketKeys(),
    });
    t.same([await attempt(connector), await attempt(connector)], ['connected', 'resumed']);
  });
}

t.test('connecting takes no longer than it may, the handshake of TLS among it', async (t) => {
  const accepted = new Set<object>();
  const silent = createServer((socket) => {
    accepted.add(socket);
    socket.on('close', () => accepted.delete(socket));
    socket.resume();
  });
  const { port } = await listen(t, silent);
  const { upstream, ask, send } = startUpstream(t, `https://127.0.0.1:${String(port)}`, {
    connectTimeoutMs: 50,
    maxConnections: 1,
  });
  t.equal(await ask(), 'upstream_unreachable');
  const heard = send();
  await until('it ended', () => heard.ends() > 0);
  t.same(heard.failure(), { reason: 'upstream_unreachable', error: 'connection_timeout' });
  t.equal(heard.call.mayBeSent(), false);
  await until('nothing is left of it', () => accepted.size === 0);
  t.same(upstream.counts(), { active: 0, waiting: 0 });
});

t.test('a connection that is given up while it is opened ends at once and calls nobody', async (t) => {
  const accepted = new Set<object>();
  const { port } = await listen(
    t,
    createServer((socket) => {
      accepted.add(socket);
      socket.on('close', () => accepted.delete(socket));
      socket.resume();
    }),
  );
  for (const scheme of ['http', 'https']) {
    const url = `${scheme}://127.0.0.1:${String(port)}`;
    let called = 0;
    const timers = activeTimers();
    const socket = createConnector(settingsOf(url, { connectTimeoutMs: 300_000 }), null).connect(() => {
      called += 1;
    });
    socket.destroy();
    await until('its timer is gone', () => activeTimers() === timers);
    t.equal(called, 0);

    const { upstream, send } = startUpstream(t, url, { connectTimeoutMs: 300_000, maxConnections: 1 });
    const first = send();
    const second = send();
    first.call.cancel();
    await until('the second has its place', () => upstream.counts().waiting === 0);
    t.equal(first.call.mayBeSent(), false);
    await upstream.close();
    await until('the second is told', () => second.ends() === 1);
    t.equal(first.ends(), 0);
    await until('no connection is left', () => accepted.size === 0);
    await until('nor a timer', () => activeTimers() === timers);
  }
});

t.test('a unix socket carries requests, one after the other, and may be gone', async (t) => {
  const path = join(tempDir(t), 'app.sock');
  const receiver = await startUpstreamServer(t, { unix: path });
  const { ask, upstream } = startUpstream(t, `unix:${path}`, { readsBodies: true });
  t.equal(upstream.host, 'localhost');
  for (let i = 0; i < 3; i++) {
    t.match(await ask({ method: 'POST', body: Buffer.from('hello') }), '"body":"hello"');
    await rest();
  }
  t.equal(receiver.connections(), 1);
  await receiver.close();
  await until('it is noticed', async () => (await ask()) === 'upstream_unreachable');
});

function activeTimers(): number {
  return process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
}

t.test('a connection that fails while it is given up for its time is told once, and ends nobody', async (t) => {
  const uncaught = uncaughtErrors(t);
  const { port, close } = await startUpstreamServer(t);
  await close();
  // Of two addresses: Node tries the second where the first failed.
  const connector = createConnector(settingsOf(`https://localhost:${String(port)}`, { connectTimeoutMs: 200 }), null);
  const outcomes: unknown[] = [];
  for (const headStartMs of [0, 1, 5]) {
    for (let i = 0; i < 3; i++) connector.connect((outcome) => void outcomes.push(outcome));
    await new Promise((resolve) => setTimeout(resolve, headStartMs));
    // As long as the event loop stands still, what TCP has to tell waits behind the timer.
    const untilMs = performance.now() + 300;
    while (performance.now() < untilMs);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  t.same(uncaught, []);
  t.equal(outcomes.length, 9);
});
