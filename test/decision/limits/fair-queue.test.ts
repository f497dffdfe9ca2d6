import fc from 'fast-check';
import t from 'tap';
import { createFairQueue, type FairQueue, type Waiting } from '../../../src/decision/limits/fair-queue.js';

interface Named extends Waiting {
  readonly name: string;
}

const left = new Set<string>();

/** `a/x1` is of network x in site a. */
function item(name: string): Named {
  const [site = '', own = ''] = name.replace(/[0-9]+$/, '').split('/');
  return { name, networks: { site, own: `${site}/${own}` }, isGone: () => left.has(name) };
}

/** What became of each that entered: `in`, `out`, or who lost its place. */
function enterAll(queue: FairQueue<Named>, names: string): string {
  return names
    .split(' ')
    .map((name) => {
      const { entered, ousted } = queue.enter(item(name));
      return entered ? (ousted?.name ?? 'in') : 'out';
    })
    .join(' ');
}

function turns(queue: FairQueue<Named>): string {
  const names: string[] = [];
  for (let next = queue.next(); next !== null; next = queue.next()) names.push(next.name);
  return names.join(' ');
}

t.test('who gets in, and who loses its place', (t) => {
  const rows = [
    { name: 'up to the bound', before: 'a/x1 a/x2 a/x3', enter: 'a/x4 a/x5', expected: 'in out' },
    {
      name: 'another site than the one that holds most',
      before: 'a/x1 a/x2 a/x3 a/x4',
      enter: 'b/x1',
      expected: 'a/x4',
    },
    {
      name: 'until both have as much',
      before: 'a/x1 a/x2 a/x3 a/x4',
      enter: 'b/x1 b/x2 b/x3',
      expected: 'a/x4 a/x3 out',
    },
    {
      name: 'a site is counted by all of its networks',
      before: 'a/w1 a/x1 a/y1 a/z1',
      enter: 'b/x1 b/x2 b/x3',
      expected: 'a/w1 a/x1 out',
    },
    { name: 'in a site the network that holds most', before: 'a/x1 a/y1 a/y2 a/y3', enter: 'b/x1', expected: 'a/y3' },
    {
      name: 'its own site, where one network holds most',
      before: 'a/x1 a/x2 a/x3 b/x1',
      enter: 'a/y1',
      expected: 'a/x3',
    },
    { name: 'and not for one that has as much', before: 'a/x1 a/x2 a/y1 b/x1', enter: 'a/y2', expected: 'out' },
    { name: 'none of a site that is one ahead', before: 'a/x1 a/x2 b/x1 c/x1', enter: 'b/x2', expected: 'out' },
    { name: 'as many sites as places', before: 'a/x1 b/x1 c/x1 d/x1', enter: 'e/x1', expected: 'out' },
  ];
  for (const { name, before, enter, expected } of rows) {
    const queue = createFairQueue<Named>(4);
    enterAll(queue, before);
    t.equal(enterAll(queue, enter), expected, name);
    t.equal(queue.size(), 4, name);
  }
  t.end();
});

t.test('who left gives way first', (t) => {
  const queue = createFairQueue<Named>(3);
  enterAll(queue, 'a/x1 b/x1 c/x1');
  t.equal(enterAll(queue, 'd/x1'), 'out');
  left.add('b/x1');
  t.equal(enterAll(queue, 'd/x1'), 'b/x1');
  t.equal(turns(queue), 'a/x1 c/x1 d/x1');
  left.clear();
  t.end();
});

t.test('sites take turns, and networks within a site', (t) => {
  const queue = createFairQueue<Named>(100);
  enterAll(queue, 'a/x1 a/x2 a/y1 a/y2 a/y3 b/x1 b/x2 c/x1');
  t.equal(turns(queue), 'a/x1 b/x1 c/x1 a/y1 b/x2 a/x2 a/y2 a/y3');
  t.equal(queue.next(), null);
  t.equal(queue.size(), 0);
  t.end();
});

t.test('what is taken out gives its place back', (t) => {
  const queue = createFairQueue<Named>(3);
  enterAll(queue, 'a/x1 a/x2 b/x1');
  t.same(
    queue.takeAll(({ name }) => name.endsWith('1')).map(({ name }) => name),
    ['a/x1', 'b/x1'],
  );
  t.equal(enterAll(queue, 'c/x1 d/x1'), 'in in');
  t.equal(turns(queue), 'a/x2 c/x1 d/x1');
  t.end();
});

t.test('who leaves gives its place back, and only its own', (t) => {
  const queue = createFairQueue<Named>(2);
  const [first, second] = [item('a/x1'), item('a/x2')];
  queue.enter(first);
  queue.enter(second);
  for (const never of ['a/x3', 'a/y1', 'b/x1']) queue.leave(item(never));
  t.equal(queue.size(), 2, 'those that were never there');
  queue.leave(first);
  queue.leave(first);
  t.equal(queue.size(), 1);
  t.equal(enterAll(queue, 'a/x4 a/x5'), 'in out');
  t.equal(turns(queue), 'a/x2 a/x4');
  t.end();
});

t.test('whatever comes, nothing is lost, nothing counted twice, and the bound holds', (t) => {
  const names = fc.array(fc.constantFrom('a/x', 'a/y', 'b/x', 'c/x', 'c/y', 'next'), { maxLength: 60 });
  fc.assert(
    fc.property(names, (steps) => {
      const queue = createFairQueue<Named>(5);
      const inside = new Set<string>();
      for (const [index, step] of steps.entries()) {
        if (step === 'next') {
          const next = queue.next();
          if (next === null ? inside.size > 0 : !inside.delete(next.name)) return false;
        } else {
          const name = `${step}${String(index)}`;
          const { entered, ousted } = queue.enter(item(name));
          if (entered) inside.add(name);
          if (ousted !== null && !inside.delete(ousted.name)) return false;
        }
        if (queue.size() !== inside.size || inside.size > 5) return false;
      }
      return queue.takeAll(() => true).every(({ name }) => inside.delete(name)) && inside.size === 0;
    }),
  );
  t.end();
});
