import t from 'tap';
import type { OpenConnection } from '../../../src/ports/auth.js';
import { createCoreQuestions } from '../../../src/adapters/session/core-questions.js';

interface Asked {
  readonly put: (token: string, user: string, again?: OpenConnection) => Promise<string> | 'full' | 'share';
  readonly close: () => void;
  /** Tokens that were asked about. */
  readonly tokens: readonly string[];
  /** Answers the oldest question about this token. */
  readonly answer: (token: string, answer: string) => Promise<void>;
}

function questions(mayChange: boolean): Asked {
  const tokens: string[] = [];
  const open: { readonly token: string; readonly resolve: (answer: string) => void }[] = [];
  const { put, close } = createCoreQuestions<string>(
    (token) => {
      tokens.push(token);
      const answer = new Promise<string>((resolve) => open.push({ token, resolve }));
      return { answer, over: answer };
    },
    mayChange,
    'not asked',
    { maxAsking: 8, maxOfUser: 2, maxAgain: 3 },
  );
  return {
    put: (token, user, again) => put(token, { user, expiresAtMs: Infinity, again: again ?? null }),
    close,
    tokens,
    answer: async (token, answer) => {
      const [found] = open.splice(
        open.findIndex((question) => question.token === token),
        1,
      );
      found?.resolve(answer);
      await new Promise((resolve) => setImmediate(resolve));
    },
  };
}

const stillOpen: OpenConnection = { isGone: () => false };

async function answerOf(put: Promise<string> | string): Promise<string> {
  return put;
}

t.test('one user has a share, and others are asked about', async (t) => {
  const { put, tokens, answer } = questions(false);
  const first = put('a-1', 'ann');
  void put('a-2', 'ann');
  t.equal(put('a-3', 'ann'), 'share');
  for (const name of ['b', 'c', 'd', 'e', 'f', 'g']) t.type(put(name, name), Promise);
  t.equal(put('h', 'h'), 'full');
  await answer('a-1', 'yes');
  t.equal(await first, 'yes');
  t.type(put('a-3', 'ann'), Promise);
  t.equal(put('h', 'h'), 'full');
  t.equal(tokens.length, 9);
});

t.test('who comes meanwhile gets the same answer, where it does not change', async (t) => {
  const { put, tokens, answer } = questions(false);
  const all = Promise.all([answerOf(put('a', 'ann')), answerOf(put('a', 'ann')), answerOf(put('a', 'ann', stillOpen))]);
  await answer('a', 'yes');
  t.same(await all, ['yes', 'yes', 'yes']);
  t.same(tokens, ['a']);
  void put('a', 'ann');
  t.same(tokens, ['a', 'a']);
});

t.test('where it may, all who come meanwhile get one that was asked for after they came', async (t) => {
  const { put, tokens, answer } = questions(true);
  const first = answerOf(put('a', 'ann'));
  const others = [answerOf(put('a', 'ann')), answerOf(put('a', 'ann'))];
  t.same(tokens, ['a']);
  await answer('a', 'yes');
  t.same(tokens, ['a', 'a']);
  const last = answerOf(put('a', 'ann'));
  await answer('a', 'no');
  await answer('a', 'still no');
  t.same(await Promise.all([first, ...others, last]), ['yes', 'no', 'no', 'still no']);
  t.same(tokens, ['a', 'a', 'a']);
});

t.test('what is asked again waits for its turn, in some of the places, and of each user in a share', async (t) => {
  const { put, tokens, answer } = questions(false);
  const again = ['a-1', 'a-2', 'a-3', 'b', 'c', 'c'].map((token) => answerOf(put(token, token.slice(0, 1), stillOpen)));
  t.same(tokens, ['a-1', 'a-2', 'b'], 'three places');
  for (const name of ['d', 'e', 'f', 'g', 'h']) t.type(put(name, name), Promise);
  t.equal(put('i', 'i'), 'full');
  await answer('b', 'of b');
  t.same(tokens.slice(-1), ['c'], 'the third of one user waits for that one');
  await answer('a-1', 'of a-1');
  t.same(tokens.slice(-1), ['a-3']);
  for (const token of ['a-2', 'a-3', 'c']) await answer(token, `of ${token}`);
  t.same(await Promise.all(again), ['of a-1', 'of a-2', 'of a-3', 'of b', 'of c', 'of c']);
  t.type(put('i', 'i'), Promise, 'the places are free');
});

t.test('a request about a session that waits for its turn answers that, too', async (t) => {
  const { put, tokens, answer } = questions(false);
  const again = ['a', 'b', 'c', 'd'].map((token) => answerOf(put(token, token, stillOpen)));
  const request = put('d', 'd');
  t.same(tokens, ['a', 'b', 'c', 'd']);
  await answer('d', 'yes');
  t.same([await again[3], await request], ['yes', 'yes']);
  t.equal(tokens.length, 4);
});

t.test('what all connections that wait for it have given up is not asked', async (t) => {
  const { put, tokens, answer } = questions(false);
  const gone = new Set<string>();
  const connection = (name: string): OpenConnection => ({ isGone: () => gone.has(name) });
  for (const token of ['a', 'b', 'c']) void put(token, token, stillOpen);
  const left = answerOf(put('left', 'd', connection('first')));
  const shared = [
    answerOf(put('shared', 'e', connection('second'))),
    answerOf(put('shared', 'e', connection('third'))),
  ];
  gone.add('first').add('second');
  await answer('a', 'yes');
  t.same(tokens, ['a', 'b', 'c', 'shared']);
  t.equal(await left, 'not asked');
  await answer('shared', 'yes');
  t.same(await Promise.all(shared), ['yes', 'yes']);
  t.equal(tokens.length, 4);
});

t.test('nothing is asked once it is closed', async (t) => {
  const { put, close, tokens, answer } = questions(true);
  const first = answerOf(put('a', 'a', stillOpen));
  for (const token of ['b', 'c']) void put(token, token, stillOpen);
  const waiting = [answerOf(put('d', 'd', stillOpen)), answerOf(put('a', 'a'))];
  close();
  t.same(await Promise.all(waiting), ['not asked', 'not asked']);
  await answer('a', 'yes');
  t.equal(await first, 'yes');
  t.equal(await put('e', 'e'), 'not asked');
  t.same(tokens, ['a', 'b', 'c']);
});

t.test('an answer may come before its question is over, which keeps its place until then', async (t) => {
  let end = (): void => undefined;
  const over = new Promise<void>((resolve) => (end = resolve));
  const { put } = createCoreQuestions(() => ({ answer: Promise.resolve('late'), over }), false, 'not asked', {
    maxAsking: 1,
    maxOfUser: 1,
    maxAgain: 1,
  });
  const asker = { user: 'a', expiresAtMs: Infinity, again: null };
  t.equal(await put('a', asker), 'late');
  t.equal(put('b', asker), 'full');
  end();
  await new Promise((resolve) => setImmediate(resolve));
  t.equal(await put('b', asker), 'late');
});
