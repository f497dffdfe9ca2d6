/** Proxies that stand still for longer than their time-outs, while peers of theirs do what they do. */
import { setTimeout as delay } from 'node:timers/promises';
import type { Test } from 'tap';
import { certificates, type Certificates } from '../support/certificates.js';
import { startProxyProcess, type ConfigTree, type ProxyProcess } from '../support/proxy-process.js';
import { until } from '../support/until.js';
import { hostilePeers, startHostilePeer, type HostilePeer } from './hostile-peers.js';

const shortMs = 200;
const longMs = 400;
export const short = `${String(shortMs)}ms`;
export const long = `${String(longMs)}ms`;

/** How long before it stands still requests come; milliseconds. */
const headStarts = [0, 20, 150];

export interface Transport {
  readonly name: string;
  /** `s` where TLS is asked for: at the end of a scheme. */
  readonly secure: '' | 's';
  /** The version of TLS that the peer agrees on; `null`: none, it says what it says in the midst of the handshake. */
  readonly agreed: 'TLSv1.2' | 'TLSv1.3' | null;
}

export const transports: readonly Transport[] = [
  { name: 'no TLS', secure: '', agreed: null },
  { name: 'in the midst of a TLS handshake', secure: 's', agreed: null },
  { name: 'behind a handshake of TLS 1.2', secure: 's', agreed: 'TLSv1.2' },
  { name: 'behind a handshake of TLS 1.3', secure: 's', agreed: 'TLSv1.3' },
];

export interface Stall {
  readonly transport: Transport;
  readonly peer: HostilePeer;
  readonly files: Certificates;
  /** Of the peer. */
  readonly port: number;
}

/** What of the config has this peer. */
export type Part = (stall: Stall) => ConfigTree;

/** Of a name with two addresses. */
export function urlOf({ transport, port }: Stall, scheme = 'http'): string {
  return `${scheme}${transport.secure}://localhost:${String(port)}`;
}

export function trust({ transport, files }: Stall): ConfigTree {
  return transport.secure === 's' ? { ca_file: files.ca.certFile } : {};
}

export type Ask = (proxy: ProxyProcess) => Promise<number>;

/** A connection that was ended in the place of a response. */
const cut = 0;

/** What is told of a store that cannot be reached. */
function isOfTheStore(msg: unknown): boolean {
  return /^(?:revocations cannot be read from the store|the store takes no reservations): /.test(String(msg));
}

async function standStill(proxy: ProxyProcess): Promise<void> {
  proxy.signal('SIGSTOP');
  await delay(longMs + 200);
  proxy.signal('SIGCONT');
}

/** Ends when the last proxy has started. */
let starting: Promise<unknown> = Promise.resolve();

/** One process after another: starting takes more of the CPU than all that comes then. */
async function startInTurn(t: Test, config: ConfigTree): Promise<ProxyProcess> {
  const started = starting.then(async () => startProxyProcess(t, { config, ready: false }));
  starting = started.catch(() => undefined);
  return started;
}

/** Stands still with requests in each state, and is stopped. */
async function stall(t: Test, setting: Omit<Stall, 'files' | 'port'>, part: Part, asks: readonly Ask[]): Promise<void> {
  const { transport, peer } = setting;
  const files = certificates(t);
  const { cert, key } = files.server;
  const { agreed } = transport;
  const tls = agreed === null ? null : { cert, key, minVersion: agreed, maxVersion: agreed };
  const port = await startHostilePeer(t, peer, tls);
  const proxy = await startInTurn(t, part({ ...setting, files, port }));
  for (const headStartMs of headStarts) {
    const asked = asks.map(async (ask) =>
      ask(proxy).catch((error: unknown) => {
        if (error instanceof Error && error.message.startsWith('no answer to ')) return cut;
        throw error;
      }),
    );
    await delay(headStartMs);
    await standStill(proxy);
    for (const [index, status] of (await Promise.all(asked)).entries()) {
      const about = `${peer.name}, after ${String(headStartMs)} ms, request ${String(index)}: ${String(status)}`;
      t.ok([200, 502, 503, 504, ...(peer.breaksOff === true ? [cut] : [])].includes(status), about);
    }
  }
  await until('every place is given back', async () => (await proxy.metric('sallyport_requests_in_flight')) === 0);
  const errors = proxy
    .logs()
    .filter(({ level, msg }) => (level === 'error' || level === 'fatal') && !isOfTheStore(msg));
  t.same(errors, [], peer.name);
  t.same(await proxy.stop(), { code: 0, signal: null }, peer.name);
}

/** One proxy for each hostile peer, all at once. */
export async function standStillWithEach(
  t: Test,
  transport: Transport,
  part: Part,
  asks: readonly Ask[],
): Promise<void> {
  await Promise.all(hostilePeers.map(async (peer) => stall(t, { transport, peer }, part, asks)));
}
