/** What a decision costs beside the sidecar, and nginx that asks for it beside nginx that checks tokens by itself. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { checkPath, checkRequest, described, readResponse } from '../decide/check-client.js';
import { placed, shownConfig } from '../decide/deciding.js';
import { h2loadArguments, readH2load } from '../support/h2load.js';
import { ask as askHttp2, connectHttp2 } from '../support/http2-client.js';
import { startJwksServer } from '../support/jwks-server.js';
import { rsaKey } from '../support/keys.js';
import { freePort } from '../support/listening.js';
import { runNginx } from '../support/nginx.js';
import { request } from '../support/raw-client.js';
import type { Scope } from '../support/scope.js';
import { tempDir } from '../support/temp-dir.js';
import { mintToken } from '../support/tokens.js';
import { until } from '../support/until.js';
import { asLoad } from './affinity.js';
import { outputOf, startServer, versionOf } from './child.js';
import { cpuMicroseconds } from './cpu.js';
import { runLoad, type LoadResult } from './load.js';
import { markdown } from './markdown.js';
import { hasNginxLua, startNginxLua } from './nginx-lua.js';
import { planOf, writePlan, type PlanFiles } from './request-plan.js';
import { startSallyport, type Proxy } from './sallyport.js';
import { median } from './statistics.js';

export interface DecideSettings {
  readonly seconds: number;
  readonly rounds: number;
  readonly connections: number;
  readonly wrk: boolean;
  /** Told of each run as it ends. */
  readonly onRun?: (text: string) => void;
}

/** Medians over the rounds. */
export interface MeasuredDecision {
  readonly name: string;
  /** Microseconds of CPU of a request, in all processes but the receiver and the load. */
  readonly cpuUs: number;
  /** Of that, Sallyport's. */
  readonly ownUs: number;
}

interface Way {
  readonly name: string;
  readonly port: number;
  readonly own: readonly number[];
  readonly others: readonly number[];
  /** Puts load on it; that of the plan unless given. */
  readonly load?: (settings: DecideSettings) => Promise<Counted>;
}

type Counted = Pick<LoadResult, 'requests' | 'refused' | 'broken'>;

/** Puts the same load on each way in turn, round by round. The first round warms up and does not count. */
export async function measureDecide(t: Scope, settings: DecideSettings): Promise<readonly MeasuredDecision[]> {
  const key = rsaKey();
  const token = mintToken({ key, claims: { exp: Math.floor(Date.now() / 1000) + 7000 } });
  const receiver = (await startServer(t, 'receiver')).port;
  const jwksUrl = (await startJwksServer(t, { keys: [key] })).url;
  const ways = await startWays(t, { receiver, jwksUrl, token });
  if (hasH2load()) {
    const [, alone] = ways;
    if (alone !== undefined) ways.splice(2, 0, await overGrpc(t, alone, token));
  } else settings.onRun?.('decisions over gRPC are left out: h2load (Debian: nghttp2-client) is not there');
  if (hasNginxLua()) {
    for (const remembers of [true, false]) {
      const { pid, port } = await startNginxLua(t, receiver, { publicKey: key.publicKey, token, remembers });
      ways.push({ name: `nginx, Lua${remembers ? '' : ' that verifies each time'}`, port, own: [], others: [pid] });
    }
  } else settings.onRun?.('nginx with Lua is left out: libnginx-mod-http-lua, lua-luaossl or lua-cjson is not there');
  const plan = writePlan(tempDir(t), planOf(token));
  const results = ways.map((way) => ({ way, cpuUs: [] as number[], ownUs: [] as number[] }));
  for (let round = 0; round <= settings.rounds; round += 1) {
    for (const { way, cpuUs, ownUs } of results) {
      const before = [sumOf(way.own), sumOf(way.others)] as const;
      const load = await (way.load ?? loadOf(way.port, plan))(settings);
      if (load.requests === 0 || load.refused + load.broken > 0) {
        throw new Error(`${way.name}: ${String(load.refused)} refused, ${String(load.broken)} broke`);
      }
      const own = (sumOf(way.own) - before[0]) / load.requests;
      const all = own + (sumOf(way.others) - before[1]) / load.requests;
      if (round === 0) continue;
      ownUs.push(own);
      cpuUs.push(all);
      settings.onRun?.(`round ${String(round)}, ${way.name}: ${all.toFixed(0)} µs, ours ${own.toFixed(0)}`);
    }
  }
  return results.map(({ way: { name }, cpuUs, ownUs }) => ({ name, cpuUs: median(cpuUs), ownUs: median(ownUs) }));
}

