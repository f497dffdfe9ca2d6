import type { ConfigSource } from '../app/config-file.js';
import type { Io } from './io.js';
import type { SuiteRun } from './test-run.js';

const aliveIntervalMs = 60_000;

/** Runs again whenever a file changes, until a signal comes. */
export async function watchSuites(first: SuiteRun, once: () => Promise<SuiteRun>, io: Io): Promise<void> {
  // Looking at files keeps no process alive.
  const alive = setInterval(() => undefined, aliveIntervalMs);
  for (let run: SuiteRun | null = first; run !== null;) {
    io.stderr('watching; Ctrl-C ends it\n');
    run = await nextEvent(run.sources, io) === 'changed' ? await once() : null;
  }
  clearInterval(alive);
}

/** Each file is compared with what the run read of it, so that no change in between is lost. */
async function nextEvent(sources: readonly ConfigSource[], io: Io): Promise<'changed' | 'stopped'> {
  const closing: (() => void)[] = [];
  const event = await new Promise<'changed' | 'stopped'>((resolve) => {
    for (const source of sources) {
      const watch = source.watch(() => {
        resolve('changed');
      });
      closing.push(() => {
        watch.close();
      });
    }
    closing.push(io.onSignal(() => {
      resolve('stopped');
    }));
  });
  for (const close of closing) close();
  return event;
}
