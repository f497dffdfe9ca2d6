/** What a proof of possession costs beside a bearer token, in CPU of the proxy and in time: with memory, with Redis. */
import { createHash, X509Certificate } from 'node:crypto';
import { Agent, request as send } from 'node:http';
import { Agent as TlsAgent, request as sendOverTls } from 'node:https';
import { certificates, type Certificate, type Certificates } from '../support/certificates.js';
import { makeProof, proofKey, type ProofAlgorithm, type ProofKey } from '../support/dpop.js';
import { startJwksServer } from '../support/jwks-server.js';
import { rsaKey } from '../support/keys.js';
import type { ConfigTree } from '../support/proxy-process.js';
import { startRedis } from '../support/redis-server.js';
import type { Scope } from '../support/scope.js';
import { mintToken } from '../support/tokens.js';
import { startServer } from './child.js';
import { cpuMicroseconds } from './cpu.js';
import { markdown } from './markdown.js';
import { startSallyport, type Proxy } from './sallyport.js';
import { median, quantile } from './statistics.js';

export interface BoundSettings {
  /** Requests of one run; each has a proof of its own, made before. */
  readonly requests: number;
  readonly rounds: number;
  readonly connections: number;
  /** Told of each run as it ends. */
  readonly onRun?: (text: string) => void;
}

/** Medians over the rounds. */
export interface MeasuredBound {
  readonly name: string;
  /** Microseconds of the proxy's CPU for a request, of honest callers and of others. */
  readonly cpuUs: number;
  readonly medianMs: number;
  readonly slowMs: number;
}

type Headers = Readonly<Record<string, string>>;

interface Contender {
  readonly name: string;
  readonly proxy: Proxy;
  readonly status: number;
  readonly headers: (count: number) => readonly Headers[];
  /** Whom the client trusts and what it shows, where TLS is spoken. */
  readonly tls?: ClientTls;
  /** Honest callers beside them, whose times are those of the row. */
  readonly beside?: Contender['headers'];
}

interface ClientTls {
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
}

const origin = 'https://orders.example';

/** Puts the same number of requests on each, in turn, round by round. The first round warms up and does not count. */
export async function measureBound(t: Scope, settings: BoundSettings): Promise<readonly MeasuredBound[]> {
  const runs = (await startContenders(t)).map((contender) => ({
    contender,
    results: [] as Omit<MeasuredBound, 'name'>[],
  }));
  for (let round = 0; round <= settings.rounds; round += 1) {
    for (const { contender, results } of runs) {
      const result = await runOnce(contender, settings);
      if (round > 0) results.push(result);
      settings.onRun?.(`round ${round}, ${contender.name}: ${result.cpuUs.toFixed(0)} µs`);
    }
  }
  return runs.map(({ contender: { name }, results }) => ({
    name,
    cpuUs: median(results.map(({ cpuUs }) => cpuUs)),
    medianMs: median(results.map(({ medianMs }) => medianMs)),
    slowMs: median(results.map(({ slowMs }) => slowMs)),
  }));
}

/** The result as a Markdown table. */
export function boundTable(measured: readonly MeasuredBound[]): string {
  const [bearer] = measured;
  const head = ['request', 'CPU, µs', 'more, µs', 'median, ms', '99 %, ms'];
  const rows = measured.map(({ name, cpuUs, medianMs, slowMs }) => [
    name,
    cpuUs.toFixed(0),
    (cpuUs - (bearer?.cpuUs ?? 0)).toFixed(0),
    medianMs.toFixed(2),
    slowMs.toFixed(2),
  ]);
  return markdown(head, rows, 1);
}

async function runOnce(
  contender: Contender,
  { requests, connections }: BoundSettings,
): Promise<Omit<MeasuredBound, 'name'>> {
  const { proxy, headers, beside } = contender;
  const waiting = [...headers(requests)];
  // Half as many as they could send meanwhile: the others go on for longer than they do.
  const honest = beside === undefined ? [] : [...beside(Math.ceil((requests * honestConnections) / connections / 2))];
  const cpuBefore = cpuMicroseconds(proxy.pid);
  const [times, honestTimes] = await Promise.all([
    timesOf(contender, waiting, connections),
    timesOf({ ...contender, status: 200 }, honest, honestConnections),
  ]);
  const cpuUs = (cpuMicroseconds(proxy.pid) - cpuBefore) / (times.length + honestTimes.length);
  const told = beside === undefined ? times : honestTimes;
  return { cpuUs, medianMs: median(told), slowMs: quantile(told, 0.99) };
}

/** Beside a flood: a quarter of its connections at the usual number. */
const honestConnections = 8;

/** Sends all of these, on so many connections, and returns how long each took, milliseconds. */
async function timesOf(
  { name, proxy, status, tls }: Pick<Contender, 'name' | 'proxy' | 'status' | 'tls'>,
  waiting: Headers[],
  connections: number,
): Promise<readonly number[]> {
  const options = { keepAlive: true, maxSockets: connections };
  const agent = tls === undefined ? new Agent(options) : new TlsAgent({ ...options, ...tls });
  const times: number[] = [];
  const worker = async (): Promise<void> => {
    for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
      const startedMs = performance.now();
      const answered = await statusOf(proxy.port, agent, next);
      times.push(performance.now() - startedMs);
      if (answered !== status) throw new Error(`${name}: answered ${answered}`);
    }
  };
  try {
    await Promise.all(Array.from({ length: connections }, worker));
  } finally {
    agent.destroy();
  }
  return times;
}

