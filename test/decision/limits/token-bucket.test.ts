import t from 'tap';
import { TokenBucket } from '../../../src/decision/limits/token-bucket.js';

t.test('so much at once, and more with time and with what is of use', (t) => {
  const bucket = new TokenBucket(3, 2, 0);
  t.same(
    [1, 1, 1, 1].map((amount) => bucket.take(amount, 0)),
    [true, true, true, false],
  );
  t.equal(bucket.take(1, 500), false, 'what was taken beyond it counts');
  t.equal(bucket.take(1, 1_500), true, 'two a second');
  bucket.give(2);
  t.same(
    [1, 1, 1].map((amount) => bucket.take(amount, 1_500)),
    [true, true, false],
  );
  bucket.give(100);
  t.same(
    [3, 1].map((amount) => bucket.take(amount, 1_500)),
    [true, false],
    'never more than at once',
  );
  t.end();
});
