import t from 'tap';
import { UnorderedList, type Listed } from '../../src/proxy/unordered-list.js';

interface Named extends Listed {
  readonly name: string;
}

function named(name: string): Named {
  return { name, place: -1 };
}

function namesOf(list: UnorderedList<Named>): readonly string[] {
  return [...list].map(({ name }) => name).sort();
}

t.test('what was added is in it until it is deleted', (t) => {
  const list = new UnorderedList<Named>();
  const [a, b, c] = [named('a'), named('b'), named('c')] as const;
  for (const one of [a, b, c, b]) list.add(one);
  t.same([list.size, namesOf(list)], [3, ['a', 'b', 'c']], 'once');

  list.delete(a);
  list.delete(a);
  list.delete(named('d'));
  t.same([list.size, namesOf(list), list.has(a), list.has(b)], [2, ['b', 'c'], false, true]);

  list.delete(c);
  list.delete(b);
  t.same([list.size, namesOf(list)], [0, []]);

  list.add(a);
  t.same([list.has(a), namesOf(list)], [true, ['a']], 'it may come again');
  t.end();
});

t.test('what is deleted while it is gone through is told, and nothing is left out', (t) => {
  const list = new UnorderedList<Named>();
  for (const name of ['a', 'b', 'c', 'd']) list.add(named(name));
  const told: string[] = [];
  for (const one of list) {
    told.push(one.name);
    list.delete(one);
  }
  t.same(told.sort(), ['a', 'b', 'c', 'd']);
  t.equal(list.size, 0);
  t.end();
});

t.test('any sequence leaves what a Set would', (t) => {
  const all = Array.from({ length: 12 }, (_, i) => named(String(i)));
  const [list, set] = [new UnorderedList<Named>(), new Set<Named>()];
  for (let step = 0; step < 5_000; step += 1) {
    const one = all[Math.floor(Math.random() * all.length)];
    if (one === undefined) continue;
    if (Math.random() < 0.5) {
      list.delete(one);
      set.delete(one);
    } else {
      list.add(one);
      set.add(one);
    }
    if (list.size !== set.size || all.some((each) => list.has(each) !== set.has(each))) t.fail(`step ${String(step)}`);
  }
  t.same(namesOf(list), [...set].map(({ name }) => name).sort());
  t.end();
});
