import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import t from 'tap';
import { run } from '../src/cli/program.js';
import { captureIo } from './cli/captured-io.js';
import { blockThatBegins, fencedBlocks, pages, providerPages } from './docs/fenced-blocks.js';
import { projectDir } from './support/project-dir.js';
import { readProjectFile } from './support/source-files.js';
import { tempDir } from './support/temp-dir.js';

const readme = readProjectFile('README.md');

interface Package {
  readonly scripts: Readonly<Record<string, string>>;
}

const manifest = JSON.parse(readProjectFile('package.json')) as Package;

t.test('it is short enough to be read: 10 kB', (t) => {
  t.ok(Buffer.byteLength(readme) <= 10_000, `${Buffer.byteLength(readme)} bytes`);
  t.end();
});

t.test('the config shown passes check --strict', async (t) => {
  const configs = fencedBlocks('README.md').filter(
    ({ language, text }) => language === 'yaml' && /^routes:/m.test(text),
  );
  t.equal(configs.length, 1);
  for (const { text } of configs) {
    const file = join(tempDir(t), 'sallyport.yaml');
    writeFileSync(file, text);
    const io = captureIo();
    await run(['check', '--strict', file], io);
    t.equal(io.code(), 0);
    t.same(
      io
        .out()
        .split('\n')
        .filter((line) => !/^$|: ok$|: note: route "\w+" is public/.test(line)),
      [],
    );
  }
});

t.test('the claims shown are let through by the config shown, and those with one taken away are not', async (t) => {
  const dir = tempDir(t);
  writeFileSync(join(dir, 'sallyport.yaml'), blockThatBegins('README.md', 'listen:').text);
  const claims = JSON.parse(blockThatBegins('README.md', '{').text) as Readonly<Record<string, unknown>>;
  const at = new Date(Number(claims['iat']) * 1000 + 1000).toISOString();
  const explain = async (without: string | null): Promise<number | null> => {
    const kept = Object.fromEntries(
      Object.entries(claims).map(([name, value]) => [name, name === without ? null : value]),
    );
    writeFileSync(join(dir, 'claims.json'), JSON.stringify(kept));
    const io = captureIo({ cwd: dir });
    const request = ['--method', 'GET', '--path', '/orders', '--claims', 'claims.json', '--at', at];
    await run(['explain', '--config', 'sallyport.yaml', ...request], io);
    return io.code();
  };
  t.equal(await explain(null), 0);
  for (const name of Object.keys(claims)) t.equal(await explain(name), name === 'iat' ? 0 : 1, `without ${name}`);
});

t.test('the two lines, and the scripts named, exist', (t) => {
  t.ok(readme.includes('npm ci && npx sallyport dev'));
  const [, line = ''] = /^(npm ci && npm test .*?) +#/m.exec(readme) ?? [];
  t.equal(line, 'npm ci && npm test -- --install');
  t.ok(readProjectFile('.ci/run').endsWith(`\n${line}\n`), 'the one who checks runs it too');
  for (const page of pages) {
    for (const [, script = ''] of readProjectFile(page).matchAll(/\bnpm run ([a-z:]+[a-z])/g)) {
      t.ok(manifest.scripts[script], `${page}: ${script}`);
    }
  }
  t.end();
});

t.test('figures of performance are those of the page that measured them', (t) => {
  const [, section = ''] = /^## Performance\n([^]*?)^## /m.exec(readme) ?? [];
  const figures = section.match(/\b\d+\.\d\d\b|\b\d,\d{3}\b/g) ?? [];
  t.ok(figures.length >= 4);
  const measured = readProjectFile('docs/performance.md');
  for (const figure of figures) {
    t.match(measured, new RegExp(`(?<![\\d.])${figure.replace(',', '')}(?![\\d.])`), figure);
  }
  t.end();
});

t.test('CONTRIBUTING.md names folders and files that are there, and every script for contributors', (t) => {
  const text = readProjectFile('CONTRIBUTING.md');
  const paths = [...text.matchAll(/`((?:src|test|docs|\.github)\/[\w./-]*\w)`/g)].map(([, path = '']) => path);
  t.ok(paths.length > 15);
  t.same(
    paths.filter((path) => !existsSync(join(projectDir, path))),
    [],
  );
  for (const heading of [
    'Set-up and loop',
    'Where things are',
    'Words',
    'A config key',
    'A check of requests',
    'A metric',
    'A command',
  ]) {
    t.match(text, new RegExp(`^#+ ${heading}$`, 'm'), heading);
  }
  t.notMatch(text, /^\| \*\*/m, 'words stand in the glossary alone');
  t.end();
});

t.test('the index has every page', (t) => {
  const linked = [...readme.matchAll(/\]\((docs\/[\w-]+\.md)\)/g)].map(([, page]) => page);
  t.same(
    pages.filter((page) => page.startsWith('docs/') && !linked.includes(page)),
    [],
  );
  t.end();
});

t.test('links lead somewhere', (t) => {
  const charts = readdirSync(join(projectDir, 'helm'))
    .map((name) => `helm/${name}/README.md`)
    .filter((page) => existsSync(join(projectDir, page)));
  for (const page of [
    ...pages,
    ...providerPages,
    'CHANGELOG.md',
    'SECURITY.md',
    'test/README.md',
    'test/conformance/README.md',
    ...charts,
  ]) {
    for (const [, link = ''] of readProjectFile(page).matchAll(/\]\(([^)\s]+)\)/g)) {
      if (link.startsWith('https:')) continue;
      const [path = '', anchor] = link.split('#');
      const target = path === '' ? page : join(dirname(page), path);
      t.ok(existsSync(join(projectDir, target)), `${page}: ${link}`);
      if (anchor !== undefined) t.ok(anchorsOf(readProjectFile(target)).includes(anchor), `${page}: ${link}`);
    }
  }
  t.end();
});

/** What a heading is called in a link. */
function anchorsOf(text: string): readonly string[] {
  return [...text.matchAll(/^#+ (.*)$/gm)].map(([, title = '']) =>
    title
      .toLowerCase()
      .replace(/[^a-z0-9_ -]/g, '')
      .replaceAll(' ', '-'),
  );
}
