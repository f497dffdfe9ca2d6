import { codeOf } from '../../lib/errors.js';
import { randomUUID } from 'node:crypto';
import { link, readFile, stat, unlink, writeFile } from 'node:fs/promises';
import { setTimeout } from 'node:timers/promises';

/** Gives a file back that this process had to itself. */
type Release = () => Promise<void>;

/** Tries before giving up on a lock that others keep taking over at the same moments. */
const maxTries = 50;

/** Between two tries while another process has its turn; milliseconds. */
const pauseMs = 20;
const maxTurnMs = 10_000;

/**
 * Locks that this process holds or is taking: its own id is no proof that it is alive in another life, after a restart
 * in a container.
 */
const held = new Set<string>();

/**
 * Takes `path`.lock for this process; `null` where a process that lives has it. One that was killed leaves its lock
 * behind: it names the process and, where the system tells (Linux), the time that the process began.
 */
export async function lockFile(path: string): Promise<Release | null> {
  const lock = `${path}.lock`;
  if (held.has(lock)) return null;
  held.add(lock);
  let isTaken = false;
  const own = `${lock}.${randomUUID()}`;
  const holder = await describe(process.pid);
  await writeFile(own, holder, { flag: 'wx', mode: 0o600 });
  try {
    for (let tries = 0; tries < maxTries && !isTaken; tries += 1) {
      isTaken = await takes(own, lock);
      if (!isTaken && !(await removeIfDead(lock, own, holder))) break;
    }
  } finally {
    if (!isTaken) held.delete(lock);
    await unlink(own);
  }
  if (!isTaken) return null;
  return async () => {
    held.delete(lock);
    await unlink(lock);
  };
}

/** A link is made or refused in one step, whoever else tries. */
async function takes(own: string, lock: string): Promise<boolean> {
  try {
    await link(own, lock);
    return true;
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return false;
    throw error;
  }
}

/**
 * Removes a dead process's lock; `false` where it lives. One process at a time looks and removes: between the two of
 * another the lock may be taken anew, and a lock that lives must never be away, not even for a moment.
 */
async function removeIfDead(lock: string, own: string, holder: string): Promise<boolean> {
  const turn = `${lock}.turn`;
  if (!(await takes(own, turn))) {
    await removeIfOld(turn);
    await setTimeout(pauseMs);
    return true;
  }
  try {
    const found = await contentOf(lock);
    if (found === null) return true;
    if (await lives(found, holder)) return false;
    await unlink(lock);
    return true;
  } finally {
    await unlink(turn);
  }
}

/** Whoever took the turn was killed in it: it takes a few milliseconds. */
async function removeIfOld(turn: string): Promise<void> {
  try {
    const { ctimeMs } = await stat(turn);
    if (Date.now() - ctimeMs > maxTurnMs) await unlink(turn);
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw error;
  }
}

/** A lock with this process's own description is from a life before, with the same id. */
async function lives(found: string, own: string): Promise<boolean> {
  if (found === own) return false;
  const pid = Number(/^\d+/.exec(found)?.[0] ?? 0);
  return pid > 0 && found === (await describe(pid)) && exists(pid);
}

function exists(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return codeOf(error) === 'EPERM';
  }
}

/** The process's id and, where `/proc` tells it, when it began: an id is given out again. */
async function describe(pid: number): Promise<string> {
  const stat = await contentOf(`/proc/${pid}/stat`);
  // The name before the last bracket may hold anything; the 20th field after it is the start time.
  const began = stat?.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? '';
  return `${pid} ${began}\n`;
}

async function contentOf(path: string): Promise<string | null> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return null;
    throw error;
  }
}
