import { codeOf } from '../../../lib/errors.js';
import type { StoreFailure } from '../../../ports/idempotency.js';

/** No reply came within the deadline: the command may still run. */
export class DeadlinePassed extends Error {
  constructor() {
    super('no answer within the deadline');
    this.name = 'DeadlinePassed';
  }
}

/** The server said that it has no such script when no time was left to send the text: nothing ran. */
export class ScriptMissing extends Error {
  constructor() {
    super(new DeadlinePassed().message);
    this.name = 'ScriptMissing';
  }
}

/** The script ran and was answered; what came after it was not. */
export class WaitFailed extends Error {
  constructor(cause: Error) {
    super(reasonOf(cause));
    this.name = 'WaitFailed';
  }
}

/** The server does not let us into the database of the settings: nothing may be asked of it in another one. */
export class DatabaseRefused extends Error {
  constructor(database: number, cause: unknown) {
    const [problem, fix] =
      replyCode(cause) === 'NOPERM'
        ? [`the Redis user may not use database ${database}`, 'allow SELECT to it (+select)']
        : [
            `the server does not let us into database ${database}`,
            'name one in store.redis.url that it has, or raise its databases; where it knows no SELECT, name none',
          ];
    super(`${problem}; ${fix} (${reasonOf(cause)})`);
    this.name = 'DatabaseRefused';
  }
}

/** A reply to something else than was asked: the script may have run. */
export class OthersReply extends Error {
  constructor() {
    super('the server answers what was not asked');
    this.name = 'OthersReply';
  }
}

/** Refusals that are about the server as it is now, not about one record. */
const serverRefusals: ReadonlySet<string> = new Set([
  'OOM',
  'READONLY',
  'MISCONF',
  'NOREPLICAS',
  'NOPERM',
  'NOAUTH',
  'LOADING',
  'BUSY',
  'CLUSTERDOWN',
  'MASTERDOWN',
]);

/** The first word of an error that the server answered with, such as `OOM`; `null` where it is none of the server's. */
export function replyCode(error: unknown): string | null {
  if (!(error instanceof Error) || error.name !== 'ReplyError') return null;
  return /^[A-Z]+/.exec(error.message)?.[0] ?? 'ERR';
}

/** Whether the server, as long as it stays as it is, will refuse the next command too. */
export function isServerRefusal(error: unknown): boolean {
  const code = replyCode(error);
  return code !== null && (serverRefusals.has(code) || (error instanceof Error && missingRight.test(error.message)));
}

/** Whether the server refuses this one record, for what it holds. */
export function isRecordRefusal(error: unknown): boolean {
  const code = replyCode(error);
  return code !== null && !isServerRefusal(error) && !passing.has(code);
}

/** Replies of a Cluster that is moving keys. */
const passing: ReadonlySet<string> = new Set(['MOVED', 'ASK', 'TRYAGAIN']);

/** A script that called what its user may not call, in the words of Redis 6.2 to 7.0 and of later ones. */
const missingRight = /^ERR (The user executing the script|ACL failure in script)/;

/** Turns what a command ended with into what callers may know. */
export function failureOf(error: unknown): StoreFailure {
  const reason = reasonOf(error);
  if (error instanceof DeadlinePassed) return { kind: 'timeout', reason, mayHaveRun: true };
  if (error instanceof ScriptMissing) return { kind: 'timeout', reason, mayHaveRun: false };
  if (error instanceof WaitFailed) return { kind: 'refused', reason, mayHaveRun: true };
  if (error instanceof DatabaseRefused) return { kind: 'refused', reason, mayHaveRun: false };
  // A script decides before it writes: one that ended with an error wrote nothing.
  if (replyCode(error) !== null) return { kind: 'refused', reason, mayHaveRun: false };
  return { kind: 'unreachable', reason, mayHaveRun: !isUnsent(error) };
}

/** ioredis says so when a connection that does not queue is not there. */
function isUnsent(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith("Stream isn't writeable");
}

/** What servers were told, the newest last: one may repeat it in what it refuses. */
const toldPasswords = new Set<string>();
const mostTold = 16;

/** Keeps a password that a server is told out of `reasonOf`. */
export function hidePassword(password: string): void {
  if (password === '') return;
  toldPasswords.delete(password);
  toldPasswords.add(password);
  for (const oldest of toldPasswords) if (toldPasswords.size > mostTold) toldPasswords.delete(oldest);
}

/** Words of ioredis that say more of ioredis than of the server, and ours. */
const otherWords: readonly (readonly [RegExp, string])[] = [
  [/^Connection is closed\.?$/, 'the connection was lost'],
  [/^Command queue state error.*$/s, new OthersReply().message],
  [/,? with args beginning with.*$| script: [0-9a-f]{40}, on .*$/s, ''],
];

/** Words of ioredis and of the system, without what they quote of a command: its arguments may be a password. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown';
  if (error.name === 'MaxRetriesPerRequestError' || error.name === 'AbortError') return 'the connection was lost';
  const code = codeOf(error, '');
  const prefix = code === '' || error.message.includes(code) ? '' : `${code}: `;
  let text = `${prefix}${error.message}`;
  for (const [words, ours] of otherWords) text = text.replace(words, ours);
  for (const password of toldPasswords) text = text.replaceAll(password, '…');
  return text.slice(0, 200);
}
