import t from 'tap';
import { rotateAll, tableOf } from './rotations.js';

t.setTimeout(600_000);

/** Writes a second; fewer where the machine does not carry as many. */
const perSecond = Number(process.env.SALLYPORT_RATE ?? 200);

t.test(
  `files that a config names are replaced under ${perSecond} writes a second, at the cost of one round of errors each`,
  async (t) => {
    const { rotations, restartNeeded } = await rotateAll(t, { perSecond, settleMs: 5_000 });
    for (const row of tableOf(rotations)) t.comment(row);
    for (const { name, failed, rounds, perSecond: begun } of rotations) {
      t.ok(begun > perSecond * 0.95, `${name}: as many writes as were to be: ${String(begun)} a second`);
      t.ok(rounds <= 1 && failed.every(({ atMs }) => atMs < 3_000), `${name}: it is over after one round`);
      if (!name.includes('killed')) t.same(failed.slice(0, 3), [], `${name}: nobody notices`);
    }
    t.same(restartNeeded, ['sessions.api_key'], 'what counts at start only is named');
  },
);
