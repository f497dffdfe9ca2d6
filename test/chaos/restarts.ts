/** Callers of every kind, at a proxy that is reloaded and ended again and again: each request has to have an answer. */
import { createHash, randomUUID } from 'node:crypto';
import { Agent, createServer, request as httpRequest, type IncomingMessage } from 'node:http';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { startJwksServer } from '../support/jwks-server.js';
import { rsaKey } from '../support/keys.js';
import { freePort, listen } from '../support/listening.js';
import { request } from '../support/raw-client.js';
import { startRedis } from '../support/redis-server.js';
import type { Scope } from '../support/scope.js';
import { startServe, type ServeProcess } from '../support/serve-process.js';
import { tempDir } from '../support/temp-dir.js';
import { mintToken } from '../support/tokens.js';
import { until } from '../support/until.js';
import { baseConfig } from '../support/proxy-process.js';

const own = { subjects: ['checkout'], permissions: [] };
const routes = [
  { name: 'read', methods: ['GET', 'HEAD'], path: '/read', ...own },
  { name: 'stream', methods: ['GET'], path: '/stream', ...own },
  { name: 'events', methods: ['GET'], path: '/events', ...own },
  { name: 'live', methods: ['GET'], path: '/live', websocket: true, ...own },
  { name: 'plain', methods: ['POST'], path: '/plain', idempotency: 'none', ...own },
  { name: 'reserved', methods: ['POST'], path: '/reserved', idempotency: 'required', ...own },
];

type Kind = 'read' | 'head' | 'stream' | 'events' | 'live' | 'plain' | 'reserved';
const kinds: readonly Kind[] = [
  'read',
  'head',
  'stream',
  'plain',
  'reserved',
  'read',
  'events',
  'plain',
  'reserved',
  'live',
];

/** What became of all requests. */
export interface RestartsReport {
  /** How often each outcome came: a kind, and a status, or what went wrong. */
  readonly outcomes: ReadonlyMap<string, number>;
  readonly requests: number;
  /** Requests that were sent and had no answer, or not all of it. */
  readonly lost: readonly string[];
  readonly ranTwice: number;
  readonly exits: readonly (number | null)[];
  readonly reloads: number;
}

export interface Instance {
  readonly port: number;
  readonly adminPort: number;
  readonly reload: () => void;
  /** Ends it in order and starts it again; resolves once it is ready. */
  readonly restart: () => Promise<void>;
}

export interface Fleet {
  readonly instances: readonly Instance[];
  readonly bearer: string;
  readonly executions: ReadonlyMap<string, number>;
  readonly exits: readonly (number | null)[];
}

/** Starts so many proxies before the same two upstreams. */
export async function startFleet(t: Scope, count: number, delay: string): Promise<Fleet> {
  const key = rsaKey();
  const jwks = await startJwksServer(t, { keys: [key] });
  const redis = await startRedis(t);
  const executions = new Map<string, number>();
  const upstreams = [await startUpstream(t, executions), await startUpstream(t, executions)];
  const exits: (number | null)[] = [];
  const instances = [];
  for (let i = 0; i < count; i += 1) instances.push(await startInstance());
  return {
    instances,
    executions,
    exits,
    bearer: `Bearer ${mintToken({ key, claims: { exp: Math.floor(Date.now() / 1_000) + 3_600 } })}`,
  };

  async function startInstance(): Promise<Instance> {
    const file = join(tempDir(t), 'sallyport.yaml');
    const [port, adminPort] = [await freePort(), await freePort()];
    let turn = 0;
    const write = (): void =>
      writeFileSync(
        file,
        baseConfig({
          listen: { port },
          admin: { port: adminPort },
          routes,
          shutdown: { delay, grace: '10s' },
          upstream: { url: upstreams[turn % 2] },
          issuers: { core: { jwks_url: jwks.url } },
          store: {
            redis: { url: `redis://127.0.0.1:${String(redis.port)}`, reserve_timeout: '5s', settle_timeout: '5s' },
          },
        }),
      );
    write();
    const start = async (): Promise<ServeProcess> => {
      const serve = startServe(t, file);
      await until(
        'it is ready',
        async () => (await request(adminPort, { path: '/readyz' }).catch(() => null))?.status === 200,
      );
      return serve;
    };
    let serve = await start();
    return {
      port,
      adminPort,
      reload: () => {
        turn += 1;
        write();
        serve.signal('SIGHUP');
      },
      restart: async () => {
        serve.signal('SIGTERM');
        exits.push((await serve.exited).code);
        serve = await start();
      },
    };
  }
}

