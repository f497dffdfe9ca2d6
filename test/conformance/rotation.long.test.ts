import t from 'tap';
import { rotateUnderLoad } from './rotation.js';

t.setTimeout(300_000);

t.test(
  '10,000 requests while keys rotate every second: none wrongly refused, none accepted once its key has left',
  async (t) => {
    const report = await rotateUnderLoad(t, { requests: 10_000, durationMs: 60_000, rotateEvery: '1s' });
    t.same([report.wronglyRefused, report.wronglyAccepted], [[], []]);
    t.equal(report.accepted + report.refused, 10_000);
    t.ok(report.keys >= 20, `${String(report.keys)} keys signed`);
    t.ok(report.refused > 100, `${String(report.refused)} tokens whose key had left`);
    t.comment(JSON.stringify({ ...report, wronglyRefused: 0, wronglyAccepted: 0 }));
  },
);
