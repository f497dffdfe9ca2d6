import type { RedisTopology } from '../../../config/types.js';
import type { Redis } from 'ioredis';
import { authenticate, connectOnce, createDiscoveryClient, withDeadline } from '../client/connection.js';
import type { RedisAddress, RedisSettings } from '../client/settings.js';
import { reasonOf, replyCode } from '../scripts/errors.js';

/** A server that is primary now, and the slots it serves. */
export interface FoundPrimary {
  readonly address: RedisAddress;
  /** First and last slot of each range. */
  readonly slots: readonly (readonly [number, number])[];
}

/** Finds out who is primary, again and again. */
interface Discovery {
  /** Asks at once, and somebody else than last time: what was said no longer seems true. */
  readonly doubt: () => void;
  readonly close: () => void;
}

interface DiscoveryEvents {
  readonly found: (primaries: readonly FoundPrimary[]) => void;
  /** Nobody could tell. What was found before stays. */
  readonly failed: (reason: string) => void;
}

/** Pause between two questions, milliseconds: so long may a fail-over go unnoticed. */
const askEveryMs = 1_000;
/** Pause after a doubt: the news travels between the nodes, too. */
const askSoonMs = 100;
/** Milliseconds that one node has to answer, connecting included. */
const replyTimeoutMs = 2_000;

type AskedTopology = Exclude<RedisTopology, { kind: 'single' }>;

/** Asks Sentinels for the primary, or the nodes of a Cluster for all of them. */
export function discoverPrimaries(
  settings: RedisSettings,
  topology: AskedTopology,
  events: DiscoveryEvents,
): Discovery {
  let nodes = topology.nodes;
  /** Index of the node that is asked; it is kept as long as it answers. */
  let current = 0;
  let questioner: Redis | null = null;
  let timer: NodeJS.Timeout | null = null;
  let asking = false;
  let doubted = false;
  let closed = false;
  void ask();

  return {
    doubt: () => {
      if (closed || asking || doubted) return;
      doubted = true;
      turnAway();
      schedule(askSoonMs);
    },
    close: () => {
      closed = true;
      if (timer !== null) clearTimeout(timer);
      hangUp();
    },
  };

  async function ask(): Promise<void> {
    asking = true;
    doubted = false;
    let reason = 'no nodes';
    for (let tried = 0; tried < nodes.length && !closed; tried += 1) {
      try {
        const found = await withDeadline(askNode(), replyTimeoutMs);
        if (!isClosed()) events.found(found);
        break;
      } catch (error) {
        reason = reasonOf(error);
        turnAway();
        if (tried === nodes.length - 1 && !isClosed()) events.failed(reason);
      }
    }
    asking = false;
    schedule(askEveryMs);
  }

  async function askNode(): Promise<readonly FoundPrimary[]> {
    const node = nodes[current % nodes.length];
    if (node === undefined) throw new Error('no nodes');
    const connection = questioner ?? (await connectTo(node));
    if (topology.kind === 'sentinel') return askSentinel(connection, settings, topology.name);
    const { primaries, members } = readClusterSlots(await connection.call('cluster', 'slots'), node);
    if (primaries.length === 0) throw new Error('the Cluster serves no slots');
    // The seeds stay: they may be a name that leads to whoever is there.
    nodes = [...topology.nodes, ...members.filter((member) => !topology.nodes.some((seed) => isSame(seed, member)))];
    return primaries;
  }

  async function connectTo(node: RedisAddress): Promise<Redis> {
    const connection = createDiscoveryClient(settings, node);
    questioner = connection;
    await connectOnce(connection);
    if (topology.kind === 'cluster') await authenticate(connection, settings);
    return connection;
  }

  function turnAway(): void {
    hangUp();
    current = (current + 1) % Math.max(1, nodes.length);
  }

  function hangUp(): void {
    questioner?.disconnect(false);
    questioner = null;
  }

  function schedule(pauseMs: number): void {
    if (closed) return;
    if (timer !== null) clearTimeout(timer);
    timer = setTimeout(() => void ask(), pauseMs);
    timer.unref();
  }

  function isClosed(): boolean {
    return closed;
  }
}

async function askSentinel(sentinel: Redis, settings: RedisSettings, name: string): Promise<readonly FoundPrimary[]> {
  const question = (): Promise<unknown> => sentinel.call('sentinel', 'get-master-addr-by-name', name);
  const [host, port] = listOf(
    await question().catch(async (error: unknown) => {
      // Sentinels often take no password, and refuse one then: it is told to those only that ask for it.
      if (!['NOAUTH', 'NOPERM'].includes(replyCode(error) ?? '')) throw error;
      await authenticate(sentinel, settings);
      return question();
    }),
  );
  if (typeof host !== 'string') throw new Error(`the Sentinel knows no primary named ${name}`);
  return [{ address: { host, port: Number(port) }, slots: [] }];
}