async function startUpstream(t: Scope, executions: Map<string, number>): Promise<string> {
  const server = createServer((req, res) => {
    if (req.url === '/stream' || req.url === '/events') {
      const type = req.url === '/events' ? 'text/event-stream' : 'text/plain';
      res.writeHead(200, { 'Content-Type': type, ...(req.url === '/stream' ? { 'Content-Length': '50' } : {}) });
      let left = 10;
      const timer = setInterval(() => {
        res.write('tick\n');
        left -= 1;
        if (left > 0) return;
        clearInterval(timer);
        res.end();
      }, 20);
      return;
    }
    req.resume().on('end', () => {
      const idempotencyKey = req.headers['idempotency-key'];
      if (typeof idempotencyKey === 'string') executions.set(idempotencyKey, (executions.get(idempotencyKey) ?? 0) + 1);
      setTimeout(() => res.end('done'), Math.random() * 30);
    });
  });
  server.on('upgrade', (req, socket) => {
    const accept = createHash('sha1')
      .update(`${req.headers['sec-websocket-key'] ?? ''}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`)
      .digest('base64');
    socket.on('error', () => undefined).on('data', () => socket.end());
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`,
    );
  });
  server.keepAliveTimeout = 60_000;
  return `http://127.0.0.1:${String((await listen(t, server)).port)}`;
}

export interface Callers {
  /** Ends them, and tells what they saw. */
  readonly end: () => Promise<Pick<RestartsReport, 'outcomes' | 'requests' | 'lost'>>;
  readonly count: () => number;
}

/** So many callers, one request after the other, half of them on connections that they keep. */
export function startCallers(ports: readonly number[], bearer: string, count: number): Callers {
  const outcomes = new Map<string, number>();
  const lost: string[] = [];
  let requests = 0;
  let isOver = false;
  const call = async (number: number): Promise<void> => {
    const agent = number % 2 === 0 ? new Agent({ keepAlive: true, maxSockets: 1 }) : null;
    for (let turn = number; !isOver; turn += 1) {
      const kind = kinds[turn % kinds.length] ?? 'read';
      const outcome = await ask(ports[turn % ports.length] ?? 0, kind, bearer, agent);
      // Nobody listened, so that nothing was sent.
      if (outcome === 'ECONNREFUSED') {
        await sleep(20);
        continue;
      }
      requests += 1;
      const name = `${kind} ${outcome}`;
      outcomes.set(name, (outcomes.get(name) ?? 0) + 1);
      if (!/^\d{3}$/.test(outcome)) lost.push(`${name}${agent === null ? '' : ', kept connection'}`);
      await sleep(Math.random() * 300);
    }
    agent?.destroy();
  };
  const all = Array.from({ length: count }, async (_, number) => call(number));
  return {
    count: () => requests,
    end: async () => {
      isOver = true;
      await Promise.all(all);
      return { outcomes, requests, lost };
    },
  };
}

/** One request; resolves with the status of a whole answer, or with what went wrong. */
async function ask(port: number, kind: Kind, bearer: string, agent: Agent | null): Promise<string> {
  const isWrite = kind === 'plain' || kind === 'reserved';
  const method = kind === 'head' ? 'HEAD' : isWrite ? 'POST' : 'GET';
  const upgrade = {
    Connection: 'Upgrade',
    Upgrade: 'websocket',
    'Sec-WebSocket-Version': '13',
    'Sec-WebSocket-Key': 'dGhlIHNhbXBsZSBub25jZQ==',
  };
  const headers = {
    Authorization: bearer,
    ...(kind === 'live' ? upgrade : {}),
    ...(kind === 'reserved' ? { 'Idempotency-Key': `"${randomUUID()}"` } : {}),
  };
  return new Promise((resolve) => {
    const sent = httpRequest({
      host: '127.0.0.1',
      port,
      method,
      path: kind === 'head' ? '/read' : `/${kind}`,
      headers,
      agent: kind === 'live' || agent === null ? false : agent,
    });
    sent.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    sent.on('upgrade', (response, socket) => {
      // What is closed after the handshake was answered.
      socket.on('error', () => undefined).on('close', () => undefined);
      setTimeout(() => socket.destroy(), 100);
      resolve(String(response.statusCode));
    });
    sent.on('response', (response: IncomingMessage) => {
      response.on('error', (error: NodeJS.ErrnoException) => resolve(`cut: ${error.code ?? error.message}`));
      response.resume().on('end', () => resolve(response.complete ? String(response.statusCode) : 'cut'));
    });
    sent.end(isWrite ? 'a body' : undefined);
  });
}

export function linesOf({ requests, outcomes, lost, ranTwice, exits, reloads }: RestartsReport): readonly string[] {
  return [
    `${String(requests)} requests, ${String(exits.length)} SIGTERMs, ${String(reloads)} reloads; lost: ${String(lost.length)}, run twice: ${String(ranTwice)}`,
    [...outcomes]
      .sort()
      .map(([name, count]) => `${name}: ${String(count)}`)
      .join(', '),
    ...lost,
  ];
}

export interface RestartsOptions {
  readonly restarts: number;
  readonly reloadsBetween: number;
  readonly requests: number;
  readonly delay: string;
  readonly callers?: number;
}

/** One proxy, which is reloaded with another upstream so often between two ends. */
export async function restartUnderLoad(
  t: Scope,
  { restarts, reloadsBetween, requests, delay, callers = 60 }: RestartsOptions,
): Promise<RestartsReport> {
  const fleet = await startFleet(t, 1, delay);
  const [instance] = fleet.instances;
  if (instance === undefined) throw new Error('no proxy');
  const running = startCallers([instance.port], fleet.bearer, callers);
  for (let i = 0; i < restarts; i += 1) {
    for (let j = 0; j < reloadsBetween; j += 1) {
      await sleep(500);
      instance.reload();
    }
    const goal = (requests * (i + 1)) / restarts;
    await until('enough was asked', () => running.count() >= goal, 120_000);
    await instance.restart();
  }
  return reportOf(fleet, await running.end(), restarts * reloadsBetween);
}

export function reportOf(
  { executions, exits }: Fleet,
  seen: Awaited<ReturnType<Callers['end']>>,
  reloads: number,
): RestartsReport {
  return { ...seen, ranTwice: [...executions.values()].filter((count) => count > 1).length, exits, reloads };
}
