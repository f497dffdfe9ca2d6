import t from 'tap';
import { restartOverHttp2 } from './http2-restarts.js';

// That of the file, which is half a minute otherwise, as well as that of its test.
t.setTimeout(1_800_000);

t.test(
  '100,000 requests over HTTP/2 across 20 reloads, 5 drains and 5 restarts of the upstream: none without a word',
  { timeout: 1_800_000 },
  async (t) => {
    const report = await restartOverHttp2(t, {
      requests: 100_000,
      reloads: 20,
      drains: 5,
      upstreamRestarts: 5,
      sessions: 8,
      streamsPerSession: 12,
    });
    for (const [outcome, count] of report.outcomes) t.comment(`${outcome}: ${count}`);
    t.same(report.lost, []);
    t.same(report.deniedButActed, []);
    t.same(report.claimedButNot, []);
    t.same(report.ranTwice, []);
    t.same(report.exits, [0, 0, 0, 0, 0]);
  },
);
