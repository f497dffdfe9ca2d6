#!/usr/bin/env node
import { holdSignals, ignoreSignals } from './cli/early-signals.js';

const argv = process.argv.slice(2);
// Before anything else is loaded. The other commands end at a signal, as programs do.
const early = argv[0] === 'serve' ? holdSignals() : null;

const { endAtUncaught } = await import('./cli/uncaught.js');
endAtUncaught();

// Started by ourselves, with a channel to us: whoever types it has none.
if (argv[0] === 'worker' && process.send !== undefined) {
  ignoreSignals();
  const { serveAsWorker } = await import('./cli/commands/serve/worker.js');
  serveAsWorker();
} else if (argv[0] === 'handles' && process.send !== undefined) {
  ignoreSignals();
  const { echoHandles } = await import('./cli/commands/serve/socket-echo.js');
  echoHandles();
} else {
  const [{ processIo }, { run }] = await Promise.all([import('./cli/process-io.js'), import('./cli/program.js')]);
  await run(argv, processIo(early));
}
