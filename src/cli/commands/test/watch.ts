import type { ConfigSource } from '../../../app/config/config-source.js';
import type { Io } from '../../io.js';
import type { SuiteRun } from './run-suites.js';

const aliveIntervalMs = 60_000;

/** Runs again whenever a file changes, until a signal comes, be it while the tests run. */
export async function watchSuites(first: SuiteRun, once: () => Promise<SuiteRun>, io: Io): Promise<void> {
  // Looking at files keeps no process alive.
  const alive = setInterval(() => undefined, aliveIntervalMs);
  const stop = new AbortController();
  const stopListening = io.onSignal(() => {
    stop.abort();
  });
  let run = first;
  for (;;) {
    io.stderr('watching; Ctrl-C ends it\n');
    await changeOf(run.sources, stop.signal);
    if (stop.signal.aborted) break;
    run = await once();
  }
  stopListening();
  clearInterval(alive);
}

/**
 * Resolves when a file changed, or when it is to stop. Each file is compared with what the run read of it, so that no
 * change in between is lost.
 */
async function changeOf(sources: readonly ConfigSource[], stop: AbortSignal): Promise<void> {
  if (stop.aborted) return;
  const closing: (() => void)[] = [];
  await new Promise<void>((resolve) => {
    const end = (): void => {
      resolve();
    };
    for (const source of sources) {
      const watch = source.watch(end);
      closing.push(() => {
        watch.close();
      });
    }
    stop.addEventListener('abort', end, { once: true });
  });
  for (const close of closing) close();
}
