import { randomBytes } from 'node:crypto';
import { accept, refuse, type Result } from '../../lib/result.js';
import type { StoredRevocations } from '../../decision/revocation/local-list.js';
import {
  maxRevocationBytes,
  maxRevocationRecords,
  readRevocation,
  readUndo,
  revocationBody,
  undoBody,
  type Revocation,
  type RevocationUndo,
} from '../../decision/revocation/record.js';
import type { StoreFailure } from '../../ports/idempotency.js';
import type { RevocationStore, UndoneRevocation, WrittenRevocation } from '../../ports/revocations.js';
import { subscribeToRevocations } from './revocation-channel.js';
import { numberOf, textOf } from './scripts/replies.js';
import { revocationScripts } from './scripts/revocation.js';
import type { ScriptCall, ScriptReply } from './scripts/run-script.js';
import type { Script } from './scripts/reservation.js';
import type { Servers } from './topology/primaries.js';
import type { RedisSettings } from './client/settings.js';

/** The hash tag of a Cluster: all of them are on one slot. No caller's digest is as short. */
export const revocationTag = 'revoked';

/** A whole list may take longer than a settlement. */
const loadTimeoutMs = 2_000;

/** What `load` is told where nothing is known; no version is written so. */
const noVersion = '*';

/** Keeps revocations in Redis, where every proxy that shares the prefix sees them. */
export function createRevocationStore(
  servers: Pick<Servers, 'run' | 'addressOf'>,
  settings: RedisSettings,
): RevocationStore {
  const { prefix, settleTimeoutMs } = settings;
  const key = `${prefix}:{${revocationTag}}:list`;
  const channel = `${prefix}:{${revocationTag}}:news`;
  const most = String(maxRevocationRecords);

  return {
    load: async (known) => {
      const values = [known ?? noVersion, String(2 * maxRevocationRecords), String(maxRevocationBytes)];
      const read = await run(
        revocationScripts.revocations,
        values,
        { deadlineMs: loadTimeoutMs, replicas: 0 },
        readList,
      );
      if (!read.ok) return read;
      if (read.value !== 'too_many') return accept(read.value);
      return refuse(
        failure('refused', `the store holds more than ${String(2 * maxRevocationRecords)} records of revocations`),
      );
    },
    follow: (onNews) => subscribeToRevocations(settings, channel, () => servers.addressOf(revocationTag), onNews),
    revoke: async (revocation, holdsMs, replicas = 0) => {
      const body = revocationBody(revocation);
      if (Buffer.byteLength(body) > maxRevocationBytes - 64) {
        return refuse(failure('refused', 'the revocation is too long to be kept'));
      }
      const values = [revocation.id, body, String(holdsMs), most, channel];
      return orFull(
        await run(revocationScripts.revoke, values, { deadlineMs: settleTimeoutMs, replicas }, readWritten),
      );
    },
    undo: async (id, by, replicas = 0) => {
      const values = [id, undoBody(by), randomBytes(16).toString('base64url'), most, channel];
      return orFull(await run(revocationScripts.undo, values, { deadlineMs: settleTimeoutMs, replicas }, readUndone));
    },
    announce: async () =>
      run(
        revocationScripts.announce,
        [channel],
        { deadlineMs: settleTimeoutMs, replicas: 0 },
        (_parts, { reply }) => textOf(reply) === '1',
      ),
  };

  async function run<T>(
    script: Script,
    values: readonly string[],
    limits: Pick<ScriptCall, 'deadlineMs' | 'replicas'>,
    reader: (parts: readonly unknown[], ran: ScriptReply) => T,
  ): Promise<Result<T, StoreFailure>> {
    const ran = await servers.run(revocationTag, {
      script,
      keys: [key],
      values,
      withText: limits.replicas > 0,
      ...limits,
    });
    if (!ran.ok) {
      const { kind, reason, mayHaveRun } = ran.error;
      return refuse({ kind, reason, mayHaveRun });
    }
    const { reply } = ran.value;
    try {
      return accept(reader(Array.isArray(reply) ? reply : [], ran.value));
    } catch {
      // Another program under our prefix.
      return refuse({
        ...failure('refused', `the store answered ${script.name} with something unexpected`),
        mayHaveRun: true,
      });
    }
  }
}

function failure(kind: StoreFailure['kind'], reason: string): StoreFailure {
  return { kind, reason, mayHaveRun: false };
}

function orFull<T>(written: Result<T | null, StoreFailure>): Result<T, StoreFailure> {
  if (!written.ok) return written;
  if (written.value !== null) return accept(written.value);
  return refuse(failure('full', `the store holds ${String(maxRevocationRecords)} revocations already`));
}

function readWritten(parts: readonly unknown[], { confirmedReplicas }: ScriptReply): WrittenRevocation | null {
  if (textOf(parts[0]) === 'full') return null;
  return {
    createdAtMs: numberOf(parts[1]),
    endsAtMs: numberOf(parts[2]),
    isAnnounced: textOf(parts[3]) === '1',
    confirmedReplicas,
  };
}

function readUndone(parts: readonly unknown[], { confirmedReplicas }: ScriptReply): UndoneRevocation | null {
  const found = textOf(parts[0]);
  if (found === 'full') return null;
  if (found !== 'undone' && found !== 'unknown' && found !== 'already') throw new Error('unexpected');
  return { found, isAnnounced: textOf(parts[1]) === '1', confirmedReplicas };
}

/** Reads what is well, and names what is not: one bad record takes nothing from the others. */
function readList(parts: readonly unknown[]): StoredRevocations | 'too_many' | null {
  const [kind, now, version, ...fields] = parts;
  if (textOf(kind) === 'same') return null;
  if (textOf(kind) === 'too_many') return 'too_many';
  if (textOf(kind) !== 'list') throw new Error('unexpected');
  const revocations: Revocation[] = [];
  const undone: RevocationUndo[] = [];
  const unreadable: string[] = [];
  for (let index = 0; index + 1 < fields.length; index += 2) {
    const name = textOf(fields[index]);
    const text = textOf(fields[index + 1]);
    const id = name.slice(2);
    const revocation = name.startsWith('e:') ? readRevocation(id, text) : null;
    const undo = name.startsWith('u:') ? readUndo(id, text) : null;
    if (revocation !== null) revocations.push(revocation);
    else if (undo !== null) undone.push(undo);
    else unreadable.push(name);
  }
  return { version: textOf(version), nowMs: numberOf(now), revocations, undone, unreadable };
}
