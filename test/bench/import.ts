/** What an import costs beside a loop that does the same calls one after the other, and that its memory stays flat. */
import { createWriteStream } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { startCommand, startScript, type StartedCommand } from '../cli/started-command.js';
import { startImportCore } from '../support/import-core.js';
import { createUserMaker, userLines } from '../support/import-users.js';
import { peakBytes } from '../support/linux.js';
import { projectDir } from '../support/project-dir.js';
import type { Scope } from '../support/scope.js';

export interface MeasuredImport {
  readonly name: string;
  readonly users: number;
  readonly perSecond: number;
  /** Most memory that the process had, MiB. */
  readonly peakMiB: number;
}

export interface ImportBench {
  /** Sizes of the files, in users; the loop imports the first only. */
  readonly sizes: readonly number[];
  readonly onRun: (text: string) => void;
}

/** Imports files of growing sizes, each into an empty Core, and the smallest one by the loop too. */
export async function measureImport(t: Scope, { sizes, onRun }: ImportBench): Promise<readonly MeasuredImport[]> {
  const results: MeasuredImport[] = [];
  const measure = async (
    name: string,
    users: number,
    start: (file: string, core: { url: string; curlConfig: string }) => StartedCommand,
  ): Promise<void> => {
    const core = await startImportCore(t);
    const file = join(core.dir, 'users.jsonl');
    await pipeline(Readable.from(userLines(users, createUserMaker())), createWriteStream(file));
    const started = performance.now();
    const command = start(file, core);
    const peakMiB = watchPeak(command);
    const { code } = await command.exited;
    if (code !== 0) throw new Error(`${name} ended with ${String(code)}: ${command.stderr()}`);
    const seconds = (performance.now() - started) / 1_000;
    await core.kill();
    onRun(`${name}, ${String(users)} users: ${seconds.toFixed(1)} s`);
    results.push({ name, users, perSecond: users / seconds, peakMiB: peakMiB() });
  };
  const [smallest = 5_000] = sizes;
  await measure('loop', smallest, (file, { url }) =>
    startScript(t, join(projectDir, '.build/test/bench/import-loop.js'), [file, url]),
  );
  for (const users of sizes) {
    await measure('sallyport import', users, (file, { curlConfig }) =>
      startCommand(t, ['import', file, '--curl-config', curlConfig]),
    );
  }
  return results;
}

/** The table of `docs/import.md`. */
export function importTable(results: readonly MeasuredImport[]): string {
  const rows = results.map(
    ({ name, users, perSecond, peakMiB }) =>
      `| ${name} | ${String(users)} | ${perSecond.toFixed(0)} | ${peakMiB.toFixed(0)} MiB |`,
  );
  return ['| | users | users a second | most memory |', '| --- | --- | --- | --- |', ...rows].join('\n');
}

/** Looks at what the system says of the process until that is gone. */
function watchPeak(command: StartedCommand): () => number {
  let bytes = 0;
  const timer = setInterval(() => {
    try {
      bytes = Math.max(bytes, peakBytes(command.pid));
    } catch {
      clearInterval(timer);
    }
  }, 50);
  return () => {
    clearInterval(timer);
    return bytes / 1_024 ** 2;
  };
}
