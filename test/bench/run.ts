/**
 * Measures what a request costs here and elsewhere.
 *
 *   npm run bench -- [CONTENDER …] [--seconds 10] [--rounds 3] [--starts 1] [--connections 32] [--before FOLDER]
 *
 * Prints what one authorized GET costs, and what it costs with others, or with those named. FOLDER is a built checkout
 * of an earlier commit, to be measured beside. Two processes of the same program differ by a few percent: a small
 * difference takes several starts, each with its rounds.
 *
 *   npm run bench -- --workloads [NAME …] | --latency | --start [--starts 5] [--before FOLDER] | --flood
 *
 * Measures other loads than one token again and again, all of them or those named; latency at fixed rates; start and
 * memory at rest; latency beside a flood of new tokens.
 *
 *   npm run bench -- --reserved [--seconds 5] [--rounds 3] [--connections 8]
 *
 * Measures what a reserved write costs beside the same write unreserved; needs `redis-server`.
 *
 *   npm run bench -- --bound [--rounds 3] [--connections 32]
 *
 * Measures what a proof of possession and a client certificate cost beside a bearer token, and wrong ones; needs
 * `redis-server` and `openssl`.
 *
 *   npm run bench -- --all [--seconds 3] [--rounds 3] [--out docs]
 *
 * Measures all of that, and writes its part of docs/performance.md, and `performance.svg`.
 *
 *   npm run bench -- --page [--seconds 3] [--rounds 5] [--out docs]
 *
 * Measures the goals of speed and size beside HAProxy, on this Node.js and on 24 where npx has it, in some eight
 * minutes, for docs/performance.md; needs `haproxy`, `openssl` and `wrk`.
 *
 *   npm run bench -- --growth [--seconds 3] [--rounds 3] [--out docs]
 *
 * Measures requests against numbers of tokens, up to a million, and of routes, for docs/performance.md. Signing a
 * million tokens takes minutes; they are kept in the system's folder for temporary files, and used again for most of a
 * day.
 *
 *   npm run bench -- --soak 10m [--out docs]
 *
 * Puts four fifths of what it can do on a proxy for that long and looks at memory and open files, for
 * docs/performance.md and `soak.svg`.
 *
 *   npm run bench -- --primaries [--seconds 5] [--rounds 3] [--connections 64] [--out docs]
 *
 * Measures what reserved writes take of one primary of Redis and of three, for docs/performance.md; needs
 * `redis-server` and `redis-cli`.
 *
 *   npm run bench -- --capacity
 *
 * Measures the memory of a proxy that is full, and what a write takes of Redis, for docs/performance.md; needs
 * `redis-server`.
 *
 *   npm run bench -- --http2 [h2-h1 | h2-h2 | grpc …] [--seconds 5] [--rounds 3] [--connections 32] [--before FOLDER]
 *
 * Measures requests over HTTP/2, through to upstreams of HTTP/1.1 and of HTTP/2, and gRPC; needs `h2load` and
 * `haproxy`. Of all of them it writes the ratios to docs/performance.md; the figures are printed.
 *
 *   npm run bench -- --egress [--seconds 5] [--rounds 3] [--connections 32]
 *
 * Measures what the calling side adds to a request, alone and with the answering side, a retry, and a body that is
 * held.
 *
 *   npm run bench -- --telemetry [--seconds 5] [--rounds 3] [--connections 32]
 *
 * Measures what a request costs with telemetry off, and with one in a hundred and all of them traced.
 *
 *   npm run bench -- --readings [--every 1] [--out docs]
 *
 * Sends targets and headers that are read in two ways through proxies that guard a path, to receivers of six makes, for
 * docs/comparison.md. Fronts that are not installed are left out; the receivers need Flask, PHP, Java and Go.
 *
 *   npm run bench -- --decide [--seconds 5] [--rounds 3] [--connections 32]
 *
 * Measures a decision that a proxy asks for beside the sidecar, and nginx that asks beside nginx that checks tokens by
 * itself, in Lua; needs `nginx`, and for the latter `libnginx-mod-http-lua`, `lua-luaossl` and `lua-cjson`; for
 * decisions over gRPC `h2load`.
 *
 *   npm run bench -- --workers [--seconds 5] [--rounds 3] [--connections 32]
 *
 * Measures throughput, CPU and memory with one worker and with two.
 *
 *   npm run bench -- --import
 *
 * Measures `sallyport import` beside a loop of calls, with files of growing sizes.
 */
