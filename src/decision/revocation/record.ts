/** A revocation as the store keeps it. What is read back may be damaged, or written by somebody else. */
import { maxSubjectLength } from '../token/principal.js';
import { isKeyId } from '../token/kid-filter.js';
import { accept, refuse, type Result } from '../../lib/result.js';
import { parseStrictJson, type JsonObject } from '../../lib/strict-json.js';
import { isVisibleAscii } from '../../lib/text.js';
import { timestamp } from '../../lib/timestamp.js';

/** What can be revoked. `token` is one token by its digest. */
export const revocationKinds = ['key_id', 'subject', 'token_id', 'token', 'issued_before'] as const;

export type RevocationKind = (typeof revocationKinds)[number];

/** What an operator revokes, and why. */
export interface NewRevocation {
  /** 128 random bits, base64url. */
  readonly id: string;
  readonly kind: RevocationKind;
  /** The key id, subject, `jti` or `tokenDigest`, or a time in UTC (RFC 3339). */
  readonly value: string;
  /** `iss` of the tokens that are meant; `null` where they may be of any issuer. */
  readonly issuer: string | null;
  readonly reason: string;
  readonly author: string;
}

/** A revocation in the store. Times are the store's, milliseconds since the epoch. */
export interface Revocation extends NewRevocation {
  readonly createdAtMs: number;
  readonly endsAtMs: number;
}

/** A revocation for programs: on `/status`, and as JSON of `sallyport revoke`. */
export interface RevocationData extends NewRevocation {
  readonly created_at: string;
  readonly ends_at: string;
}

/** Member by member, so that nothing goes out that nobody named. */
export function revocationAsData({
  id,
  kind,
  value,
  issuer,
  reason,
  author,
  createdAtMs,
  endsAtMs,
}: Revocation): RevocationData {
  return { id, kind, value, issuer, reason, author, created_at: timestamp(createdAtMs), ends_at: timestamp(endsAtMs) };
}

/** Takes a revocation back: a record of its own, for one that is missing says nothing. */
export interface RevocationUndo {
  readonly id: string;
  readonly reason: string | null;
  readonly author: string;
  readonly undoneAtMs: number;
  /** Not before the revocation ends. */
  readonly endsAtMs: number;
}

/** Records of both kinds that the store takes. */
export const maxRevocationRecords = 5_000;
/** Longest record, bytes; a longer one is none of ours. */
export const maxRevocationBytes = 8_192;
/** Longest time that a revocation holds, milliseconds: what is to hold for ever belongs in the config. */
export const maxRevocationMs = 31 * 24 * 3_600_000;
export const maxReasonLength = 500;
export const maxAuthorLength = 256;

const maxIssuerLength = 2_048;

const recordForm = /^1 (\d{1,15}) (\d{1,15}) (\{.*\})$/s;

/** Whether a text has the form of a revocation's id. */
export function isRevocationId(text: string): boolean {
  return /^[A-Za-z0-9_-]{22}$/.test(text);
}

/** The part of a record that its author makes; the store puts version, begin and end in front. */
export function revocationBody({ kind, value, issuer, reason, author }: NewRevocation): string {
  return JSON.stringify({ kind, value, issuer, reason, author });
}

/** The same of an undo. */
export function undoBody({ reason, author }: Pick<RevocationUndo, 'reason' | 'author'>): string {
  return JSON.stringify({ reason, author });
}

/** Reads a record, or nothing where it is not wholly ours: what is understood in part would hold in part. */
export function readRevocation(id: string, text: string): Revocation | null {
  const record = readRecord(id, text, ['kind', 'value', 'issuer', 'reason', 'author']);
  if (record === null) return null;
  const {
    body: { kind, value, issuer, reason, author },
    fromMs,
    endsAtMs,
  } = record;
  const known = revocationKinds.find((name) => name === kind);
  if (known === undefined || typeof value !== 'string' || !checkRevocationValue(known, value).ok) return null;
  if (!isIssuer(issuer) || !isWords(reason, maxReasonLength) || !isWords(author, maxAuthorLength)) return null;
  return { id, kind: known, value, issuer, reason, author, createdAtMs: fromMs, endsAtMs };
}

/** Reads the record of an undo. */
export function readUndo(id: string, text: string): RevocationUndo | null {
  const record = readRecord(id, text, ['reason', 'author']);
  if (record === null) return null;
  const {
    body: { reason, author },
    fromMs,
    endsAtMs,
  } = record;
  if (!isWords(author, maxAuthorLength) || (reason !== null && !isWords(reason, maxReasonLength))) return null;
  return { id, reason, author, undoneAtMs: fromMs, endsAtMs };
}

/** Whether a credential can have it; says what is allowed where it cannot. */
export function checkRevocationValue(kind: RevocationKind, value: string): Result<null, string> {
  switch (kind) {
    case 'key_id':
      return isKeyId(value) ? accept(null) : refuse('1 to 256 visible ASCII characters');
    case 'subject':
      return isVisibleAscii(value, maxSubjectLength) ? accept(null) : refuse('1 to 1024 visible ASCII characters');
    case 'token_id':
      return isVisibleAscii(value, 256) ? accept(null) : refuse('1 to 256 visible ASCII characters');
    case 'token':
      return /^[A-Za-z0-9_-]{43}$/.test(value) ? accept(null) : refuse('the digest of a token');
    case 'issued_before':
      return isUtcTime(value) ? accept(null) : refuse('a time such as 2026-01-31T12:00:00Z');
  }
}

interface ReadRecord {
  readonly body: JsonObject;
  readonly fromMs: number;
  readonly endsAtMs: number;
}

function readRecord(id: string, text: string, members: readonly string[]): ReadRecord | null {
  const [, from, end, json] = recordForm.exec(text) ?? [];
  if (!isRevocationId(id) || json === undefined) return null;
  const body = parseStrictJson(Buffer.from(json, 'utf8'), { maxDepth: 1 });
  if (!body.ok) return null;
  const names = Object.keys(body.value);
  if (names.length !== members.length || !members.every((name) => names.includes(name))) return null;
  return { body: body.value, fromMs: Number(from), endsAtMs: Number(end) };
}

function isIssuer(value: unknown): value is string | null {
  return value === null || (typeof value === 'string' && value !== '' && value.length <= maxIssuerLength);
}

function isWords(value: unknown, maxLength: number): value is string {
  return typeof value === 'string' && value.length <= maxLength;
}

function isUtcTime(value: string): boolean {
  return /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,3})?Z$/.test(value) && !Number.isNaN(Date.parse(value));
}
