/** Receivers that fall silent, flood the connection or keep to nothing: bounded, and told as broken. */
import { execFile } from 'node:child_process';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import t from 'tap';
import { createConnector } from '../../../../src/proxy/upstream/connector.js';
import { createHttp2Upstream } from '../../../../src/proxy/upstream/http2/pool.js';
import type { Upstream } from '../../../../src/proxy/upstream/pool/pool.js';
import type { Scope } from '../../../support/scope.js';
import { until } from '../../../support/until.js';
import { ask, settingsOf, startUpstream } from '../upstream-harness.js';
import {
  code,
  data,
  fieldBlock,
  flag,
  frameOf,
  frameType,
  head,
  ping,
  settingsFrame,
  startFrameUpstream,
  whole,
  type FrameUpstream,
  type Peer,
} from './frame-upstream.js';

const http2 = { http2: true };

/** Codes of the GOAWAY frames that came. */
function farewells(upstream: FrameUpstream): readonly number[] {
  return upstream.came(frameType.goaway).map(({ payload }) => payload.readUInt32BE(4));
}

t.test('floods end the connection with ENHANCE_YOUR_CALM, or as the error that they are', async (t) => {
  const interim = (id: number): Buffer => head(id, 103);
  const floods: readonly {
    readonly name: string;
    readonly act: (id: number, peer: Peer) => void;
    readonly codes: readonly number[];
  }[] = [
    {
      name: 'interim answers without end',
      act: (id, peer) => peer.send(...Array.from({ length: 1_100 }, () => interim(id))),
      codes: [code.enhanceYourCalm],
    },
    {
      name: 'PING without end',
      act: (_id, peer) => peer.send(...Array.from({ length: 5_000 }, () => ping())),
      codes: [code.enhanceYourCalm, code.internalError],
    },
    {
      name: 'SETTINGS without end',
      act: (_id, peer) => peer.send(...Array.from({ length: 5_000 }, () => settingsFrame([[3, 100]]))),
      codes: [code.enhanceYourCalm, code.internalError],
    },
    {
      name: 'a body in pieces of one byte',
      act: (id, peer) => peer.send(head(id, 200), ...Array.from({ length: 60_000 }, () => data(id, 'a'))),
      codes: [code.enhanceYourCalm],
    },
    {
      name: 'empty DATA frames',
      act: (id, peer) => peer.send(head(id, 200), ...Array.from({ length: 5_000 }, () => data(id, ''))),
      codes: [code.enhanceYourCalm, code.internalError, code.protocolError],
    },
    {
      name: 'a frame of CONTINUATION after the other',
      act: (id, peer) =>
        peer.send(
          frameOf(frameType.headers, 0, id, fieldBlock([[':status', '200']])),
          ...Array.from({ length: 5_000 }, (_, i) =>
            frameOf(frameType.continuation, 0, id, fieldBlock([[`x-${String(i)}`, 'a']])),
          ),
        ),
      codes: [code.enhanceYourCalm, code.internalError, code.protocolError],
    },
    {
      name: 'a pushed request',
      act: (id, peer) =>
        peer.send(frameOf(frameType.pushPromise, flag.endHeaders, id, Buffer.from([0, 0, 0, 2, 0x82, 0x87, 0x84]))),
      codes: [code.protocolError, code.internalError],
    },
    {
      name: 'a head behind the end of the answer',
      act: (id, peer) =>
        peer.send(head(id, 200, { fields: [['content-length', '9']] }), data(id, 'h', true), head(id, 200)),
      codes: [],
    },
  ];
  for (const { name, act, codes } of floods) {
    const upstream = await startFrameUpstream(t, (id, peer) => {
      if (peer.number === 1) act(id, peer);
      else peer.send(whole(id, 'next'));
    });
    const { send, ask } = startUpstream(t, upstream.url, http2);
    const heard = send();
    await until(`${name}: it ended`, () => heard.ends() > 0);
    t.equal(heard.failure()?.reason, 'upstream_failed', name);
    if (codes.length > 0) {
      await until(`${name}: the connection ended`, () => upstream.peers[0]?.socket.destroyed === true);
      t.ok(
        farewells(upstream).every((sent) => codes.includes(sent)),
        `${name}: ${farewells(upstream).join(' ')}`,
      );
      t.equal(await ask(), '200 next', name);
    }
  }
});

