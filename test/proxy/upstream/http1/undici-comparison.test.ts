import t from 'tap';
import { compare, differences, startComparison } from '../undici-comparison.js';

t.test('what we take of an upstream undici takes for the same', async (t) => {
  const count = 400;
  const { wrong, taken } = await compare(t, count, 1);
  t.same(wrong, []);
  t.ok(taken > count / 20, `${String(taken)} of ${String(count)} were taken by both`);
});

t.test('where undici reads otherwise, it does', async (t) => {
  const examples = [
    'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok',
    'HTTP/1.1 304 Not Modified\r\nContent-Length: 2\r\n\r\n',
  ];
  const { read } = await startComparison(t);
  t.equal(differences.length, examples.length);
  for (const [i, text] of examples.entries()) {
    t.equal(differences[i]?.applies({ text, method: 'GET' }), true);
    const { ours, theirs } = await read({ text, method: 'GET' });
    t.not(ours, null);
    t.notSame(ours, theirs, differences[i]?.name ?? '');
  }
});