import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs, promisify } from 'node:util';
import { projectDir } from '../support/project-dir.js';
import { apacheVersion } from './apache.js';
import { boundTable, measureBound, type MeasuredBound } from './bound.js';
import { measureCapacity } from './capacity.js';
import { versionOf } from './child.js';
import { writePart } from './docs-part.js';
import { decideTable, measureDecide } from './decide.js';
import { egressTable, measureEgress } from './egress.js';
import { floodTable, measureFlood, type MeasuredFlood } from './flood.js';
import { goalTable, measureGoals } from './goals.js';
import { growthCounts, growthTable, measureGrowth } from './growth.js';
import { http2CpuTable, http2Table, measureHttp2, missingForHttp2 } from './http2/measure.js';
import { pairNames } from './http2/pairs.js';
import { importTable, measureImport } from './import.js';
import { latencyContenders, measureLatency, type MeasuredLatency } from './latency.js';
import { measureWorkloads, type MeasuredWorkload } from './measure-workloads.js';
import { measure, type Measured, type MeasureSettings } from './measure.js';
import { refuseUnknown } from './names.js';
import { plotOf } from './plot.js';
import { measurePrimaries, primariesTable } from './primaries.js';
import { allPartOf, latencyTable, machine, partSeconds, tableOf, workloadTable } from './report.js';
import { measureReadings, readingsTable } from './readings/readings.js';
import { measureReserved, reservedTable, type MeasuredWrite } from './reserved.js';
import { scoped } from './scoped.js';
import { soakPlotOf } from './soak-plot.js';
import { faultsOf, measureSoak, secondsOf, soakTable } from './soak.js';
import { measureStarts, restS, startTable, type MeasuredStart } from './startup.js';
import { measureTelemetry, telemetryTable } from './telemetry.js';
import { measureWorkers, workersTable } from './worker-counts.js';
import { workloadNames } from './workloads.js';

const flag = { type: 'boolean', default: false } as const;
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    seconds: { type: 'string' },
    rounds: { type: 'string' },
    starts: { type: 'string' },
    connections: { type: 'string' },
    out: { type: 'string', default: join(projectDir, 'docs') },
    soak: { type: 'string' },
    before: { type: 'string' },
    all: flag,
    bound: flag,
    capacity: flag,
    decide: flag,
    egress: flag,
    flood: flag,
    growth: flag,
    http2: flag,
    import: flag,
    latency: flag,
    page: flag,
    primaries: flag,
    readings: flag,
    every: { type: 'string', default: '1' },
    reserved: flag,
    start: flag,
    telemetry: flag,
    workers: flag,
    workloads: flag,
  },
});
/** The page that has the figures. */
const pageFile = 'performance.md';
const run = promisify(execFile);
const rounds = Number(values.rounds ?? (values.page ? 5 : 3));
const wrk = versionOf('wrk', '-v');
const hasRedis = versionOf('redis-server', '--version') !== null;
const [otherLoad = 0] = loadavg();
const onRun = (text: string): void => {
  console.error(text);
};
/** Where tokens are kept from one run to the next. */
const dir = join(tmpdir(), 'sallyport-bench-tokens');
const settingsOf = (seconds: number, connections = 32): Settings => ({
  seconds: Number(values.seconds ?? seconds),
  connections: Number(values.connections ?? connections),
  rounds,
  wrk: wrk !== null,
  onRun,
  dir,
  ...(values.before === undefined ? {} : { before: resolve(values.before) }),
});

interface Settings {
  readonly seconds: number;
  readonly rounds: number;
  readonly connections: number;
  readonly wrk: boolean;
  readonly onRun: (text: string) => void;
  readonly dir: string;
  readonly before?: string;
}

