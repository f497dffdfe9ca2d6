import t from 'tap';
import { compare } from '../undici-comparison.js';

t.setTimeout(300_000);

t.test('what we take of an upstream undici takes for the same, thirty thousand times', async (t) => {
  const rounds = 15;
  for (let seed = 100; seed < 100 + rounds; seed++) {
    t.same((await compare(t, 2_000, seed)).wrong, [], `seed ${String(seed)}`);
  }
});
