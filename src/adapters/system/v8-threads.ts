import { readFileSync, readdirSync } from 'node:fs';
import { getPriority, setPriority } from 'node:os';

/**
 * Steps of niceness, of which there are 40, that V8's own threads stand behind the one that serves (setpriority(2)). On
 * a core that all share each of them gets a 28th of what it gets. ADR 28 has what that is worth.
 */
export const v8ThreadNiceness = 15;

const folder = '/proc/self/task';

/** A thread of this process, as Linux tells of it. */
interface Thread {
  readonly id: number;
  readonly name: string;
}

/**
 * Lets the thread that serves go before those of V8, which look through the heap and compile beside it: where there is
 * one core for all of them, requests do not wait for either. Counts until the process ends, on Linux alone; nothing
 * where the system does not let us.
 */
export function putServingFirst(): void {
  try {
    for (const id of v8Threads(threads(), process.versions.node)) {
      setPriority(id, Math.min(19, getPriority(id) + v8ThreadNiceness));
    }
  } catch {
    // It serves as well without.
  }
}

/** The threads of V8 among those of a process: it has four, unless `--v8-pool-size` says otherwise. */
export function v8Threads(threads: readonly Thread[], version: string): readonly number[] {
  const named = threads.filter(({ name }) => name === 'V8Worker');
  if (named.length > 0 || !hasNamelessThreads(version)) return named.map(({ id }) => id);
  // Behind its main thread and the one for delayed tasks Node makes them before all others.
  const byAge = threads.map(({ id }) => id).sort((a, b) => a - b);
  return byAge.slice(2, 6);
}

/** Node.js 24 names its threads; 20 does not. */
function hasNamelessThreads(version: string): boolean {
  return Number.parseInt(version, 10) < 24;
}

function threads(): readonly Thread[] {
  return readdirSync(folder).map((id) => ({
    id: Number(id),
    name: readFileSync(`${folder}/${id}/comm`, 'utf8').trim(),
  }));
}
