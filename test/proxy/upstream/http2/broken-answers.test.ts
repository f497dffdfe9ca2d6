/** What is told of answers that do not come whole, and whether anything counts as sent. */
import { setTimeout as delay } from 'node:timers/promises';
import t from 'tap';
import { until } from '../../../support/until.js';
import { startUpstream } from '../upstream-harness.js';
import { code, data, frameType, goaway, head, reset, startFrameUpstream, whole, type Peer } from './frame-upstream.js';

const http2 = { http2: true };

t.test('a response that ends by RST_STREAM in its middle is broken, whatever the code', async (t) => {
  for (const [name, errorCode] of Object.entries(code)) {
    const upstream = await startFrameUpstream(t, (id, peer) =>
      peer.send(head(id, 200), data(id, 'half'), reset(id, errorCode)),
    );
    const { send } = startUpstream(t, upstream.url, http2);
    const heard = send();
    await until('it ended', () => heard.ends() > 0);
    t.equal(heard.failure()?.reason, 'upstream_failed', name);
    t.equal(heard.body().toString(), 'half', name);
    t.equal(heard.call.mayBeSent(), true, name);
    await delay(20);
    t.equal(heard.ends(), 1, name);
    t.equal(upstream.came(frameType.headers).length, 1, `${name}: asked once`);
  }
});

t.test(
  'RST_STREAM instead of a response: REFUSED_STREAM is tried once more, anything else may have been done',
  async (t) => {
    for (const [name, errorCode] of Object.entries(code)) {
      const isRefused = errorCode === code.refusedStream;
      const upstream = await startFrameUpstream(t, (id, peer) => peer.send(reset(id, errorCode)));
      const { send } = startUpstream(t, upstream.url, http2);
      for (const body of [null, Buffer.from('hello')]) {
        const before = upstream.came(frameType.headers).length;
        const heard = send({ method: body === null ? 'GET' : 'POST', body });
        await until('it ended', () => heard.ends() > 0);
        t.equal(heard.failure()?.reason, isRefused ? 'upstream_unreachable' : 'upstream_failed', name);
        t.equal(heard.call.mayBeSent(), !isRefused, name);
        t.equal(upstream.came(frameType.headers).length - before, isRefused ? 2 : 1, name);
      }
    }
  },
);

t.test('a request that was refused goes out on another connection, and is answered there', async (t) => {
  const upstream = await startFrameUpstream(t, (id, peer) =>
    peer.send(peer.number === 1 ? reset(id, code.refusedStream) : whole(id, 'second')),
  );
  const { ask } = startUpstream(t, upstream.url, http2);
  t.equal(await ask({ method: 'POST', body: Buffer.from('hello') }), '200 second');
  t.equal(upstream.peers.length, 2);
});

t.test('with one connection it goes out on the same one again', async (t) => {
  let refused = 0;
  const upstream = await startFrameUpstream(t, (id, peer) => {
    refused += 1;
    peer.send(refused === 1 ? reset(id, code.refusedStream) : whole(id, 'again'));
  });
  const { ask } = startUpstream(t, upstream.url, { ...http2, maxConnections: 1 });
  t.equal(await ask(), '200 again');
  t.equal(upstream.peers.length, 1);
});

t.test('GOAWAY: what it does not cover goes elsewhere, what it covers ends as it would have', async (t) => {
  const upstream = await startFrameUpstream(t, (id, peer) => {
    if (peer.number > 1) peer.send(whole(id, 'elsewhere'));
    else if (id === 3) {
      peer.send(goaway(1, code.noError));
      setTimeout(() => peer.send(whole(1, 'covered')), 20);
    }
  });
  const { send } = startUpstream(t, upstream.url, http2);
  const first = send();
  const second = send({ method: 'POST', body: Buffer.from('hello') });
  await until('both ended', () => first.ends() + second.ends() === 2);
  t.equal(first.body().toString(), 'covered');
  t.equal(second.body().toString(), 'elsewhere');
  await until('the first connection is closed', () => upstream.peers[0]?.socket.destroyed === true);
});

t.test('GOAWAY with an error: what it covers may have been done, what it does not goes elsewhere', async (t) => {
  for (const errorCode of [code.internalError, code.enhanceYourCalm, code.refusedStream]) {
    const upstream = await startFrameUpstream(t, (id, peer) => {
      if (peer.number > 1) peer.send(whole(id, 'elsewhere'));
      else if (id === 3) peer.send(goaway(1, errorCode));
    });
    const { send } = startUpstream(t, upstream.url, http2);
    const first = send();
    const second = send();
    await until('both ended', () => first.ends() + second.ends() === 2);
    t.equal(first.failure()?.reason, 'upstream_failed', String(errorCode));
    t.equal(first.call.mayBeSent(), true, String(errorCode));
    t.equal(second.body().toString(), 'elsewhere', String(errorCode));
  }
});

