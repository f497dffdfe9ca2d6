import t from 'tap';
import { connectRaw, request } from '../../support/raw-client.js';
import { startProxy } from '../harness.js';

t.test('a bug is 500 once, logged without a word of the request, and everybody else is served on', async (t) => {
  const places = ['clock', 'keys', 'keys later'] as const;
  for (const place of places) {
    let isBroken = false;
    const bug = (): never => {
      throw new TypeError('secret-text of the error');
    };
    const proxy = await startProxy(t, {
      clock: {
        now: () => (isBroken && place === 'clock' ? bug() : Date.now()),
        monotonic: () => performance.now(),
      },
      ...(place === 'clock'
        ? {}
        : {
            find: (keyId) => {
              if (!isBroken) return { kind: 'found', key: { keyId, algorithm: 'RS256', key: proxy.key.publicKey } };
              return place === 'keys' ? bug() : Promise.reject(new TypeError('secret-text of the error'));
            },
          }),
    });
    const ask = async (id: string): Promise<{ status: number; text: string }> =>
      request(proxy.port, { path: '/orders?secret-query', headers: { ...proxy.authorization(), 'X-Request-Id': id } });
    t.equal((await ask('before')).status, 200);
    isBroken = true;
    const broken = await ask('broken');
    isBroken = false;
    if (place === 'keys later') {
      t.equal(broken.status, 503, 'a key source that breaks its word has no keys');
    } else {
      t.equal(broken.status, 500, place);
      t.equal(broken.text, '{"type":"urn:sallyport:internal","title":"Internal error","status":500}');
      t.match(proxy.records.at(-1), { decision: 'failed', reason: 'internal', status: 500 });
      t.match(proxy.logged, [{ level: 'error', message: 'bug', fields: { error: 'TypeError' } }]);
      t.notMatch(JSON.stringify(proxy.logged), 'secret');
    }
    t.equal((await ask('after')).status, 200);
    t.equal(proxy.records.length, 3);
    t.equal(proxy.server.counts().inFlight, 0);
  }
});

t.test(
  'a bug in what is told at the end of a request ends neither the process nor the connections of others',
  async (t) => {
    let isBroken = true;
    const proxy = await startProxy(t, {
      clock: {
        now: () => Date.now(),
        monotonic: () => {
          if (isBroken && proxy.receiver.requests.length > 0) throw new Error('broken');
          return performance.now();
        },
      },
    });
    const caller = await connectRaw(proxy.port);
    t.teardown(caller.end);
    caller.write(`GET /orders HTTP/1.1\r\nHost: a\r\n${proxy.bearer()}\r\n`);
    await caller.readResponse();
    isBroken = false;
    t.equal((await request(proxy.port, { path: '/orders', headers: proxy.authorization() })).status, 200);
    t.equal(proxy.server.counts().inFlight, 0);
  },
);
