/** A soak of seconds, and what becomes of its figures. */
import t from 'tap';
import '../support/redis-server.js';
import { tempDir } from '../support/temp-dir.js';
import { soakPlotOf } from './soak-plot.js';
import { faultsOf, measureSoak, secondsOf, soakTable, type MeasuredSoak, type SoakSample } from './soak.js';

t.test('a short soak is sent at its rate, looked at, and answered without a failure', async (t) => {
  const measured = await measureSoak(t, {
    dir: tempDir(t),
    tokens: 20,
    seconds: 1,
    capacityS: 0.3,
    everyS: 0.2,
    connections: 4,
    wrk: false,
    restS: 0,
  });
  t.ok(measured.samples.length > 1);
  t.equal(measured.reads.refused + measured.reads.broken, 0);
  t.ok(
    measured.reads.requests > 0 && measured.reads.requests < measured.capacity * 1.1,
    `${String(measured.reads.requests)} of ${String(measured.capacity)}`,
  );
  t.same([measured.writes?.refused, measured.writes?.broken], [0, 0]);
  t.ok((measured.writes?.requests ?? 0) > 0);
  for (const { memoryMib, heapMib, descriptors } of measured.samples) {
    t.ok(memoryMib > heapMib && heapMib > 0 && descriptors > 5);
  }
  t.match(
    soakTable(measured),
    /^\| soak \|.*\n[^]*\| asked for \| \d+\/s for 1 s, and 20 writes\/s reserved in Redis \|/,
  );
});

const load = { requests: 8_000, refused: 0, broken: 0, seconds: 10, medianMs: 1, slowMs: 5 };
const samplesOf = (memory: (index: number) => number): readonly SoakSample[] =>
  Array.from({ length: 20 }, (_, index) => ({
    atS: index * 5,
    memoryMib: memory(index),
    heapMib: 40,
    descriptors: 30,
  }));
const good: MeasuredSoak = {
  seconds: 100,
  capacity: 1_000,
  asked: 800,
  reads: load,
  writes: { ...load, requests: 200 },
  samples: samplesOf(() => 100),
  descriptors: { before: 25, after: 25 },
};

const verdicts: readonly {
  readonly name: string;
  readonly measured: MeasuredSoak;
  readonly expected: readonly string[];
}[] = [
  { name: 'all is well', measured: good, expected: [] },
  {
    name: 'memory grows while it warms up',
    measured: { ...good, samples: samplesOf((index) => (index < 4 ? 60 : 100)) },
    expected: [],
  },
  {
    name: 'memory grows by 5 %',
    measured: { ...good, samples: samplesOf((index) => (index < 12 ? 100 : 105)) },
    expected: [],
  },
  {
    name: 'memory grows by more',
    measured: { ...good, samples: samplesOf((index) => (index < 12 ? 100 : 106)) },
    expected: ['memory grew by 6.0 %'],
  },
  { name: 'a read is refused', measured: { ...good, reads: { ...load, refused: 1 } }, expected: ['1 requests failed'] },
  {
    name: 'writes fail',
    measured: { ...good, writes: { ...load, refused: 1, broken: 1 } },
    expected: ['2 requests failed'],
  },
  { name: 'no Redis', measured: { ...good, writes: null }, expected: [] },
  {
    name: 'it was not kept busy',
    measured: { ...good, reads: { ...load, requests: 7_500 } },
    expected: ['750/s were sent instead of 800/s'],
  },
  {
    name: 'files stay open',
    measured: { ...good, descriptors: { before: 25, after: 27 } },
    expected: ['2 files stayed open'],
  },
];

for (const { name, measured, expected } of verdicts) {
  t.test(`the verdict where ${name}`, (t) => {
    t.same(faultsOf(measured), expected);
    t.match(soakTable(measured), `| so | ${expected[0] ?? 'it stays as it is'} |`);
    t.end();
  });
}

t.test('a time is seconds or minutes', (t) => {
  t.same([secondsOf('90s'), secondsOf('10m')], [90, 600]);
  for (const wrong of ['', '10', '1h', 'm', '1.5m']) t.throws(() => secondsOf(wrong), /--soak takes/);
  t.end();
});

t.test('its plot has a line for memory and one for the heap, and a scale', (t) => {
  const svg = soakPlotOf(samplesOf((index) => 100 + index));
  t.equal(svg.match(/<polyline /g)?.length, 2);
  t.match(svg, /<text [^>]*>100<\/text>/);
  t.match(svg, '>95 s</text>');
  t.notMatch(svg, 'NaN');
  t.notMatch(soakPlotOf([]), 'NaN');
  t.end();
});
