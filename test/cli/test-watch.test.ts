import t from 'tap';
import type { ConfigSource } from '../../src/app/config-file.js';
import type { SuiteRun } from '../../src/cli/test-run.js';
import { watchSuites } from '../../src/cli/test-watch.js';
import { accept } from '../../src/decision/result.js';
import { captureIo } from './captured-io.js';

t.test('a signal that comes while the tests run again ends the watch after them', async (t) => {
  const io = captureIo();
  // Changed as soon as somebody watches it.
  const source: ConfigSource = {
    name: 'orders.test.yaml',
    read: () => Promise.resolve(accept('')),
    watch: (onChange) => {
      setImmediate(onChange);
      return { close: () => undefined };
    },
  };
  const run: SuiteRun = { messages: [], unreadable: false, sources: [source], results: [], coverage: [] };
  let runs = 0;
  await watchSuites(run, () => {
    runs += 1;
    t.ok(io.isListening(), 'without a listener the signal would end the process');
    io.signal('SIGINT');
    return Promise.resolve(run);
  }, io);
  t.equal(runs, 1);
  t.notOk(io.isListening());
});
