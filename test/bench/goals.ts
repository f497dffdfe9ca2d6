/** The goals of speed and size, measured beside HAProxy: for each Node.js, met or not, and by how much. */
import { execFile } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { promisify } from 'node:util';
import { startJwksServer } from '../support/jwks-server.js';
import { rsaKey } from '../support/keys.js';
import { projectDir } from '../support/project-dir.js';
import type { ConfigTree } from '../support/proxy-process.js';
import type { Scope } from '../support/scope.js';
import { tempDir } from '../support/temp-dir.js';
import { asLoad, placeLoad, placeMeasured } from './affinity.js';
import { makeCertificate, type Certificate } from './certificate.js';
import { outputOf, startServer, type Child } from './child.js';
import { cpuMicroseconds, residentMib } from './cpu.js';
import { startHaproxy } from './haproxy.js';
import { runLoad } from './load.js';
import { markdown } from './markdown.js';
import { planOf, writePlan } from './request-plan.js';
import { imageHeapOption, startSallyport, type Program } from './sallyport.js';
import { scoped } from './scoped.js';
import { median } from './statistics.js';
import { mintTokens } from './token-supply.js';

const run = promisify(execFile);

export interface GoalSettings {
  /** Of one run of one load. */
  readonly seconds: number;
  readonly rounds: number;
  readonly starts: number;
  readonly connections: number;
  readonly tokens: number;
  /** Whether `wrk` is there, without which no load is put on TLS. */
  readonly wrk: boolean;
  /** Each Node.js that is measured, by its binary. */
  readonly nodes: readonly string[];
  /** Told of each figure as it is there. */
  readonly onRun?: (text: string) => void;
}

/** One figure of one Node.js. */
export interface MeasuredGoal {
  readonly what: string;
  /** Of Node.js. */
  readonly version: string;
  readonly value: number;
  readonly unit: string;
  /** At most this; `null` where there is no goal. */
  readonly goal: number | null;
}

/** What is met, says the column, and by how much. */
const goals = {
  plain: ['authorized GET, tokens in turn', '× HAProxy', 0.65],
  tls: ['the same over TLS 1.3, kept connections', '× HAProxy with TLS', 0.9],
  fresh: ['every token new', '× HAProxy', 1.3],
  fullEcdsa: ['connection and handshake, ECDSA P-256', '× HAProxy with TLS', null],
  fullRsa: ['connection and handshake, RSA 2048', '× HAProxy with TLS', null],
  resumed: ['connection and resumed handshake', '× HAProxy with TLS', null],
  ready: ['start to ready', 'ms', 250],
  rest: ['memory at rest', 'MiB', 70],
  load: ['memory under load, most of all looks', 'MiB', 140],
} as const;

type GoalName = keyof typeof goals;

/** Names of the loads, for a part of them. */
export const measuredLoads = ['plain', 'tls', 'fresh', 'fullEcdsa', 'fullRsa', 'resumed'] as const;
type LoadName = (typeof measuredLoads)[number];

interface Contender {
  /** Of Node.js; `null` for HAProxy. */
  readonly version: string | null;
  readonly child: Child;
  readonly cpuUs: number[];
  mostMib: number;
}

interface Field {
  readonly programs: ReadonlyMap<string, Program>;
  readonly key: ReturnType<typeof rsaKey>;
  readonly tokens: readonly string[];
  readonly receiver: number;
  readonly jwksUrl: string;
  readonly certificates: Readonly<Record<'ECDSA' | 'RSA', Certificate>>;
}

