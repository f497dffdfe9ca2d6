/** An import that is killed again and again, with a Core that is killed too, until every row is in. */
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { startCommand } from '../cli/started-command.js';
import type { ImportCore } from './import-core.js';
import type { Scope } from './scope.js';
import { until } from './until.js';

export interface Kills {
  readonly importer: number;
  readonly core: number;
  /** From 0 to 1. */
  readonly random: () => number;
  /** Bytes of journal that a whole import writes, about. */
  readonly journalBytes: number;
}

export interface KilledImport {
  /** Processes that it took. */
  readonly runs: number;
  readonly killed: number;
  /** The report of the last one. */
  readonly report: Readonly<Record<string, unknown>>;
}

/** A seed repeats the numbers. */
export function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 48_271) % 2_147_483_647;
    return state / 2_147_483_647;
  };
}

/**
 * Runs `sallyport import --resume` until it ends with 0. The importer is killed when its journal has grown by some
 * random length, and so is the Core, at lengths of its own: moments spread over the whole import.
 */
export async function importWithKills(t: Scope, core: ImportCore, file: string, kills: Kills): Promise<KilledImport> {
  const { importer, core: coreKills, random, journalBytes } = kills;
  const journal = join(core.dir, `${file}.import-journal`);
  const size = (): number => statSync(journal, { throwIfNoEntry: false })?.size ?? 0;
  const coreDies = Array.from({ length: coreKills }, () => random() * journalBytes * 0.9).sort((a, b) => a - b);
  let killed = 0;
  const ended = new AbortController();
  const killingCore = (async () => {
    for (const at of coreDies) {
      await until('the journal grows', () => ended.signal.aborted || size() >= at, 600_000);
      if (size() >= at) await core.killAndRestart();
    }
  })();
  for (let runs = 1; runs < importer + 200; runs += 1) {
    const command = startCommand(t, [
      'import',
      join(core.dir, file),
      '--curl-config',
      core.curlConfig,
      '--resume',
      '--json',
      '--give-up-after',
      '60s',
    ]);
    if (killed < importer) {
      const step = ((journalBytes * 0.9 - size()) / (importer - killed)) * 2;
      const at = size() + Math.max(1, random() * step);
      await until('the journal grows', () => !command.isRunning() || size() >= at, 600_000);
      if (command.isRunning()) {
        command.signal('SIGKILL');
        killed += 1;
      }
    }
    const { code } = await command.exited;
    if (code === 0) {
      ended.abort();
      await killingCore;
      return { runs, killed, report: JSON.parse(command.stdout()) as Record<string, unknown> };
    }
    // 3: a run that could not go on, such as at a 500 for the first hosted scrypt hash.
    if (code !== 3 && code !== null) {
      throw new Error(`import ended with ${String(code)}:\n${command.stdout()}${command.stderr()}`);
    }
  }
  throw new Error('the import does not come to its end');
}
