import { readFileSync, readdirSync } from 'node:fs';
import { getPriority, setPriority } from 'node:os';

/**
 * Steps of niceness, of which there are 40, that V8's own threads stand behind the one that serves (setpriority(2)). On
 * a core that all share each of them gets a 28th of what it gets. ADR 28 has what that is worth.
 */
export const v8ThreadNiceness = 15;

/** CPU that a process has used until nearly all that serves is compiled, in milliseconds. */
const warmUpCpuMs = 5_000;

const lookEveryMs = 1_000;

/** So many numbers of threads there are at most; behind the last they begin anew (proc_sys_kernel(5), `pid_max`). */
const mostIds = 2 ** 22;

const folder = '/proc/self/task';

/** A thread of this process, as Linux tells of it. */
interface Thread {
  readonly id: number;
  readonly name: string;
}

/**
 * Lets the thread that serves go before those of V8, as soon as the process is warm: one that has just started needs
 * them to compile, and would serve with slow code for longer.
 *
 * @param cpuMs CPU after which it is warm, in milliseconds from now
 */
export function putServingFirstWhenWarm(cpuMs = warmUpCpuMs): void {
  const before = process.cpuUsage();
  const timer = setInterval(() => {
    const { user, system } = process.cpuUsage(before);
    if ((user + system) / 1_000 < cpuMs) return;
    clearInterval(timer);
    putServingFirst();
  }, lookEveryMs).unref();
}

/**
 * Lets the thread that serves go before those of V8, which look through the heap and compile beside it: where there is
 * one core for all of them, requests do not wait for either. Counts until the process ends, on Linux alone; nothing
 * where the system does not let us.
 */
function putServingFirst(): void {
  try {
    const options = [...process.execArgv, process.env['NODE_OPTIONS'] ?? ''].join(' ');
    // Then they may be more or fewer.
    if (/v8[-_]pool[-_]size/.test(options)) return;
    for (const id of v8Threads(threads(), process.versions.node, process.pid)) {
      setPriority(id, Math.min(19, getPriority(id) + v8ThreadNiceness));
    }
  } catch {
    // It serves as well without.
  }
}

/** The threads of V8 among those of a process, by their names, or by their age: it has four. */
export function v8Threads(threads: readonly Thread[], version: string, main: number): readonly number[] {
  const named = threads.filter(({ name }) => name === 'V8Worker');
  if (named.length > 0 || !hasNamelessThreads(version)) return named.map(({ id }) => id);
  // Behind its main thread and the one for delayed tasks Node makes them before all others.
  const age = (id: number): number => (id < main ? id + mostIds : id);
  const byAge = threads.map(({ id }) => id).sort((a, b) => age(a) - age(b));
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
