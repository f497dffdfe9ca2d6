import t from 'tap';
import { linesOf, withstandAll } from './onslaught.js';

t.setTimeout(600_000);

t.test(
  'every attack at once: the process lives, honest callers are served, and everything is given back',
  async (t) => {
    const report = await withstandAll(t, { seconds: 15, restSeconds: 2 });
    for (const line of linesOf(report)) t.comment(line);
    t.ok(report.lives, report.output);
    t.same([...new Set(report.rest.failed)], []);
    t.same([...new Set(report.attacked.failed)], []);
    t.same([...new Set(report.after.failed)], []);
    t.same([...report.readiness.keys()], ['200'], 'it stays ready');
    const told = report.told.join(' ');
    for (const series of ['credential_missing', 'caller_gone', 'body_broken', 'caller_lost']) t.match(told, series);
    t.equal(report.held.length, 2, 'everything was given back');
  },
);
