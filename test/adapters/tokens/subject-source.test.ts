import t from 'tap';
import { createSubjectSource } from '../../../src/adapters/tokens/subject-source.js';
import type { TokenSource } from '../../../src/ports/tokens.js';
import { failure, fetches, token, wordOf, type Fetches } from './fetches.js';

interface Limits {
  readonly maxEntries: number;
  readonly maxBytes: number;
}

function exchange(limits?: Limits, maxWaiting?: number): Fetches & { readonly source: TokenSource } {
  const made = fetches(maxWaiting);
  return { ...made, source: createSubjectSource('billing', made.fetcher, made.deps, limits) };
}

function jwt(name: string, expiresAtS: number): string {
  const parts = ['{"alg":"none"}', JSON.stringify({ sub: name, exp: expiresAtS }), 'x'];
  return parts.map((part) => Buffer.from(part).toString('base64url')).join('.');
}

t.test('each caller’s token is exchanged once, and never given to another', async (t) => {
  const { source, asked, end, nowMs } = exchange();
  const [ann, bob] = ['ann', 'bob'].map((name) => jwt(name, nowMs() / 1_000 + 3_600));
  const waiting = [ann, ann, bob, ann].map((subject) => source.get(subject ?? ''));
  t.strictSame(asked, [ann, bob]);
  await end(token('for-ann'));
  await end(token('for-bob'));
  t.strictSame(await Promise.all(waiting.map(wordOf)), ['for-ann', 'for-ann', 'for-bob', 'for-ann']);
  t.equal(await wordOf(source.get(ann ?? '')), 'for-ann');
  t.match(source.status(), { kind: 'oauth', kept: true, endsAtMs: null, fetches: 2 });
});

t.test('without a token of the caller’s, or with one that is none, nothing is asked', async (t) => {
  const { source, asked, nowMs } = exchange();
  t.match(await source.get(null), { problem: 'subject', reason: /has no token/ });
  for (const odd of ['', 'a b', 'a\r\nX: y', 'x'.repeat(8_193)]) t.match(await source.get(odd), { problem: 'subject' });
  t.match(await source.get(jwt('ann', nowMs() / 1_000)), { problem: 'subject', reason: /is over/ });
  t.equal(asked.length, 0);
});

t.test('what was had never lives longer than the caller’s own token', async (t) => {
  const { source, asked, end, advance, nowMs } = exchange();
  const ann = jwt('ann', nowMs() / 1_000 + 100);
  void source.get(ann);
  await end(token('for-ann', 3_600_000));
  advance(69_999);
  t.equal(await wordOf(source.get(ann)), 'for-ann');
  t.equal(asked.length, 1);
  advance(20_001);
  void source.get(ann);
  t.equal(asked.length, 2, 'over ten seconds before the end of the other');
  await end(token('again', 3_600_000));
  advance(10_000);
  t.match(await source.get(ann), { problem: 'subject', reason: /is over/ });
  t.equal(asked.length, 2);
});

t.test('for a token that does not say when it ends, it serves for a minute', async (t) => {
  const { source, asked, end, advance } = exchange();
  void source.get('opaque');
  await end(token('had', 3_600_000));
  advance(53_999);
  t.equal(await wordOf(source.get('opaque')), 'had');
  await end(failure('away'));
  advance(1);
  t.equal(await wordOf(source.get('opaque')), 'away 1');
  t.equal(asked.length, 2);
});

t.test('a caller whose token the issuer does not take keeps no other from theirs', async (t) => {
  const { source, asked, end, advance, lines } = exchange();
  const bad = source.get('made-up');
  await end(failure('subject'));
  t.equal(await wordOf(bad), 'subject 1');
  t.equal(await wordOf(source.get('made-up')), 'subject 1');
  t.equal(asked.length, 1, 'it is remembered');
  const good = source.get('good');
  await end(token('had'));
  t.equal(await wordOf(good), 'had');
  advance(5_000);
  void source.get('made-up');
  t.equal(asked.length, 3, 'for five seconds');
  t.equal(lines.length, 1, 'and is no outage');
  t.match(lines[0], /no token could be had for a caller’s own .*it is subject/);
});

