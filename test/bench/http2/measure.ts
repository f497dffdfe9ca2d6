/** What a request over HTTP/2 costs in the proxy's process, beside HAProxy and what Node.js does by itself. */
import { h2loadArguments, readH2load } from '../../support/h2load.js';
import type { Scope } from '../../support/scope.js';
import { asLoad, placeMeasured } from '../affinity.js';
import { outputOf, versionOf, type Child } from '../child.js';
import { cpuMicroseconds } from '../cpu.js';
import { markdown } from '../markdown.js';
import { scoped } from '../scoped.js';
import { median } from '../statistics.js';
import { haproxyName, naiveName, ownName, preparePairs, type Pair, type PairName } from './pairs.js';

export interface Http2Settings {
  readonly seconds: number;
  readonly rounds: number;
  /** Requests under way; eight on each connection. */
  readonly connections: number;
  /** All of them unless given. */
  readonly names?: readonly PairName[];
  /** A built checkout of an earlier commit, to be measured beside this one. */
  readonly before?: string;
  /** Told of each run as it ends. */
  readonly onRun?: (text: string) => void;
}

export interface MeasuredPair {
  readonly title: string;
  readonly entrants: readonly MeasuredProxy[];
}

/** Medians over the rounds. */
export interface MeasuredProxy {
  readonly name: string;
  /** Microseconds of the process's CPU, user and system, for a request. */
  readonly cpuUs: number;
  readonly requestsPerS: number;
}

/** Requests under way on one connection. */
const streamsEach = 8;

/** What the measurement needs beside Node.js, and is not installed here, by its Debian package. */
export function missingForHttp2(): readonly string[] {
  const needed = [
    ['h2load', '--version', 'nghttp2-client'],
    ['haproxy', '-v', 'haproxy'],
  ] as const;
  return needed.flatMap(([command, argument, packageName]) =>
    versionOf(command, argument) === null ? [`${command} (Debian: ${packageName})`] : [],
  );
}

/** Puts the same load on each of a pair's entrants in turn, round by round. */
export async function measureHttp2(t: Scope, settings: Http2Settings): Promise<readonly MeasuredPair[]> {
  const measured: MeasuredPair[] = [];
  for (const pair of await preparePairs(t, settings)) {
    measured.push(await scoped(async (scope) => measurePair(scope, pair, settings)));
  }
  return measured;
}

async function measurePair(t: Scope, pair: Pair, settings: Http2Settings): Promise<MeasuredPair> {
  const running: { name: string; child: Child; runs: Omit<MeasuredProxy, 'name'>[] }[] = [];
  for (const { name, start } of pair.entrants) {
    const child = await start(t);
    placeMeasured(child.pid);
    running.push({ name, child, runs: [] });
  }
  // The first round warms up and does not count.
  for (let round = 0; round <= settings.rounds; round += 1) {
    const seconds = round === 0 ? Math.min(settings.seconds, 2) : settings.seconds;
    for (const { name, child, runs } of running) {
      const run = await runOnce(name, child, pair, { ...settings, seconds });
      if (round === 0) continue;
      runs.push(run);
      settings.onRun?.(`${pair.title}, round ${String(round)}, ${name}: ${run.cpuUs.toFixed(1)} µs`);
    }
  }
  const entrants = running.map(({ name, runs }) => ({
    name,
    cpuUs: median(runs.map(({ cpuUs }) => cpuUs)),
    requestsPerS: median(runs.map(({ requestsPerS }) => requestsPerS)),
  }));
  return { title: pair.title, entrants };
}

async function runOnce(
  name: string,
  child: Child,
  { load }: Pair,
  { seconds, connections }: Http2Settings,
): Promise<Omit<MeasuredProxy, 'name'>> {
  const asked = {
    ...load,
    url: `http://127.0.0.1:${String(child.port)}${load.path}`,
    connections: Math.max(1, Math.round(connections / streamsEach)),
    streams: streamsEach,
    seconds,
  };
  const before = cpuMicroseconds(child.pid);
  const result = readH2load(await outputOf(...asLoad('h2load', h2loadArguments(asked))), asked);
  const cpuUs = (cpuMicroseconds(child.pid) - before) / Math.max(result.requests, 1);
  if (result.wrong > 0 || result.requests === 0) {
    throw new Error(`${name}: of ${String(result.requests)} answers ${String(result.wrong)} were wrong`);
  }
  return { cpuUs, requestsPerS: result.requests / seconds };
}

/** A row for each that took part, with its CPU as a multiple of that of others. */
export function http2Table(measured: readonly MeasuredPair[]): string {
  const head = ['callers → upstream', 'proxy', '× HAProxy, jwt_verify', '× naive', '× answers by itself'];
  const rows = measured.flatMap(({ title, entrants }) =>
    entrants.map(({ name, cpuUs }, index) => [
      index === 0 ? title : '',
      name,
      ...[haproxyName, naiveName, ownName].map((base) => {
        const against = entrants.find((one) => one.name === base);
        return against === undefined ? '' : (cpuUs / against.cpuUs).toFixed(2);
      }),
    ]),
  );
  return markdown(head, rows, 2);
}

/** The same in microseconds, which are worth something on a machine that does nothing else. */
export function http2CpuTable(measured: readonly MeasuredPair[]): string {
  const rows = measured.flatMap(({ title, entrants }) =>
    entrants.map(({ name, cpuUs, requestsPerS }, index) => [
      index === 0 ? title : '',
      name,
      cpuUs.toFixed(1),
      requestsPerS.toFixed(0),
    ]),
  );
  return markdown(['callers → upstream', 'proxy', 'CPU, µs', 'requests/s'], rows, 2);
}
