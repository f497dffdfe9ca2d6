import t from 'tap';
import { memoize } from '../../src/lib/memo.js';

/** Asks for names in turn. Returns those that had to be worked out. */
function workedOut(names: readonly string[], maxNames: number, maxLength: number): readonly string[] {
  const asked: string[] = [];
  const length = memoize(
    (name: string) => {
      asked.push(name);
      return name.length;
    },
    { maxNames, maxLength },
  );
  for (const name of names) t.equal(length(name), name.length, name);
  return asked;
}

const rows: { name: string; names: readonly string[]; expected: readonly string[] }[] = [
  { name: 'each name once', names: ['a', 'b', 'a', 'b'], expected: ['a', 'b'] },
  { name: 'as many as may be', names: ['a', 'b', 'c', 'a', 'b', 'c'], expected: ['a', 'b', 'c'] },
  {
    name: 'one more: all are forgotten but the last',
    names: ['a', 'b', 'c', 'd', 'd', 'a', 'b', 'd'],
    expected: ['a', 'b', 'c', 'd', 'a', 'b'],
  },
  { name: 'as long as may be', names: ['four', 'four'], expected: ['four'] },
  { name: 'longer: worked out each time', names: ['fiver', 'fiver'], expected: ['fiver', 'fiver'] },
  { name: 'longer ones take no room', names: ['a', 'b', 'c', 'fiver', 'a'], expected: ['a', 'b', 'c', 'fiver'] },
];

t.test('what is remembered of names that callers make up has an end', (t) => {
  for (const { name, names, expected } of rows) t.same(workedOut(names, 3, 4), expected, name);
  t.end();
});
