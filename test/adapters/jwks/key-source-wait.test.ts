import { randomUUID } from 'node:crypto';
import t from 'tap';
import { startJwksServer, type JwksServer } from '../../support/jwks-server.js';
import { rsaKey } from '../../support/keys.js';
import { settled } from '../../support/settled.js';
import { until } from '../../support/until.js';
import { asker, createKeySourceHarness, startKeySourceHarness, type KeySourceHarness } from './key-source-harness.js';

const one = rsaKey('d-1');
const two = rsaKey('d-2');

const cooldownMs = 5_000;
const longestWaitMs = 10_000;
/** Places of one kind of connection. */
const places = 256;

const madeUp = (): string => `d-${randomUUID()}`;

t.test(
  'within the cool-down a caller with a new key waits for the next fetch, whatever the last one was for',
  async (t) => {
    const causes: { name: string; prepare: (harness: KeySourceHarness, server: JwksServer) => Promise<void> }[] = [
      { name: 'the start', prepare: () => Promise.resolve() },
      {
        name: 'a refresh',
        prepare: async ({ time, refreshes }) => {
          time.advance(480_000);
          await until('the refresh', () => refreshes.length === 2);
        },
      },
      {
        name: "a stranger's made-up id",
        prepare: async ({ time, lookUp }) => {
          time.advance(cooldownMs);
          t.equal(await lookUp(madeUp(), asker()), 'waited: unknown');
        },
      },
    ];
    for (const { name, prepare } of causes) {
      const server = await startJwksServer(t, { keys: [one] });
      const harness = await startKeySourceHarness(t, server.url);
      await prepare(harness, server);
      const { time, lookUp, source } = harness;
      const hits = server.hits();
      server.setKeys([one, two]);
      time.advance(1_000);
      const answer = lookUp('d-2', asker());
      t.equal(await settled(answer), false, `after ${name}: it waits`);
      t.equal(source.state().waiting, 1);
      t.equal(await lookUp('d-1', asker()), 'found', 'a known key does not');
      time.advance(cooldownMs - 1_001);
      t.equal(server.hits(), hits, `after ${name}: not fetched before the cool-down is over`);
      time.advance(1);
      t.equal(await answer, 'waited: found', `after ${name}`);
      t.equal(server.hits(), hits + 1);
      t.equal(source.state().waiting, 0);
      t.equal(harness.waits.at(-1), 'found');
    }
  },
);

t.test('a key that is none is refused after that fetch; who asks for it again, at once', async (t) => {
  const server = await startJwksServer(t, { keys: [one] });
  const { time, lookUp } = await startKeySourceHarness(t, server.url);
  const answer = lookUp('d-9', asker());
  time.advance(cooldownMs);
  t.equal(await answer, 'waited: unknown');
  t.equal(await lookUp('d-9', asker()), 'unknown');
  t.equal(server.hits(), 2);
  time.advance(cooldownMs);
  t.equal(await lookUp('d-9', asker()), 'waited: unknown', 'the next fetch may have it');
  t.equal(server.hits(), 3);
  time.advance(480_000 - cooldownMs);
  t.equal(await lookUp('d-9', asker()), 'waited: unknown');
});

t.test('whoever came after a fetch had begun is not refused for what that fetch says', async (t) => {
  const server = await startJwksServer(t, { keys: [one] });
  const { time, lookUp, refreshes } = await startKeySourceHarness(t, server.url);
  let answerFirst = (): void => undefined;
  server.behave((_req, res) => {
    answerFirst = () => res.end(JSON.stringify({ keys: [one.jwk] }));
  });
  time.advance(cooldownMs);
  const stranger = lookUp(madeUp(), asker());
  await until('the source is asked', () => server.hits() === 2);
  time.advance(10);
  const honest = lookUp('d-2', asker());
  server.behave(null);
  server.setKeys([one, two]);
  answerFirst();
  t.equal(await stranger, 'waited: unknown');
  await until('the answer is in', () => refreshes.length === 2);
  t.equal(await settled(honest), false);
  time.advance(cooldownMs);
  t.equal(await honest, 'waited: found');
});

t.test('nobody waits longer than 10 s, and nobody for what cannot come by then', async (t) => {
  const server = await startJwksServer(t, { keys: [one] });
  const hangs = await startKeySourceHarness(t, server.url, { settings: { timeoutMs: 60_000 } });
  server.behave(() => undefined);
  const answer = hangs.lookUp('d-2', asker());
  hangs.time.advance(longestWaitMs - 1);
  t.equal(await settled(answer), false);
  hangs.time.advance(1);
  t.equal(await answer, 'waited: unavailable', '503: nobody could tell');
  t.equal(hangs.source.state().waiting, 0);
  server.behave(null);
  for (const [more, expected] of [
    [0, false],
    [1, true],
  ] as const) {
    const { lookUp, source } = await startKeySourceHarness(t, server.url, {
      settings: { cooldownMs: longestWaitMs + more },
    });
    const late = lookUp('d-2', asker());
    t.equal(await settled(late), expected, `${String(more)} ms more`);
    if (expected) t.equal(await late, 'unknown', "the operator's word: the set counts for so long");
    await source.close();
  }
});

t.test('while the source is in trouble nobody waits for the cool-down', async (t) => {
  const server = await startJwksServer(t, { keys: [one] });
  server.behave((_req, res) => res.writeHead(500).end());
  const { time, lookUp } = await startKeySourceHarness(t, server.url);
  t.equal(await lookUp('d-2', asker()), 'unavailable');
  server.behave(null);
  time.advance(cooldownMs);
  t.equal(await lookUp('d-1', asker()), 'waited: found');
});

