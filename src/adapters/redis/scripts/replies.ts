import type {
  Completed,
  Marked,
  Released,
  ReservationRecord,
  Reserved,
  Resolved,
  StoredResponse,
} from '../../../decision/idempotency/record.js';
import { isTraceparent } from '../../../decision/telemetry/trace-context.js';
import { isFinalStatus } from '../../../decision/idempotency/stored-response.js';
import type { ShownRecord } from '../../../ports/idempotency.js';

/** A reply that no script of ours gives: the adapter and the script disagree. */
export class UnexpectedReply extends Error {
  constructor(script: string) {
    super(`the store answered ${script} with something unexpected`);
    this.name = 'UnexpectedReply';
  }
}

const states = new Set<ReservationRecord['state']>(['pending', 'completed', 'tombstone', 'unknown']);
const completions = new Set<Completed>(['completed', 'repaired', 'fenced', 'unsupported']);
const releases = new Set<Released>(['released', 'kept', 'unsupported']);
const marks = new Set<Marked>(['unknown', 'repaired', 'fenced', 'kept', 'unsupported']);
const resolutions = new Set<Resolved>(['resolved', 'absent', 'not_in_doubt', 'unsupported']);

/** The server's time in the reply of the reserve script, milliseconds since the epoch; `null` where there is none. */
export function readReserveTime(reply: unknown): number | null {
  const text = Array.isArray(reply) ? textOf(reply[0]) : '';
  return /^\d{1,15}$/.test(text) ? Number(text) : null;
}

/** Reads the reply of the reserve script: an array of byte strings, the first of which is the server's time. */
export function readReserved(reply: unknown): Reserved {
  if (!Array.isArray(reply)) throw new UnexpectedReply('reserve');
  if (readReserveTime(reply) === null) throw new UnexpectedReply('reserve');
  const parts: readonly unknown[] = reply.slice(1);
  const kind = textOf(parts[0]);
  switch (kind) {
    case 'acquired':
      return { kind, fence: numberOf(parts[1]), takenOver: textOf(parts[2]) === '1' };
    case 'in_progress':
      return { kind, retryAfterMs: numberOf(parts[1]) };
    case 'replayed':
      return { kind, response: { ...readFinalResponse(parts[1], parts[2], parts[3]), ...readTraceparent(parts[4]) } };
    case 'tombstone':
      return { kind, status: numberOf(parts[1]) };
    case 'unknown':
    case 'mismatch':
    case 'token_replayed':
    case 'unsupported':
      return { kind };
    default:
      throw new UnexpectedReply('reserve');
  }
}

/** Reads a kept response that is going to be sent: one that is damaged must not be. */
function readFinalResponse(status: unknown, headers: unknown, body: unknown): StoredResponse {
  const response = readResponse(status, headers, body);
  if (!isFinalStatus(response.status)) throw new UnexpectedReply('reserve');
  return response;
}

/** A response without its trace is whole: what is no traceparent is left out. */
function readTraceparent(text: unknown): Pick<StoredResponse, 'traceparent'> {
  const traceparent = textOf(text);
  return isTraceparent(traceparent) ? { traceparent } : {};
}

/** Reads a kept response back from its three fields. */
function readResponse(status: unknown, headers: unknown, body: unknown): StoredResponse {
  const kept: unknown = JSON.parse(textOf(headers));
  if (!Buffer.isBuffer(body)) throw new UnexpectedReply('a kept response');
  if (Array.isArray(kept)) return { status: numberOf(status), headers: readPairs(kept), body };
  // Another member would be a later version's, which says something that is not understood here.
  if (typeof kept !== 'object' || kept === null || Object.keys(kept).join() !== 'fields,trailers') {
    throw new UnexpectedReply('a kept response');
  }
  const { fields: pairs, trailers } = kept as Readonly<Record<string, unknown>>;
  return { status: numberOf(status), headers: readPairs(pairs), body, trailers: readPairs(trailers) };
}

/** Names and values in turn. */
function readPairs(pairs: unknown): readonly string[] {
  if (
    !Array.isArray(pairs) ||
    pairs.length % 2 !== 0 ||
    !pairs.every((pair): pair is string => typeof pair === 'string')
  ) {
    throw new UnexpectedReply('a kept response');
  }
  return pairs;
}

export const readCompleted = (reply: unknown): Completed => oneOf(reply, completions, 'complete');
export const readReleased = (reply: unknown): Released => oneOf(reply, releases, 'release');
export const readMarked = (reply: unknown): Marked => oneOf(reply, marks, 'mark');
export const readResolved = (reply: unknown): Resolved => oneOf(reply, resolutions, 'resolve');

/** Reads the reply of the show script. */
export function readShown(reply: unknown): ShownRecord | null {
  const parts: readonly unknown[] = Array.isArray(reply) ? reply : [];
  const [now, version, state, fingerprint, owner, fence, created, lease, status, headers, body, takenOver, route, ttl] =
    parts;
  const nowMs = numberOf(now);
  if (parts.length === 1) return null;
  return {
    nowMs,
    record: {
      version: numberOf(version),
      state: oneOf(state, states, 'show'),
      fingerprint: textOf(fingerprint),
      // Who writes a lost result anew does not know it.
      route: textOf(route) === '' ? null : textOf(route),
      owner: textOf(owner),
      fence: numberOf(fence),
      takenOver: textOf(takenOver) === '1',
      createdAtMs: numberOf(created),
      leaseEndsAtMs: numberOf(lease),
      response: status === null ? null : readResponse(status, headers, body),
      expiresAtMs: nowMs + numberOf(ttl),
    },
  };
}

function oneOf<T extends string>(reply: unknown, allowed: ReadonlySet<T>, script: string): T {
  const text = textOf(reply);
  for (const word of allowed) if (word === text) return word;
  throw new UnexpectedReply(script);
}

/** Bytes of a script's reply as text; nothing for what is no text. */
export function textOf(value: unknown): string {
  if (Buffer.isBuffer(value)) return value.toString('utf8');
  return typeof value === 'string' ? value : '';
}

/** A whole number in a script's reply. */
export function numberOf(value: unknown): number {
  const text = textOf(value);
  const number = Number(text);
  if (!/^-?\d+$/.test(text) || !Number.isSafeInteger(number)) throw new UnexpectedReply('a number');
  return number;
}
