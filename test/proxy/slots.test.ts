import t from 'tap';
import { createSlots } from '../../src/proxy/slots.js';

t.test('there are as many slots as were asked for, and each is given back once', (t) => {
  const slots = createSlots(2);
  const first = slots.take('protected');
  const second = slots.take('protected');
  t.ok(first !== null && second !== null);
  t.equal(slots.take('protected'), null);
  t.equal(slots.take('public'), null);
  first?.();
  first?.();
  t.equal(slots.taken(), 1);
  t.not(slots.take('protected'), null);
  t.equal(slots.take('protected'), null);
  t.end();
});

t.test('public requests take three quarters at most, rounded up', (t) => {
  for (const { max, open } of [{ max: 1, open: 1 }, { max: 2, open: 2 }, { max: 4, open: 3 }, { max: 8, open: 6 }, { max: 512, open: 384 }]) {
    const slots = createSlots(max);
    let taken = 0;
    while (slots.take('public') !== null) taken += 1;
    t.equal(taken, open, String(max));
    for (let i = open; i < max; i++) t.not(slots.take('protected'), null, 'the rest is for callers with a credential');
    t.equal(slots.take('protected'), null);
  }
  t.end();
});
