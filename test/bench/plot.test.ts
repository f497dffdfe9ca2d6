import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { projectDir } from '../support/project-dir.js';
import { latencyContenders, measureLatency } from './latency.js';
import type { MeasuredWorkload } from './measure-workloads.js';
import { plotOf } from './plot.js';
import { allPartOf, latencyTable, tableOf } from './report.js';
import { quantile } from './statistics.js';

const figures = { requestsPerS: 9_000, medianMs: 1, slowMs: 2, memoryMib: 99, hitShare: null };
const measured = [
  { name: 'node:http', work: 'answers by itself', cpuUs: 12.34, cpuUsOfRounds: [12.34], ...figures },
  { name: 'Sallyport', work: 'all', cpuUs: 45.6, cpuUsOfRounds: [45.6], ...figures },
  { name: 'HAProxy, jwt_verify', work: 'all', cpuUs: 50, cpuUsOfRounds: [50], ...figures },
];
const workloads: readonly MeasuredWorkload[] = [
  {
    name: 'unknown-key',
    title: 'flood of `kid`s <&>',
    against: 'HAProxy',
    entrants: [{ name: 'Sallyport', cpuUs: 23.4, ratio: null, cpuUsPerMib: null, ...figures }],
  },
  {
    name: 'up-1m',
    title: '1 MiB up',
    against: 'Sallyport',
    entrants: [{ name: 'Sallyport', cpuUs: 1567.8, ratio: 1, cpuUsPerMib: 1567.8, ...figures }],
  },
];

/** What is wrong with the tags of a document without comments and declarations; empty where they are well-formed. */
function faultsOf(xml: string): readonly string[] {
  const open: string[] = [];
  const faults: string[] = [];
  const text = xml.replaceAll(
    /<(\/?)([\w:-]+)((?:\s+[\w:-]+="[^"<&]*")*)\s*(\/?)>/g,
    (_tag, end: string, name: string, _attributes: string, empty: string) => {
      if (end !== '') {
        if (open.pop() !== name) faults.push(`</${name}>`);
      } else if (empty === '') open.push(name);
      return '';
    },
  );
  return [...faults, ...open.map((name) => `<${name}>`), ...(text.match(/<|&(?!(?:amp|lt|gt);)/g) ?? [])];
}

/** Texts of a plot, as they are read. */
function textsOf(svg: string): readonly string[] {
  return [...svg.matchAll(/<text [^>]*>([^<]*)<\/text>/g)].map(([, text = '']) => text);
}

t.test('the plot is well-formed, says each figure and label, and is read in dark and light', (t) => {
  const svg = plotOf(measured, workloads);
  t.same(faultsOf(svg), []);
  const texts = textsOf(svg);
  const wanted = [
    '12.3',
    '45.6',
    '50.0',
    '23.4',
    '1567.8',
    'HAProxy, jwt_verify',
    'flood of kids &lt;&amp;&gt;: Sallyport',
  ];
  for (const text of wanted) t.ok(texts.includes(text), text);
  t.match(svg, '@media (prefers-color-scheme: dark)');
  t.match(svg, /<rect [^>]*width="420\.0"[^>]*class="other"/, 'the longest of its panel');
  t.same(faultsOf(plotOf(measured, [])), [], 'without workloads');
  t.same(faultsOf('<a><b></a>'), ['</a>', '<a>']);
  t.end();
});

t.test('docs/performance.svg says the CPU of docs/performance.md', (t) => {
  const page = readFileSync(join(projectDir, 'docs/performance.md'), 'utf8');
  const svg = readFileSync(join(projectDir, 'docs/performance.svg'), 'utf8');
  t.same(faultsOf(svg), []);
  const [, part = ''] = /<!-- bench: all -->([^]*)<!-- end of bench: all -->/.exec(page) ?? [];
  t.match(part, '](performance.svg)');
  const tables = part.split('\n\n').filter((block) => /^\| .*\| CPU, µs \|/.test(block));
  t.ok(tables.length > 0);
  const printed = tables.flatMap((table) => table.split('\n').slice(2)).map((row) => row.split('|')[3]?.trim() ?? '');
  for (const figure of printed) t.ok(textsOf(svg).includes(figure), figure);
  t.end();
});

t.test('the page names what was measured, and what is not installed', (t) => {
  const latencies = [{ rate: 1_000, name: 'Sallyport', p50Ms: 0.5, p99Ms: 1.25, p999Ms: 3 }];
  const starts = [{ name: 'Sallyport, from npm', readyMs: 300, restMib: 99.6 }];
  const floods = [{ name: 'nothing else', perSecond: 0, cpuShare: 0.125, p50Ms: 1, p99Ms: 2, p999Ms: 3 }];
  const page = allPartOf(
    { measured, workloads, latencies, starts, floods, writes: null },
    {
      command: 'npm run bench',
      seconds: 3,
      rounds: 3,
      connections: 32,
      load: 'wrk',
      programs: { HAProxy: 'HAProxy 2.6', Apache: null },
      otherLoad: 0.1,
    },
  );
  t.match(page, '| Sallyport, from npm | 300 | 100 |');
  t.match(page, '`redis-server` is not installed here');
  t.match(page, '| nothing else | 0 | 0.13 | 1.00 | 2.00 | 3.00 |');
  t.match(page, 'Not installed here, and so not measured: Apache.');
  t.match(page, '| Sallyport | 1000 | 0.50 | 1.25 | 3.00 |');
  t.match(tableOf(measured), '| Sallyport | all | 45.6 | 0.91 |', 'beside HAProxy');
  t.end();
});

t.test('quantiles are values that were measured', (t) => {
  const values = Array.from({ length: 1_000 }, (_, index) => 1_000 - index);
  t.same(
    [quantile(values, 0.5), quantile(values, 0.99), quantile(values, 0.999), quantile([7], 0.5), quantile([], 0.5)],
    [500, 990, 999, 7, 0],
  );
  t.end();
});

t.test('requests at a fixed rate are sent and timed', async (t) => {
  const latencies = await measureLatency(t, {
    rates: [50, 100],
    seconds: 0.2,
    rounds: 1,
    connections: 4,
    only: latencyContenders.slice(0, 1),
  });
  t.match(
    latencies.map(({ rate, name }) => [rate, name]),
    [
      [50, 'node:http'],
      [100, 'node:http'],
    ],
  );
  for (const { p50Ms, p99Ms, p999Ms } of latencies) t.ok(p50Ms > 0 && p50Ms <= p99Ms && p99Ms <= p999Ms);
  t.match(latencyTable(latencies), /^\| proxy \|.*\n.*\n\| node:http \| 50 \| \d/);
});
