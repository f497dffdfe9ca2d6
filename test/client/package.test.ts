/** `sallyport/client` as a program sees it that has this package installed. */
import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import t from 'tap';
import { startCoreEmulator } from '../../src/core-emulator/server.js';
import { projectDir } from '../support/project-dir.js';
import { parseSource, projectFiles } from '../support/source-files.js';
import { startProxyProcess } from '../support/proxy-process.js';
import { programFolder } from './program-folder.js';

const exec = promisify(execFile);
const apiKey = 'k3y-of-twenty-and-more-characters';

function sampleOf(page: string): string {
  const [, sample = ''] = /^```js\n([^]*?)^```$/m.exec(readFileSync(join(projectDir, page), 'utf8')) ?? [];
  return sample;
}

t.test('the program of docs/minting.md works as it stands: a token with fetch, past the real proxy', async (t) => {
  const core = await startCoreEmulator({ host: '127.0.0.1', port: 0, rotateEveryMs: 3_600_000, apiKeys: [apiKey] });
  t.teardown(() => core.close());
  const proxy = await startProxyProcess(t, {
    config: { issuers: { core: { jwks_url: `${core.url}/auth/jwt/jwks.json` } } },
  });
  const dir = programFolder(t);
  const keyFile = join(dir, 'key');
  writeFileSync(keyFile, `${apiKey}\n`, { mode: 0o600 });
  const places = (sample: string): string =>
    sample
      .replaceAll('https://core.internal:3567', core.url)
      .replaceAll('/run/secrets/core-api-key', keyFile)
      .replaceAll('https://orders.internal', `http://127.0.0.1:${String(proxy.port)}`);
  const sample = sampleOf('docs/minting.md');
  t.match(sample, /from 'sallyport\/client'/);
  const file = join(dir, 'program.mjs');
  writeFileSync(file, `${places(sample)}\nconsole.log(response.status);\nawait tokens.close();\n`);
  const { stdout } = await exec(process.execPath, [file], { cwd: dir, timeout: 30_000 });
  t.equal(stdout, '200\n');
});

t.test('loading it loads neither the proxy nor the schema of its config', async (t) => {
  const sources = new Map(
    projectFiles('src')
      .filter((path) => path.endsWith('.ts'))
      .map((path) => [path, parseSource(path)]),
  );
  const packages = new Set<string>();
  const seen = new Set<string>();
  const walk = (path: string): void => {
    if (seen.has(path)) return;
    seen.add(path);
    for (const { file, text, typeOnly } of sources.get(path)?.imports ?? []) {
      if (typeOnly) continue;
      if (file !== null) walk(file);
      else if (!text.startsWith('node:')) packages.add(text);
    }
  };
  walk('src/client/token/source.ts');
  t.ok(seen.has('src/core-api/core-client.ts'));
  t.same([...packages], ['undici']);
});

t.test('what worked before the package had entry points: its binary and the schema', async (t) => {
  const dir = programFolder(t);
  const script =
    'import { createRequire } from "node:module"; const r = createRequire(import.meta.url);' +
    'console.log(r("sallyport/package.json").bin.sallyport, r("sallyport/config.schema.json").type)';
  const { stdout } = await exec(process.execPath, ['--input-type=module', '-e', script], { cwd: dir });
  t.equal(stdout, 'bin/sallyport.js object\n');
});