/**
 * Primaries that are connected to, and nodes that are remembered to be asked: a Cluster is made for up to 1,000 nodes
 * (Redis Cluster specification, "Redis Cluster goals").
 */
const mostNodes = 1_000;

interface ClusterView {
  readonly primaries: readonly FoundPrimary[];
  /** All nodes, replicas too: any of them may be asked the next time. */
  readonly members: readonly RedisAddress[];
}

/** Reads the reply of `CLUSTER SLOTS`: ranges, each with its primary first. What holds no slot is no range. */
export function readClusterSlots(reply: unknown, asked: RedisAddress): ClusterView {
  const primaries = new Map<string, { address: RedisAddress; slots: (readonly [number, number])[] }>();
  const members = new Map<string, RedisAddress>();
  const named = new Uint8Array(slotCount);
  for (const range of listOf(reply)) {
    const [first, last, ...servers] = listOf(range);
    if (!isSlot(first) || !isSlot(last) || first > last) continue;
    if (named.subarray(first, last + 1).includes(1)) throw new Error('the Cluster names a slot twice');
    named.fill(1, first, last + 1);
    for (const [index, server] of servers.entries()) {
      const address = addressOf(server, asked);
      if (address === null) continue;
      const name = nameOf(address);
      if (members.size < mostNodes) members.set(name, address);
      if (index > 0) continue;
      const known = primaries.get(name) ?? { address, slots: [] };
      known.slots.push([first, last]);
      primaries.set(name, known);
      if (primaries.size > mostNodes) throw new Error(`the Cluster names more than ${mostNodes} primaries`);
    }
  }
  return { primaries: [...primaries.values()], members: [...members.values()] };
}

function isSlot(value: unknown): value is number {
  return Number.isInteger(value) && Number(value) >= 0 && Number(value) < slotCount;
}

/** A node that does not know its own address gives none: it is the one that was asked. */
function addressOf(server: unknown, asked: RedisAddress): RedisAddress | null {
  const [host, port] = listOf(server);
  if (typeof port !== 'number') return null;
  return { host: typeof host === 'string' && host !== '' && host !== '?' ? host : asked.host, port };
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

export function nameOf({ host, port }: RedisAddress): string {
  return `${host}:${port}`;
}

function isSame(one: RedisAddress, other: RedisAddress): boolean {
  return nameOf(one) === nameOf(other);
}

/** Slots of a Redis Cluster. */
export const slotCount = 16_384;

/**
 * The slot of keys with this hash tag: CRC-16/XMODEM modulo 16384 (Redis Cluster specification, "Key distribution
 * model").
 */
export function slotOf(tag: string): number {
  let crc = 0;
  for (const byte of Buffer.from(tag, 'latin1')) {
    crc ^= byte << 8;
    for (let bit = 0; bit < 8; bit += 1) crc = ((crc & 0x8000) === 0 ? crc << 1 : (crc << 1) ^ 0x1021) & 0xffff;
  }
  return crc % slotCount;
}

/**
 * A hash tag whose keys one primary serves, the same for all that know its slots: the first of a list that falls into
 * one of them.
 *
 * @param ranges first and last slot of each; none where there is no Cluster.
 */
export function tagOf(ranges: readonly (readonly [number, number])[]): string {
  const served = new Uint8Array(slotCount);
  for (const [first, last] of ranges) served.fill(1, first, last + 1);
  let number = 0;
  while (ranges.length > 0 && number < triedTags && served[slotOfTag(number)] !== 1) number += 1;
  return tagNumbered(number);
}

/** Slots of the tags tried so far: a primary of few slots takes thousands, at each look. */
const slotsByTagNumber: number[] = [];

function slotOfTag(number: number): number {
  return (slotsByTagNumber[number] ??= slotOf(tagNumbered(number)));
}

function tagNumbered(number: number): string {
  return `primary-${String(number)}`;
}

/** Tags that are tried at most: every slot has one among them. */
const triedTags = 170_000;

/** Where a node of a Cluster says that keys are served. */
interface Redirection {
  /** `moved`: from now on. `ask`: this once, while they are handed over. */
  readonly kind: 'moved' | 'ask';
  readonly address: RedisAddress;
}

/** Reads `MOVED 3999 10.0.0.7:6381` and `ASK …`. An empty host is the one that was asked. */
export function readRedirection(error: unknown, asked: RedisAddress): Redirection | null {
  const code = replyCode(error);
  if (!(error instanceof Error) || (code !== 'MOVED' && code !== 'ASK')) return null;
  const [, host, port] = /^\S+ \d+ (\S*):(\d+)$/.exec(error.message) ?? [];
  if (host === undefined || port === undefined) return null;
  return {
    kind: code === 'ASK' ? 'ask' : 'moved',
    address: { host: host === '' || host === '?' ? asked.host : host, port: Number(port) },
  };
}
