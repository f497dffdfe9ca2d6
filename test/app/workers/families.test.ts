/** Other families of tests against the running program hold with two workers as with one process. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import t from 'tap';
import { parse } from 'yaml';
import { projectDir } from '../../support/project-dir.js';
import { baseConfig, workersSwitch } from '../../support/proxy-process.js';

t.setTimeout(600_000);

/** One of conformance, one of fuzz over a running program, one of chaos. */
const files = ['conformance/framing.test.js', 'fuzz/profiles/served.test.js', 'chaos/killed-proxy.test.js'];

t.test('conformance, fuzz and chaos pass with two workers', async (t) => {
  t.equal((parse(baseConfig()) as Record<string, unknown>)['workers'], undefined, 'this process has the usual config');
  for (const file of files) {
    const child = spawn(process.execPath, [join(projectDir, '.build/test', file)], {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: { ...process.env, [workersSwitch]: '2', TAP: '1', TAP_TIMEOUT: '240' },
    });
    t.teardown(() => child.kill('SIGKILL'));
    let output = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
    const [code] = (await once(child, 'close')) as [number | null];
    t.equal(code, 0, code === 0 ? file : `${file}\n${output}`);
    t.match(output, /^ok /m, `${file} ran`);
  }
});
