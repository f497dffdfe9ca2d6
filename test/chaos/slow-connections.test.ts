import t from 'tap';
import { usualWorkers } from '../support/proxy-process.js';
import { holdSlow, outlastSlow } from './slow-connections.js';

// Many processes have to be started, each of them with as many workers.
t.setTimeout(30_000 * usualWorkers);

t.test('600 slow connections at once, in bounded memory, and honest callers are served beside them', async (t) => {
  await holdSlow(t, 600, 64 * 1024);
});

t.test(
  '1,200 slow connections where 1,025 are taken: the others are closed, and all of them leave within header_timeout',
  async (t) => {
    await outlastSlow(t, usualWorkers * 1_200);
  },
);
