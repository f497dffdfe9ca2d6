import fc from 'fast-check';
import t from 'tap';
import { IdleQueue } from '../../../../src/proxy/upstream/pool/idle-queue.js';

/** What is done to a queue; `remove` by the place of what is removed among all that ever came. */
type Step = 'push' | 'shift' | 'takeAll' | { readonly remove: number };

void t.test('it is a queue: whatever is pushed, shifted, removed and taken out, it says the same as an array', (t) => {
  const step = fc.oneof<fc.Arbitrary<Step>[]>(
    fc.constant('push'),
    fc.constant('push'),
    fc.constant('push'),
    fc.constant('shift'),
    fc.record({ remove: fc.nat(200) }),
  );
  fc.assert(
    fc.property(
      fc.array(fc.oneof({ weight: 60, arbitrary: step }, { weight: 1, arbitrary: fc.constant<Step>('takeAll') }), {
        minLength: 1,
        maxLength: 400,
        size: 'max',
      }),
      (steps) => {
        const queue = new IdleQueue<{ readonly number: number }>();
        const model: { readonly number: number }[] = [];
        const pushed: { readonly number: number }[] = [];
        for (const done of steps) {
          if (done === 'push') {
            const item = { number: pushed.length };
            pushed.push(item);
            queue.push(item);
            model.push(item);
          } else if (done === 'shift') {
            if (queue.shift() !== (model.shift() ?? null)) return false;
          } else if (done === 'takeAll') {
            if (queue.takeAll().some((item, i) => item !== model[i])) return false;
            model.length = 0;
          } else {
            const gone = pushed[done.remove % Math.max(pushed.length, 1)] ?? { number: -1 };
            const index = model.indexOf(gone);
            if (queue.remove(gone) !== index) return false;
            if (index >= 0) model.splice(index, 1);
          }
          if (queue.length !== model.length) return false;
          if (model.some((item, i) => queue.at(i) !== item) || queue.at(model.length) !== null) return false;
        }
        return true;
      },
    ),
    { numRuns: 200 },
  );
  t.pass('200 runs of up to 400 steps each');
  t.end();
});

void t.test('it grows beyond its first room, also where it has gone round', (t) => {
  const queue = new IdleQueue<{ readonly number: number }>();
  for (let number = 0; number < 50; number += 1) queue.push({ number });
  for (let number = 0; number < 40; number += 1) t.equal(queue.shift()?.number, number);
  for (let number = 50; number < 300; number += 1) queue.push({ number });
  t.equal(queue.length, 260);
  t.same(
    queue.takeAll().map(({ number }) => number),
    Array.from({ length: 260 }, (_, index) => index + 40),
  );
  t.equal(queue.shift(), null);
  t.end();
});
