import t from 'tap';
import { createSharedSource, createSingleUseSource } from '../../../src/adapters/tokens/cached-source.js';
import type { TokenSource } from '../../../src/ports/tokens.js';
import { failure, fetches, token, wordOf, type Fetches } from './fetches.js';

function shared(maxWaiting?: number): Fetches & { readonly source: TokenSource } {
  const made = fetches(maxWaiting);
  return { ...made, source: createSharedSource('billing', 'oauth', made.fetcher, made.deps) };
}

t.test('200 callers at the moment of expiry cause one fetch, and get the one token', async (t) => {
  const { source, asked, end, advance } = shared();
  const first = source.get(null);
  await end(token('first'));
  t.strictSame(await first, { kind: 'token', token: 'first', scheme: 'Bearer' });
  t.equal(source.get(null), source.get(null), 'one in hand is given at once, and makes nothing');
  advance(270_000);
  const herd = Array.from({ length: 200 }, () => source.get(null));
  t.equal(asked.length, 2);
  t.equal(source.status().waiting, 200);
  await end(token('second'));
  t.strictSame(new Set(await Promise.all(herd.map(wordOf))), new Set(['second']));
  t.match(source.status(), { waiting: 0, fetches: 2 });
});

t.test('100,000 requests over a day cost as many fetches as tokens have to be renewed', async (t) => {
  const { source, asked, end, advance, nowMs } = shared();
  const endsAtMs = nowMs() + 86_400_000;
  let given = 0;
  let tokens = 0;
  while (nowMs() < endsAtMs) {
    const before = asked.length;
    const outcome = source.get(null);
    if (asked.length > before) await end(token(`t${String((tokens += 1))}`, 7_200_000));
    if ((await outcome).kind === 'token') given += 1;
    advance(864);
  }
  t.equal(given, 100_000);
  t.ok(asked.length <= 18, `${String(asked.length)} fetches`);
});

t.test('renewed ahead of its end while it is given; nobody waits', async (t) => {
  const { source, asked, end, advance } = shared();
  void source.get(null);
  await end(token('first'));
  advance(209_999);
  t.equal(await wordOf(source.get(null)), 'first');
  t.equal(asked.length, 1, 'not yet');
  advance(1);
  t.equal(await wordOf(source.get(null)), 'first');
  t.equal(await wordOf(source.get(null)), 'first');
  t.equal(asked.length, 2, 'once');
  await end(token('second'));
  t.equal(await wordOf(source.get(null)), 'second');
});

t.test(
  'an issuer that is away: the token serves until its end, then callers are told when to come again',
  async (t) => {
    const { source, asked, end, advance, lines } = shared();
    void source.get(null);
    await end(token('first'));
    advance(210_000);
    for (let count = 0; count < 100; count += 1) {
      t.equal(await wordOf(source.get(null)), 'first');
      await end(failure('away'));
      advance(590);
    }
    t.ok(asked.length < 12, `left alone for longer each time: ${String(asked.length)} fetches`);
    t.equal(source.status().lastError, 'away');
    t.equal(lines.length, 1, 'one line for an outage');
    t.match(lines[0], /no token could be had .*"billing".*"away".*it is away/);
    advance(30_000);
    const waiting = source.get(null);
    await end(failure('away', 7_000));
    t.match(await waiting, { kind: 'unavailable', problem: 'away', reason: 'it is away' });
    t.match(await source.get(null), { kind: 'unavailable', retryAfterS: 15 }, 'without being asked');
    const before = asked.length;
    advance(16_000);
    const next = source.get(null);
    t.equal(asked.length, before + 1);
    await end(token('second'));
    t.equal(await wordOf(next), 'second');
    t.match(lines[1], /tokens can be had again/);
    t.match(source.status(), { lastError: null, kept: true });
  },
);

t.test('Retry-After of an issuer is honoured, for five minutes at most', async (t) => {
  const { source, end } = shared();
  const first = source.get(null);
  await end(failure('away', 42_000));
  t.equal(await wordOf(first), 'away 42');
  const other = shared();
  const late = other.source.get(null);
  await other.end(failure('away', 1e9));
  t.equal(await wordOf(late), 'away 300');
});

t.test('a token that a target did not take is given no more; many who say so cause one fetch', async (t) => {
  const { source, asked, end } = shared();
  void source.get(null);
  await end(token('first'));
  source.invalidate('other');
  t.equal(await wordOf(source.get(null)), 'first');
  for (let count = 0; count < 200; count += 1) source.invalidate('first');
  const herd = Array.from({ length: 200 }, () => source.get(null));
  t.equal(asked.length, 2);
  await end(token('second'));
  t.strictSame(new Set(await Promise.all(herd.map(wordOf))), new Set(['second']));
  for (let count = 0; count < 200; count += 1) source.invalidate('first');
  t.equal(await wordOf(source.get(null)), 'second', 'it was replaced already');
  t.equal(asked.length, 2);
  for (let count = 0; count < 200; count += 1) source.invalidate('second');
  void source.get(null);
  await end(token('third'));
  t.equal(await wordOf(source.get(null)), 'third', 'the many counted once');
});