t.test('where nobody’s token is taken, the log says so once: the client may not be let exchange', async (t) => {
  const { source, end, lines } = exchange();
  for (let count = 0; count < 30; count += 1) {
    void source.get(`m${String(count)}`);
    await end(failure('subject'));
    t.equal(lines.length, count < 9 ? 1 : 2);
  }
  t.match(lines[1], /no caller’s own token is taken by the issuer .*"billing".*it is subject/);
  void source.get('good');
  await end(token('had'));
  for (let count = 30; count < 40; count += 1) {
    void source.get(`m${String(count)}`);
    await end(failure('subject'));
  }
  t.equal(lines.length, 3, 'and again after one that was taken');
});

t.test('a token that two callers were given is dropped for both', async (t) => {
  const { source, asked, end } = exchange();
  for (const subject of ['ann', 'bob', 'cyd']) {
    void source.get(subject);
    await end(token('shared'));
  }
  source.invalidate('shared');
  for (const subject of ['ann', 'bob', 'cyd']) {
    const next = source.get(subject);
    await end(token(`for-${subject}`));
    t.equal(await wordOf(next), `for-${subject}`);
    t.equal(await wordOf(source.get(subject)), `for-${subject}`);
  }
  t.equal(asked.length, 6);
  source.invalidate('shared');
  t.equal(await wordOf(source.get('bob')), 'for-bob', 'it was replaced already');
});

t.test('a token that two callers were given is known by one of them once the other left', async (t) => {
  const { source, asked, end } = exchange({ maxEntries: 2, maxBytes: 1e6 });
  for (const name of ['shared', 'shared', 'other']) {
    void source.get(String(asked.length));
    await end(token(name));
  }
  source.invalidate('shared');
  const next = source.get('1');
  t.equal(asked.length, 4);
  await end(token('next'));
  t.equal(await wordOf(next), 'next');
  t.equal(await wordOf(source.get('2')), 'other');
  t.equal(source.status().kept, true);
  source.close();
  t.equal(source.status().kept, false);
});

t.test('a token that a target did not take serves on while the issuer is away, and not once it refuses', async (t) => {
  const { source, end, advance } = exchange();
  void source.get('ann');
  await end(token('for-ann'));
  source.invalidate('for-ann');
  const first = source.get('ann');
  await end(failure('away'));
  t.equal(await wordOf(first), 'for-ann');
  advance(250);
  source.invalidate('for-ann');
  const second = source.get('ann');
  await end(failure('subject'));
  t.equal(await wordOf(second), 'subject 1');
  t.equal(await wordOf(source.get('ann')), 'subject 1');
});

t.test('an issuer that is away is left alone by all callers', async (t) => {
  const { source, asked, end, advance } = exchange();
  const first = source.get('ann');
  await end(failure('away'));
  t.equal(await wordOf(first), 'away 1');
  t.equal(await wordOf(source.get('bob')), 'away 1');
  t.equal(asked.length, 1);
  t.equal(source.status().kept, false);
  advance(250);
  void source.get('bob');
  t.equal(asked.length, 2);
});

t.test('one caller’s token for which the issuer fails leaves the others theirs', async (t) => {
  const { source, asked, end, advance, lines } = exchange();
  const odd = source.get('odd');
  await end(failure('away', null, true));
  t.equal(await wordOf(odd), 'away 1');
  t.equal(await wordOf(source.get('odd')), 'away 1', 'it waits by itself');
  t.equal(asked.length, 1);
  const good = source.get('good');
  await end(token('had'));
  t.equal(await wordOf(good), 'had');
  advance(250);
  for (const waitMs of [500, 1_000]) {
    void source.get('odd');
    await end(failure('away', null, true));
    t.equal(await wordOf(source.get('odd')), 'away 1');
    t.equal(await wordOf(source.get('good')), 'had');
    advance(waitMs);
  }
  t.strictSame(asked, ['odd', 'good', 'odd', 'odd']);
  t.equal(lines.length, 1);
  t.match(lines[0], /no token could be had for a caller’s own .*it is away/);
});

t.test('where it fails for two in a row, it is left alone by all', async (t) => {
  const { source, asked, end, advance, lines } = exchange();
  void source.get('ann');
  await end(failure('away', null, true));
  void source.get('bob');
  await end(failure('subject'));
  void source.get('bert');
  await end(failure('away', null, true));
  t.ok(source.get('cat') instanceof Promise, 'not in a row: bob was answered');
  await end(failure('away', null, true));
  t.equal(await wordOf(source.get('dan')), 'away 1');
  t.strictSame(asked, ['ann', 'bob', 'bert', 'cat']);
  t.equal(lines.filter((line) => line.startsWith('no token could be had {')).length, 1, 'said once');
  advance(250);
  void source.get('eve');
  await end(failure('away', null, true));
  t.ok(source.get('fay') instanceof Promise, 'one more says nothing');
  await end(failure('away', null, true));
  t.equal(await wordOf(source.get('gil')), 'away 1', 'two do');
  advance(500);
  void source.get('gil');
  await end(token('had'));
  t.match(lines.at(-1), /tokens can be had again/);
});

