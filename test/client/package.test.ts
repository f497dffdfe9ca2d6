/** `sallyport/client` as a program sees it that has this package installed. */
import { execFile } from 'node:child_process';
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import t from 'tap';
import ts from 'typescript';
import { startCoreEmulator } from '../../src/emulator/core-emulator.js';
import { projectDir } from '../support/project-dir.js';
import type { Scope } from '../support/scope.js';
import { parseSource, projectFiles } from '../support/source-files.js';
import { tempDir } from '../support/temp-dir.js';
import { startWorld } from '../support/world.js';

const exec = promisify(execFile);
const apiKey = 'k3y-of-twenty-and-more-characters';

/** A folder of a program that has this package among its dependencies. */
function program(t: Scope): string {
  const dir = tempDir(t);
  mkdirSync(join(dir, 'node_modules'));
  symlinkSync(projectDir, join(dir, 'node_modules/sallyport'));
  return dir;
}

function sampleOf(page: string): string {
  const [, sample = ''] = /^```js\n([^]*?)^```$/m.exec(readFileSync(join(projectDir, page), 'utf8')) ?? [];
  return sample;
}

t.test('the programs of README.md and docs/minting.md work as they stand: a token with fetch, past the real proxy', async (t) => {
  const core = await startCoreEmulator({ host: '127.0.0.1', port: 0, rotateEveryMs: 3_600_000, apiKeys: [apiKey] });
  t.teardown(() => core.close());
  const world = await startWorld(t, { config: { issuers: { core: { jwks_url: `${core.url}/auth/jwt/jwks.json` } } } });
  const dir = program(t);
  const keyFile = join(dir, 'key');
  writeFileSync(keyFile, `${apiKey}\n`, { mode: 0o600 });
  const settings = `const core = { url: '${core.url}', apiKey: '${apiKey}' };\n`
    + 'const claims = { aud: \'orders\', sub: \'checkout\', source: \'microservice\', token_type: \'service\', permissions: [\'orders:read\'] };\n';
  const places = (sample: string): string => sample.replaceAll('https://core.internal:3567', core.url).replaceAll('/run/secrets/core-api-key', keyFile)
    .replaceAll('https://orders.internal', `http://127.0.0.1:${String(world.port)}`);
  for (const [page, before] of [['README.md', settings], ['docs/minting.md', '']] as const) {
    const sample = sampleOf(page);
    t.match(sample, /from 'sallyport\/client'/, page);
    const file = join(dir, `${page.replace('/', '-')}.mjs`);
    writeFileSync(file, `${before}${places(sample)}\nconsole.log(response.status);\nawait tokens.close();\n`);
    const { stdout } = await exec(process.execPath, [file], { cwd: dir, timeout: 30_000 });
    t.equal(stdout, '200\n', page);
  }
});

t.test('it has types', async (t) => {
  const dir = program(t);
  const file = join(dir, 'program.mts');
  writeFileSync(file, `import { createTokenSource, TokenError, type TokenSource } from 'sallyport/client';
const tokens: TokenSource = createTokenSource({
  core: { url: 'http://127.0.0.1:3567', apiKey: () => 'key' },
  issuer: 'https://api.example.com',
  claims: { aud: 'a', sub: 'b', source: 'c', token_type: 'd', permissions: ['e'] },
  onIssued: ({ time, jti }) => console.log(time, jti),
});
const token: string = await tokens.getToken({ signal: AbortSignal.timeout(1) });
try { tokens.invalidate(token); } catch (error) { if (error instanceof TokenError && error.code === 'unauthorized') throw error; }
// @ts-expect-error: no claim of one's own
createTokenSource({ core: { url: 'x' }, issuer: 'x', claims: { aud: 'a', sub: 'b', source: 'c', token_type: 'd', permissions: [], jti: 'x' } });
`);
  const compiled = ts.createProgram([file], {
    strict: true, noEmit: true, module: ts.ModuleKind.NodeNext, target: ts.ScriptTarget.ES2023, exactOptionalPropertyTypes: true,
    types: ['node'], typeRoots: [join(projectDir, 'node_modules/@types')], skipLibCheck: true,
  });
  const found = ts.getPreEmitDiagnostics(compiled).map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, '\n'));
  t.same(found, []);
});

t.test('loading it loads neither the proxy nor the schema of its config', async (t) => {
  const sources = new Map(projectFiles('src').filter((path) => path.endsWith('.ts')).map((path) => [path, parseSource(path)]));
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
  walk('src/client/token-source.ts');
  t.ok(seen.has('src/adapters/core/core-client.ts'));
  t.same([...packages], ['undici']);
});

t.test('what worked before the package had entry points: its binary and the schema', async (t) => {
  const dir = program(t);
  const script = 'import { createRequire } from "node:module"; const r = createRequire(import.meta.url);'
    + 'console.log(r("sallyport/package.json").bin.sallyport, r("sallyport/config.schema.json").type)';
  const { stdout } = await exec(process.execPath, ['--input-type=module', '-e', script], { cwd: dir });
  t.equal(stdout, 'dist/main.js object\n');
});
