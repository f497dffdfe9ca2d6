import t from 'tap';
import { poison, poisons } from '../poison.js';

t.setTimeout(600_000);

t.test('ten thousand answers that nobody asked for reach no caller', async (t) => {
  for (const way of poisons) {
    const { served, mistaken, other } = await poison(t, way, 2000);
    t.same({ mistaken, other }, { mistaken: 0, other: 0 }, way.name);
    t.ok(served > 1000, `${way.name}: ${String(served)} of 2000 served`);
  }
});
