import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { commandNames } from '../../src/cli/program.js';
import { projectDir } from '../support/project-dir.js';
import { projectFiles, readProjectFile } from '../support/source-files.js';
import { tempDir } from '../support/temp-dir.js';
import { startWorld } from '../support/world.js';

interface Bom {
  readonly components: readonly {
    readonly name: string;
    readonly version: string;
    readonly purl: string;
    readonly hashes: readonly unknown[];
  }[];
}

const app = join(tempDir(t), 'app');
const made = spawnSync(process.execPath, ['.release/bundle.mjs', app], { cwd: projectDir, encoding: 'utf8' });

t.test('the bundle stands alone: it serves, from an empty folder, without node_modules but native ones', async (t) => {
  t.equal(made.status, 0, made.stderr);
  t.same(readdirSync(join(app, 'node_modules')), ['@node-rs']);
  const world = await startWorld(t, { main: join(app, 'main.js') });
  t.equal((await world.request({ path: '/orders', headers: world.authorization() })).status, 200);
  for (const command of commandNames) {
    t.equal(
      spawnSync(process.execPath, [join(app, 'main.js'), command, '--help'], { encoding: 'utf8' }).status,
      0,
      command,
    );
  }
});

t.test('the whole licences of all that is in it are beside it', async (t) => {
  t.equal(readFileSync(join(app, 'LICENSE'), 'utf8'), readFileSync(join(projectDir, 'LICENSE'), 'utf8'));
  const { components } = JSON.parse(readFileSync(join(app, 'sbom.cdx.json'), 'utf8')) as Bom;
  const sections = readFileSync(join(app, 'THIRD-PARTY-NOTICES'), 'utf8')
    .split(`${'='.repeat(80)}\n`)
    .slice(1);
  t.equal(sections.length, components.length + 1, 'and the bundler’s own, of which a few lines go in');
  t.ok(sections.at(-1)?.startsWith('rolldown '));
  for (const { name, version } of components) {
    const section = sections.find((one) => one.startsWith(`${name} ${version}: `)) ?? '';
    t.match(
      section,
      /Permission (?:is hereby granted|to use, copy)|TERMS AND CONDITIONS FOR USE|Redistribution and use in source/,
      `${name} ${version}`,
    );
  }
  t.match(
    sections.find((one) => one.startsWith('undici ')),
    'Ethan Arrowood',
    'with what a package took from others',
  );
});

t.test('a package without the text of its licence stops the bundle', async (t) => {
  const dir = tempDir(t);
  const write = (file: string, text: string): void => {
    mkdirSync(join(dir, file, '..'), { recursive: true });
    writeFileSync(join(dir, file), text);
  };
  const folder = 'node_modules/bare';
  const bundle = (license: string): string => {
    const nothing = { version: '1.0.0', integrity: 'sha512-AAAA', optionalDependencies: {} };
    const packages = {
      'node_modules/@node-rs/argon2': nothing,
      'node_modules/@node-rs/bcrypt': nothing,
      [folder]: { ...nothing, license },
    };
    write('package-lock.json', JSON.stringify({ packages }));
    return spawnSync(process.execPath, [join(projectDir, '.release/bundle.mjs'), 'out'], { cwd: dir, encoding: 'utf8' })
      .stderr;
  };
  write('package.json', '{ "name": "some", "version": "1.0.0", "license": "Apache-2.0" }');
  write('LICENSE', 'some terms');
  write('dist/main.js', 'import { bare } from "bare"; console.log(bare());');
  write(`${folder}/package.json`, '{ "name": "bare", "version": "1.0.0", "type": "module", "main": "index.js" }');
  write(`${folder}/index.js`, 'export function bare() { return process.argv; }');
  t.match(bundle('MIT'), /bare 1\.0\.0 \(MIT\) has no text of its licence/, 'no file');
  write(`${folder}/LICENSE`, 'MIT, see https://opensource.org/license/mit');
  t.match(bundle('MIT'), /bare 1\.0\.0 \(MIT\) has no text of its licence/, 'a file that only names it');
  write(`${folder}/LICENSE`, 'Permission is hereby granted, free of charge, to any person');
  t.match(bundle('(MIT AND Zlib)'), /bare 1\.0\.0 \(\(MIT AND Zlib\)\) has no text of its licence/, 'one of two');
  t.equal(bundle('MIT'), '');
});

t.test('the SBOM names every dependency by version, as the lock file has it', async (t) => {
  const { components } = JSON.parse(readFileSync(join(app, 'sbom.cdx.json'), 'utf8')) as Bom;
  const { dependencies } = JSON.parse(readFileSync(join(projectDir, 'package.json'), 'utf8')) as {
    dependencies: Readonly<Record<string, string>>;
  };
  const named = new Map(components.map(({ name, version }) => [name, version]));
  // What http-proxy brings is left out where nothing of it is used; the rest is there.
  const missing = Object.entries(dependencies).filter(([name, version]) => named.get(name) !== version);
  t.same(
    missing.filter(([name]) => existsSync(join(projectDir, 'node_modules', name)) && isImported(name)),
    [],
  );
  t.ok(components.every(({ purl, hashes }) => /^pkg:npm\/(?:%40[^@]+|[^@]+)@\d/.test(purl) && hashes.length === 1));
  for (const tool of ['typescript', 'tap', 'eslint', 'rolldown', 'fast-check']) {
    t.notOk(named.has(tool), `${tool} is for development`);
  }
});

function isImported(name: string): boolean {
  const imported = new RegExp(`(from|import\\() ?'${name}[/']`);
  return projectFiles('src').some((file) => imported.test(readProjectFile(file)));
}
