/**
 * In the runs with a mirror each server of a test has a mirror, which serves the second proxy: so nothing that
 * the first proxy does is counted twice, and a fault that one proxy meets the other meets too.
 */
import type { ConfigTree } from './proxy-process.js';

/** What the second proxy beside each of a test is: one in shadow mode, one that is asked over HTTP/2, or none. */
export const mirrorKind = kindOf(process.env);

export const isMirrored = mirrorKind !== null;

/** What a receiver got of one request. */
export interface Seen {
  readonly method: string;
  readonly target: string;
  readonly body: Buffer;
  /** Name, value, name, value … as they came. */
  readonly rawHeaders: readonly string[];
}

type Find = (requestId: string) => Seen | null;

interface Pair {
  readonly own: Find;
  readonly mirror: Find;
  /** Whether the mirror has every fault that its original has. */
  readonly isAlike: boolean;
}

const addresses = new Map<string, string>();
const pairs: Pair[] = [];

/** Where the second proxy finds what the first one has there. */
export function addMirror(address: string, mirrorAddress: string): void {
  addresses.set(address, mirrorAddress);
}

export function addReceivers(pair: Pair): void {
  pairs.push(pair);
}

/** What the receivers of the first proxy, or their mirrors, got of this request. */
export function seenBy(side: 'own' | 'mirror', requestId: string): (Seen & Pick<Pair, 'isAlike'>) | null {
  for (const pair of pairs) {
    const seen = pair[side](requestId);
    if (seen !== null) return { ...seen, isAlike: pair.isAlike };
  }
  return null;
}

/** Whether all receivers of this process have mirrors with their faults. */
export function areAllAlike(): boolean {
  return pairs.every(({ isAlike }) => isAlike);
}

/** The mirror's port of a server that was at this port, `0` where it had none. */
export function mirrorPortOf(port: number | undefined): number {
  for (const [address, mirror] of addresses) {
    if (port !== undefined && port !== 0 && address.includes(`:${String(port)}`)) return Number(new URL(mirror).port);
  }
  return 0;
}

/** The config with the addresses of mirrors in the place of their originals. */
export function withMirrors(config: ConfigTree): ConfigTree {
  return replaced(config) as ConfigTree;
}

function replaced(value: unknown): unknown {
  if (typeof value === 'string') return addresses.get(value) ?? value;
  if (Array.isArray(value)) return value.map(replaced);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, replaced(member)]));
}

function kindOf(env: NodeJS.ProcessEnv): 'shadow' | 'http2' | null {
  if (env['SALLYPORT_SHADOW_MIRROR'] === '1') return 'shadow';
  return env['SALLYPORT_HTTP2_MIRROR'] === '1' ? 'http2' : null;
}
