import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import t from 'tap';
import ts from 'typescript';
import { projectDir } from '../support/project-dir.js';
import { smallProject } from './small-project.js';
import type { Scope } from '../support/scope.js';
import { parseSource, projectFiles, type SourceFile } from '../support/source-files.js';
import { tempDir } from '../support/temp-dir.js';

t.setTimeout(120_000);

/** The program that a call of `node:child_process` starts, where it is named there. */
function startedBy(node: ts.Node): readonly string[] {
  if (!ts.isCallExpression(node)) return [];
  const called = node.expression.getText();
  const [first] = node.arguments;
  return /(?:spawn|spawnSync|exec|execSync|execFile|execFileSync|promisify\(execFile\))$/.test(called) &&
    first !== undefined &&
    ts.isStringLiteralLike(first)
    ? [first.text]
    : [];
}

/** The files that a file imports, itself included. */
function loadedBy(path: string, sources: readonly SourceFile[]): ReadonlySet<string> {
  const found = new Set([path]);
  for (const one of found) {
    const imports = sources.find((source) => source.path === one)?.imports ?? [];
    for (const { file, typeOnly } of imports) if (file !== null && !typeOnly) found.add(file);
  }
  return found;
}

const files = {
  'test/support/redis-server.ts': 'export type Port = number;\nexport const port: Port = 6379;\n',
  'test/server.ts': 'import {\n  port,\n} from "./support/redis-server.js";\nexport { port };\n'.replaceAll('"', "'"),
  'test/store/through-another.test.ts':
    "import t from 'tap';\nimport { port } from '../server.js';\nt.equal(port, 6379);\n",
  'test/store/later.test.ts':
    "import t from 'tap';\nt.equal((await import('../support/redis-server.js')).port, 6379);\n",
  'test/types-only.test.ts':
    "import t from 'tap';\nimport type { Port } from './support/redis-server.js';\nconst port: Port = 1;\nt.equal(port, 1);\n",
};

/** A PATH with nothing but these programs, which are JavaScript. */
function pathWith(t: Scope, programs: Readonly<Record<string, string>>): { readonly PATH: string } {
  const path = tempDir(t);
  for (const [name, script] of Object.entries(programs)) {
    writeFileSync(join(path, name), `#!${process.execPath}\n${script}\n`, { mode: 0o755 });
  }
  return { PATH: path };
}

const { run, runner, dir } = smallProject(t, 'project', files);

/** `npx` comes with Node.js; `taskset` is done without where it is not there. */
const notListed = ['npx', 'taskset'];

t.test(
  'every program that a test starts is named by a file of test/support, which the list of programs knows',
  async (t) => {
    const sources = projectFiles('test')
      .filter((path) => path.endsWith('.ts'))
      .map(parseSource);
    const started = sources.flatMap(({ path, nodes }) =>
      nodes.flatMap(startedBy).map((program) => `${path} starts ${program}`),
    );
    t.same(
      started.filter(
        (line) => !line.startsWith('test/support/') && !notListed.some((name) => line.endsWith(` ${name}`)),
      ),
      [],
      'import what test/support has for it, or add that with a line of test/check/programs.mjs',
    );
    t.ok(started.length > 4, 'such calls are found');

    const loaded: unknown = await import(pathToFileURL(join(projectDir, 'test/check/programs.mjs')).href);
    const { programs } = loaded as {
      programs: readonly { readonly name: string; readonly support?: string; readonly debian?: readonly string[] }[];
    };
    const listed = programs.map(({ name, support = name }) => `test/support/${support}.ts`);
    t.same(
      listed.filter((path) => !sources.some((source) => source.path === path)),
      [],
    );
    const starting = sources.filter(
      ({ path, nodes }) => path.startsWith('test/support/') && nodes.flatMap(startedBy).length > 0,
    );
    const needed = new Map(starting.map(({ path }) => [path, loadedBy(path, sources)]));
    t.same(
      [...needed].filter(([, those]) => !listed.some((path) => those.has(path))).map(([path]) => path),
      [],
    );
  },
);

t.test('what needs a program that is not here is not run and named, at the start and in the end; the rest is', (t) => {
  const { code, output } = run([runner, 'test'], pathWith(t, {}));
  t.equal(code, 0);
  t.match(
    output,
    /^missing: redis-server: 2 test files are not run; Debian has it as redis-server\nnpm test -- --install gets what is missing\n/m,
  );
  t.match(output, /^ok .* test\/types-only\.test\.ts$/m);
  t.notMatch(output, /^(ok|FAILED) .* test\/store/m);
  t.match(
    output,
    new RegExp(
      [
        'NOT RUN: 2 of 3 test files',
        '  for want of redis-server, 2: test/store/\\{later,through-another\\}\\.test\\.ts',
        '.* s in all, .*',
        '1 passed, 0 failed',
        '$',
      ].join('\\n'),
    ),
  );
  t.end();
});

t.test('a program that is there is used', (t) => {
  t.match(run([runner, 'test'], pathWith(t, { 'redis-server': '' })), { code: 0, output: /\n3 passed, 0 failed\n$/ });
  t.end();
});

t.test('--install fails where it cannot install, with what to type or to install', (t) => {
  t.match(run([runner, '--install', 'test'], pathWith(t, {})), {
    code: 1,
    output:
      /by apt-get: redis-server\nFAILED .* apt-get install\nThere is no apt-get here\. .*: redis-server\nmissing: /,
  });
  const aptGet = 'process.exit(process.argv[2] === "--version" ? 0 : 100)';
  t.match(run([runner, '--install', 'test'], pathWith(t, { 'apt-get': aptGet })), {
    code: 1,
    output:
      /^.*sudo apt-get update && sudo apt-get install -y --no-install-recommends redis-server\nmissing: redis-server: [^]*\n1 passed, 1 failed\n$/m,
  });
  t.end();
});

t.test('--install says what it installs, installs it, and runs what needs it', (t) => {
  const log = join(dir, 'calls');
  const aptGet = `const { appendFileSync, copyFileSync, chmodSync } = require('node:fs');
    appendFileSync(${JSON.stringify(log)}, process.argv.slice(2).join(' ') + '\\n');
    if (process.argv.includes('install')) copyFileSync(__filename, __dirname + '/redis-server');`;
  const sudo =
    'process.exitCode = require(\'node:child_process\').spawnSync(process.argv.at(process.argv.indexOf("apt-get")), ' +
    'process.argv.slice(process.argv.indexOf("apt-get") + 1)).status;';
  const { code, output } = run([runner, '--install', 'test'], pathWith(t, { 'apt-get': aptGet, sudo }));
  t.equal(code, 0);
  t.match(output, /^to be installed on this machine, by apt-get: redis-server\nok .* apt-get install\n/m);
  t.match(output, /\n3 passed, 0 failed\n$/);
  t.match(readFileSync(log, 'utf8'), /^update -qq\n-qq install -y --no-install-recommends redis-server$/m);
  t.end();
});
