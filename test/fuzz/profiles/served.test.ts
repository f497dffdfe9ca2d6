import t from 'tap';
import { runSeed } from '../draw.js';
import { runServed } from './served.js';

t.comment(`SALLYPORT_SEED=${String(runSeed)}`);

t.test('a running proxy judges tokens of every profile as the model does', async (t) => {
  const reports = await Promise.all([0, 1, 2].map(async (number) => runServed(t, runSeed, number, 150)));
  t.same(
    reports.flatMap(({ faults }) => faults),
    [],
  );
  t.ok(reports.every(({ cases, forwarded, refused }) => forwarded + refused > cases / 2));
});
