/** A proxy between raw sockets: a caller that sends any bytes, and a receiver that writes down every byte it gets. */
import { METHODS } from 'node:http';
import { createServer } from 'node:net';
import type { Clock } from '../../src/ports/system.js';
import { startProxy, type Harness } from '../proxy/harness.js';
import { listen } from '../support/listening.js';
import { connectRaw, type RawConnection } from '../support/raw-client.js';
import { merge, type ConfigTree } from '../support/proxy-process.js';
import type { Scope } from '../support/scope.js';
import { differenceOf, sessionKeys, activeSessions } from './in-process.js';
import { keyrings, publicNumbers } from './keyring.js';
import { plainListening } from './model-bound-tokens.js';
import type { Policy } from './model-policy.js';
import { judge, type Expected, type Head, type Surroundings } from './model.js';
import { configOf, nowMs } from './policies.js';
import { readWire, type ReadWire, type WireRequest } from './wire.js';

export interface StreamStage {
  readonly surroundings: Surroundings;
  readonly proxy: Harness;
  /** Whole requests that reached the receiver since this was asked last, and what it got that is none. */
  readonly taken: () => { readonly requests: readonly WireRequest[]; readonly garbage: readonly string[] };
}

/** What became of a stream. */
export interface StreamOutcome {
  readonly fault: string | null;
  readonly reached: number;
  readonly statuses: readonly number[];
}

type Forwarded = Extract<Expected, { kind: 'forwarded' }>;

const callerAddress = '127.0.0.1';
const answer = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n';

/** Tokens were signed for another day. */
const clock: Clock = { now: () => nowMs, monotonic: () => performance.now() };

export async function startStreamStage(t: Scope, policy: Policy, listenKeys: ConfigTree = {}): Promise<StreamStage> {
  let requests: WireRequest[] = [];
  let garbage: string[] = [];
  const receiver = createServer((socket) => {
    let bytes = '';
    let seen = 0;
    socket.on('error', () => undefined);
    socket.on('data', (chunk) => {
      bytes += chunk.toString('latin1');
      const wire = readWire(bytes);
      if (wire.rest === 'malformed') garbage.push(bytes);
      for (const request of wire.requests.slice(seen)) {
        requests.push(request);
        socket.write(request.head.method === 'HEAD' ? answer : `${answer}ok`);
      }
      seen = wire.requests.length;
    });
  });
  const { port } = await listen(t, receiver);
  const find = (keyId: string): ReturnType<(typeof keyrings)[string]> => {
    const lookups = Object.values(keyrings).map((keyring) => keyring(keyId));
    return lookups.find(({ kind }) => kind === 'found') ?? { kind: 'unknown' };
  };
  const proxy = await startProxy(t, {
    config: merge(configOf(policy), { listen: listenKeys }),
    upstreamUrl: `http://127.0.0.1:${String(port)}`,
    clock,
    find,
    sessions: activeSessions,
  });
  const all = new Map([...publicNumbers.values()].flatMap((keys) => [...keys]));
  const keys = new Map([...publicNumbers.keys()].map((name) => [name, all]));
  return {
    surroundings: {
      policy,
      keys,
      sessionKeys,
      nowMs,
      upstreamHost: `127.0.0.1:${String(port)}`,
      callerAddress,
      listening: plainListening,
    },
    proxy,
    taken: () => {
      const taken = { requests, garbage };
      [requests, garbage] = [[], []];
      return taken;
    },
  };
}

/**
 * Sends the bytes over a connection of their own. What reaches the receiver has to be, in order, some of the requests
 * that the model reads from these bytes and lets through, each to the byte; and the first, where there is nothing odd
 * in it.
 */
