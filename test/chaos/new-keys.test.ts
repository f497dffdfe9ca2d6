/** A flood of tokens with made-up key ids, and beside it honest callers whose key has just been rotated in. */
import { randomUUID } from 'node:crypto';
import { Agent, request } from 'node:http';
import t from 'tap';
import { startJwksServer } from '../support/jwks-server.js';
import { rsaKey } from '../support/keys.js';
import { base64url, mintToken } from '../support/tokens.js';
import { until } from '../support/until.js';
import { startProxyProcess, usualWorkers } from '../support/proxy-process.js';

interface Answer {
  readonly status: number;
  readonly retryAfter: string | undefined;
  readonly type: string | undefined;
}

const cooldownMs = 2_000;
/** More than there are places. */
const connections = 600;
const places = 512;
const [strangerAddress, honestAddress] = ['127.0.0.9', '127.0.0.1'];
const first = rsaKey('d-1');

function agentOf(address: string, keepAlive: boolean): Agent {
  return new Agent({ keepAlive, maxSockets: connections, localAddress: address });
}

async function ask(port: number, agent: Agent, token: string): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const req = request(
      { host: '127.0.0.1', port, path: '/orders', agent, headers: { authorization: `Bearer ${token}` } },
      (res) => {
        let text = '';
        res
          .setEncoding('utf8')
          .on('data', (chunk: string) => {
            text += chunk;
          })
          .on('end', () => {
            const type = /"type":"([^"]*)"/.exec(text)?.[1];
            resolve({ status: res.statusCode ?? 0, retryAfter: res.headers['retry-after'], type });
          })
          .on('error', reject);
      },
    );
    req.on('error', reject).end();
  });
}

t.test('beside a flood of made-up ids callers with a key that was just rotated in are served', async (t) => {
  const jwks = await startJwksServer(t, { keys: [first] });
  const config = { issuers: { core: { jwks: { min_age: '1h', max_age: '1h', cooldown: `${String(cooldownMs)}ms` } } } };
  const proxy = await startProxyProcess(t, { jwks, key: first, config });
  const [, claims = '', signature = ''] = mintToken({ key: first }).split('.');
  const madeUp = (): string =>
    `${base64url(JSON.stringify({ alg: 'RS256', kid: `d-${randomUUID()}` }))}.${claims}.${signature}`;
  const agents = {
    strangers: agentOf(strangerAddress, true),
    fresh: agentOf(honestAddress, false),
    known: agentOf(strangerAddress, true),
  };
  t.teardown(() => {
    for (const agent of Object.values(agents)) agent.destroy();
  });
  // A connection on which a good credential came before, from the address of the strangers.
  t.equal((await ask(proxy.port, agents.known, mintToken({ key: first }))).status, 200);

  const startedMs = performance.now();
  const hitsBefore = jwks.hits();
  const counts = new Map<string, number>();
  let isOver = false;
  const flood = Array.from({ length: connections }, async () => {
    while (!isOver) {
      const { status, type, retryAfter } = await ask(proxy.port, agents.strangers, madeUp());
      const answered = `${String(status)} ${type ?? ''} ${retryAfter === undefined ? '' : 'Retry-After'}`.trim();
      counts.set(answered, (counts.get(answered) ?? 0) + 1);
      // What is turned away at once would only keep both sides busy.
      if (status === 503) await new Promise((resolve) => setTimeout(resolve, 200));
    }
  });
  await until(
    'the flood has taken its places',
    async () => (await proxy.metric('sallyport_jwks_waits_total{issuer="core",result="busy"}')) > 0,
  );
  const waitsMs: number[] = [];
  let listed = [first];
  for (let round = 1; round <= 3; round += 1) {
    const next = rsaKey(`d-new-${String(round)}`);
    listed = [...listed, next];
    jwks.setKeys(listed);
    const askedMs = performance.now();
    const answers = await Promise.all(
      [agents.fresh, agents.fresh, agents.known].map(async (agent) => ask(proxy.port, agent, mintToken({ key: next }))),
    );
    waitsMs.push(performance.now() - askedMs);
    t.same(
      answers.map(({ status }) => status),
      [200, 200, 200],
      `round ${String(round)}: on new connections, and on one from the strangers' address`,
    );
    t.ok((await proxy.metric('sallyport_jwks_waiting{issuer="core"}')) <= places);
    t.equal(
      (await ask(proxy.port, agents.fresh, mintToken({ key: first }))).status,
      200,
      'a known key is never waited for',
    );
  }
  t.comment(`honest callers waited ${waitsMs.map((ms) => String(Math.round(ms))).join(', ')} ms`);
  isOver = true;
  await Promise.all(flood);
  t.comment(JSON.stringify(Object.fromEntries(counts)));
  t.same(
    [...counts.keys()].sort(),
    ['401 about:blank', '503 urn:sallyport:overloaded Retry-After'],
    'who made the ids up learns nothing',
  );
  const most = usualWorkers * (Math.ceil((performance.now() - startedMs) / cooldownMs) + 1);
  t.ok(
    jwks.hits() - hitsBefore <= most,
    `${String(jwks.hits() - hitsBefore)} fetches, at most ${String(most)} in that time`,
  );
  t.equal(await proxy.metric('sallyport_jwks_waiting{issuer="core"}'), 0, 'no place is kept');
  t.equal((await proxy.admin('/readyz')).status, 200);
});

t.test('SIGTERM: who waits for a key is answered at once, and the process ends', async (t) => {
  const jwks = await startJwksServer(t, { keys: [first] });
  const config = {
    shutdown: { delay: '0s', grace: '30s' },
    issuers: { core: { jwks: { min_age: '1h', max_age: '1h', cooldown: '9s' } } },
  };
  const proxy = await startProxyProcess(t, { jwks, key: first, config });
  const agent = agentOf(honestAddress, false);
  const waiting = [1, 2, 3].map(async (count) =>
    ask(proxy.port, agent, mintToken({ key: rsaKey(`d-new-${String(count)}`) })),
  );
  await until('they wait', async () => (await proxy.metric('sallyport_jwks_waiting{issuer="core"}')) === 3);
  const ended = proxy.stop();
  const answers = await Promise.all(waiting);
  for (const answer of answers) {
    t.same(answer, { status: 503, type: 'urn:sallyport:keys-unavailable', retryAfter: '1' });
  }
  t.match(await ended, { code: 0 });
  t.equal(jwks.hits(), usualWorkers, 'nothing was fetched for it');
});
