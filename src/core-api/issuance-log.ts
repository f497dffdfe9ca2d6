import { timestamp } from '../lib/timestamp.js';
import { formatMode } from '../lib/secret-file-access.js';
import { syncFolder } from '../lib/files.js';
import { codeOf } from '../lib/errors.js';
import { constants } from 'node:fs';
import { open, type FileHandle } from 'node:fs/promises';
import { dirname } from 'node:path';
import { oneLine } from '../lib/text.js';
import { accept, refuse, type Result } from '../lib/result.js';
import type { MintedToken } from './mint-response.js';

/** A file with one line of JSON for each issued token. */
export interface IssuanceLog {
  /** Resolves once the line is on the disk. A refusal says why it is not, in words that follow the path. */
  readonly append: (record: IssuanceRecord) => Promise<Result<null, string>>;
  readonly close: () => Promise<void>;
}

/** Each line goes to the end, whoever else writes; a link is refused by the system. Reading is for the last byte. */
const flags =
  constants.O_RDWR |
  constants.O_APPEND |
  constants.O_CREAT |
  constants.O_NOFOLLOW |
  constants.O_NONBLOCK |
  constants.O_NOCTTY;

/** Who may mint what is nobody else's business. */
const ownerOnly = 0o600;
const excessBits = 0o7177;

const newline = 0x0a;

/**
 * Opens the log, or creates it with mode 0600. Refuses, in words that follow the path, one that others may read or
 * write.
 */
export async function openIssuanceLog(path: string): Promise<Result<IssuanceLog, string>> {
  let file: FileHandle;
  try {
    file = await open(path, flags, ownerOnly);
  } catch (error) {
    return refuse(`cannot be opened (${codeOf(error)})`);
  }
  const problem = await problemOf(file, path);
  if (problem === null) return accept({ append: (record) => append(file, record), close: () => file.close() });
  await file.close();
  return refuse(problem);
}

async function problemOf(file: FileHandle, path: string): Promise<string | null> {
  try {
    const stats = await file.stat();
    if (!stats.isFile()) return 'is no regular file';
    const mode = stats.mode & 0o7777;
    if ((mode & excessBits) !== 0) return `has mode ${formatMode(mode)}; chmod 600 it`;
    if (stats.uid !== (process.geteuid?.() ?? stats.uid)) return `belongs to another user (uid ${String(stats.uid)})`;
    // A new file is there after a crash once its folder is on the disk too.
    if (stats.size === 0) await syncFolder(dirname(path));
    return null;
  } catch (error) {
    return `cannot be used (${codeOf(error)})`;
  }
}

async function append(file: FileHandle, record: IssuanceRecord): Promise<Result<null, string>> {
  try {
    // What a full disk cut off must not swallow the line that comes after it.
    const line = Buffer.from(`${(await endsMidLine(file)) ? '\n' : ''}${oneLine(JSON.stringify(record))}\n`);
    const { bytesWritten } = await file.write(line, 0, line.length, null);
    if (bytesWritten !== line.length) return refuse('took only part of a line');
    await file.sync();
    return accept(null);
  } catch (error) {
    return refuse(`cannot be written (${codeOf(error)})`);
  }
}

async function endsMidLine(file: FileHandle): Promise<boolean> {
  const { size } = await file.stat();
  if (size === 0) return false;
  const { buffer } = await file.read(Buffer.alloc(1), 0, 1, size - 1);
  return buffer[0] !== newline;
}

/**
 * One issued token, for the log that is reviewed after a compromise (docs/specification.md 5.4). Never the token
 * itself.
 */
export interface IssuanceRecord {
  /** When it was issued, by the clock here: RFC 3339, UTC. */
  readonly time: string;
  readonly iss: string;
  readonly sub: string;
  readonly aud: string;
  readonly permissions: readonly string[];
  /** `null` where the token may be used more than once. */
  readonly jti: string | null;
  readonly kid: string;
  /** Seconds since the epoch. */
  readonly exp: number;
}

/** What to write down of a token; `nowMs` is milliseconds since the epoch. */
export function issuanceRecord(
  { claims, issuer, tokenId, keyId, expiresAtS }: MintedToken,
  nowMs: number,
): IssuanceRecord {
  const { sub, aud, permissions } = claims;
  return {
    time: timestamp(nowMs),
    iss: issuer,
    sub,
    aud,
    permissions,
    jti: tokenId,
    kid: keyId,
    exp: expiresAtS,
  };
}
