import { Command } from 'commander';
import { releaseMemory } from '../adapters/memory-release.js';
import { startApp, type App } from '../app.js';
import type { Io } from './io.js';
import { endOfLifeNotice } from './node-release.js';
import { configOption, fail, sourceOf } from './options.js';
import { createSignalQueue, type SignalQueue } from './signal-queue.js';

interface Options {
  readonly config: string;
}

/** `sallyport serve --config FILE`: runs the proxy until a signal ends it. */
export function createServeCommand(io: Io): Command {
  return new Command('serve')
    .description('Run the proxy. Logs JSON lines on standard output.')
    .addOption(configOption())
    .addHelpText('after', '\nSIGHUP reads the config again. SIGTERM and SIGINT let requests under way end; a second one does not wait for them.\n'
      + 'Exit code: 0 stopped by a signal (130 or 143 by a second one), 1 the config or a certificate is wrong, 2 a file cannot be read,\n'
      + '3 an address cannot be had.')
    .action((options: Options) => serve(options, io));
}

async function serve(options: Options, io: Io): Promise<void> {
  const signals = createSignalQueue(io);
  const notice = endOfLifeNotice(process.versions.node, Date.now());
  const started = await startApp({ source: sourceOf(options.config, io), env: io.env, notices: notice === null ? [] : [notice], onBuilt: releaseMemory });
  if (!started.ok) {
    signals.close();
    fail(started.error, io);
    return;
  }
  await runUntilSignalled(started.value, signals);
  signals.close();
  io.exit(0);
}

function runUntilSignalled(app: App, signals: SignalQueue): Promise<void> {
  return new Promise((resolve, reject) => {
    signals.take((signal) => {
      if (signal === 'SIGHUP') void app.reload();
      else app.stop().then(resolve, reject);
    });
  });
}