t.test('what is left of a head without end does not end the process, in whatever order it is collected', async (t) => {
  const child = fileURLToPath(new URL('./unended-head-child.js', import.meta.url));
  const { stdout } = await promisify(execFile)(process.execPath, ['--expose-gc', child], { timeout: 60_000 });
  t.equal(stdout, 'it lives');
});

t.test('a response head larger than 64 KiB, or of too many headers, is broken', async (t) => {
  const long = 'a'.repeat(120);
  const many = Array.from({ length: 600 }, (_, i): [string, string] => [`x-${String(i)}`, long]);
  const upstream = await startFrameUpstream(t, (id, peer) => {
    const block = fieldBlock([[':status', '200'], ...(id === 1 ? many : many.slice(0, 300))]);
    const parts = Array.from({ length: Math.ceil(block.length / 16_000) }, (_, i) =>
      block.subarray(i * 16_000, (i + 1) * 16_000),
    );
    peer.send(
      ...parts.map((part, i) =>
        frameOf(
          i === 0 ? frameType.headers : frameType.continuation,
          (i === 0 ? flag.endStream : 0) | (i === parts.length - 1 ? flag.endHeaders : 0),
          id,
          part,
        ),
      ),
    );
  });
  const { ask } = startUpstream(t, upstream.url, http2);
  t.equal(await ask(), 'upstream_failed');
  t.equal(await ask(), '200 ', 'one of 45 KB passes');
});

