import t from 'tap';
import { attemptHeaders, withAttempts } from '../../../src/decision/egress/attempts.js';

t.test('a caller is told of the attempts, and of nothing that the target says of such', (t) => {
  t.same(attemptHeaders({ count: 1, notRetried: null, key: null }), ['X-Sallyport-Attempts', '1']);
  t.same(
    withAttempts(
      ['A', '1', 'x-sallyport-attempts', '9', 'X-Sallyport-Not-Retried', 'budget', 'X-Sallyport-Idempotency-Key', 'k'],
      { count: 3, notRetried: 'in_doubt', key: 'b' },
    ),
    ['A', '1', 'X-Sallyport-Attempts', '3', 'X-Sallyport-Not-Retried', 'in_doubt', 'X-Sallyport-Idempotency-Key', 'b'],
  );
  t.same(
    withAttempts(['Connection', 'keep-alive, X-Sallyport-Attempts,x-sallyport-not-retried, Other'], {
      count: 1,
      notRetried: null,
      key: null,
    }),
    ['Connection', 'keep-alive, Other', 'X-Sallyport-Attempts', '1'],
    'nor can it have that taken away',
  );
  t.end();
});
