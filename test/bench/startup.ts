/** How soon a process is ready, and what it holds when nobody asks anything of it. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { promisify } from 'node:util';
import { projectDir } from '../support/project-dir.js';
import type { Scope } from '../support/scope.js';
import { tempDir } from '../support/temp-dir.js';
import { startProxyProcess, type ProxyProcessOptions } from '../support/proxy-process.js';
import { startServer } from './child.js';
import { residentMib } from './cpu.js';
import { markdown } from './markdown.js';
import { imageHeapOption } from './sallyport.js';
import { scoped } from './scoped.js';
import { median } from './statistics.js';

/** Medians. */
export interface MeasuredStart {
  readonly name: string;
  /** From the start of the process until it answers: `/readyz` says 200, with the keys on loopback. */
  readonly readyMs: number;
  /** MiB, so long after that. */
  readonly restMib: number;
}

/** Seconds of rest. */
export const restS = 5;

export interface StartSettings {
  readonly starts: number;
  readonly restS: number;
  /** A built checkout of an earlier commit, to be measured beside this one. */
  readonly before?: string;
}

interface Program {
  readonly name: string;
  readonly start: (scope: Scope) => Promise<number>;
}

/** Starts the programs in turn, some times each, and lets them all rest. */
export async function measureStarts(
  t: Scope,
  { starts, restS: seconds, before }: StartSettings,
): Promise<readonly MeasuredStart[]> {
  const bundled = await bundle(t);
  const programs: readonly Program[] = [
    { name: 'node:http', start: async (scope) => (await startServer(scope, 'bare')).pid },
    proxy('Sallyport, from npm'),
    ...(before === undefined ? [] : [proxy('Sallyport, before', { main: join(before, 'dist/main.js') })]),
    proxy('Sallyport, bundled as in the image', bundled),
  ];
  const started = programs.map(({ name, start }) => ({ name, start, times: [] as number[], pids: [] as number[] }));
  return scoped(async (scope) => {
    for (let i = 0; i < starts; i += 1) {
      for (const { start, times, pids } of started) {
        // The servers around it and its config cost a few milliseconds before the process is started.
        const startedMs = performance.now();
        pids.push(await start(scope));
        times.push(performance.now() - startedMs);
      }
    }
    await setTimeout(seconds * 1000);
    return started.map(({ name, times, pids }) => ({
      name,
      readyMs: median(times),
      restMib: median(pids.map(residentMib)),
    }));
  });
}

function proxy(name: string, options?: ProxyProcessOptions): Program {
  return { name, start: async (scope) => (await startProxyProcess(scope, options)).process.pid };
}

export function startTable(measured: readonly MeasuredStart[]): string {
  const rows = measured.map(({ name, readyMs, restMib }) => [name, readyMs.toFixed(0), restMib.toFixed(0)]);
  return markdown(['program', 'start to ready, ms', 'memory at rest, MiB'], rows, 1);
}

/** The program as the image has it, with its options and its cache of compiled code. */
async function bundle(t: Scope): Promise<{ readonly main: string; readonly env: Readonly<Record<string, string>> }> {
  const dir = join(tempDir(t), 'app');
  const run = promisify(execFile);
  await run(process.execPath, [join(projectDir, '.release/bundle.mjs'), dir], { cwd: projectDir });
  const main = join(dir, 'main.js');
  const env = {
    NODE_COMPILE_CACHE: join(dir, 'cache'),
    MALLOC_ARENA_MAX: '1',
    NODE_OPTIONS: imageHeapOption,
  };
  // Help loads nothing of what runs: this ends when all of it is loaded, for want of a config.
  await run(process.execPath, [main, 'serve', '--config', '/none'], { env: { ...process.env, ...env } }).catch(
    () => null,
  );
  return { main, env };
}
