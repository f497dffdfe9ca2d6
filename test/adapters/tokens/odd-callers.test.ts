/** An issuer that is well, or dead, and callers for whose own tokens it fails: what each costs the others. */
import t from 'tap';
import { createSubjectSource } from '../../../src/adapters/tokens/subject-source.js';
import type { TokenSource } from '../../../src/ports/tokens.js';
import { failure, fetches, token, wordOf, type Fetches } from './fetches.js';

type Exchange = Fetches & {
  readonly source: TokenSource;
  /** Asks for a token, and has the issuer say this if it is asked. */
  readonly ask: (subject: string, fetched: Parameters<Fetches['end']>[0]) => Promise<string>;
};

function exchange(): Exchange {
  const made = fetches();
  const source = createSubjectSource('billing', made.fetcher, made.deps);
  const ask: Exchange['ask'] = async (subject, fetched) => {
    const before = made.asked.length;
    const outcome = source.get(subject);
    if (made.asked.length > before) await made.end(fetched);
    return wordOf(outcome);
  };
  return { ...made, source, ask };
}

const fails = failure('away', null, true);

/** A token of this caller that differs from the others by a number. */
function own(sub: string, number: number): string {
  const parts = ['{"alg":"none"}', JSON.stringify({ iss: 'i', sub, number }), 'x'];
  return parts.map((part) => Buffer.from(part).toString('base64url')).join('.');
}

/** An odd caller asks each 100 ms, and a good one that was never there each second. Counts the good that got theirs. */
async function hammer(made: Exchange, oddAt: (turn: number) => string, seconds: number): Promise<number> {
  let served = 0;
  for (let turn = 0; turn < seconds * 10; turn += 1) {
    await made.ask(oddAt(turn), fails);
    if (turn % 10 === 9 && (await made.ask(`good-${String(turn)}`, token(`for-${String(turn)}`))).startsWith('for-')) {
      served += 1;
    }
    made.advance(100);
  }
  return served;
}

t.test('after a short outage one odd caller that hammers does not hold it for all', async (t) => {
  const made = exchange();
  for (const name of ['ann', 'bob']) await made.ask(name, fails);
  t.equal(await made.ask('cat', token('had')), 'away 1', 'the outage is one of all');
  t.ok((await hammer(made, () => 'odd', 600)) >= 598);
  t.ok(made.asked.filter((subject) => subject === 'odd').length < 60);
});

t.test('nor do two by turns, which wait each by itself and are told of once a minute', async (t) => {
  const made = exchange();
  for (const name of ['ann', 'bob']) await made.ask(name, fails);
  t.ok((await hammer(made, (turn) => `odd-${String(turn % 2)}`, 60)) >= 58);
  t.ok(made.asked.filter((subject) => subject?.startsWith('odd-')).length < 30);
  t.ok(made.lines.length < 6, made.lines.join('\n'));
});

t.test('nor does one with another token each time', async (t) => {
  const made = exchange();
  for (const name of ['ann', 'bob']) await made.ask(name, fails);
  t.ok((await hammer(made, (turn) => own('odd', turn), 60)) >= 58);
  t.ok(made.asked.length < 400, 'of which few are asked for, once ten were odd');
});

t.test('nor do forged tokens in the name of a caller whose exchanges succeed keep that one waiting', async (t) => {
  const made = exchange();
  t.equal(await made.ask(own('ann', -1), token('for-ann')), 'for-ann');
  let served = 0;
  for (let turn = 0; turn < 600; turn += 1) {
    await made.ask(own('ann', turn), fails);
    if (
      turn % 10 === 9 &&
      (await made.ask(own('ann', 10_000 + turn), token(`new-${String(turn)}`))).startsWith('new-')
    ) {
      served += 1;
    }
    made.advance(100);
  }
  t.equal(served, 60);
});

t.test('nor do forged tokens in ever new names, or in those of two known callers, stop known ones', async (t) => {
  const names: Record<string, (turn: number) => string> = {
    'new names': (turn) => own(`made-up-${String(turn)}`, turn),
    'known names': (turn) => own(turn % 2 === 0 ? 'ann' : 'bob', turn),
    'ever new tokens that name nobody': (turn) => `opaque-${String(turn)}`,
  };
  for (const [name, oddAt] of Object.entries(names)) {
    const made = exchange();
    for (const known of ['ann', 'bob', 'cat']) await made.ask(own(known, -1), token(`first-${known}`));
    let served = 0;
    for (let turn = 0; turn < 600; turn += 1) {
      await made.ask(oddAt(turn), fails);
      if (turn % 10 === 9 && (await made.ask(own('cat', turn), token(`cat-${String(turn)}`))).startsWith('cat-')) {
        served += 1;
      }
      made.advance(100);
    }
    t.equal(served, 60, name);
    t.ok(made.lines.length < 6, made.lines.join('\n'));
  }
});

t.test('strangers wait together, and as soon as somebody gets a token, no longer', async (t) => {
  const made = exchange();
  await made.ask(own('ann', 0), token('for-ann'));
  const long = failure('away', 60_000, true);
  await made.ask(own('odd', 1), long);
  await made.ask(own('even', 1), long);
  t.equal(await made.ask(own('new', 1), token('no')), 'away 30');
  t.equal(await made.ask(own('ann', 1), token('ann-again')), 'ann-again');
  t.equal(await made.ask(own('new', 1), token('for-new')), 'for-new');
  t.equal(await made.ask(own('odd', 1), token('no')), 'away 60', 'and this one by itself');
});