function statusOf(port: number, agent: Agent | TlsAgent, headers: Headers): Promise<number> {
  return new Promise((resolve, reject) => {
    const ask = agent instanceof TlsAgent ? sendOverTls : send;
    const req = ask({ port, host: '127.0.0.1', path: '/orders', agent, headers }, (res) => {
      res.on('end', () => resolve(res.statusCode ?? 0)).resume();
    });
    req.on('error', reject).end();
  });
}

async function startContenders(t: Scope): Promise<readonly Contender[]> {
  const key = rsaKey();
  const receiver = (await startServer(t, 'receiver')).port;
  const jwks = (await startJwksServer(t, { keys: [key] })).url;
  const redis = await startRedis(t);
  const exp = Math.floor(Date.now() / 1_000) + 7_000;
  const bearer = mintToken({ key, claims: { exp } });
  const plain: Headers = { Authorization: `Bearer ${bearer}` };
  const start = async (store: ConfigTree, files?: Certificates): Promise<Proxy> => {
    const tls = files && { cert_file: files.server.certFile, key_file: files.server.keyFile, client_auth: 'request' };
    const config = {
      listen: { dpop: { origins: [origin], max_age: '10m', clock_skew: '0ms' }, ...(tls === undefined ? {} : { tls }) },
      upstream: { url: `http://127.0.0.1:${receiver}` },
      issuers: { core: { jwks_url: jwks } },
      store,
    };
    const ready = { path: '/orders', headers: { ...plain } };
    return startSallyport(t, config, ready, files === undefined ? {} : { tls: { ca: files.ca.cert } });
  };
  const atRedis = { redis: { url: `redis://127.0.0.1:${redis.port}`, reserve_timeout: '5s' } };
  const [memory, shared] = [await start({ memory: {} }), await start(atRedis)];
  const files = certificates(t);
  const [tlsMemory, tlsShared] = [await start({ memory: {} }, files), await start(atRedis, files)];
  const repeated = (token: string): Contender['headers'] => {
    const headers: Headers = { Authorization: `Bearer ${token}` };
    return (count) => Array.from({ length: count }, () => headers);
  };
  /** A client whose tokens are bound to its certificate; of a thief the token is another's. */
  const showing = (owner: Certificate): Pick<Contender, 'headers' | 'tls'> => ({
    headers: repeated(mintToken({ key, claims: { exp, cnf: { 'x5t#S256': thumbprintOf(owner) } } })),
    tls: clientTls(files),
  });
  const proving = (algorithm: ProofAlgorithm, signer?: ProofKey): Contender['headers'] => {
    const own = proofKey(algorithm);
    const token = mintToken({ key, claims: { exp, cnf: { jkt: own.thumbprint } } });
    const forged = signer === undefined ? {} : { signer };
    return (count) =>
      Array.from({ length: count }, () => ({
        Authorization: `DPoP ${token}`,
        DPoP: makeProof(own, { uri: `${origin}/orders`, token, ...forged }),
      }));
  };
  // Proofs from the second in which the store was first seen are refused.
  await new Promise((resolve) => setTimeout(resolve, 2_000));
  return [
    { name: 'bearer', proxy: memory, status: 200, headers: repeated(bearer) },
    { name: 'ES256, memory', proxy: memory, status: 200, headers: proving('ES256') },
    { name: 'Ed25519, memory', proxy: memory, status: 200, headers: proving('Ed25519') },
    { name: 'RS256, memory', proxy: memory, status: 200, headers: proving('RS256') },
    { name: 'ES256, Redis', proxy: shared, status: 200, headers: proving('ES256') },
    { name: 'Ed25519, Redis', proxy: shared, status: 200, headers: proving('Ed25519') },
    { name: 'bearer over TLS', proxy: tlsMemory, status: 200, headers: repeated(bearer), tls: clientTls(files) },
    { name: 'certificate, memory', proxy: tlsMemory, status: 200, ...showing(files.client) },
    { name: 'certificate, Redis', proxy: tlsShared, status: 200, ...showing(files.client) },
    { name: 'certificate of another', proxy: tlsShared, status: 401, ...showing(files.stranger) },
    { name: 'wrong signature, ES256', proxy: shared, status: 401, headers: proving('ES256', proofKey('ES256')) },
    {
      name: 'honest ES256, Redis, beside wrong signatures',
      proxy: shared,
      status: 401,
      headers: proving('ES256', proofKey('ES256')),
      beside: proving('ES256'),
    },
  ];
}

function clientTls({ ca, client }: Certificates): ClientTls {
  return { ca: ca.cert, cert: client.cert, key: client.key };
}

/** RFC 8705 §3.1. */
function thumbprintOf({ cert }: Certificate): string {
  return createHash('sha256').update(new X509Certificate(cert).raw).digest('base64url');
}
