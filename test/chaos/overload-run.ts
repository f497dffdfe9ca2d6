/**
 * Too much for the upstream, for so many seconds each, 20 unless given: `npm run overload -- SECONDS`. For a machine
 * that does nothing else. Behind it may stand the milliseconds that the upstream takes, the heaps, and a part of a
 * name, which leaves only the loads that have it.
 */
import { scoped } from '../bench/scoped.js';
import { overload, rowsOf, type Load } from './overload.js';

const [seconds = '20', serviceMs = '50', heaps = 'default,96', only = ''] = process.argv.slice(2);
const kept = { seconds: Number(seconds), connections: 'kept' } as const;
const all: readonly Load[] = [
  { name: 'at rest', times: 5 / 16, ...kept },
  { name: 'nearly all', times: 15 / 16, ...kept },
  { name: 'twice as much', times: 2, ...kept },
  { name: '10 times as much, kept connections', times: 10, ...kept },
  { name: '10 times as much, a connection each', times: 10, ...kept, connections: 'fresh' },
  { name: '10 times as much', times: 10, ...kept, shares: [0.985, 0.015] },
  { name: 'reserved writes, at rest', times: 5 / 16, ...kept, writes: true },
  { name: 'reserved writes, 10 times as much', times: 10, ...kept, shares: [0.25, 0.25, 0.25, 0.25], writes: true },
  { name: 'afterwards', times: 5 / 16, ...kept },
];
const loads = all.filter(({ name }) => name.includes(only));
process.stdout.write(
  '| load | heap | 200 | half of them | 99 of 100 | refused | half of them | 99 of 100 | no answer in 8 s | most memory |\n',
);
process.stdout.write('| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n');
for (const heap of heaps.split(',')) {
  const heapMiB = heap === 'default' ? {} : { heapMiB: Number(heap) };
  const reports = await scoped(async (scope) => overload(scope, loads, { serviceMs: Number(serviceMs), ...heapMiB }));
  for (const row of rowsOf(reports, heap === 'default' ? heap : `${heap} MiB`)) process.stdout.write(`${row}\n`);
}
