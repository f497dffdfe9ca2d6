import t from 'tap';
import { rotateAll } from './rotations.js';

t.test(
  'every file that a config names is replaced under 200 writes a second, and costs one round of errors at most',
  { timeout: 300_000 },
  async (t) => {
    const rotations = await rotateAll(t, { perSecond: 200, settleMs: 5_000 });
    for (const { name, writes, failed } of rotations) {
      const lastMs = Math.round(Math.max(0, ...failed.map(({ atMs }) => atMs)));
      const kinds = [...new Set(failed.map(({ outcome }) => outcome))].join(' ');
      t.comment(
        `${name}: ${String(writes)} writes, ${String(failed.length)} failed${failed.length === 0 ? '' : ` (${kinds}) within ${String(lastMs)} ms`}`,
      );
      t.ok(writes > 0, name);
      t.ok(lastMs < 3_000, `${name}: it is over after one round`);
      if (!name.includes('killed')) t.equal(failed.length, 0, `${name}: nobody notices`);
    }
  },
);
