import t from 'tap';
import { soak } from './soak.js';

t.test('load, attacks, a reload, a rotation and a crash at once: no wrong decision and no double run', async (t) => {
  await soak(t, { seconds: 3, pauseMs: 200, warmUp: 0, failOvers: false });
});
