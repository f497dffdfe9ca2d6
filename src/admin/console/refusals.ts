/** The last requests that were refused, or that shadow mode would have refused, for people who look at them. */
import type { Reason } from '../../decision/denial.js';
import type { RequestRecord } from '../../ports/observability.js';

/** One of them. Never a query, a header, a token or a body. */
export interface RefusedRequest {
  /** Rises with each, from 1. */
  readonly id: number;
  /** RFC 3339. */
  readonly at: string;
  /** `shadow`: let through, and would be refused where the route is enforced. */
  readonly decision: 'denied' | 'failed' | 'shadow';
  readonly reason: Reason;
  readonly status: number;
  /** Name of the route, or `none`. */
  readonly route: string;
  readonly method: string;
  readonly path: string;
  /** Whether the path was longer than what is kept of it. */
  readonly is_cut: boolean;
  /** Of a credential that held; `null` elsewhere. */
  readonly kind: 'service' | 'session' | null;
  readonly issuer: string | null;
  readonly subject: string | null;
  /** Permissions, or claims of a session, for want of which it was refused. */
  readonly missing: readonly string[];
  readonly request_id: string;
  /** Name of the certificate that the caller showed, verified. */
  readonly client_certificate: string | null;
}

export interface RefusedRequests {
  readonly add: (record: RequestRecord, atMs: number) => void;
  /** Keeps one that another process kept first; its number here. */
  readonly adopt: (entry: RefusedRequest) => number;
  /** Those that came after this one, the newest first. */
  readonly after: (id: number) => readonly RefusedRequest[];
  /** `null` where it is no longer kept. */
  readonly find: (id: number) => RefusedRequest | null;
}

/** Of each way to end and each reason, so that a flood of one kind does not take the place of the others. */
const keptOfKind = 25;

/** Characters of what a caller chose. */
const maxPath = 512;
const maxWord = 256;
const maxMissing = 20;

/** Keeps nothing yet. Reasons are a closed list and texts are cut, so that all of it is bounded. */
export function createRefusedRequests(): RefusedRequests {
  const kinds = new Map<string, RefusedRequest[]>();
  let last = 0;
  const keep = (entry: RefusedRequest): void => {
    const kind = `${entry.decision} ${entry.reason}`;
    const kept = kinds.get(kind) ?? [];
    kinds.set(kind, kept);
    kept.push(entry);
    if (kept.length > keptOfKind) kept.shift();
  };
  return {
    add: (record, atMs) => {
      const { decision, reason } = record;
      if (reason === null || decision === 'forwarded' || decision === 'replayed') return;
      last += 1;
      keep(entryOf(last, record, decision, reason, atMs));
    },
    adopt: (entry) => {
      last += 1;
      keep({ ...entry, id: last });
      return last;
    },
    after: (id) =>
      [...kinds.values()]
        .flat()
        .filter((entry) => entry.id > id)
        .sort((one, other) => other.id - one.id),
    find: (id) => [...kinds.values()].flat().find((entry) => entry.id === id) ?? null,
  };
}

function entryOf(
  id: number,
  record: RequestRecord,
  decision: RefusedRequest['decision'],
  reason: Reason,
  atMs: number,
): RefusedRequest {
  return {
    id,
    at: new Date(atMs).toISOString(),
    decision,
    reason,
    status: record.status,
    route: record.route,
    method: record.method.slice(0, maxWord),
    path: record.path.slice(0, maxPath),
    is_cut: record.path.length > maxPath,
    kind: record.kind,
    issuer: record.issuer,
    subject: record.subject?.slice(0, maxWord) ?? null,
    missing: (record.missing_permissions ?? []).slice(0, maxMissing).map((name) => name.slice(0, maxWord)),
    request_id: record.request_id.slice(0, maxWord),
    client_certificate: record.client_certificate?.slice(0, maxWord) ?? null,
  };
}