/** The result as a Markdown table. */
export function decideTable(measured: readonly MeasuredDecision[]): string {
  const unit = measured[0]?.cpuUs ?? 1;
  const rows = measured.map(({ name, cpuUs, ownUs }) => [
    name,
    cpuUs.toFixed(0),
    ownUs.toFixed(0),
    (cpuUs / unit).toFixed(2),
  ]);
  return markdown(['way', 'CPU, µs a request', 'of it Sallyport', 'to the sidecar'], rows, 1);
}

interface Places {
  readonly receiver: number;
  readonly jwksUrl: string;
  readonly token: string;
}

async function startWays(t: Scope, { receiver, jwksUrl, token }: Places): Promise<Way[]> {
  const ready = { path: '/orders', headers: { Authorization: `Bearer ${token}` } };
  const base = { upstream: { url: `http://127.0.0.1:${String(receiver)}` }, issuers: { core: { jwks_url: jwksUrl } } };
  const startDoor = async (form: 'envoy' | 'nginx'): Promise<Proxy & { readonly decidePort: number }> => {
    const decidePort = await freePort();
    const proxy = await startSallyport(t, { ...base, decide: { port: decidePort, form } }, ready);
    return { ...proxy, decidePort };
  };
  const sidecar = await startSallyport(t, base, ready);
  // Envoy asks by the request itself, over HTTP: so the same load may ask.
  const asked = await startDoor('envoy');
  const behind = await startDoor('nginx');
  const front = await freePort();
  const config = placed(shownConfig('nginx'), { front, decide: behind.decidePort, receiver });
  const nginx = runNginx(t, withKeptConnections(config, { decide: behind.decidePort, receiver }));
  await until('nginx answers', async () => (await request(front, ready).catch(() => null))?.status === 200);
  return [
    { name: 'sidecar: judged and forwarded', port: sidecar.port, own: [sidecar.pid], others: [] },
    { name: 'a decision alone', port: asked.decidePort, own: [asked.pid], others: [] },
    { name: 'nginx, auth_request', port: front, own: [behind.pid], others: [nginx.pid] },
  ];
}

function hasH2load(): boolean {
  return versionOf('h2load', '--version') !== null;
}

function loadOf(port: number, plan: PlanFiles): NonNullable<Way['load']> {
  return async (settings) => runLoad({ ...settings, port, plan });
}

/** Many streams on a connection, as Envoy asks, of which each worker has one. */
const streamsEach = 16;

/** The same process, asked as Envoy does over gRPC: one call for each decision. */
async function overGrpc(t: Scope, { port, own }: Way, token: string): Promise<Way> {
  const message = checkRequest(described({ path: '/orders', headers: { Authorization: `Bearer ${token}` } }));
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(message.length, 1);
  const call = Buffer.concat([prefix, message]);
  const bodyFile = join(tempDir(t), 'check');
  writeFileSync(bodyFile, call);
  const headers = { te: 'trailers', 'content-type': 'application/grpc' };
  const session = await connectHttp2(t, `http://127.0.0.1:${String(port)}`);
  /** Bytes of the answer, which has to be an allow: a refusal is a 200 as well. */
  const allowed = async (): Promise<number> => {
    const { body } = await askHttp2(session, { ':method': 'POST', ':path': checkPath, ...headers }, call);
    if (readResponse(body.subarray(5)).okResponse === undefined) throw new Error('a decision over gRPC was no allow');
    return body.length;
  };
  return {
    name: 'a decision alone, over gRPC',
    port,
    own,
    others: [],
    load: async ({ connections, seconds }) => {
      const asked = {
        url: `http://127.0.0.1:${String(port)}${checkPath}`,
        connections: Math.max(1, Math.round(connections / streamsEach)),
        streams: streamsEach,
        seconds,
        headers,
        bodyFile,
        answerBytes: await allowed(),
      };
      const { requests, wrong } = readH2load(await outputOf(...asLoad('h2load', h2loadArguments(asked))), asked);
      await allowed();
      return { requests, refused: wrong, broken: 0 };
    },
  };
}

/** The config of docs/decide.md, with connections to both sides that are kept, as one has them where speed counts. */
function withKeptConnections(config: string, places: Readonly<Record<'decide' | 'receiver', number>>): string {
  const upstreams = Object.entries(places).map(
    ([name, port]) => `upstream ${name} { server 127.0.0.1:${String(port)}; keepalive 64; }`,
  );
  const named = config
    .replace(`proxy_pass http://127.0.0.1:${String(places.decide)};`, 'proxy_pass http://decide;')
    .replace(
      `proxy_pass http://127.0.0.1:${String(places.receiver)};`,
      'proxy_pass http://receiver;\n    proxy_http_version 1.1;\n    proxy_set_header Connection "";',
    )
    .replace('underscores_in_headers off;', 'underscores_in_headers off;\n  keepalive_requests 1000000;');
  return [...upstreams, named].join('\n');
}

function sumOf(pids: readonly number[]): number {
  return pids.reduce((sum, pid) => sum + cpuMicroseconds(pid), 0);
}
