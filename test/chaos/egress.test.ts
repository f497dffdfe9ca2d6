import t from 'tap';
import { callThroughChaos, linesOf } from './egress.js';
import { toldBy, whatIsWrong, type CallerAnswer } from './egress-ledger.js';

// That of the file, which is half a minute otherwise, as well as that of its tests.
t.setTimeout(240_000);

const none: CallerAnswer = { status: null, proxyStatus: '', failure: null, attempts: 0 };
const ours = { proxyStatus: 'sallyport; error=connection_refused' };

/** Answers, how often the write ran, and what is wrong with that. */
const judged: readonly (readonly [Partial<CallerAnswer>, number, string | null])[] = [
  [{ status: 201 }, 1, null],
  [{ status: 201 }, 0, 'told as done, and it did not happen'],
  [{ status: 201 }, 2, 'a write ran twice'],
  [{ status: 503, ...ours }, 0, null],
  [{ status: 503, ...ours }, 1, 'told as not applied, and it happened'],
  [{ status: 503 }, 1, null],
  [{ failure: 'refused' }, 1, 'told as not applied, and it happened'],
  [{ failure: 'broken' }, 1, null],
  [{ status: 502, ...ours }, 0, null],
  [{ status: 504 }, 2, 'a write ran twice'],
  [{ status: 409, ...ours }, 1, null],
  [{ status: 500, ...ours }, 0, 'an answer that says nothing'],
];

t.test('what is wrong is seen', (t) => {
  for (const [answer, runs, expected] of judged) {
    t.equal(whatIsWrong({ ...none, ...answer }, runs), expected, `${JSON.stringify(answer)}, ${String(runs)}`);
  }
  t.end();
});

t.test(
  'callers without token and key are told the truth about each write, whatever is killed, cut or late',
  { timeout: 240_000 },
  async (t) => {
    const report = await callThroughChaos(t, { writes: 400 });
    for (const line of linesOf(report)) t.comment(line);
    t.same(report.violations, []);
    t.equal(report.writes.length, 400);
    const done = report.writes.filter(({ answer }) => toldBy(answer) === 'done');
    t.ok(done.length > 40, 'writes come through');
    t.ok(
      done.some(({ answer }) => answer.attempts > 1),
      'and some writes took more than one attempt',
    );
    t.ok(report.faults.length > 5, 'though much went wrong');
  },
);

t.test(
  'tokens that end, keys that rotate and keys that are revoked cost no write of both sides',
  { timeout: 240_000 },
  async (t) => {
    const report = await callThroughChaos(t, { writes: 500, callers: 6, kinds: ['tokens'] });
    for (const line of linesOf(report)) t.comment(line);
    t.same(report.violations, []);
    // The other service has failures of its own.
    const orders = report.writes.filter(({ target }) => target === 'orders');
    t.ok(orders.length > 0);
    t.same(
      orders.filter(({ answer }) => answer.status !== 201),
      [],
      `each is 201; faults by seconds: ${report.faults
        .map(({ name, fromS, toS }) => `${name} ${fromS.toFixed(1)} to ${toS.toFixed(1)}`)
        .join(', ')}`,
    );
    t.ok(report.faults.length > 2);
    t.ok(report.fetches <= report.seconds / 5 + report.faults.length, 'a handful of tokens');
  },
);
