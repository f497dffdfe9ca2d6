/**
 * docs/install.md as it stands: from a clean clone to a project of one's own, by the tarball and by a scope in one's
 * own registry.
 */
import { spawnSync } from 'node:child_process';
import { appendFileSync, existsSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { blockThatBegins } from '../docs/fenced-blocks.js';
import { git } from '../support/git.js';
import { runNpm, startNpmRegistry } from '../support/npm-registry.js';
import { projectDir } from '../support/project-dir.js';
import type { Scope } from '../support/scope.js';
import { tempDir } from '../support/temp-dir.js';

t.setTimeout(580_000);

const page = 'docs/install.md';
/** The dependencies come from the registry that this machine has, which has them in its cache. */
const cached = { npm_config_cache: join(homedir(), '.npm') };
const { version } = JSON.parse(readFileSync(join(projectDir, 'package.json'), 'utf8')) as { readonly version: string };

function words(line: string): readonly string[] {
  return line.split(' ').slice(1);
}

/** A project that has nothing yet. */
function project(t: Scope): string {
  const dir = tempDir(t);
  writeFileSync(join(dir, 'package.json'), '{ "name": "mine", "version": "1.0.0", "private": true, "type": "module" }');
  return dir;
}

/** What a project has of it: the command, the module and its types. */
async function holds(t: Test, dir: string): Promise<void> {
  t.match(
    (await runNpm(t, dir, null, ['npx', '--no', '--', 'sallyport', '--version'], cached)).output,
    `sallyport ${version} (`,
  );
  const script = 'import { createTokenSource } from "sallyport/client"; console.log(typeof createTokenSource)';
  t.equal(
    spawnSync(process.execPath, ['--input-type=module', '-e', script], { cwd: dir, encoding: 'utf8' }).stdout,
    'function\n',
  );
  t.ok(existsSync(join(dir, 'node_modules/sallyport/dist/client/token/source.d.ts')));
  t.ok(existsSync(join(dir, 'node_modules/sallyport/LICENSE')));
}

const clone = join(tempDir(t), 'clone');
const [, pack = ''] = blockThatBegins(page, 'npm ci').text.trimEnd().split('\n');

t.test('the tarball of a clean clone is whole, and a project can install it', async (t) => {
  t.equal(git(projectDir, 'clone', '--quiet', projectDir, clone).code, 0);
  // `npm ci` of the page.
  symlinkSync(join(projectDir, 'node_modules'), join(clone, 'node_modules'));
  const packed = await runNpm(t, clone, null, ['npm', ...words(pack)], cached);
  t.equal(packed.code, 0, packed.output);
  const dir = project(t);
  const [install = '', use = ''] = blockThatBegins(page, 'npm install --save-exact ./').text.trimEnd().split('\n');
  t.equal(use, 'npx --no -- sallyport --version');
  const installed = await runNpm(t, dir, null, ['npm', ...words(install.replace('./', `${clone}/`))], cached);
  t.equal(installed.code, 0, installed.output);
  await holds(t, dir);
  t.notOk(existsSync(join(dir, 'node_modules/sallyport/dist/.tsbuildinfo')), 'nothing of the compiler’s own');
});

t.test(
  'under a scope of one’s own, the names in code stay as they are, and the public registry is not asked for the package',
  async (t) => {
    const registry = await startNpmRegistry(t);
    const publish = blockThatBegins(page, 'npm pkg set name=')
      .text.replace('https://npm.example.com/', `${registry.url}/`)
      .trimEnd()
      .split('\n');
    for (const line of publish) {
      const { code, output } = await runNpm(t, clone, registry, ['npm', ...words(line)]);
      t.equal(code, 0, `${line}: ${output}`);
    }
    const dir = project(t);
    const [rc = '', install = ''] = blockThatBegins(page, "echo '@your-scope").text.trimEnd().split('\n');
    appendFileSync(
      join(dir, '.npmrc'),
      `${/'(.*)'/.exec(rc)?.[1]?.replace('https://npm.example.com/', `${registry.url}/`) ?? ''}\n`,
    );
    const { code, output } = await runNpm(t, dir, null, ['npm', ...words(install)], cached);
    t.equal(code, 0, output);
    t.ok(
      registry.requests().some((request) => /^GET \/@your-scope\/sallyport\/-\//.test(request)),
      'it came from there',
    );
    t.match(JSON.parse(readFileSync(join(dir, 'package.json'), 'utf8')), {
      dependencies: { sallyport: `npm:@your-scope/sallyport@${version}` },
    });
    await holds(t, dir);
  },
);
