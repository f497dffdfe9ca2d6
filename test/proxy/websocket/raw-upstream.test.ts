import type { Socket } from 'node:net';
import t from 'tap';
import { acceptOf } from '../../../src/decision/websocket/handshake.js';
import { connectRaw, type RawConnection } from '../../support/raw-client.js';
import type { Scope } from '../../support/scope.js';
import { until } from '../../support/until.js';
import { startProxy, type Harness } from '../harness.js';
import { startRawUpstream, type RawUpstream } from '../upstream/raw-upstream.js';
import { frame, handshake, key, soundFields, webSocketRoutes } from './websocket-proxy.js';

const switching = `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${acceptOf(key)}\r\n\r\n`;

interface AskedReceiver {
  readonly proxy: Harness;
  readonly upstream: RawUpstream;
  readonly raw: RawConnection;
  /** The receiver's end. */
  readonly peer: Socket;
}

/** A handshake that has reached a receiver made of bytes, which has not answered yet. */
async function asked(t: Scope): Promise<AskedReceiver> {
  let peer: Socket | null = null;
  const upstream = await startRawUpstream(t, (socket) => {
    peer = socket;
  });
  const proxy = await startProxy(t, { config: { routes: webSocketRoutes }, upstreamUrl: upstream.url });
  const raw = await connectRaw(proxy.port);
  t.teardown(raw.end);
  raw.write(handshake(`${soundFields}${proxy.bearer()}`));
  return { proxy, upstream, raw, peer: await until('the receiver is asked', () => peer) };
}

t.test('what the caller sends before the 101 reaches the upstream after it, and byte for byte', async (t) => {
  const { upstream, raw, peer, proxy } = await asked(t);
  const early = [frame(1, 'first'), frame(2, Buffer.alloc(100_000, 'x')), frame(1, 'last')];
  for (const bytes of early) raw.write(bytes);
  await until('it was read here', () => raw.socket.writableLength === 0 && proxy.server.counts().connections === 1);
  t.ok(upstream.received()[0]?.endsWith('\r\n\r\n'), 'the head alone');
  peer.write(switching);
  t.equal((await raw.readResponse())?.status, 101);
  const expected = Buffer.concat(early).toString('latin1');
  await until('all of it', () => upstream.received()[0]?.split('\r\n\r\n')[1]?.length === expected.length);
  t.ok(upstream.received()[0]?.endsWith(expected));
});

t.test('frames in one packet with the 101 are not lost, and look like no HTTP', async (t) => {
  const { raw, peer } = await asked(t);
  const text = 'HTTP/1.1 100 Continue\r\n\r\n';
  peer.write(Buffer.concat([Buffer.from(switching), frame(1, text, { masked: false })]));
  t.equal((await raw.readResponse())?.status, 101);
  await until('the frame', () => raw.pending().length === 2 + text.length);
  t.same(raw.pending(), frame(1, text, { masked: false }));
});

t.test(
  'RFC 9110 §8.6: a 101 has no length and no identity for the caller, and what follows it is frames',
  async (t) => {
    const { raw, peer } = await asked(t);
    const more =
      'Content-Length: 5\r\nX-Auth-Subject: evil\r\nX_Auth_Assertion: evil\r\nProxy-Status: sallyport; error=evil\r\n\r\n';
    peer.write(Buffer.concat([Buffer.from(`${switching.slice(0, -2)}${more}`), frame(1, 'hello', { masked: false })]));
    const answer = await raw.readResponse();
    t.equal(answer?.status, 101);
    for (const name of ['content-length', 'x-auth-subject', 'x_auth_assertion', 'proxy-status']) {
      t.equal(answer?.field(name), null, name);
    }
    await until('the frame', () => raw.pending().length === 7);
    t.same(raw.pending(), frame(1, 'hello', { masked: false }));
  },
);

t.test('an upstream that breaks the rules of frames: 1002 to both', async (t) => {
  const { raw, peer, proxy, upstream } = await asked(t);
  peer.write(Buffer.concat([Buffer.from(switching), frame(1, 'good', { masked: false }), frame(1, 'masked')]));
  t.equal((await raw.readResponse())?.status, 101);
  const close = Buffer.concat([Buffer.from([0x88, 17, 0x03, 0xea]), Buffer.from('malformed frame')]);
  await until('the Close', () => raw.pending().length >= 6 + close.length);
  t.same(raw.pending(), Buffer.concat([frame(1, 'good', { masked: false }), close]));
  raw.write(frame(8, Buffer.from([0x03, 0xea])));
  await raw.closed;
  t.match(upstream.received()[0]?.split('\r\n\r\n')[1], /^\x88\x91/, 'a Close, masked');
  await until('it is recorded', () => proxy.records.length === 1);
  t.match(proxy.records, [{ reason: 'upstream_failed', status: 101 }]);
  t.same(proxy.counted.webSocketCloses, ['malformed']);
});

t.test('a Close of the upstream that is on its way stays the only one', async (t) => {
  const { raw, peer, proxy } = await asked(t);
  const close = frame(8, Buffer.concat([Buffer.from([0x0f, 0xa0]), Buffer.from('bye')]), { masked: false });
  peer.write(Buffer.concat([Buffer.from(switching), close.subarray(0, 4)]));
  t.equal((await raw.readResponse())?.status, 101);
  await until('half of it', () => raw.pending().length === 4);
  const drained = proxy.server.drain(60_000);
  await until('it is told', () => peer.bytesRead > 0);
  peer.end(close.subarray(4));
  await until('the rest', () => raw.pending().length === close.length);
  raw.write(frame(8, Buffer.from([0x0f, 0xa0])));
  await drained;
  t.same(raw.pending(), close);
});

t.test('an upstream that neither answers a Close nor goes away is cut off', async (t) => {
  const { raw, peer, proxy } = await asked(t);
  peer.write(switching);
  t.equal((await raw.readResponse())?.status, 101);
  peer.pause();
  proxy.reload({ routes: webSocketRoutes, revoked: { subjects: ['checkout'] } });
  await proxy.server.reauthorizeConnections();
  await raw.closed;
  await until('nothing is left', () => proxy.server.openWebSockets() === 0 && proxy.server.counts().connections === 0);
  t.match(proxy.records, [{ reason: 'subject_revoked' }]);
});
