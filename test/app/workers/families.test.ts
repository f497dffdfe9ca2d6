/** Other families of tests against the running program hold with two workers as with one process. */
import t from 'tap';
import { parse } from 'yaml';
import { baseConfig, workersSwitch } from '../../support/proxy-process.js';
import { runTestFile } from '../../support/run-test-file.js';

t.setTimeout(600_000);

/** Of conformance what has bounds, keys, pages and log; one of fuzz over a running program, two of chaos. */
const files = [
  ...['framing', 'limits', 'websockets', 'keys', 'operators'].map((name) => `conformance/${name}.test.js`),
  'fuzz/profiles/served.test.js',
  'chaos/killed-proxy.test.js',
  'chaos/two-proxies.test.js',
];

t.test('conformance, fuzz and chaos pass with two workers', async (t) => {
  t.equal((parse(baseConfig()) as Record<string, unknown>)['workers'], undefined, 'this process has the usual config');
  for (const file of files) {
    const output = await runTestFile(t, file, { [workersSwitch]: '2' });
    t.match(output, /^ok /m, `${file} ran`);
  }
});
