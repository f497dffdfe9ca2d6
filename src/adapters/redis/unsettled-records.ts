import type { Redis } from 'ioredis';
import { inDoubtAfterLease, recordVersion } from '../../decision/idempotency/record.js';
import { parseRecordId } from '../../decision/idempotency/scope.js';
import { accept, refuse } from '../../lib/result.js';
import type {
  ShownRecord,
  StoreFailure,
  UnsettledList,
  UnsettledQuery,
  UnsettledRecord,
  UnsettledRecords,
} from '../../ports/idempotency.js';
import { createConnection, useDatabase, withDeadline } from './client/connection.js';
import { numberOf, readShown, textOf } from './scripts/replies.js';
import type { Servers } from './topology/primaries.js';
import type { RedisAddress, RedisSettings } from './client/settings.js';
import { failureOf } from './scripts/errors.js';

/** Keys that the server looks at in one go: a millisecond or less, in which it serves nobody else. */
const keysAtOnce = 500;

/** What is read of a record at first; the kept response is never read. */
const fieldsOfRecord = ['v', 's', 'fp', 'o', 'f', 'c', 'l', 'to', 'r'] as const;

/**
 * Looks for unsettled records with SCAN, on each primary over a connection of its own. A record that a Cluster moves to
 * another primary meanwhile may be missed; where that shows, it is counted as unreadable.
 */
export function createUnsettledRecords(servers: Pick<Servers, 'addresses'>, settings: RedisSettings): UnsettledRecords {
  return {
    list: async (query) => {
      const search = new Search(settings, query);
      try {
        for (const address of servers.addresses()) await search.lookThrough(address);
      } catch (error) {
        return refuse(failure(error));
      }
      return accept(search.found());
    },
  };
}

/** What only reads has changed nothing. */
function failure(error: unknown): StoreFailure {
  return { ...failureOf(error), mayHaveRun: false };
}

class Search {
  /** SCAN may name a key twice. */
  private readonly records = new Map<string, ShownRecord>();
  private keys = 0;
  private unreadable = 0;
  private isWhole = true;

  constructor(
    private readonly settings: RedisSettings,
    private readonly query: UnsettledQuery,
  ) {}

  found(): UnsettledList {
    const records: readonly UnsettledRecord[] = [...this.records]
      .map(([id, shown]) => ({ id, shown }))
      .sort((a, b) => a.shown.record.createdAtMs - b.shown.record.createdAtMs);
    return { records, isWhole: this.isWhole, keys: this.keys, unreadable: this.unreadable };
  }

  async lookThrough(address: RedisAddress): Promise<void> {
    if (!this.isWhole) return;
    const connection = createConnection(this.settings, address, () => 0);
    // Told by the command that finds no connection.
    connection.on('error', () => undefined);
    try {
      await this.replyTo(connection.connect());
      await this.replyTo(useDatabase(connection, this.settings));
      let cursor: string | null = '0';
      while (cursor !== null) cursor = await this.lookFrom(connection, cursor);
    } finally {
      connection.disconnect(false);
    }
  }

  /** Looks at a piece of the keys and returns where to go on; `null` where nothing is left to look for. */
  private async lookFrom(connection: Redis, cursor: string): Promise<string | null> {
    const match = `${this.settings.prefix}:{*}:i:*`;
    const [next, keys] = await this.replyTo(
      connection.scan(cursor, 'MATCH', match, 'COUNT', keysAtOnce, 'TYPE', 'hash'),
    );
    await this.look(connection, keys);
    this.query.onProgress({ keys: this.keys, found: this.records.size });
    return next === '0' || !this.isWhole ? null : next;
  }