/** Measures all of it, or the named loads; each load's contenders in turn, round by round. */
export async function measureGoals(
  t: Scope,
  settings: GoalSettings,
  names: readonly LoadName[] = measuredLoads,
): Promise<readonly MeasuredGoal[]> {
  const programs = await bundles(t, settings.nodes);
  const key = rsaKey();
  const receiver = await startServer(t, 'receiver');
  placeLoad(receiver.pid);
  const field: Field = {
    programs,
    key,
    tokens: await mintTokens(key, settings.tokens),
    receiver: receiver.port,
    jwksUrl: (await startJwksServer(t, { keys: [key] })).url,
    certificates: { ECDSA: makeCertificate(t, 'ECDSA'), RSA: makeCertificate(t, 'RSA') },
  };
  const measured: MeasuredGoal[] = [];
  const add = (name: GoalName, version: string, value: number): void => {
    const [what, unit, goal] = goals[name];
    measured.push({ what, version, value, unit, goal });
    settings.onRun?.(`${what}, Node.js ${version}: ${value.toFixed(2)} ${unit}`);
  };
  for (const name of names) {
    const contenders = await scoped(async (scope) => measureLoad(scope, field, name, settings));
    const base = contenders.find(({ version }) => version === null);
    for (const { version, cpuUs, mostMib } of contenders) {
      if (version === null || base === undefined) continue;
      add(name, version, median(cpuUs.map((one, round) => one / (base.cpuUs[round] ?? NaN))));
      if (name === 'plain') add('load', version, mostMib);
    }
  }
  for (const [version, program] of programs) {
    const { readyMs, restMib } = await scoped(async (scope) => measureRest(scope, field, program, settings.starts));
    add('ready', version, readyMs);
    add('rest', version, restMib);
  }
  return measured;
}

/** The proxy as the image has it, by version of Node.js: bundled, with the image's options and its kept code. */
async function bundles(t: Scope, nodes: readonly string[]): Promise<ReadonlyMap<string, Program>> {
  const programs = new Map<string, Program>();
  for (const node of nodes) {
    const dir = join(tempDir(t), 'app');
    mkdirSync(dir, { recursive: true });
    await run(node, [join(projectDir, '.release/bundle.mjs'), dir], { cwd: projectDir });
    const main = join(dir, 'main.js');
    const env = { NODE_COMPILE_CACHE: join(dir, 'cache'), MALLOC_ARENA_MAX: '1', SALLYPORT_NODE_EOL_WARNING: 'off' };
    // What it runs is loaded, and kept, before it says that there is no config.
    await run(node, [main, 'serve', '--config', '/none'], { env: { ...process.env, ...env } }).catch(() => null);
    const version = (await run(node, ['--version'])).stdout.trim().slice(1);
    programs.set(version, { node, flags: [imageHeapOption], main, env });
  }
  return programs;
}

async function startOurs(
  t: Scope,
  { receiver, jwksUrl, tokens }: Field,
  program: Program,
  config: ConfigTree,
  certificate: Certificate | null,
): Promise<Child> {
  const listen =
    certificate === null ? {} : { tls: { cert_file: certificate.certFile, key_file: certificate.keyFile } };
  return startSallyport(
    t,
    {
      listen,
      upstream: { url: `http://127.0.0.1:${String(receiver)}` },
      issuers: { core: { jwks_url: jwksUrl } },
      ...config,
    },
    { path: '/orders', headers: { Authorization: `Bearer ${tokens[0] ?? ''}` } },
    { program, ...(certificate === null ? {} : { tls: { rejectUnauthorized: false } }) },
  );
}

