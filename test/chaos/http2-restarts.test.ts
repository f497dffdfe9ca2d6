import t from 'tap';
import { restartOverHttp2 } from './http2-restarts.js';

t.test('over HTTP/2, reloads, a drain and restarts of the upstream leave no request without a word', async (t) => {
  const report = await restartOverHttp2(t, {
    requests: 4_000,
    reloads: 3,
    drains: 1,
    upstreamRestarts: 2,
    sessions: 4,
    streamsPerSession: 10,
  });
  for (const [outcome, count] of report.outcomes) t.comment(`${outcome}: ${count}`);
  t.same(report.lost, []);
  t.same(report.deniedButActed, []);
  t.same(report.claimedButNot, []);
  t.same(report.ranTwice, []);
  t.same(report.exits, [0]);
  t.ok((report.outcomes.get('200') ?? 0) > 3_000);
});
