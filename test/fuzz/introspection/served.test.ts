import t from 'tap';
import { runSeed } from '../draw.js';
import { runServedAnswers } from './served.js';

t.comment(`SALLYPORT_SEED=${String(runSeed)}`);

t.test('a running proxy judges answers about opaque tokens as the model does, over HTTP and HTTPS', async (t) => {
  const reports = await Promise.all([0, 1].map(async (number) => runServedAnswers(t, runSeed, number, 40)));
  t.same(
    reports.flatMap(({ faults }) => faults),
    [],
  );
  t.ok(reports.every(({ cases, forwarded, refused }) => forwarded + refused > cases / 2));
});
