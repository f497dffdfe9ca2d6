import t from 'tap';
import { holdSlow, outlastSlow } from './slow-connections.js';

t.setTimeout(300_000);

t.test('10,000 slow connections at once, in bounded memory, and honest callers are served beside them', async (t) => {
  await holdSlow(t, 10_000, 24 * 1024);
});

t.test(
  '10,000 slow connections where 1,025 are taken: the others are closed, and all of them leave within header_timeout',
  async (t) => {
    await outlastSlow(t, 10_000);
  },
);