if (values.soak !== undefined) await soak(secondsOf(values.soak));
else if (values.page) await page(settingsOf(3));
else if (values.growth) await growth(settingsOf(3));
else if (values.http2) await http2(settingsOf(5));
else if (values.primaries) await primaries(settingsOf(5, 64));
else if (values.reserved) console.log(reservedTable(await writesOf(settingsOf(5, 8))));
else if (values.bound) console.log(boundTable(await boundOf(settingsOf(0))));
else if (values.capacity) console.log(await scoped(measureCapacity));
else if (values.decide) {
  const settings = settingsOf(5);
  console.log(decideTable(await scoped(async (scope) => measureDecide(scope, settings))));
} else if (values.egress) {
  const settings = settingsOf(5);
  console.log(egressTable(await scoped(async (scope) => measureEgress(scope, settings))));
} else if (values.telemetry) {
  const settings = settingsOf(5);
  console.log(telemetryTable(await scoped(async (scope) => measureTelemetry(scope, settings))));
} else if (values.workers) {
  const settings = settingsOf(5);
  console.log(workersTable(await scoped(async (scope) => measureWorkers(scope, settings))));
} else if (values.readings) await readings(Number(values.every));
else if (values.import) {
  console.log(
    importTable(await scoped(async (scope) => measureImport(scope, { sizes: [5_000, 20_000, 80_000], onRun }))),
  );
} else if (values.workloads) console.log(workloadTable(await workloadsOf(settingsOf(10))));
else if (values.latency) console.log(latencyTable(await latenciesOf(settingsOf(10))));
else if (values.start) console.log(startTable(await startsOf(settingsOf(0))));
else if (values.flood) console.log(floodTable(await floodsOf(settingsOf(10))));
else if (values.all) await measureAll(settingsOf(3));
else {
  const only = positionals.length > 0 ? { only: positionals } : {};
  console.log(tableOf(await readsOf({ ...settingsOf(10), ...only })));
}

async function readsOf(settings: Settings & Pick<MeasureSettings, 'only'>): Promise<readonly Measured[]> {
  return measure({ ...settings, starts: Number(values.starts ?? 1) });
}

async function workloadsOf(settings: Settings): Promise<readonly MeasuredWorkload[]> {
  return scoped(async (scope) => measureWorkloads(scope, { ...settings, names: named(workloadNames) }));
}

async function latenciesOf(settings: Settings): Promise<readonly MeasuredLatency[]> {
  return scoped(async (scope) =>
    measureLatency(scope, { ...settings, rates: [1_000, 3_000], only: latencyContenders }),
  );
}

async function startsOf({ before }: Settings): Promise<readonly MeasuredStart[]> {
  const starts = Number(values.starts ?? 5);
  return scoped(async (scope) => measureStarts(scope, { starts, restS, ...(before === undefined ? {} : { before }) }));
}

async function writesOf(settings: Settings): Promise<readonly MeasuredWrite[]> {
  return scoped(async (scope) => measureReserved(scope, settings));
}

async function boundOf({ connections }: Settings): Promise<readonly MeasuredBound[]> {
  return scoped(async (scope) => measureBound(scope, { requests: 4_000, rounds, connections, onRun }));
}

async function floodsOf(settings: Settings): Promise<readonly MeasuredFlood[]> {
  return scoped(async (scope) => measureFlood(scope, settings));
}

async function measureAll(settings: Settings): Promise<void> {
  const { seconds, connections } = settings;
  const part = partSeconds(seconds);
  const measured = await readsOf(settings);
  const starts = await startsOf(settings);
  const workloads = await workloadsOf({ ...settings, seconds: part.workload });
  const writes = hasRedis ? await writesOf({ ...settings, seconds: part.workload, connections: 8 }) : null;
  const latencies = await latenciesOf({ ...settings, seconds: part.rate });
  const floods = await floodsOf({ ...settings, seconds: part.flood });
  const text = allPartOf(
    { measured, starts, workloads, writes, latencies, floods },
    {
      otherLoad,
      command: `npm run bench -- --all --seconds ${String(seconds)} --rounds ${String(rounds)}`,
      seconds,
      rounds,
      connections,
      load: wrk?.split(' Copyright')[0] ?? 'a loader of our own',
      programs: {
        HAProxy: versionOf('haproxy', '-v')?.split(' - ')[0] ?? null,
        'Apache with mod_auth_openidc': apacheVersion(),
      },
    },
  );
  writePart(values.out, pageFile, 'all', text);
  writeFileSync(join(values.out, 'performance.svg'), plotOf(measured, workloads));
  console.log(text);
}

