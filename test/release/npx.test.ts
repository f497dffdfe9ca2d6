/**
 * `npx sallyport` in a clone runs the clone's own program, and asks no registry for a name that nobody of us holds
 * there.
 */
import { cpSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { runNpm, startNpmRegistry, type NpmRegistry } from '../support/npm-registry.js';
import { projectDir } from '../support/project-dir.js';
import type { Scope } from '../support/scope.js';
import { tempDir } from '../support/temp-dir.js';

t.setTimeout(240_000);

/** A clone, as far as npm looks at one. */
function clone(t: Scope): string {
  const dir = tempDir(t);
  for (const path of ['package.json', '.npmrc', 'bin', '.release']) {
    cpSync(join(projectDir, path), join(dir, path), { recursive: true });
  }
  mkdirSync(join(dir, 'docs'));
  return dir;
}

/** Somebody publishes a program under a name. */
async function publish(t: Scope, registry: NpmRegistry, name: string): Promise<void> {
  const dir = tempDir(t);
  writeFileSync(join(dir, 'package.json'), JSON.stringify({ name, version: '1.0.0', bin: { [name]: 'main.js' } }));
  writeFileSync(join(dir, 'main.js'), '#!/usr/bin/env node\nconsole.log("a stranger’s program ran");\n', {
    mode: 0o755,
  });
  const { code, output } = await runNpm(t, dir, registry, ['npm', 'publish']);
  if (code !== 0) throw new Error(output);
}

t.test('in a clone without what is built, it says what to do, and asks nobody', async (t) => {
  const registry = await startNpmRegistry(t);
  await publish(t, registry, 'sallyport');
  const before = registry.requests().length;
  const dir = clone(t);
  for (const cwd of [dir, join(dir, 'docs')]) {
    const { code, output } = await runNpm(t, cwd, registry, ['npx', 'sallyport', '--version']);
    t.not(code, 0);
    t.match(
      output,
      /sallyport is not built, or was not installed whole: run npm ci in its folder\n {2}Cannot find module .*dist\/main\.js/,
    );
    t.notMatch(output, /stranger/);
  }
  mkdirSync(join(dir, 'dist'));
  writeFileSync(join(dir, 'dist/main.js'), 'import "commander";\n');
  t.match(
    (await runNpm(t, dir, registry, ['npx', 'sallyport', '--version'])).output,
    /run npm ci in its folder\n {2}Cannot find package 'commander'/,
  );
  t.same(registry.requests().slice(before), []);
});

t.test('in a clone that is built, it runs the clone’s program, and asks nobody', async (t) => {
  const registry = await startNpmRegistry(t);
  const dir = clone(t);
  for (const path of ['dist', 'node_modules']) symlinkSync(join(projectDir, path), join(dir, path));
  const { code, output } = await runNpm(t, dir, registry, ['npx', 'sallyport', '--version']);
  t.match(output, /^sallyport \d/m);
  t.equal(code, 0);
  t.same(registry.requests(), []);
});

t.test('what a clone does not have is never installed, however it is called', async (t) => {
  const registry = await startNpmRegistry(t);
  await publish(t, registry, 'salyport');
  const before = registry.requests().length;
  const { code, output } = await runNpm(t, clone(t), registry, ['npx', 'salyport', 'check']);
  t.not(code, 0);
  t.match(output, /no YES option: \["salyport@1\.0\.0"\]/);
  t.same(
    registry
      .requests()
      .slice(before)
      .filter((request) => request.includes('/-/')),
    [],
    'its program was not fetched',
  );
});

t.test('elsewhere, npx --no -- runs what is installed and nothing else', async (t) => {
  const registry = await startNpmRegistry(t);
  await publish(t, registry, 'sallyport');
  const before = registry.requests().length;
  const dir = tempDir(t);
  writeFileSync(join(dir, 'package.json'), '{}');
  const { code, output } = await runNpm(t, dir, registry, [
    'npx',
    '--no',
    '--',
    'sallyport',
    'check',
    'sallyport.yaml',
  ]);
  t.not(code, 0);
  t.match(output, /no YES option: \["sallyport@1\.0\.0"\]/);
  t.same(
    registry
      .requests()
      .slice(before)
      .filter((request) => request.includes('/-/')),
    [],
    'the stranger’s program was not fetched',
  );
});
