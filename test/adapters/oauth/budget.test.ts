import t from 'tap';
import { createBudget } from '../../../src/adapters/oauth/budget.js';
import { asker } from './introspector-harness.js';

/** How many questions pass of so many from these addresses in turn, at one moment. */
function passing(budget: ReturnType<typeof createBudget>, count: number, address: (index: number) => string): number {
  let passed = 0;
  for (let index = 0; index < count; index += 1) if (budget.take(asker(address(index)), 0) !== null) passed += 1;
  return passed;
}

const hex = (index: number): string => index.toString(16);

t.test('what one place may ask at once, of 5 a second for one address and 20 for all', (t) => {
  const rows: { name: string; address: (index: number) => string; expected: number }[] = [
    { name: 'one address', address: () => '192.0.2.1', expected: 25 },
    { name: 'one /64', address: (index) => `2001:db8:1:2::${hex(index)}`, expected: 25 },
    { name: 'one /48', address: (index) => `2001:db8:1:${hex(index)}::1`, expected: 50 },
    { name: 'several /48', address: (index) => `2001:db8:${hex(index)}::1`, expected: 100 },
    { name: 'several addresses', address: (index) => `198.51.100.${String(index % 250)}`, expected: 100 },
    { name: 'networks of one organisation', address: (index) => `fd00:1:2:${hex(index)}::1`, expected: 100 },
    {
      name: 'addresses behind a translator',
      address: (index) => `64:ff9b::198.51.100.${String(index)}`,
      expected: 100,
    },
  ];
  for (const { name, address, expected } of rows) {
    t.equal(passing(createBudget(20, 5), 200, address), expected, name);
  }
  t.end();
});

t.test('a /48 that asks without end leaves others theirs, and none of its networks begins anew', (t) => {
  const budget = createBudget(20, 5);
  t.equal(
    passing(budget, 60_000, (index) => `2001:db8:1:${hex(index)}::1`),
    50,
  );
  t.equal(
    passing(budget, 30, () => '192.0.2.1'),
    25,
  );
  t.equal(
    passing(budget, 30, () => '2001:db8:2::1'),
    25,
  );
  t.end();
});

t.test('who has used up its own does not begin anew because a /48 sends from many networks', (t) => {
  const budget = createBudget(1_000, 5);
  t.equal(
    passing(budget, 30, () => '192.0.2.1'),
    25,
  );
  passing(budget, 60_000, (index) => `2001:db8:1:${hex(index)}::1`);
  t.equal(
    passing(budget, 30, () => '192.0.2.1'),
    0,
  );
  t.end();
});

t.test('a good question is given back everywhere', (t) => {
  const budget = createBudget(20, 5);
  for (let index = 0; index < 500; index += 1) {
    const refund = budget.take(asker('2001:db8:1:2::1'), 0);
    t.ok(refund);
    refund?.();
  }
  t.equal(
    passing(budget, 200, (index) => `2001:db8:1:${hex(index)}::1`),
    50,
  );
  t.end();
});

t.test('the budget of a /48 fills again with time', (t) => {
  const budget = createBudget(20, 5);
  passing(budget, 60, (index) => `2001:db8:1:${hex(index)}::1`);
  t.equal(budget.take(asker('2001:db8:1:ff::1'), 99), null);
  t.ok(budget.take(asker('2001:db8:1:ff::1'), 100));
  t.equal(budget.take(asker('2001:db8:1:ff::1'), 100), null);
  t.end();
});
