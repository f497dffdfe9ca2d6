/** The measurements themselves still work: a fraction of a second on two contenders. */
import t from 'tap';
import { readWrk } from './load.js';
import { measure } from './measure.js';
import { tableOf } from './report.js';
import { median } from './statistics.js';

t.test('measures the contenders in turn and makes a table of it', async (t) => {
  const measured = await measure({
    seconds: 0.2,
    rounds: 1,
    starts: 2,
    connections: 4,
    wrk: false,
    only: ['node:http', 'Sallyport'],
  });
  t.match(
    measured.map(({ name }) => name),
    ['node:http', 'Sallyport'],
  );
  for (const { name, requestsPerS, cpuUsOfRounds } of measured) {
    t.ok(requestsPerS > 0, name);
    t.equal(cpuUsOfRounds.length, 2, 'a round of each start');
  }
  t.match(tableOf(measured), /^\| proxy \|.*\n\| --- \|.*\n\| node:http \| answers by itself \|/);
});

t.test('refuses a contender that there is not', async (t) => {
  const settings = { seconds: 0.2, rounds: 1, connections: 4, wrk: false, only: ['node:http', 'Sallyport, before'] };
  await t.rejects(measure(settings), { message: /^no such contender: Sallyport, before; there are node:http; / });
});

t.test('reads what wrk prints', (t) => {
  const output = [
    '  Thread Stats   Avg      Stdev     Max   +/- Stdev',
    '  Latency Distribution',
    '     50%    1.50ms',
    '     75%    2.00ms',
    '     90%    3.00ms',
    '     99%  900.00us',
    '  12345 requests in 2.00s, 2.84MB read',
    '  Socket errors: connect 0, read 1, write 0, timeout 2',
    '  Non-2xx or 3xx responses: 4',
    'Requests/sec:   6172.50',
  ].join('\n');
  t.same(readWrk(output, 9), { requests: 12345, refused: 4, broken: 3, seconds: 2, medianMs: 1.5, slowMs: 0.9 });
  t.end();
});

t.test('takes medians', (t) => {
  t.same([median([3, 1, 2]), median([4, 1, 2, 3]), median([])], [2, 2.5, 0]);
  t.end();
});