t.test(
  'an upstream that never says its settings, or speaks something else, was not reached: nothing was sent',
  async (t) => {
    const silent = await startFrameUpstream(t, () => undefined, { settings: null });
    const { send } = startUpstream(t, silent.url, { ...http2, connectTimeoutMs: 200 });
    const heard = send({ method: 'POST', body: Buffer.from('secret') });
    await until('it ended', () => heard.ends() > 0);
    t.equal(heard.failure()?.reason, 'upstream_unreachable');
    t.equal(heard.call.mayBeSent(), false);
    t.equal(silent.came(frameType.headers).length, 0);

    const { startRawUpstream } = await import('../raw-upstream.js');
    const old = await startRawUpstream(t, (socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'));
    const other = startUpstream(t, old.url, { ...http2, connectTimeoutMs: 5_000 }).send();
    await until('it ended', () => other.ends() > 0);
    t.equal(other.failure()?.reason, 'upstream_unreachable');
    t.equal(other.call.mayBeSent(), false);
  },
);

/** An upstream whose connections are looked after every few milliseconds. */
function startHurried(t: Scope, url: string, times = { quietMs: 60, pingMs: 60, idleMs: 100_000 }): Upstream {
  const settings = settingsOf(url, http2);
  const upstream = createHttp2Upstream(settings, createConnector(settings, null), times);
  t.teardown(upstream.close);
  return upstream;
}

t.test('a connection on which nothing comes is asked by PING, and given up where that is not answered', async (t) => {
  const dead = await startFrameUpstream(t, () => undefined, { ignoresPings: true });
  t.equal(await ask(startHurried(t, dead.url)), 'upstream_failed');
  t.equal(dead.came(frameType.ping).length, 1);

  const slow = await startFrameUpstream(t, (id, peer) => setTimeout(() => peer.send(whole(id, 'late')), 400));
  t.equal(await ask(startHurried(t, slow.url)), 'late', 'one that answers it may take its time');
  t.ok(slow.came(frameType.ping).length > 0);
});

t.test('a silent connection is given up where requests end long before it is asked, too', async (t) => {
  const upstream = await startFrameUpstream(
    t,
    (id, peer) => {
      if (peer.number > 1) peer.send(whole(id, 'new'));
    },
    { ignoresPings: true },
  );
  const own = startHurried(t, upstream.url, { quietMs: 300, pingMs: 60, idleMs: 100_000 });
  const sent = (): number | undefined =>
    upstream.peers[0]?.frames.filter(({ type }) => type === frameType.headers).length;
  const isAsked = (): boolean => upstream.came(frameType.ping).length > 0;
  for (let round = 0; round < 30 && !isAsked(); round += 1) {
    await ask(own, { responseTimeoutMs: 1 });
    await delay(25);
  }
  const before = sent();
  t.equal(isAsked(), true);
  t.equal(await ask(own), 'new', 'a request waits for the response');
  t.equal(sent(), before, 'and goes elsewhere');
});

t.test('where bytes come but no response to a PING, it may be on its way behind them', async (t) => {
  let silence: NodeJS.Timeout | null = null;
  const upstream = await startFrameUpstream(
    t,
    (id, peer) => {
      peer.send(head(id, 200));
      setTimeout(() => peer.send(frameOf(frameType.data, 0, id, Buffer.from('late '))), 400);
    },
    { ignoresPings: true },
    ({ type, payload }, peer) => {
      if (type !== frameType.ping || silence !== null) return;
      silence = setTimeout(() => {
        peer.send(frameOf(frameType.ping, flag.ack, 0, payload));
        peer.send(frameOf(frameType.data, flag.endStream, 1, Buffer.from('but whole')));
      }, 250);
    },
  );
  const own = startHurried(t, upstream.url, { quietMs: 300, pingMs: 200, idleMs: 100_000 });
  t.equal(await ask(own), 'late but whole');
});

t.test('after a rest a connection is asked first: one that is gone costs no request', async (t) => {
  let isGone = false;
  const upstream = await startFrameUpstream(
    t,
    (id, peer) => peer.send(whole(id, `from ${String(peer.number)}`)),
    { ignoresPings: true },
    (frame, peer) => {
      if (frame.type === frameType.ping && !isGone) peer.send(frameOf(frameType.ping, flag.ack, 0, frame.payload));
    },
  );
  const own = startHurried(t, upstream.url);
  t.equal(await ask(own), 'from 1');
  await delay(100);
  t.equal(await ask(own), 'from 1');
  t.equal(upstream.came(frameType.ping).length, 1);
  isGone = true;
  await delay(100);
  t.equal(await ask(own), 'from 2');
  t.equal(
    upstream.peers[0]?.frames.filter(({ type }) => type === frameType.headers).length,
    2,
    'nothing more was sent on it',
  );
});

t.test('an idle connection is closed after a while', async (t) => {
  const upstream = await startFrameUpstream(t, (id, peer) => peer.send(whole(id, 'ok')));
  const own = startHurried(t, upstream.url, { quietMs: 20, pingMs: 1_000, idleMs: 100 });
  t.equal(await ask(own), 'ok');
  t.equal(own.connections(), 1);
  await until('it is closed', () => upstream.peers[0]?.socket.destroyed === true);
  t.same(farewells(upstream), [code.noError]);
  t.equal(own.connections(), 0);
  t.equal(await ask(own), 'ok');
});

t.test(
  'a connection on which many streams were reset gives way to a new one, before the upstream ends it',
  async (t) => {
    const upstream = await startFrameUpstream(t, (id, peer) => {
      if (peer.number > 1) peer.send(whole(id, 'new'));
    });
    const { send } = startUpstream(t, upstream.url, http2);
    for (let round = 0; round < 300 && upstream.peers.length < 2; round += 1) {
      const before = upstream.came(frameType.headers).length;
      const heard = send();
      await until('it came', () => upstream.came(frameType.headers).length > before);
      heard.call.cancel();
    }
    t.equal(upstream.peers.length, 2);
    const resets = upstream.peers[0]?.frames.filter(({ type }) => type === frameType.rstStream).length ?? 0;
    t.ok(resets >= 200 && resets < 300, `after ${String(resets)}`);
  },
);