export async function tryStream(bytes: string, stage: StreamStage): Promise<StreamOutcome> {
  const wire = readWire(bytes);
  const expected = wire.requests.map((request) => ({ request, expected: judge(request.head, stage.surroundings) }));
  const allowed = expected.flatMap(({ request, expected: verdict }) =>
    verdict.kind === 'forwarded' && request.body.length <= verdict.maxBodyBytes ? [{ request, verdict }] : [],
  );
  stage.taken();
  const statuses = await exchange(bytes, wire, stage.proxy.port);
  const { requests: reached, garbage } = stage.taken();
  return { fault: faultOf(), reached: reached.length, statuses };

  function faultOf(): string | null {
    if (garbage.length > 0) return `BYPASS: the receiver got ${JSON.stringify(garbage[0])}`;
    let next = 0;
    for (const request of reached) {
      const differences: (string | null)[] = [];
      while (next < allowed.length) {
        const candidate = allowed[next];
        next += 1;
        const difference =
          candidate === undefined ? null : differenceBetween(request, candidate.request, candidate.verdict);
        differences.push(difference);
        if (difference === null) break;
      }
      if (differences.at(-1) !== null) {
        return `BYPASS: the receiver got ${JSON.stringify(request)}; ${differences.join('; ')}`;
      }
    }
    if (stage.proxy.counted.failures.includes('internal')) return 'a bug was met';
    // Sessions of which the Core says nothing.
    const mayFail = expected.some(
      ({ expected: verdict }) => verdict.kind === 'refused' && verdict.statuses.includes(503),
    );
    if (statuses.some((status) => status >= 500) && !mayFail) return `answered ${statuses.join(' ')}`;
    const [first] = expected;
    const isOwed = first !== undefined && allowed[0]?.request === first.request && isPlain(first.request.head);
    const isMissed = wire.rest === 'none' && reached.length === 0 && isOwed;
    return isMissed ? `the first request did not get through: ${statuses.join(' ')}` : null;
  }
}

/** Of unknown methods, and of odd chunks, Node's parser takes less than RFC 9112 lets it. */
function isPlain({ method, fields }: Head): boolean {
  return METHODS.includes(method) && !fields.some(([name]) => name.toLowerCase() === 'transfer-encoding');
}

/** Sends, reads an answer to each request that there is, says that nothing follows, and waits for the end. */
async function exchange(bytes: string, wire: ReadWire, port: number): Promise<number[]> {
  const caller = await connectRaw(port);
  const statuses: number[] = [];
  try {
    caller.write(Buffer.from(bytes, 'latin1'));
    for (const { head } of wire.requests) {
      const status = await finalStatus(caller, head.method === 'HEAD');
      if (status === null) break;
      statuses.push(status);
    }
    caller.socket.end();
    while (!caller.isClosed()) {
      const status = await finalStatus(caller, false);
      if (status === null) break;
      statuses.push(status);
    }
    return statuses;
  } finally {
    caller.end();
  }
}

async function finalStatus(caller: RawConnection, bodyless: boolean): Promise<number | null> {
  for (;;) {
    const response = await caller.readResponse({ bodyless });
    if (response === null || response.status >= 200) return response?.status ?? null;
  }
}

/**
 * Fields that belong to the connection between proxy and receiver: the body's framing is read, and the body compared.
 */
const ownFields = ['connection', 'transfer-encoding', 'content-length'];

function differenceBetween(got: WireRequest, meant: WireRequest, verdict: Forwarded): string | null {
  if (got.head.method !== meant.head.method || got.head.target !== meant.head.target) {
    return `not ${meant.head.method} ${meant.head.target}`;
  }
  if (got.body !== meant.body) return `the body is not ${JSON.stringify(meant.body)}`;
  const fields = verdict.opens ? [...verdict.fields, ['Upgrade', 'websocket'] as const] : verdict.fields;
  return differenceOf(lowerCase(got.head.fields), { ...verdict, fields: lowerCase(fields) });
}

/** undici writes some names in lower case. */
function lowerCase<V>(fields: readonly (readonly [string, V])[]): (readonly [string, V])[] {
  return fields
    .map(([name, value]) => [name.toLowerCase(), value] as const)
    .filter(([name]) => !ownFields.includes(name));
}
