import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { commandNames } from '../../src/cli/program.js';
import { projectDir } from '../support/project-dir.js';
import { tempDir } from '../support/temp-dir.js';
import { startWorld } from '../support/world.js';

interface Bom {
  readonly components: readonly { readonly name: string; readonly version: string; readonly purl: string; readonly hashes: readonly unknown[] }[];
}

const app = join(tempDir(t), 'app');
const made = spawnSync(process.execPath, ['.release/bundle.mjs', app], { cwd: projectDir, encoding: 'utf8' });

t.test('the bundle stands alone: it serves, from an empty folder, without node_modules but native ones', async (t) => {
  t.equal(made.status, 0, made.stderr);
  t.same(readdirSync(join(app, 'node_modules')), ['@node-rs']);
  const world = await startWorld(t, { main: join(app, 'main.js') });
  t.equal((await world.request({ path: '/orders', headers: world.authorization() })).status, 200);
  for (const command of commandNames) {
    t.equal(spawnSync(process.execPath, [join(app, 'main.js'), command, '--help'], { encoding: 'utf8' }).status, 0, command);
  }
});

t.test('the SBOM names every dependency by version, as the lock file has it', async (t) => {
  const { components } = JSON.parse(readFileSync(join(app, 'sbom.cdx.json'), 'utf8')) as Bom;
  const { dependencies } = JSON.parse(readFileSync(join(projectDir, 'package.json'), 'utf8')) as { dependencies: Readonly<Record<string, string>> };
  const named = new Map(components.map(({ name, version }) => [name, version]));
  // What http-proxy brings is left out where nothing of it is used; the rest is there.
  const missing = Object.entries(dependencies).filter(([name, version]) => named.get(name) !== version);
  t.same(missing.filter(([name]) => existsSync(join(projectDir, 'node_modules', name)) && isImported(name)), []);
  t.ok(components.every(({ purl, hashes }) => /^pkg:npm\/(?:%40[^@]+|[^@]+)@\d/.test(purl) && hashes.length === 1));
  for (const tool of ['typescript', 'tap', 'eslint', 'rolldown', 'fast-check']) t.notOk(named.has(tool), `${tool} is for development`);
});

function isImported(name: string): boolean {
  return spawnSync('grep', ['-rqE', `(from|import\\() ?'${name}[/']`, join(projectDir, 'src')]).status === 0;
}
