import { randomUUID } from 'node:crypto';
import { link, readFile, rename, unlink, writeFile } from 'node:fs/promises';

/** Gives a file back that this process had to itself. */
export type Release = () => Promise<void>;

/** Tries before giving up on a lock that others keep taking over at the same moments. */
const maxTries = 5;

/** Locks that this process holds: its own id is no proof that it is alive in another life, after a restart in a container. */
const held = new Set<string>();

/**
 * Takes `path`.lock for this process; `null` where a process that lives has it. One that was killed leaves its lock
 * behind: it names the process and, where the system tells (Linux), the time that the process began.
 */
export async function lockFile(path: string): Promise<Release | null> {
  const lock = `${path}.lock`;
  const own = `${lock}.${randomUUID()}`;
  const holder = await describe(process.pid);
  await writeFile(own, holder, { flag: 'wx', mode: 0o600 });
  try {
    for (let tries = 0; tries < maxTries; tries += 1) {
      if (await takes(own, lock)) {
        held.add(lock);
        return async () => {
          held.delete(lock);
          await unlink(lock);
        };
      }
      if (held.has(lock) || !await removeIfDead(lock, holder)) return null;
    }
    return null;
  } finally {
    await unlink(own);
  }
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

/** Moves a dead process's lock out of the way; `false` where it lives. */
async function removeIfDead(lock: string, own: string): Promise<boolean> {
  const found = await contentOf(lock);
  if (found === null) return true;
  if (await lives(found, own)) return false;
  const aside = `${lock}.${randomUUID()}`;
  try {
    await rename(lock, aside);
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return true;
    throw error;
  }
  // Between the look and the move another process may have taken it: then it gets it back.
  const moved = await contentOf(aside);
  const isTheirs = moved !== found;
  if (isTheirs) await takes(aside, lock);
  await unlink(aside);
  return !isTheirs;
}

/** A lock with this process's own description is from a life before, with the same id. */
async function lives(found: string, own: string): Promise<boolean> {
  if (found === own) return false;
  const pid = Number(/^\d+/.exec(found)?.[0] ?? 0);
  return pid > 0 && found === await describe(pid) && exists(pid);
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

function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined;
}