t.test('GOAWAY at each moment of a response leaves it broken or whole, never whole in half', async (t) => {
  const moments: readonly {
    readonly name: string;
    readonly act: (id: number, peer: Peer) => void;
    readonly ends: string;
  }[] = [
    {
      name: 'before its head, then whole',
      act: (id, peer) => peer.send(goaway(id, code.noError), whole(id, 'whole')),
      ends: '200 whole',
    },
    {
      name: 'after its head, then whole',
      act: (id, peer) => peer.send(head(id, 200), goaway(id, code.noError), data(id, 'whole', true)),
      ends: '200 whole',
    },
    {
      name: 'behind it',
      act: (id, peer) => peer.send(whole(id, 'whole'), goaway(id, code.noError)),
      ends: '200 whole',
    },
    {
      name: 'in its middle, and the end of TCP',
      act: (id, peer) => {
        peer.send(head(id, 200), data(id, 'half'), goaway(id, code.noError));
        peer.socket.end();
      },
      ends: 'upstream_failed',
    },
    {
      name: 'in its middle, with an error',
      act: (id, peer) => peer.send(head(id, 200), data(id, 'half'), goaway(id, code.internalError)),
      ends: 'upstream_failed',
    },
    {
      name: 'in its middle, saying that it is not processed',
      act: (id, peer) => peer.send(head(id, 200), data(id, 'half'), goaway(0, code.noError)),
      ends: 'upstream_failed',
    },
  ];
  for (const { name, act, ends } of moments) {
    const upstream = await startFrameUpstream(t, act);
    const { ask, upstream: own } = startUpstream(t, upstream.url, http2);
    t.equal(await ask(), ends, name);
    t.equal(upstream.came(frameType.headers).length, 1, name);
    await until('it has nothing left', () => own.counts().active === 0);
  }
});

t.test('a response whose connection ends or breaks is broken', async (t) => {
  const ways: Readonly<Record<string, (peer: Peer) => void>> = {
    end: ({ socket }) => socket.end(),
    reset: ({ socket }) => socket.resetAndDestroy(),
  };
  for (const [name, act] of Object.entries(ways)) {
    for (const begun of [true, false]) {
      const upstream = await startFrameUpstream(t, (id, peer) => {
        if (begun) peer.send(head(id, 200), data(id, 'half'));
        setTimeout(act, 20, peer);
      });
      const { send } = startUpstream(t, upstream.url, http2);
      const heard = send();
      await until('it ended', () => heard.ends() > 0);
      t.equal(heard.failure()?.reason, 'upstream_failed', name);
      t.equal(heard.call.mayBeSent(), true, name);
    }
  }
});

t.test('a body that is not as long as its Content-Length is broken', async (t) => {
  const fields = [['content-length', '5']] as const;
  const answers: Readonly<Record<string, (id: number) => readonly Buffer[]>> = {
    'too short': (id) => [head(id, 200, { fields }), data(id, 'hell', true)],
    'too long': (id) => [head(id, 200, { fields }), data(id, 'hello!', true)],
    'none at all': (id) => [head(id, 200, { fields, end: true })],
    'two lengths': (id) => [head(id, 200, { fields: [...fields, ['content-length', '6']] }), data(id, 'hello', true)],
    'no number': (id) => [head(id, 200, { fields: [['content-length', '5a']] }), data(id, 'hello', true)],
  };
  for (const [name, answer] of Object.entries(answers)) {
    const upstream = await startFrameUpstream(t, (id, peer) => peer.send(...answer(id)));
    t.equal(await startUpstream(t, upstream.url, http2).ask(), 'upstream_failed', name);
  }
});

t.test('a Content-Length that nobody can count to is broken by its head, as over HTTP/1.1', async (t) => {
  for (const length of ['9007199254740993', '00000000000000005']) {
    const fields = [['content-length', length]] as const;
    for (const [method, status] of [
      ['POST', 201],
      ['HEAD', 200],
      ['GET', 304],
    ] as const) {
      const upstream = await startFrameUpstream(t, (id, peer) => peer.send(head(id, status, { fields })));
      const heard = startUpstream(t, upstream.url, http2).send({ method });
      await until('it ended', () => heard.ends() > 0);
      t.equal(heard.failure()?.reason, 'upstream_failed', `${method} ${length}`);
      await until('the stream was reset', () => upstream.came(frameType.rstStream).length === 1);
    }
  }
});

t.test('a complete response before the end of the request is whole, and the rest is not sent', async (t) => {
  const { PassThrough } = await import('node:stream');
  for (const resets of [true, false]) {
    const upstream = await startFrameUpstream(t, (id, peer) =>
      peer.send(whole(id, 'early'), ...(resets ? [reset(id, code.noError)] : [])),
    );
    const { send } = startUpstream(t, upstream.url, http2);
    const body = new PassThrough();
    body.write('begun');
    const heard = send({ method: 'POST', body });
    await until('it ended', () => heard.ends() > 0);
    t.equal(heard.failure(), null);
    t.equal(heard.body().toString(), 'early');
    if (!resets) await until('the stream was reset', () => upstream.came(frameType.rstStream).length === 1);
    body.destroy();
  }
});
