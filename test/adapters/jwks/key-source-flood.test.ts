import { randomUUID } from 'node:crypto';
import t from 'tap';
import { startJwksServer } from '../../support/jwks-server.js';
import { rsaKey } from '../../support/keys.js';
import { until } from '../../support/until.js';
import { createKeySourceHarness, startKeySourceHarness } from './key-source-harness.js';

const one = rsaKey('d-1');
const two = rsaKey('d-2');

function tally(answers: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const answer of answers) counts[answer] = (counts[answer] ?? 0) + 1;
  return counts;
}

function randomIds(count: number): string[] {
  return Array.from({ length: count }, () => `d-${randomUUID()}`);
}

t.test('one fetch in flight, however many ask', async (t) => {
  const server = await startJwksServer(t, { keys: [one] });
  const { source, lookUp } = createKeySourceHarness(t, { kind: 'url', url: server.url });
  const starts = [source.start(), source.start()];
  const answers = await Promise.all(Array.from({ length: 200 }, () => lookUp('d-1')));
  await Promise.all(starts);
  t.same(tally(answers), { 'waited: found': 200 });
  t.equal(server.hits(), 1);
});

t.test('10,000 unknown key ids cause one fetch for each cooldown', async (t) => {
  const server = await startJwksServer(t, { keys: [one] });
  const { time, lookUp } = await startKeySourceHarness(t, server.url);
  const flood = (): Promise<string[]> => Promise.all(randomIds(10_000).map(async (keyId) => lookUp(keyId)));
  t.same(tally(await flood()), { unknown: 10_000 }, 'the set is good: there are no such keys');
  t.equal(server.hits(), 1, 'the attempt at start counts');
  time.advance(4_999);
  t.same(tally(await flood()), { unknown: 10_000 });
  t.equal(server.hits(), 1, 'just within the cooldown');
  for (let round = 2; round < 6; round += 1) {
    time.advance(round === 2 ? 1 : 5_000);
    t.same(tally(await flood()), { 'waited: unknown': 256, 'waited: busy': 9_744 });
    t.equal(server.hits(), round);
    t.equal(await lookUp('d-1'), 'found');
  }
});

t.test('the cooldown counts from failed attempts too', async (t) => {
  const server = await startJwksServer(t, { keys: [one] });
  const { time, lookUp } = await startKeySourceHarness(t, server.url);
  server.behave((_req, res) => res.writeHead(500).end());
  time.advance(5_000);
  const flood = (): Promise<string[]> => Promise.all(randomIds(1_000).map(async (keyId) => lookUp(keyId)));
  t.same(tally(await flood()), { 'waited: unavailable': 256, 'waited: busy': 744 });
  t.equal(server.hits(), 2);
  time.advance(4_999);
  t.same(tally(await flood()), { unavailable: 1_000 }, 'at once, since the last attempt failed');
  t.equal(server.hits(), 2);
  t.equal(await lookUp('d-1'), 'found', 'known keys serve');
  time.advance(1);
  await flood();
  t.equal(server.hits(), 3);
});

t.test('while no set was ever loaded, too', async (t) => {
  const server = await startJwksServer(t);
  server.behave((_req, res) => res.writeHead(500).end());
  const { lookUp } = await startKeySourceHarness(t, server.url);
  t.same(tally(await Promise.all(randomIds(1_000).map(async (keyId) => lookUp(keyId)))), { unavailable: 1_000 });
  t.equal(server.hits(), 1);
});

t.test('look-ups that wait for a source that hangs are bounded in number and time', async (t) => {
  const server = await startJwksServer(t, { keys: [one] });
  const { time, source, lookUp } = await startKeySourceHarness(t, server.url);
  server.behave(() => undefined);
  time.advance(5_000);
  const answers: string[] = [];
  const waiting = randomIds(256).map(async (keyId) => answers.push(await lookUp(keyId)));
  t.equal(await lookUp('d-3'), 'waited: busy', 'the 257th does not wait');
  t.equal(await lookUp('d-1'), 'found', 'a known key does not either');
  await until('the source is asked', () => server.hits() === 2);
  time.advance(4_999);
  t.same(answers, []);
  time.advance(1);
  await Promise.all(waiting);
  t.same(tally(answers), { 'waited: unavailable': 256 });
  t.match(source.state(), { usable: true, stale: true });
  server.behave(null);
  time.advance(5_000);
  t.equal(await lookUp('d-3'), 'waited: unknown', 'their places are free again');
});

t.test('mixed look-ups while the source hangs, fails and rotates: no mix-up, no endless wait', async (t) => {
  const server = await startJwksServer(t, { keys: [one] });
  const { time, source, lookUp } = await startKeySourceHarness(t, server.url);
  const phases: { name: string; prepare: () => void }[] = [
    {
      name: 'hangs',
      prepare: () => {
        server.behave(() => undefined);
      },
    },
    {
      name: 'fails',
      prepare: () => {
        server.behave((_req, res) => res.writeHead(500).end());
      },
    },
    {
      name: 'breaks',
      prepare: () => {
        server.behave((req) => req.socket.destroy());
      },
    },
    {
      name: 'rotates',
      prepare: () => {
        server.behave(null);
        server.setKeys([one, two]);
      },
    },
  ];
  for (const { name, prepare } of phases) {
    prepare();
    time.advance(5_000);
    const hits = server.hits();
    let settled = 0;
    const asked = Array.from({ length: 1_000 }, async (_, i) => {
      const keyId = ['d-1', 'd-2', `d-x${String(i)}`][i % 3] ?? '';
      const answer = await source.find(keyId);
      settled += 1;
      if (answer.kind === 'found') t.equal(answer.key.keyId, keyId, `${name}: the key that was asked for`);
      return `${keyId.slice(0, 3)} ${answer.kind}`;
    });
    await until(`${name}: the source is asked`, () => server.hits() > hits);
    if (name === 'hangs') time.advance(5_000);
    const answers = tally(await Promise.all(asked));
    t.equal(settled, 1_000, name);
    t.equal(answers['d-1 found'], 334, `${name}: known keys are found`);
    t.equal(answers['d-x found'], undefined, name);
    t.equal((answers['d-2 found'] ?? 0) > 0, name === 'rotates', name);
  }
  t.equal(await lookUp('d-2'), 'found');
});
