import { timestamp } from '../../../lib/timestamp.js';
import { escapeControls } from '../../../lib/text.js';
import type { StoredRevocations } from '../../../decision/revocation/local-list.js';
import {
  revocationAsData,
  type Revocation,
  type RevocationData,
  type RevocationKind,
  type RevocationUndo,
} from '../../../decision/revocation/record.js';
import type { RevocationWrite, UndoneRevocation } from '../../../ports/revocations.js';

const kinds: Readonly<Record<RevocationKind, string>> = {
  key_id: 'key',
  subject: 'subject',
  token_id: 'token id',
  token: 'token with digest',
  issued_before: 'issued before',
};

export const undoneWords: Readonly<Record<UndoneRevocation['found'], string>> = {
  undone: 'undone: proxies let it through again, within a second',
  already: 'it was undone before',
  unknown:
    'the store holds no such revocation; that it is undone is written down all the same, for proxies that hold it',
};

interface RevocationListData {
  readonly revocations: readonly RevocationData[];
  readonly undone: readonly (Pick<RevocationUndo, 'id' | 'reason' | 'author'> & {
    readonly undone_at: string;
    readonly ends_at: string;
  })[];
  /** Names of records that cannot be read. */
  readonly unreadable: readonly string[];
  readonly store_time: string;
}

interface RevocationWriteData {
  readonly announced: boolean;
  /** That were asked for. */
  readonly replicas: number;
  /** `null` where none were. */
  readonly confirmed_replicas: number | null;
}

/** What became of a write, for programs. */
export function writeAsData(
  { isAnnounced, confirmedReplicas }: RevocationWrite,
  replicas: number,
): RevocationWriteData {
  return { announced: isAnnounced, replicas, confirmed_replicas: confirmedReplicas };
}

/** A revocation that was just made, for people. */
export function revocationInWords(
  revocation: Revocation,
  configFile: string,
  { replicas, confirmed_replicas: confirmed }: RevocationWriteData,
): string {
  const lines: readonly (readonly [string, string])[] = [
    ['revoked', what(revocation)],
    ['until', timestamp(revocation.endsAtMs)],
    ['id', revocation.id],
    ...(confirmed === null ? [] : [['replicas', `${String(confirmed)} confirmed, of ${String(replicas)}`] as const]),
    ['undo', `sallyport revoke --config ${configFile} --undo ${revocation.id}`],
  ];
  return lines.map(([name, value]) => `${name.padEnd(9)}${escapeControls(value)}\n`).join('');
}

/** What the store holds, for programs. */
export function listAsData(stored: StoredRevocations): RevocationListData {
  const { revocations, undone } = inForce(stored);
  return {
    revocations: revocations.map(revocationAsData),
    undone: undone.map(({ id, reason, author, undoneAtMs, endsAtMs }) => ({
      id,
      reason,
      author,
      undone_at: timestamp(undoneAtMs),
      ends_at: timestamp(endsAtMs),
    })),
    unreadable: stored.unreadable,
    store_time: timestamp(stored.nowMs),
  };
}

/** What the store holds, for people: a line each. */
export function listInWords(stored: StoredRevocations): string {
  const { revocations, undone } = inForce(stored);
  const lines = [
    ...revocations.map((revocation) => {
      const { id, endsAtMs, author, reason } = revocation;
      return `${id}  ${what(revocation)}; until ${timestamp(endsAtMs)}; by ${author}: ${reason}`;
    }),
    ...undone.map(
      ({ id, undoneAtMs, author, reason }) =>
        `${id}  undone at ${timestamp(undoneAtMs)}; by ${author}${reason === null ? '' : `: ${reason}`}`,
    ),
    ...stored.unreadable.map((name) => `${name}  cannot be read, and is not in force; docs/storage.md, revocations`),
  ];
  return lines.length === 0
    ? 'nothing is revoked through the store\n'
    : lines.map((line) => `${escapeControls(line)}\n`).join('');
}

function inForce({ nowMs, revocations, undone }: StoredRevocations): Pick<StoredRevocations, 'revocations' | 'undone'> {
  const counts = ({ endsAtMs }: { readonly endsAtMs: number }): boolean => endsAtMs > nowMs;
  // The store keeps no order.
  return {
    revocations: revocations.filter(counts).sort((a, b) => a.createdAtMs - b.createdAtMs),
    undone: undone.filter(counts).sort((a, b) => a.undoneAtMs - b.undoneAtMs),
  };
}

function what({ kind, value, issuer }: Revocation): string {
  return `${kinds[kind]} ${value}${issuer === null ? '' : ` of ${issuer}`}`;
}
