import t from 'tap';
import { linesOf, restartUnderLoad } from './restarts.js';

// That of the file, which is half a minute otherwise, as well as that of its tests.
t.setTimeout(1_200_000);

/** `SALLYPORT_REQUESTS=20000 SALLYPORT_DELAY=0s node .build/test/chaos/restarts.long.test.js` */
const { SALLYPORT_REQUESTS: requests = '20000', SALLYPORT_DELAY: delay = '0s' } = process.env;

t.test('20 ends and 60 reloads leave no request without a response', { timeout: 1_200_000 }, async (t) => {
  const report = await restartUnderLoad(t, { restarts: 20, reloadsBetween: 3, requests: Number(requests), delay });
  for (const line of linesOf(report)) t.comment(line);
  t.same(report.lost, []);
  t.same(new Set(report.exits), new Set([0]));
  t.equal(report.ranTwice, 0);
});
