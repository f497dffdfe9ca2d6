/** Sessions that Node has destroyed, and says so in a later turn of the event loop. */
import { connect as connectHttp2 } from 'node:http2';
import { createServer } from 'node:net';
import { Duplex } from 'node:stream';
import { createSecureContext, TLSSocket } from 'node:tls';
import { setTimeout as delay } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { createConnector } from '../../../../src/proxy/upstream/connector.js';
import { createHttp2Upstream } from '../../../../src/proxy/upstream/http2/pool.js';
import type { Upstream } from '../../../../src/proxy/upstream/pool/pool.js';
import { certificates } from '../../../support/certificates.js';
import { listen } from '../../../support/listening.js';
import type { Scope } from '../../../support/scope.js';
import { until } from '../../../support/until.js';
import { ask, settingsOf, uncaughtErrors } from '../upstream-harness.js';
import {
  code,
  frameOf,
  frameType,
  ping,
  settingsFrame,
  startFrameUpstream,
  whole,
  type FrameUpstream,
} from './frame-upstream.js';

function startPool(t: Scope, url: string, ca: string | null, quietMs = 60): Upstream {
  const settings = settingsOf(url, { http2: true, maxConnections: 1, maxStreams: 1 });
  const upstream = createHttp2Upstream(settings, createConnector(settings, ca), {
    quietMs,
    pingMs: 1_000,
    idleMs: 100_000,
  });
  t.teardown(upstream.close);
  return upstream;
}

const goaway = (errorCode: number): Buffer => {
  const payload = Buffer.alloc(8);
  payload.writeUInt32BE(errorCode, 4);
  return frameOf(frameType.goaway, 0, 0, payload);
};

/** What an upstream says right behind its part of the handshake. */
const firstWords = {
  'a farewell for an error': [goaway(code.internalError)],
  'settings and a farewell for an error': [settingsFrame([]), goaway(code.protocolError)],
  'HTTP/1.1': [Buffer.from('HTTP/1.1 400 Bad Request\r\n\r\n')],
  'PING without end': [settingsFrame([]), ...Array.from({ length: 3_000 }, () => ping())],
};

for (const [name, said] of Object.entries(firstWords)) {
  t.test(`TLS 1.2: ${name} in one piece with the end of the handshake ends nobody`, async (t) => {
    const uncaught = uncaughtErrors(t);
    const files = certificates(t);
    const { cert, key } = files.server;
    const secureContext = createSecureContext({ cert, key, maxVersion: 'TLSv1.2' });
    const { port } = await listen(
      t,
      createServer((tcp) => {
        let waiting: Buffer[] = [];
        const wire = new Duplex({
          read: () => undefined,
          write: (bytes: Buffer, _encoding, done) => {
            if (waiting.length === 0) setTimeout(() => tcp.write(Buffer.concat(waiting.splice(0))), 20);
            waiting = [...waiting, bytes];
            done();
          },
        });
        tcp.on('error', () => undefined).on('data', (bytes) => wire.push(bytes));
        const tls = new TLSSocket(wire, { isServer: true, secureContext, ALPNProtocols: ['h2'] });
        tls.on('error', () => undefined).on('secure', () => tls.write(Buffer.concat(said)));
      }),
    );
    const upstream = startPool(t, `https://127.0.0.1:${String(port)}`, files.ca.cert);
    t.match(await ask(upstream), /^upstream_(?:unreachable|failed)$/);
    t.same(uncaught, []);
    await until('its place is free again', () => upstream.counts().active === 0);
  });
}

/** Has something done as soon as Node has destroyed a session, and before it says so. */
async function onDestroyed(t: Test, then: () => void): Promise<void> {
  const { url } = await startFrameUpstream(t, () => undefined);
  const session = connectHttp2(url).on('error', () => undefined);
  const sessions: object = Object.getPrototypeOf(session) as object;
  session.destroy();
  const destroy = Reflect.get(sessions, 'destroy') as (this: unknown, ...args: unknown[]) => void;
  let isDone = false;
  t.intercept(sessions, 'destroy' as keyof typeof sessions, {
    value(this: unknown, ...args: unknown[]) {
      destroy.apply(this, args);
      if (isDone) return;
      isDone = true;
      then();
    },
  });
}

const endings: Readonly<Record<string, (upstream: FrameUpstream) => void>> = {
  'a window that overflows': ({ peers }) => {
    const overflow = Buffer.alloc(4);
    overflow.writeUInt32BE(0x7fffffff);
    peers[0]?.send(frameOf(frameType.windowUpdate, 0, 0, overflow));
  },
  'a reset': ({ peers }) => void peers[0]?.socket.resetAndDestroy(),
};

for (const [name, end] of Object.entries(endings)) {
  for (const quietMs of [20, 100_000]) {
    const rest = quietMs < 1_000 ? 'after a rest' : 'at once';
    t.test(`a connection that ${name} ended takes no request ${rest}, and loses no place`, async (t) => {
      const uncaught = uncaughtErrors(t);
      const server = await startFrameUpstream(t, (id, peer) => peer.send(whole(id, `from ${String(peer.number)}`)));
      const upstream = startPool(t, server.url, null, quietMs);
      t.equal(await ask(upstream), 'from 1');
      await delay(60);
      const asked: Promise<string>[] = [];
      await onDestroyed(t, () => void asked.push(ask(upstream)));
      end(server);
      await until('it was asked', () => asked.length > 0);
      t.same(await Promise.all(asked), ['from 2']);
      t.equal(await ask(upstream), 'from 2', 'nor was a place lost');
      t.same(upstream.counts(), { active: 0, waiting: 0 });
      t.same(uncaught, []);
    });
  }
}