async function page(settings: Settings): Promise<void> {
  const image = await run('npx', ['-y', '-p', 'node@24', 'node', '-p', 'process.execPath']).catch(() => null);
  const nodes = [...new Set([process.execPath, ...(image === null ? [] : [image.stdout.trim()])])];
  const measured = await scoped(async (scope) => measureGoals(scope, { ...settings, starts: 5, tokens: 2_000, nodes }));
  const how = `Each proxy runs on the first CPU, load and receiver on the others. CPU of the process for a request, or for a connection with its handshake, beside that of
HAProxy in the same round; medians of ${String(rounds)} rounds of ${String(settings.seconds)} s, in turn, ${String(settings.connections)} connections, 2,000 tokens in turn. Medians of 5 starts, and of memory 3 s after
them; under load it was looked at ten times a second. All of the program is [bundled as in the image](image.md), with its options.`;
  write(
    'goals',
    `${how}\n\n${goalTable(measured)}`,
    `--page --seconds ${String(settings.seconds)} --rounds ${String(rounds)}`,
  );
}

async function growth(settings: Settings): Promise<void> {
  const measured = await scoped(async (scope) => measureGrowth(scope, { ...settings, ...growthCounts }));
  write('growth', growthTable(measured), `--growth --seconds ${String(settings.seconds)} --rounds ${String(rounds)}`);
}

async function http2(settings: Settings): Promise<void> {
  const missing = missingForHttp2();
  if (missing.length > 0) throw new Error(`not installed here: ${missing.join(', ')}`);
  const names = named(pairNames);
  const measured = await scoped(async (scope) => measureHttp2(scope, { ...settings, names }));
  console.log(http2CpuTable(measured));
  if (names.length < pairNames.length) console.log(http2Table(measured));
  else write('http2', http2Table(measured), `--http2 --seconds ${String(settings.seconds)} --rounds ${String(rounds)}`);
}

async function primaries(settings: Settings): Promise<void> {
  const measured = await scoped(async (scope) => measurePrimaries(scope, settings));
  write(
    'primaries',
    primariesTable(measured),
    `--primaries --seconds ${String(settings.seconds)} --rounds ${String(rounds)}`,
  );
}

async function soak(seconds: number): Promise<void> {
  const settings = { ...settingsOf(seconds, 64), seconds, tokens: 20_000, capacityS: 10, everyS: 5, restS: 120 };
  const measured = await scoped(async (scope) => measureSoak(scope, settings));
  const plot = '![Memory of the process and of its heap over the time, as lines](soak.svg)';
  write('soak', `${soakTable(measured)}\n\n${plot}`, `--soak ${values.soak ?? ''}`);
  writeFileSync(join(values.out, 'soak.svg'), soakPlotOf(measured.samples));
  if (faultsOf(measured).length > 0) process.exitCode = 1;
}

/** That of every target is written; that of a few is a look. */
async function readings(every: number): Promise<void> {
  const text = readingsTable(await measureReadings({ every, onRun }));
  const date = new Date().toISOString().slice(0, 10);
  if (every === 1) {
    writePart(values.out, 'comparison.md', 'readings', `${text}\n\n\`npm run bench -- --readings\`, ${date}.`);
  }
  console.log(text);
}

/** Puts a table in its place on the page. */
function write(name: string, table: string, options: string): void {
  const text = `${table}\n\n\`npm run bench -- ${options}\`, ${machine()}, Node.js ${process.version}, load average before it ${otherLoad.toFixed(1)}.`;
  writePart(values.out, pageFile, name, text);
  console.log(text);
}

/** Those that the command names, or all. */
function named<T extends string>(known: readonly T[]): readonly T[] {
  refuseUnknown('workload', positionals, known);
  return positionals.length === 0 ? known : known.filter((name) => positionals.includes(name));
}
