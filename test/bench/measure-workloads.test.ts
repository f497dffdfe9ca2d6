/** The workloads still run: some of each kind, for a fraction of a second, with a loader that is always there. */
import { readFileSync } from 'node:fs';
import t from 'tap';
import { startUpstreamServer } from '../support/upstream-server.js';
import { tempDir } from '../support/temp-dir.js';
import { until } from '../support/until.js';
import { openIdle } from './idle-connections.js';
import { runLoad } from './load.js';
import { measureWorkloads } from './measure-workloads.js';
import { workloadTable } from './report.js';
import { writePlan } from './request-plan.js';

t.test('measures what it is asked for, and says how often the CPU of what it is compared with', async (t) => {
  const printed: string[] = [];
  const names = ['up-1m', 'unknown-key'] as const;
  const measured = await measureWorkloads(t, {
    names,
    seconds: 0.1,
    rounds: 1,
    connections: 2,
    wrk: false,
    tokens: 20,
    onRun: (text) => printed.push(text),
  });
  t.same(
    measured.map(({ name }) => name),
    names,
    printed.join('\n'),
  );
  const [upload, unknownKey] = measured;
  t.match(
    upload?.entrants.map(({ name, cpuUsPerMib }) => [name, typeof cpuUsPerMib]),
    [
      ['Sallyport', 'number'],
      ['@fastify/http-proxy', 'number'],
    ],
  );
  t.same(
    unknownKey?.entrants.map(({ name, ratio, cpuUsPerMib }) => [name, ratio, cpuUsPerMib]),
    [['Sallyport', null, null]],
  );
  t.match(
    workloadTable(measured),
    /^\| workload \|.*\n\| --- \| --- \| ---: \|.*\n\| 1 MiB up \| Sallyport \| \d+\.\d \|.*\n\| {2}\| @fastify/,
  );
});

t.test('a workload whose answers are others than it says is left out, and told of', async (t) => {
  const printed: string[] = [];
  // Without a token a good answer is a refusal.
  const measured = await measureWorkloads(t, {
    names: ['new'],
    seconds: 0.1,
    rounds: 1,
    connections: 2,
    wrk: false,
    tokens: 0,
    onRun: (text) => printed.push(text),
  });
  t.same(measured, []);
  t.match(printed.at(-1), /^new is left out: Sallyport: of \d+ answers \d+ were wrong; 0 connections failed$/);
});

t.test('idle connections have each had a response, and stay open until they are closed', async (t) => {
  const receiver = await startUpstreamServer(t);
  const close = await openIdle(receiver.port, 60, 'a-token');
  t.equal(receiver.requests.length, 60);
  t.equal(receiver.open(), 60);
  close();
  await until('they are closed', () => receiver.open() === 0);
});

t.test('tokens that have to be known are sent once each before the load', async (t) => {
  const receiver = await startUpstreamServer(t);
  const plan = writePlan(tempDir(t), { method: 'GET', paths: ['/orders'], tokens: ['a', 'b', 'c'], bodyBytes: 0 });
  t.match(await runLoad({ port: receiver.port, plan, seconds: 0, connections: 2, wrk: false }), {
    requests: 3,
    refused: 0,
    broken: 0,
  });
  t.same(receiver.requests.map(({ field }) => field('authorization')[0]).sort(), ['Bearer a', 'Bearer b', 'Bearer c']);
});

t.test('a plan for wrk has its requests ready before the load, and leaves a single one to wrk', (t) => {
  const script = (tokens: readonly string[], bodyBytes = 0): string =>
    readFileSync(writePlan(tempDir(t), { method: 'POST', paths: ['/a'], tokens, bodyBytes }).script, 'utf8');
  t.match(script(['x', 'y']), 'for i = 0, 1 do');
  t.match(script(['x', 'y']), 'function request()');
  t.notMatch(script(['x']), 'function request()');
  t.match(script([], 7), "wrk.body = string.rep('x', 7)");
  t.end();
});
