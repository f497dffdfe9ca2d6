import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { commandNames } from '../../src/cli/program.js';
import { projectDir } from '../support/project-dir.js';
import { projectFiles, readProjectFile } from '../support/source-files.js';
import { tempDir } from '../support/temp-dir.js';
import { startProxyProcess } from '../support/proxy-process.js';

interface Bom {
  readonly components: readonly {
    readonly name: string;
    readonly version: string;
    readonly purl: string;
    readonly hashes: readonly unknown[];
  }[];
}

const dir = tempDir(t);
const app = join(dir, 'proxy');
const withTools = join(dir, 'tools');
const made = [[app], ['--tools', withTools]].map((args) =>
  spawnSync(process.execPath, ['.release/bundle.mjs', ...args], { cwd: projectDir, encoding: 'utf8' }),
);

function runBundled(
  folder: string,
  ...argv: readonly string[]
): { status: number | null; stdout: string; stderr: string } {
  return spawnSync(process.execPath, [join(folder, 'main.js'), ...argv], { encoding: 'utf8' });
}

/** Packages of a bundle, by its SBOM. */
function packagesIn(folder: string): readonly string[] {
  const { components } = JSON.parse(readFileSync(join(folder, 'sbom.cdx.json'), 'utf8')) as Bom;
  return components.map(({ name }) => name);
}

const toolNames = ['dev', 'import', 'core'];

t.test('the bundle stands alone: it serves, from an empty folder, without node_modules', async (t) => {
  t.same(
    made.map(({ status, stderr }) => [status, stderr]),
    [
      [0, ''],
      [0, ''],
    ],
  );
  t.notOk(existsSync(join(app, 'node_modules')));
  const proxy = await startProxyProcess(t, { main: join(app, 'main.js') });
  t.equal((await proxy.request({ path: '/orders', headers: proxy.authorization() })).status, 200);
  for (const command of commandNames.filter((name) => !toolNames.includes(name))) {
    t.equal(runBundled(app, command, '--help').status, 0, command);
  }
});

t.test('a start loads the proxy as one chunk, and of Node.js and undici no more than is used', async (t) => {
  const found = join(tempDir(t), 'loaded');
  const look = join(tempDir(t), 'look.cjs');
  writeFileSync(
    look,
    `process.on('exit', () => require('fs').writeFileSync(${JSON.stringify(found)}, process.moduleLoadList.join('\\n')));`,
  );
  const proxy = await startProxyProcess(t, { main: join(app, 'main.js'), env: { NODE_OPTIONS: `--require ${look}` } });
  await proxy.stop();
  const loaded = readFileSync(found, 'utf8').split('\n');
  t.ok(loaded.includes('NativeModule http'), 'and it is the list');
  t.notOk(loaded.includes('NativeModule internal/deps/undici/undici'), 'not the copy of undici that Node.js has');
  for (const file of readdirSync(app).filter((name) => name.endsWith('.js'))) {
    const code = readFileSync(join(app, file), 'latin1');
    t.notMatch(code, /^import[^'"`]*["'`]node:/m, `${file} looks at nothing of Node.js that it does not use`);
    t.notMatch(code, /[\x80-\xff]/, `${file} is kept in one byte a character`);
  }
  const health = readdirSync(app).filter((name) => name.startsWith('health-'));
  t.equal(health.length, 1);
  t.notMatch(readFileSync(join(app, health[0] ?? ''), 'utf8'), './serve-', 'nor does the health check load it');
});

t.test('the bundle of the proxy carries neither the emulator of the Core nor the import, and says so', async (t) => {
  for (const argv of [
    ...toolNames.map((name) => [name]),
    ['help', 'core'],
    ['import', '--help'],
    ['core', '--port', '0'],
  ]) {
    const { status, stdout, stderr } = runBundled(app, ...argv);
    const [name = ''] = argv.filter((word) => toolNames.includes(word));
    t.equal(status, 2, argv.join(' '));
    t.equal(stdout, '');
    t.equal(
      stderr,
      `error: this is the proxy alone, without ${name}: docker build --target tools makes an image with it\n`,
    );
  }
  const help = runBundled(app, '--help').stdout;
  for (const name of toolNames) {
    t.notMatch(help, new RegExp(`^ +(?:sallyport )?${name}\\b`, 'm'), `help does not offer ${name}`);
  }
  t.match(help, /^ {2}mint +mint a service token/m, 'and still has what the proxy comes with');
  t.match(runBundled(app, 'coree').stderr, /^error: unknown command 'coree'\n/);
  const offered = runBundled(app, 'completion', 'bash').stdout;
  t.match(offered, "'sallyport') words='serve check schema explain test diff playground learn doctor");
  t.notMatch(offered, /sallyport (?:core|dev|import)\b/, 'nor does completion');
  // The SDK of sessions brings the metadata of phone numbers, too.
  t.same(
    packagesIn(withTools).filter((name) => !packagesIn(app).includes(name) && !name.includes('-linux-')),
    ['@node-rs/argon2', '@node-rs/bcrypt', 'csv-parse'],
  );
  // Names stay in a bundle.
  const code = (folder: string): string =>
    readdirSync(folder)
      .filter((file) => file.endsWith('.js'))
      .map((file) => readFileSync(join(folder, file), 'utf8'))
      .join('\n');
  for (const name of ['startCoreEmulator', 'startDemoUpstream', 'importFile']) {
    t.equal(code(app).includes(name), false, `${name} is not in the proxy`);
    t.equal(code(withTools).includes(name), true, `${name} is among the tools`);
  }
});

t.test('the bundle with tools has all commands, and the native modules that they load', async (t) => {
  t.same(readdirSync(join(withTools, 'node_modules')), ['@node-rs']);
  for (const command of commandNames) t.equal(runBundled(withTools, command, '--help').status, 0, command);
});

t.test('the whole licences of all that is in it are beside it', async (t) => {
  for (const folder of [app, withTools]) checkLicences(t, folder);
});

function checkLicences(t: Test, folder: string): void {
  t.equal(readFileSync(join(folder, 'LICENSE'), 'utf8'), readFileSync(join(projectDir, 'LICENSE'), 'utf8'));
  const { components } = JSON.parse(readFileSync(join(folder, 'sbom.cdx.json'), 'utf8')) as Bom;
  const sections = readFileSync(join(folder, 'THIRD-PARTY-NOTICES'), 'utf8')
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
}

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
  const { components } = JSON.parse(readFileSync(join(withTools, 'sbom.cdx.json'), 'utf8')) as Bom;
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
