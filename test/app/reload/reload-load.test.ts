import { setImmediate as turn } from 'node:timers/promises';
import t from 'tap';
import { connectRaw, requestBytes } from '../../support/raw-client.js';
import { startUpstreamServer } from '../../support/upstream-server.js';
import type { ConfigTree } from '../../support/proxy-process.js';
import { startInProcessProxy, type InProcessProxy } from '../in-process-proxy.js';

/**
 * Two policies that differ in three places: who may come in by which door, and the name of the header that says who it
 * was. An answer that fits neither was decided by half of each.
 */
function policy(letter: 'a' | 'b'): ConfigTree {
  return {
    log: { level: 'error' },
    identity: { headers: { subject: `X-Policy-${letter}` } },
    routes: [
      { name: 'both', methods: ['GET'], path: '/both', subjects: ['checkout'], permissions: [] },
      { name: `only-${letter}`, methods: ['GET'], path: `/only-${letter}`, subjects: ['checkout'], permissions: [] },
    ],
  };
}

interface Tally {
  answered: number;
  readonly kinds: Map<string, number>;
}

/** Sends requests one after the other over one connection, and notes which policy decided each. */
async function caller(proxy: InProcessProxy, count: number, tally: Tally): Promise<void> {
  const connection = await connectRaw(proxy.port);
  const headers = { Authorization: `Bearer ${proxy.token()}` };
  const paths = ['/both', '/only-a', '/only-b'];
  const bytes = paths.map((path) => requestBytes(proxy.port, { path, headers }));
  for (let sent = 0; sent < count; sent += 1) {
    const index = sent % paths.length;
    connection.write(bytes[index] ?? '');
    const answer = await connection.readResponse();
    if (answer === null) throw new Error('the connection was closed without an answer');
    const kind = `${paths[index] ?? ''} ${String(answer.status)} ${answer.field('x-decided-by') ?? '-'}`;
    tally.kinds.set(kind, (tally.kinds.get(kind) ?? 0) + 1);
    tally.answered += 1;
  }
  connection.end();
}

const requests = 20_000;
const reloads = 50;

t.test(
  `${String(requests)} requests across ${String(reloads)} reloads are each answered by one policy`,
  { timeout: 280_000 },
  async (t) => {
    const receiver = await startUpstreamServer(t);
    receiver.behave((req, res) => {
      const names = Object.keys(req.headers).filter((name) => name.startsWith('x-policy-'));
      receiver.requests.length = 0;
      res.writeHead(200, { 'content-length': 0, 'x-decided-by': names.join(' ') }).end();
    });
    const proxy = await startInProcessProxy(t, { receiver, config: policy('a'), watchMs: 500 });
    const tally: Tally = { answered: 0, kinds: new Map() };
    const broken = new AbortController();
    const callers = Promise.all(Array.from({ length: 20 }, () => caller(proxy, requests / 20, tally))).catch(
      (error: unknown) => {
        broken.abort(error);
      },
    );
    for (let done = 0; done < reloads; done += 1) {
      // Spread over the whole run, so that requests are under way at each.
      while (tally.answered < (done * requests) / reloads) {
        broken.signal.throwIfAborted();
        await turn();
      }
      proxy.rewrite(policy(done % 2 === 0 ? 'b' : 'a'));
      await proxy.app.reload();
    }
    await callers;
    broken.signal.throwIfAborted();
    t.equal(tally.answered, requests);
    t.same([...tally.kinds.keys()].sort(), [
      '/both 200 x-policy-a',
      '/both 200 x-policy-b',
      '/only-a 200 x-policy-a',
      '/only-a 403 -',
      '/only-b 200 x-policy-b',
      '/only-b 403 -',
    ]);
    const { counts } = proxy.app.status();
    t.ok(counts.config_reloads.ok >= reloads, `${String(counts.config_reloads.ok)} reloads`);
    t.equal(counts.config_reloads.failed, 0);
    t.equal(counts.requests.forwarded + counts.requests.denied, requests);
    t.equal(proxy.jwks.hits(), 1, 'and the keys were fetched once');
  },
);