  /** Most records are settled: of those nothing but the state is read. */
  private async look(connection: Redis, keys: readonly string[]): Promise<void> {
    this.keys += keys.length;
    const named = keys.flatMap((key) => {
      // What has such a name and is no record is another program's.
      const id = key.slice(this.settings.prefix.length + 2).replace('}:i:', '.');
      return parseRecordId(id) === null ? [] : [{ key, id }];
    });
    const states = await this.replies(
      connection,
      named.map(({ key }) => ['hmget', key, 's']),
    );
    const open = named
      .map((record, index) => ({ ...record, state: states[index] }))
      .filter(({ state }) => isOpen(state));
    if (open.length === 0) return;
    const [time, ...replies] = await this.replies(connection, [
      ['time'],
      ...open.flatMap(({ key, state }) => questions(key, isHandedOver(state))),
    ]);
    const nowMs = timeOf(time);
    for (const [index, { id }] of open.entries()) {
      const [, fields, , ttl] = replies.slice(index * questionCount, (index + 1) * questionCount);
      this.take(id, read(nowMs, fields, ttl));
    }
  }

  private take(id: string, shown: ShownRecord | 'gone' | 'unreadable'): void {
    if (shown === 'unreadable') this.unreadable += 1;
    if (shown === 'gone' || shown === 'unreadable' || this.records.has(id)) return;
    const { state } = inDoubtAfterLease(shown.record, shown.nowMs);
    if (state !== 'unknown' && (state !== 'pending' || this.query.inDoubtOnly)) return;
    if (this.records.size < this.query.most) this.records.set(id, shown);
    else this.isWhole = false;
  }

  /** An error in the place of what a command was refused: of one key, not of all. */
  private async replies(connection: Redis, commands: readonly (readonly string[])[]): Promise<readonly unknown[]> {
    if (commands.length === 0) return [];
    const pipeline = connection.pipeline();
    for (const [name = '', ...args] of commands) pipeline.callBuffer(name, ...args);
    const replies = (await this.replyTo(pipeline.exec())) ?? [];
    const refused = replies.find(([error]) => error !== null && !isOfOneKey(error))?.[0];
    if (refused !== undefined && refused !== null) throw refused;
    return replies.map(([error, reply]) => error ?? reply);
  }

  private async replyTo<T>(asked: Promise<T>): Promise<T> {
    return withDeadline(asked, this.settings.settleTimeoutMs);
  }
}

/** Whether the state says so, or could not be read. */
function isOpen(reply: unknown): boolean {
  return !Array.isArray(reply) || ['pending', 'unknown'].includes(textOf(reply[0]));
}

/**
 * What is asked of one record. What a server got of a slot that is handed over to it, it tells to those who say that
 * they were sent.
 */
function questions(key: string, isSent: boolean): readonly (readonly string[])[] {
  const first = isSent ? ['asking'] : ['pttl', key];
  return [first, ['hmget', key, ...fieldsOfRecord], first, ['pttl', key]];
}

const questionCount = 4;

function isHandedOver(reply: unknown): boolean {
  return reply instanceof Error && reply.message.startsWith('MOVED ');
}

/** A key of another kind, or one that a Cluster hands to another server. */
function isOfOneKey(error: Error): boolean {
  return /^(?:WRONGTYPE|MOVED|ASK|TRYAGAIN) /.test(error.message);
}

/** The reply of TIME: seconds and microseconds. */
function timeOf(reply: unknown): number {
  const parts: readonly unknown[] = Array.isArray(reply) ? reply : [];
  return numberOf(parts[0]) * 1_000 + Math.floor(numberOf(parts[1]) / 1_000);
}

function read(nowMs: number, fields: unknown, ttl: unknown): ShownRecord | 'gone' | 'unreadable' {
  const values: readonly unknown[] = Array.isArray(fields) ? fields : [];
  if (values.length !== fieldsOfRecord.length) return 'unreadable';
  const [version, state, fingerprint, owner, fence, created, lease, takenOver, route] = values;
  // Settled, or over, since its state was read.
  if (!isOpen([state])) return 'gone';
  try {
    const now = Buffer.from(String(nowMs));
    const shown = readShown([
      now,
      version,
      state,
      fingerprint,
      owner,
      fence,
      created,
      lease,
      null,
      null,
      null,
      takenOver,
      route,
      Buffer.from(String(ttl)),
    ]);
    return shown === null || shown.record.version !== recordVersion ? 'unreadable' : shown;
  } catch {
    return 'unreadable';
  }
}
