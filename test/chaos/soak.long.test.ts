import t from 'tap';
import { soak } from './soak.js';

const minutes = Number(process.env['SALLYPORT_SOAK_MINUTES'] ?? '2');

t.setTimeout((minutes + 5) * 60_000);

t.test(
  `load, attacks, reloads, rotations, fail-overs and crashes for ${String(minutes)} minutes: no wrong decision, no double run, memory flat`,
  async (t) => {
    t.setTimeout((minutes + 5) * 60_000);
    await soak(t, { seconds: minutes * 60, pauseMs: Math.min(4_000, minutes * 1_000), warmUp: 0.15, failOvers: true });
  },
);