t.test('the issuer is left alone by all once it failed for two tokens that it took before', async (t) => {
  const made = exchange();
  for (const name of ['ann', 'bob', 'cat']) await made.ask(own(name, 1), token(`for-${name}`));
  made.advance(211_000);
  await made.ask(own('ann', 1), fails);
  await made.ask(own('ann', 1), fails);
  t.equal(await made.ask(own('cat', 2), token('cat-again')), 'cat-again', 'one says nothing');
  made.advance(1_000);
  await made.ask(own('ann', 1), fails);
  await made.ask(own('bob', 1), fails);
  t.equal(await made.ask(own('cat', 3), token('had')), 'had', 'that of the one had failed before');
  const other = exchange();
  for (const name of ['ann', 'bob', 'cat']) await other.ask(own(name, 1), token(`for-${name}`));
  other.advance(211_000);
  await other.ask(own('ann', 1), fails);
  await other.ask(own('bob', 1), fails);
  t.equal(await other.ask(own('cat', 2), token('had')), 'away 1');
});

t.test('an outage for many known callers, whose tokens change: few requests for each go there', async (t) => {
  const made = exchange();
  const callers = Array.from({ length: 100 }, (_, number) => `caller-${String(number)}`);
  /** Each asks once a second, with another token of its own every 300 s. */
  const second = async (at: number, fetched: Parameters<Fetches['end']>[0]): Promise<number> => {
    let served = 0;
    for (const [number, name] of callers.entries()) {
      if ((await made.ask(own(name, Math.floor((at + number) / 300)), fetched)).startsWith('had')) served += 1;
    }
    made.advance(1_000);
    return served;
  };
  let at = 0;
  for (; at < 240; at += 1) await second(at, token('had'));
  const before = made.asked.length;
  for (; at < 840; at += 1) await second(at, fails);
  const asked = made.asked.length - before;
  t.ok(asked < callers.length * 60, `${String(asked)} of ${String(callers.length * 600)}`);
  t.ok(
    made.lines.some((line) => line.startsWith('no token could be had {')),
    'it is told as one of all',
  );
  for (; at < 871; at += 1) await second(at, token('had'));
  t.equal(await second(at, token('had')), callers.length, 'all are served half a minute after it');
});

t.test('failures that are long apart are not in a row', async (t) => {
  const made = exchange();
  await made.ask('odd', fails);
  made.advance(3_600_000);
  await made.ask('other', fails);
  t.equal(await made.ask('good', token('had')), 'had');
  const apart = exchange();
  await apart.ask('odd', fails);
  apart.advance(10_000);
  await apart.ask('other', fails);
  t.equal(await apart.ask('good', token('had')), 'had');
  const near = exchange();
  await near.ask('odd', fails);
  near.advance(9_999);
  await near.ask('other', fails);
  t.equal(await near.ask('good', token('had')), 'away 1');
});

t.test('a made-up token in the name of another caller does not have that one wait', async (t) => {
  const { ask } = exchange();
  await ask(own('ann', 1), fails);
  t.equal(await ask(own('ann', 1), token('no')), 'away 1');
  t.equal(await ask(own('ann', 2), token('for-ann')), 'for-ann');
  t.equal(await ask(own('ann', 1), token('no')), 'away 1');
});

t.test('a caller waits as long as the longer of the two takes: its own wait, or that of all', async (t) => {
  const { ask, advance } = exchange();
  await ask('ann', failure('away', 60_000, true));
  await ask('bob', fails);
  advance(59_999);
  t.equal(await ask('cat', token('for-cat')), 'for-cat');
  t.equal(await ask('ann', token('for-ann')), 'away 1');
  advance(1);
  t.equal(await ask('ann', token('for-ann')), 'for-ann');
});

t.test('a hundred odd tokens are remembered, and each for five minutes after its wait', async (t) => {
  const { ask, asked, advance } = exchange();
  const long = failure('away', 60_000, true);
  for (let turn = 0; turn < 101; turn += 1) {
    await ask(`odd-${String(turn)}`, long);
    await ask(`good-${String(turn)}`, token(`for-${String(turn)}`));
  }
  await ask('odd-1', long);
  t.equal(asked.length, 202);
  await ask('odd-0', long);
  t.equal(asked.length, 203, 'the oldest was forgotten');
  await ask('good', token('had'));
  advance(360_000);
  await ask('odd-50', fails);
  await ask('odd-60', fails);
  t.equal(await ask('new', token('for-new')), 'away 1', 'both are new again');
});

t.test('an issuer that is dead for everybody is left alone, and one caller with many tokens waits', async (t) => {
  const all = exchange();
  for (let turn = 0; turn < 6_000; turn += 1) {
    await all.ask(`caller-${String(turn)}`, fails);
    all.advance(100);
  }
  t.ok(all.asked.length < 100, String(all.asked.length));
  const one = exchange();
  for (let turn = 0; turn < 6_000; turn += 1) {
    await one.ask(own('ann', turn), fails);
    one.advance(100);
  }
  t.ok(one.asked.length < 2_100, String(one.asked.length));
});
