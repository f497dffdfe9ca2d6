import t from 'tap';
import { textSource, type ConfigSource } from '../../../src/app/config/config-source.js';
import type { SuiteRun } from '../../../src/cli/commands/test/run-suites.js';
import { watchSuites } from '../../../src/cli/commands/test/watch.js';
import { accept } from '../../../src/lib/result.js';
import { captureIo } from '../captured-io.js';

t.test('a signal that comes while the tests run again ends the watch after them', async (t) => {
  const io = captureIo();
  const text = textSource('', 'orders.test.yaml');
  // Changed as soon as somebody watches it.
  const source: ConfigSource = {
    ...text,
    watch: (onChange) => {
      setImmediate(onChange, accept(''));
      return text.watch(onChange);
    },
  };
  const run: SuiteRun = { messages: [], unreadable: false, sources: [source], results: [], coverage: [] };
  let runs = 0;
  await watchSuites(
    run,
    () => {
      runs += 1;
      t.ok(io.isListening(), 'without a listener the signal would end the process');
      io.signal('SIGINT');
      return Promise.resolve(run);
    },
    io,
  );
  t.equal(runs, 1);
  t.notOk(io.isListening());
});
