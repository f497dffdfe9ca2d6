import t from 'tap';
import { capacityOf, overload } from './overload.js';

const serviceMs = 100;

t.test(
  '10 times what the upstream can take: it is used all the time, who floods is refused, and another caller is served',
  async (t) => {
    const [report] = await overload(
      t,
      [{ name: '10 times', times: 10, seconds: 4, connections: 'kept', shares: [0.99, 0.01] }],
      { serviceMs },
    );
    const [flood, other] = report?.callers ?? [];
    if (report === undefined || flood === undefined || other === undefined) throw new Error('no report');
    t.ok(report.lives);
    t.same([other.unanswered, flood.others, other.others], [[], {}, {}]);
    const served = flood.admitted.length + other.admitted.length;
    t.ok(served > (capacityOf(serviceMs) * 4) / 2, `${String(served)} were served`);
    t.ok(flood.refused.length > flood.admitted.length);
    t.ok(other.refused.length * 10 < other.admitted.length, `${String(other.refused.length)} refused`);
  },
);
