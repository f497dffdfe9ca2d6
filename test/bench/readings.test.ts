import t from 'tap';
import { fronts } from './readings/fronts.js';
import { harmlessTargets, measureReadings, readingsTable } from './readings/readings.js';
import { receivers } from './readings/receivers.js';

t.setTimeout(120_000);

t.test(
  'nobody comes to /admin through Sallyport, nor by another name; the same requests find others wanting',
  async (t) => {
    const named = <T extends { readonly name: string }>(all: readonly T[], names: readonly string[]): readonly T[] =>
      all.filter(({ name }) => names.includes(name));
    const measured = await measureReadings({
      every: 20,
      only: {
        fronts: named(fronts, ['**Sallyport**', 'nginx, `location`', 'HAProxy, `path_beg`']),
        receivers: named(receivers, ['Express', 'PHP']),
      },
    });
    const [sallyport, nginx, haproxy] = measured.fronts;
    if (sallyport === undefined || nginx === undefined || haproxy === undefined) throw new Error('a front is missing');
    t.ok(measured.targets > 100);
    for (const pair of sallyport.pairs) {
      t.same(pair.let, [], `${pair.receiver}: targets`);
      t.same(pair.believed, [], `${pair.receiver}: names`);
      t.notOk(pair.losesNominated, `${pair.receiver}: the address that was set`);
    }
    t.ok(
      measured.direct.every((pair) => pair.let.length > 5),
      'without a front they do',
    );
    t.ok(nginx.pairs.some((pair) => pair.let.length > 0));
    t.ok(haproxy.pairs.some((pair) => pair.believed.length > 0));
    t.same(nginx.pairs[0]?.refused, []);
    const table = readingsTable(measured);
    t.match(table, `how many of ${String(harmlessTargets.length)} harmless targets`);
    t.match(table, /^\| \*\*Sallyport\*\* \| .* \| 0 \| 0 \| 0 \/ 0 \| 0 \| \d+ \|$/m);
  },
);