t.test('whoever waits for a fetch that fails hears so', async (t) => {
  const server = await startJwksServer(t, { keys: [one] });
  const { time, lookUp, waits } = await startKeySourceHarness(t, server.url);
  const answer = lookUp('d-2', asker());
  server.behave((_req, res) => res.writeHead(500).end());
  time.advance(cooldownMs);
  t.equal(await answer, 'waited: unavailable');
  t.same(waits, ['unavailable']);
});

t.test('while a set without keys waits to be confirmed, so does whoever has a new key', async (t) => {
  const server = await startJwksServer(t, { keys: [one] });
  const { time, lookUp, refreshes } = await startKeySourceHarness(t, server.url);
  server.behave((_req, res) => res.end('{"keys":[]}'));
  time.advance(480_000);
  await until('an answer without keys', () => refreshes.length === 2);
  const answer = lookUp('d-2', asker());
  t.equal(await settled(answer), false);
  server.behave(null);
  server.setKeys([two]);
  time.advance(cooldownMs);
  t.equal(await answer, 'waited: found');
});

t.test(
  '20,000 made-up ids of a stranger: a fetch for each cool-down, and a caller with a new key is served beside them',
  async (t) => {
    const server = await startJwksServer(t, { keys: [one] });
    const { time, lookUp, source } = await startKeySourceHarness(t, server.url);
    const stranger = asker('203.0.113.9');
    const counts = new Map<string, number>();
    const flood = async (): Promise<void> => {
      await Promise.all(
        Array.from({ length: 5_000 }, async () => {
          const answer = await lookUp(madeUp(), stranger);
          counts.set(answer, (counts.get(answer) ?? 0) + 1);
        }),
      );
    };
    for (let round = 1; round <= 4; round += 1) {
      const strangers = flood();
      t.equal(source.state().waiting, places, 'no more than these wait');
      const next = rsaKey('d-2');
      const honest = [
        asker('192.0.2.1'),
        asker('192.0.2.2', { hasAuthenticated: true }),
        asker('203.0.113.9', { hasAuthenticated: true }),
      ].map(async (caller) => lookUp(`d-new-${String(round)}`, caller));
      server.setKeys([one, { ...next.jwk, kid: `d-new-${String(round)}` }]);
      time.advance(cooldownMs);
      t.same(
        await Promise.all(honest),
        Array.from({ length: 3 }, () => 'waited: found'),
        `round ${String(round)}`,
      );
      await strangers;
      t.equal(server.hits(), round + 1);
      t.equal(await lookUp('d-1'), 'found');
    }
    t.same(Object.fromEntries(counts), { 'waited: busy': 20_000 - 4 * places + 4, 'waited: unknown': 4 * places - 4 });
  },
);

t.test('at the end of the process nobody waits: those who do are told to try again', async (t) => {
  const server = await startJwksServer(t, { keys: [one] });
  const { time, lookUp, source } = await startKeySourceHarness(t, server.url);
  const waiting = ['d-2', 'd-3'].map(async (keyId) => lookUp(keyId, asker()));
  t.equal(await settled(waiting[0]), false);
  source.endWaits();
  t.same(await Promise.all(waiting), ['waited: unavailable', 'waited: unavailable']);
  t.equal(await lookUp('d-2', asker()), 'unavailable', 'and who comes now is too');
  t.equal(await lookUp('d-1', asker()), 'found');
  server.setKeys([one, two]);
  time.advance(cooldownMs);
  t.equal(await lookUp('d-2', asker()), 'waited: found', 'a fetch that is allowed now is waited for');
});

t.test('a fetch under way at the end of the process is waited for', async (t) => {
  const server = await startJwksServer(t, { keys: [one] });
  const { time, lookUp, source } = await startKeySourceHarness(t, server.url);
  server.setKeys([one, two]);
  time.advance(cooldownMs);
  const [honest, other] = [lookUp('d-2', asker()), lookUp('d-3', asker())];
  source.endWaits();
  t.same(await Promise.all([honest, other]), ['waited: found', 'waited: unknown']);
});

t.test('closing answers everybody', async (t) => {
  const server = await startJwksServer(t, { keys: [one] });
  const { time, lookUp, source } = await startKeySourceHarness(t, server.url);
  const answer = lookUp('d-2', asker());
  await source.close();
  t.equal(await answer, 'waited: unavailable');
  t.same(time.due(), [], 'and nothing is planned any more');
});

t.test('an update with a shorter cool-down counts for those who wait', async (t) => {
  const server = await startJwksServer(t, { keys: [one] });
  const { time, lookUp, source, settings } = await startKeySourceHarness(t, server.url);
  const answer = lookUp('d-2', asker());
  server.setKeys([one, two]);
  source.update({ ...settings, cooldownMs: 1_000 }, { accept: ['d-*'], reject: [] });
  time.advance(1_000);
  t.equal(await answer, 'waited: found');
});

t.test('what is known is found, and nothing is fetched, where nobody wants to wait', async (t) => {
  const server = await startJwksServer(t, { keys: [one] });
  const { lookUp, time } = createKeySourceHarness(t, { kind: 'url', url: server.url });
  t.equal(await lookUp('d-1', 'now'), 'unavailable');
  t.equal(server.hits(), 0);
  t.equal(await lookUp('d-1', 'fetch'), 'waited: found');
  time.advance(cooldownMs);
  t.same([await lookUp('d-1', 'now'), await lookUp('d-2', 'now')], ['found', 'unknown']);
  t.equal(server.hits(), 1);
});