t.test('bounded in entries and bytes: who was served longest ago leaves first', async (t) => {
  const { source, asked, end } = exchange({ maxEntries: 2, maxBytes: 1e9 });
  for (const name of ['a', 'b']) {
    void source.get(name);
    await end(token(`for-${name}`));
  }
  t.equal(await wordOf(source.get('a')), 'for-a');
  void source.get('c');
  await end(token('for-c'));
  t.equal(await wordOf(source.get('a')), 'for-a');
  t.equal(asked.length, 3);
  void source.get('b');
  t.equal(asked.length, 4, 'it had left');

  const small = exchange({ maxEntries: 1e9, maxBytes: 10_000 });
  for (let count = 0; count < 100; count += 1) {
    void small.source.get(`s${String(count)}`);
    await small.end(token('x'.repeat(8_000)));
  }
  t.equal(await wordOf(small.source.get('s99')), 'x'.repeat(8_000));
  t.equal(small.asked.length, 100);
  void small.source.get('s98');
  t.equal(small.asked.length, 101);
});

t.test('what came for a caller who had left meanwhile is given to those who wait, and not kept', async (t) => {
  const { source, asked, end } = exchange({ maxEntries: 1, maxBytes: 1e9 });
  const first = source.get('a');
  const second = source.get('b');
  await end(token('for-a'));
  await end(token('for-b'));
  t.strictSame(await Promise.all([first, second].map(wordOf)), ['for-a', 'for-b']);
  void source.get('a');
  t.equal(asked.length, 3);
});

t.test('made-up tokens in number drive out no good one, and are themselves bounded', async (t) => {
  const { source, asked, end } = exchange();
  void source.get('good');
  await end(token('had'));
  for (let count = 0; count < 1_500; count += 1) {
    void source.get(`m${String(count)}`);
    await end(failure('subject'));
  }
  t.equal(asked.length, 1_501);
  t.equal(await wordOf(source.get('good')), 'had');
  t.equal(await wordOf(source.get('m1499')), 'subject 1');
  t.equal(asked.length, 1_501);
  void source.get('m0');
  t.equal(asked.length, 1_502, 'the oldest was forgotten');
});

t.test('callers for whom nothing is asked, since too many wait, drive out nobody', async (t) => {
  const { source, asked, end } = exchange({ maxEntries: 10, maxBytes: 1e9 }, 2);
  void source.get('good');
  await end(token('had'));
  const waiting = Array.from({ length: 100 }, (_, count) => source.get(`m${String(count)}`));
  t.strictSame(
    await Promise.all(waiting.slice(2).map(wordOf)),
    Array.from({ length: 98 }, () => 'busy 1'),
  );
  t.equal(asked.length, 3);
  t.equal(await wordOf(source.get('good')), 'had');
  await end(token('first'));
  const second = source.get('m50');
  t.equal(asked.at(-1), 'm50', 'and is asked for once there is room');
  await end(token('other'));
  await end(token('second'));
  t.equal(await wordOf(second), 'second');
});

t.test('a token that a target did not take is had anew for its caller alone', async (t) => {
  const { source, asked, end } = exchange();
  for (const name of ['ann', 'bob']) {
    void source.get(name);
    await end(token(`for-${name}`));
  }
  for (let count = 0; count < 50; count += 1) source.invalidate('for-ann');
  source.invalidate('nobody’s');
  t.equal(await wordOf(source.get('bob')), 'for-bob');
  const again = [source.get('ann'), source.get('ann')];
  t.strictSame(asked.slice(2), ['ann']);
  await end(token('second'));
  t.strictSame(await Promise.all(again.map(wordOf)), ['second', 'second']);
  source.invalidate('for-ann');
  t.equal(await wordOf(source.get('ann')), 'second');
});

t.test('a closed source gives nothing', async (t) => {
  const { source, end } = exchange();
  void source.get('ann');
  await end(token('for-ann'));
  source.close();
  t.equal(await wordOf(source.get('ann')), 'closed 1');
  t.equal(source.status().kept, false);
});