async function measureLoad(
  t: Scope,
  field: Field,
  name: LoadName,
  settings: GoalSettings,
): Promise<readonly Contender[]> {
  const { tokens, key, receiver, certificates } = field;
  const handshakes = name === 'resumed' ? 'resumed' : name.startsWith('full') ? 'full' : null;
  const isTls = name === 'tls' || handshakes !== null;
  const certificate = isTls ? certificates[name === 'fullRsa' ? 'RSA' : 'ECDSA'] : null;
  if (name === 'tls' && !settings.wrk) return [];
  // A cache that holds a few dozen has forgotten each token when it comes again.
  const config = name === 'fresh' ? { token_cache: '64KiB' } : {};
  const start = async (version: string | null, child: Promise<Child>): Promise<Contender> => {
    const one: Contender = { version, child: await child, cpuUs: [], mostMib: 0 };
    placeMeasured(one.child.pid);
    return one;
  };
  const contenders = [
    await start(
      null,
      startHaproxy(t, receiver, key.publicKey, tokens[0] ?? '', { kind: 'core' }, undefined, certificate),
    ),
  ];
  for (const [version, program] of field.programs) {
    contenders.push(await start(version, startOurs(t, field, program, config, certificate)));
  }
  const plan = writePlan(tempDir(t), { ...planOf(''), tokens });
  // The first round warms up and does not count.
  for (let round = 0; round <= settings.rounds; round += 1) {
    for (const one of contenders) {
      const { pid, port } = one.child;
      const looks = setInterval(() => (one.mostMib = Math.max(one.mostMib, residentMib(pid))), 100);
      const before = cpuMicroseconds(pid);
      const count =
        handshakes === null
          ? await countRequests({ ...settings, port, plan, tls: isTls })
          : await countHandshakes(port, settings, handshakes);
      clearInterval(looks);
      if (round > 0) one.cpuUs.push((cpuMicroseconds(pid) - before) / count);
    }
  }
  return contenders;
}

async function countRequests(load: Parameters<typeof runLoad>[0]): Promise<number> {
  const { requests, refused, broken } = await runLoad(load);
  if (requests === 0 || refused + broken > 0) {
    throw new Error(`${String(requests)} requests, ${String(refused)} refused, ${String(broken)} broke`);
  }
  return requests;
}

async function countHandshakes(
  port: number,
  { seconds, connections }: GoalSettings,
  kind: 'full' | 'resumed',
): Promise<number> {
  const args = [port, seconds, Math.min(8, connections)].map(String);
  const loader = join(import.meta.dirname, 'handshake-load.js');
  const counted = JSON.parse(await outputOf(...asLoad(process.execPath, [loader, ...args, kind]))) as {
    handshakes: number;
    resumed: number;
    failed: number;
  };
  const { handshakes, resumed, failed } = counted;
  // Each connection's first one is whole.
  const wrong = kind === 'full' ? resumed : handshakes - resumed - Math.min(8, connections);
  if (handshakes === 0 || failed > 0 || wrong > 0) throw new Error(`handshakes: ${JSON.stringify(counted)}`);
  return handshakes;
}

/** Seconds of rest. */
const restS = 3;

async function measureRest(
  t: Scope,
  field: Field,
  program: Program,
  starts: number,
): Promise<{ readonly readyMs: number; readonly restMib: number }> {
  const times: number[] = [];
  const pids: number[] = [];
  for (let i = 0; i < starts; i += 1) {
    const startedMs = performance.now();
    pids.push((await startOurs(t, field, program, {}, null)).pid);
    times.push(performance.now() - startedMs);
  }
  await setTimeout(restS * 1000);
  return { readyMs: median(times), restMib: median(pids.map(residentMib)) };
}

/** A row for each figure. */
export function goalTable(measured: readonly MeasuredGoal[]): string {
  const rows = [...measured]
    .sort((a, b) => order(a) - order(b))
    .map(({ what, version, value, unit, goal }) => {
      const digits = unit.startsWith('×') ? 2 : 0;
      return [
        what,
        version,
        unit,
        value.toFixed(digits),
        goal === null ? '' : `≤ ${goal.toFixed(digits)}`,
        goal === null
          ? ''
          : value <= goal
            ? `met, ${percent(1 - value / goal)} under`
            : `no, ${percent(value / goal - 1)} over`,
      ];
    });
  return markdown(['what', 'Node.js', 'in', 'measured', 'goal', 'met'], rows, 3);
}

function order({ what }: MeasuredGoal): number {
  return Object.values(goals).findIndex(([name]) => name === what);
}

function percent(share: number): string {
  return `${(share * 100).toFixed(0)} %`;
}
