/** `sallyport serve` as a process of its own, and everything it writes. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { projectDir } from './project-dir.js';
import type { Scope } from './scope.js';
import { until } from './until.js';

export type LogLine = Readonly<Record<string, unknown>>;

export interface ServeProcess {
  readonly pid: number;
  /** Everything written so far, both streams in order of arrival. */
  readonly output: () => string;
  /** The lines of it that are JSON objects. */
  readonly logs: () => readonly LogLine[];
  /** The port of a listener: the proxy, admin, probes or egress one. */
  readonly port: (listener: 'proxy' | 'admin' | 'probes' | 'egress') => Promise<number>;
  readonly signal: (signal: NodeJS.Signals) => void;
  readonly exited: Promise<{ readonly code: number | null; readonly signal: NodeJS.Signals | null }>;
  readonly isRunning: () => boolean;
  /** SIGTERM, then SIGKILL after 20 s. */
  readonly stop: () => Promise<{ readonly code: number | null; readonly signal: NodeJS.Signals | null }>;
}

export interface ServeOptions {
  readonly env?: Readonly<Record<string, string>>;
  /** The program in the place of `dist/main.js`. */
  readonly main?: string;
  /** A command that becomes Node.js with the arguments that follow, as `nice` does. */
  readonly under?: readonly string[];
  /** Its working folder, instead of that of the test. */
  readonly cwd?: string;
  /** Further arguments of `serve`. */
  readonly args?: readonly string[];
}

/** Runs `serve --config FILE` until the test ends. */
export function startServe(t: Scope, configFile: string, options: ServeOptions = {}): ServeProcess {
  const args = [
    options.main ?? join(projectDir, 'dist/main.js'),
    'serve',
    '--config',
    configFile,
    ...(options.args ?? []),
  ];
  const [command, ...before] = [...(options.under ?? []), process.execPath];
  const child = spawn(command, [...before, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...options.env },
    ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
  });
  let text = '';
  const lines: LogLine[] = [];
  for (const stream of [child.stdout, child.stderr]) {
    let rest = '';
    stream.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
      const parts = (rest + chunk).split('\n');
      rest = parts.pop() ?? '';
      lines.push(...parts.flatMap(parseLine));
    });
  }
  let running = true;
  const exited = once(child, 'close').then(([code, signal]) => {
    running = false;
    return { code: code as number | null, signal: signal as NodeJS.Signals | null };
  });
  const stop: ServeProcess['stop'] = async () => {
    if (running) child.kill('SIGTERM');
    const timer = setTimeout(() => child.kill('SIGKILL'), 20_000);
    const result = await exited;
    clearTimeout(timer);
    return result;
  };
  t.teardown(stop);
  return {
    pid: child.pid ?? 0,
    output: () => text,
    logs: () => lines,
    port: async (listener) =>
      until(`the ${listener} listener`, () => {
        if (!running) throw new Error(`serve ended before it listened:\n${text}`);
        return listenerPort(lines, listener);
      }).catch((error: unknown) => {
        throw new Error(`${text}\nhas not listened`, { cause: error });
      }),
    signal: (signal) => child.kill(signal),
    exited,
    isRunning: () => running,
    stop,
  };
}

/** `serve` logs one line for each listener, with `listener` (`proxy`, `admin`, `probes`) and `port`. */
function listenerPort(lines: readonly LogLine[], listener: string): number | null {
  const line = lines.find((candidate) => candidate['listener'] === listener && typeof candidate['port'] === 'number');
  return line === undefined ? null : Number(line['port']);
}

function parseLine(line: string): LogLine[] {
  if (!line.startsWith('{')) return [];
  try {
    return [JSON.parse(line) as LogLine];
  } catch {
    return [];
  }
}
