import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { parse } from 'yaml';
import { projectDir } from '../support/project-dir.js';
import { baseConfig, tokenCacheSwitch } from '../support/proxy-process.js';
import { runTestFile } from '../support/run-test-file.js';

t.setTimeout(3_600_000);

/**
 * What is run anew: everything of these folders that is not long. The mirrors have proxies of their own, and long
 * runs of their own.
 */
const files = ['conformance', 'conformance/issuers', 'chaos'].flatMap((folder) =>
  readdirSync(join(projectDir, '.build/test', folder))
    .filter(
      (file) => file.endsWith('.test.js') && !file.includes('.long.') && !/^(?:shadow|http2)\.test\.js$/.test(file),
    )
    .map((file) => join(folder, file)),
);

t.test('the conformance and chaos suites pass where every token is verified each time', async (t) => {
  t.ok(files.length > 30, `${String(files.length)} files`);
  t.not((parse(baseConfig()) as Record<string, unknown>)['token_cache'], null, 'this process has the usual config');
  for (const file of files) {
    const output = await runTestFile(t, file, { [tokenCacheSwitch]: 'off' });
    t.match(output, /^ok /m, `${file} ran`);
  }
});
