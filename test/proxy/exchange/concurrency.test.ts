import t from 'tap';
import { createSlots, holderOf, strangers } from '../../../src/proxy/exchange/concurrency.js';

t.test('there are as many slots as were asked for, and each is given back once', (t) => {
  const slots = createSlots(2);
  const first = slots.take('a caller');
  const second = slots.take('a caller');
  t.ok(first !== null && second !== null);
  t.equal(slots.take('a caller'), null);
  t.equal(slots.take(strangers), null);
  first?.();
  first?.();
  t.equal(slots.taken(), 1);
  t.not(slots.take('a caller'), null);
  t.equal(slots.take('a caller'), null);
  t.end();
});

t.test('public requests take three quarters at most, rounded up', (t) => {
  for (const { max, open } of [
    { max: 1, open: 1 },
    { max: 2, open: 2 },
    { max: 4, open: 3 },
    { max: 8, open: 6 },
    { max: 512, open: 384 },
  ]) {
    const slots = createSlots(max);
    let taken = 0;
    while (slots.take(strangers) !== null) taken += 1;
    t.equal(taken, open, String(max));
    for (let i = open; i < max; i++) t.not(slots.take('a caller'), null, 'the rest is for callers with a credential');
    t.equal(slots.take('a caller'), null);
  }
  t.end();
});

t.test('a caller takes seven eighths at most, and 16 in any case', (t) => {
  for (const [max, own] of [
    [1, 1],
    [4, 4],
    [16, 16],
    [18, 16],
    [24, 21],
    [512, 448],
  ] as const) {
    const slots = createSlots(max);
    const taken = [];
    for (let slot = slots.take('one'); slot !== null; slot = slots.take('one')) taken.push(slot);
    t.equal(taken.length, own, String(max));
    for (let i = own; i < max; i++) t.not(slots.take(`other ${String(i)}`), null, 'the rest is for others');
    t.equal(slots.take('other'), null);
    for (const leave of [...taken, ...taken]) leave();
    t.equal(slots.taken(), max - own);
    t.not(slots.take('one'), null, 'what was given back may be taken again');
  }
  t.end();
});

t.test('a caller is who it says it is, whatever token it shows; on public routes everybody is a stranger', (t) => {
  const [open, closed] = [{ access: 'public' }, { access: 'protected' }] as const;
  const caller = { kind: 'service', issuer: 'https://a.example', subject: 'checkout' } as const;
  const holders = [
    holderOf({ principal: caller, route: closed }),
    holderOf({ principal: { ...caller, subject: 'other' }, route: closed }),
    holderOf({ principal: { ...caller, issuer: 'https://b.example' }, route: closed }),
    holderOf({ principal: { ...caller, kind: 'session' }, route: closed }),
  ];
  t.equal(new Set(holders).size, holders.length);
  t.equal(holderOf({ principal: { ...caller }, route: closed }), holders[0]);
  t.equal(holderOf({ principal: null, route: closed }), strangers);
  t.equal(holderOf({ principal: caller, route: open }), strangers);
  t.end();
});
