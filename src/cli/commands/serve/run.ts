import { releaseMemory } from '../../../adapters/system/release-memory.js';
import { tuneForServing } from '../../../adapters/system/v8-options.js';
import { startServing, type ServingApp } from '../../../app/start.js';
import type { ConfigArguments } from '../../config/argument.js';
import { chooseConfig } from '../../config/choose.js';
import type { Io } from '../../io.js';
import { endOfLifeNotice } from '../../node-eol.js';
import { fail, failUsage } from '../../options.js';
import { createSignalQueue, type SignalQueue } from '../../signals.js';

export interface ServeOptions {
  readonly config?: string;
}

/** Runs the proxy until a signal ends it. */
export async function serve(options: ServeOptions & ConfigArguments, io: Io): Promise<void> {
  const signals = createSignalQueue(io);
  try {
    await serveUntilSignalled(options, signals, io);
  } finally {
    signals.close();
  }
}

async function serveUntilSignalled(
  options: ServeOptions & ConfigArguments,
  signals: SignalQueue,
  io: Io,
): Promise<void> {
  const chosen = chooseConfig(options, io);
  if (!chosen.ok) {
    fail(chosen.error, io);
    return;
  }
  if (chosen.value.path === null) {
    failUsage(
      'serve',
      'the config cannot come from standard input: serve reads it again when it changes, and needs a file',
      io,
    );
    return;
  }
  const notice = endOfLifeNotice(process.versions.node, Date.now(), io.env);
  const started = await startServing({
    source: chosen.value.source,
    env: io.env,
    notices: notice === null ? [] : [notice],
    onBuilt: () => {
      releaseMemory();
      tuneForServing();
    },
    program: io.program?.[1] ?? '',
  });
  if (!started.ok) {
    fail(started.error, io);
    return;
  }
  const failure = await Promise.race([runUntilSignalled(started.value, signals), started.value.failed]);
  if (failure === null) io.exit(0);
  else fail(failure, io);
}

function runUntilSignalled(app: ServingApp, signals: SignalQueue): Promise<null> {
  return new Promise((resolve, reject) => {
    signals.take((signal) => {
      if (signal === 'SIGHUP') void app.reload();
      else {
        app.stop().then(() => {
          resolve(null);
        }, reject);
      }
    });
  });
}