t.test('a token that a target did not take serves on while its issuer gives no other', async (t) => {
  const { source, asked, end, advance } = shared();
  void source.get(null);
  await end(token('first'));
  source.invalidate('first');
  const herd = Array.from({ length: 20 }, () => source.get(null));
  t.equal(asked.length, 2);
  await end(failure('away'));
  t.strictSame(new Set(await Promise.all(herd.map(wordOf))), new Set(['first']));
  t.equal(await wordOf(source.get(null)), 'first', 'while the issuer is left alone');
  t.match(source.status(), { kept: true, lastError: 'away' });
  source.invalidate('first');
  t.equal(await wordOf(source.get(null)), 'first', 'refused once more, while it is left alone');
  t.equal(asked.length, 2);
  advance(250);
  const again = source.get(null);
  await end(failure('refused'));
  t.equal(await wordOf(again), 'first');
  advance(500);
  t.equal(await wordOf(source.get(null)), 'first', 'nobody waits once the issuer gave no other');
  t.equal(asked.length, 4, 'though it is asked');
  await end(token('second'));
  t.equal(await wordOf(source.get(null)), 'second');
  t.equal(asked.length, 4);
});

t.test('a token that a target did not take serves no longer than another', async (t) => {
  const { source, end, advance } = shared();
  void source.get(null);
  await end(token('first'));
  source.invalidate('first');
  const waiting = source.get(null);
  advance(270_000);
  await end(failure('away'));
  t.equal(await wordOf(waiting), 'away 1');
  t.equal(source.status().kept, false);
  t.equal(await wordOf(source.get(null)), 'away 1');
});

t.test('where too many wait for another token, the one in hand serves', async (t) => {
  const { source, end } = shared(1);
  void source.get(null);
  await end(token('first'));
  source.invalidate('first');
  const waiting = source.get(null);
  t.equal(await wordOf(source.get(null)), 'first');
  await end(token('second'));
  t.equal(await wordOf(waiting), 'second');
});

t.test('a target that takes no token at all does not have one made for each request', async (t) => {
  const { source, asked, end, advance } = shared();
  for (let count = 0; count < 100; count += 1) {
    const outcome = source.get(null);
    await end(token(`t${String(count)}`));
    const told = await outcome;
    if (told.kind === 'token') source.invalidate(told.token);
  }
  t.equal(asked.length, 6);
  advance(10_000);
  source.invalidate('t5');
  void source.get(null);
  t.equal(asked.length, 7, 'one more after ten seconds');
});

t.test('too many who wait are told so', async (t) => {
  const { source, end } = shared(3);
  const waiting = Array.from({ length: 5 }, () => source.get(null));
  t.strictSame(await Promise.all(waiting.slice(3).map(wordOf)), ['busy 1', 'busy 1']);
  await end(token('first'));
  t.strictSame(await Promise.all(waiting.slice(0, 3).map(wordOf)), ['first', 'first', 'first']);
});

t.test('a machine that slept does not give what expired meanwhile', async (t) => {
  const { source, asked, end, sleep } = shared();
  void source.get(null);
  await end(token('first'));
  sleep(269_999);
  t.equal(await wordOf(source.get(null)), 'first');
  sleep(1);
  t.equal(source.status().kept, false);
  void source.get(null);
  t.equal(asked.length, 2);
});

t.test('what nobody expects of a fetch is a failure like another', async (t) => {
  const cases = [
    [new RangeError('a secret'), 'unexpected RangeError'],
    ['a secret', 'unexpected error'],
  ] as const;
  for (const [error, reason] of cases) {
    const { source, breakOff } = shared();
    const made = source.get(null);
    await breakOff(error);
    t.strictSame(await made, { kind: 'unavailable', problem: 'bad_response', reason, retryAfterS: 1 });
  }
});

t.test('status says what is kept; a closed source keeps nothing and gives nothing', async (t) => {
  const { source, end, nowMs, isClosed } = shared();
  t.strictSame(source.status(), {
    kind: 'oauth',
    kept: false,
    endsAtMs: null,
    lastError: null,
    fetches: 0,
    waiting: 0,
  });
  void source.get(null);
  await end(token('first'));
  t.match(source.status(), { kept: true, endsAtMs: nowMs() + 300_000, fetches: 1 });
  source.invalidate('first');
  const waiting = source.get(null);
  source.close();
  t.ok(isClosed());
  await end(token('second'));
  t.equal(await wordOf(waiting), 'closed 1');
  t.equal(await wordOf(source.get(null)), 'closed 1');
  t.equal(source.status().kept, false);
});

t.test('single-use: a fetch for each request, held back together after failures, and bounded', async (t) => {
  const made = fetches(2);
  const { asked, end, advance } = made;
  const source = createSingleUseSource('orders', 'core', made.fetcher, made.deps);
  const two = [source.get(null), source.get(null)];
  t.equal(await wordOf(source.get(null)), 'busy 1');
  await end(token('a'));
  await end(token('b'));
  t.strictSame(await Promise.all(two.map(wordOf)), ['a', 'b']);
  source.invalidate('a');
  const failing = source.get(null);
  await end(failure('refused'));
  t.equal(await wordOf(failing), 'refused 1');
  t.equal(await wordOf(source.get(null)), 'refused 1');
  t.equal(asked.length, 3);
  advance(250);
  const next = source.get(null);
  await end(token('c'));
  t.equal(await wordOf(next), 'c');
  t.match(source.status(), { kind: 'core', kept: false, endsAtMs: null, fetches: 4 });
  source.close();
  t.equal(await wordOf(source.get(null)), 'closed 1');
});
