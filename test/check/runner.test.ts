import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { smallProject } from './small-project.js';

t.setTimeout(120_000);

/** Says what tap says, and starts in a tenth of the time. */
const passing = 'console.log("1..1\\nok 1 - quick\\n# { total: 1, pass: 1 }");\n';

// macOS takes paths of 1,024 characters, Linux four times as long ones.
const [depth, count] = process.platform === 'linux' ? [32, 42] : [7, 180];
const folder = join('with a space', 'mit ä', ...Array.from({ length: depth }, () => 'long'.repeat(25)));

const quick = Object.fromEntries(
  Array.from({ length: count }, (_, index) => [`test/quick/${String(index)}.test.ts`, passing]),
);
const ending = {
  'test/fails.test.ts': 'import t from "tap";\nt.equal(1, 1, "what held");\nt.equal(1, 2, "what did not hold");\n',
  'test/skips.test.ts': 'import t from "tap";\nt.test("left out", { skip: true }, () => undefined);\n',
  'test/says-nothing.test.ts': 'export {};\n',
  'test/ends-itself.test.ts': 'import t from "tap";\nt.test("not at its end", async () => process.exit(0));\n',
  'test/is-killed.test.ts': 'import t from "tap";\nt.pass();\nprocess.kill(process.pid, "SIGKILL");\n',
  'test/breaks-after.test.ts': `${passing}process.exitCode = 3;\n`,
  'test/leaves-one.test.ts': `import { spawn } from 'node:child_process';
${passing}spawn(process.execPath, ['-e', 'setTimeout(() => undefined, 20_000)'], { stdio: 'inherit', detached: true }).unref();\n`,
};
const measured = {
  'src/decision/rule.ts': `export function rule(n: number): string {
  if (n > 2) return 'large';
  if (n > 1) {
    return 'two';
  }
  // A comment.
  return 'small';
}
`,
  'src/decision/asked.ts': 'import { rule } from "./rule.js";\nconsole.error(rule(Number(process.argv[2])));\n',
  'test/rule.test.ts': `import { spawnSync } from 'node:child_process';
import { rule } from '../src/decision/rule.js';
rule(0);
spawnSync(process.execPath, ['dist/decision/asked.js', '3'], { env: {} });
${passing}`,
  'measure.mjs': `import { runTests } from './test/check/suite.mjs';
import { gatherCoverage } from './test/check/coverage.mjs';
process.chdir(import.meta.dirname);
const coverage = gatherCoverage();
await runTests(['.build/test/rule.test.js'], { jobs: 1, coverage });
console.log(JSON.stringify(await coverage.check()));
`,
};
const { dir, run, runner } = smallProject(t, folder, {
  ...quick,
  ...ending,
  ...measured,
  'test/quick/folder.test.ts':
    'import t from "tap";\nt.equal(process.cwd(), import.meta.dirname.slice(0, -"/.build/test/quick".length));\n',
});

t.test('neither the length of the path nor the number of test files matters', (t) => {
  t.ok(count * dir.length > 128 * 1024, 'a list of the files would not fit into a variable on Linux');
  t.match(run([runner, 'test/quick']), { code: 0, output: new RegExp(`\\n${String(count + 1)} passed, 0 failed\\n$`) });
  t.end();
});

t.test('a file that ends in any other way than by its last assertion fails, and what it said is shown', (t) => {
  const { code, output } = run([runner, ...Object.keys(ending)]);
  t.equal(code, 1);
  t.match(output, 'not ok 2 - what did not hold');
  t.notMatch(output, 'ok 1 - what held');
  t.match(output, /^FAILED .*test\/is-killed\.test\.ts\n[^]*?^ended by SIGKILL$/m);
  t.match(output, /^FAILED .*test\/breaks-after\.test\.ts\n[^]*?^ended with exit code 3$/m);
  const verdicts = Object.keys(ending).map((file) => new RegExp(`^(ok|FAILED) .* ${file}$`, 'm').exec(output)?.[1]);
  t.same(verdicts, ['FAILED', 'FAILED', 'FAILED', 'FAILED', 'FAILED', 'FAILED', 'ok']);
  t.match(output.trimEnd().split('\n').at(-1), /^\d+ passed, 6 failed$/);
  t.end();
});

t.test('a run of everything gives what failed a second chance by itself, and names what needed it', (t) => {
  const project = smallProject(t, 'again', {
    'test/steady.test.ts': passing,
    'test/unsteady.test.ts': `import { existsSync, writeFileSync } from 'node:fs';
if (!existsSync('was-here')) {
  writeFileSync('was-here', '');
  process.exit(1);
}
${passing}`,
    'test/fails.test.ts': 'process.exitCode = 1;\n',
    'again.mjs': `import { runTests } from './test/check/suite.mjs';
process.chdir(import.meta.dirname);
const files = ['steady', 'unsteady', 'fails'].map((name) => '.build/test/' + name + '.test.js');
console.log(JSON.stringify(await runTests(files, { jobs: 2, again: true })));
`,
  });
  project.run([project.runner, 'test/steady.test.ts']);
  const { output } = project.run([join(project.dir, 'again.mjs')]);
  t.same(JSON.parse(output.trimEnd().split('\n').at(-1) ?? ''), {
    passed: 2,
    failed: 1,
    unsteady: ['test/unsteady.test.ts'],
  });
  t.same(
    [...output.matchAll(/^(?:ok|FAILED) .*\/(.*)\.test\.ts$/gm)]
      .map(([line, name]) => `${line.slice(0, 2)} ${String(name)}`)
      .slice(-2)
      .sort(),
    ['FA fails', 'ok unsteady'],
  );
  t.end();
});

t.test('coverage counts what every process ran, and names the lines that none did', (t) => {
  t.match(run([runner, 'test/rule.test.ts']), { code: 0 });
  const { output } = run([join(dir, 'measure.mjs')]);
  t.match(output, /src\/decision\/ +90\.0 % of 10 lines, 100 % required/);
  t.match(output, 'src/decision/rule.ts: 87.5 % of 8, without 4');
  t.end();
});

t.test('a file that is not there, or does not compile, fails the run', (t) => {
  t.match(run([runner, 'test/none.test.ts']), { code: 1, output: /^FAILED there is no test\/none\.test\.ts$/m });
  writeFileSync(join(dir, 'test/torn.test.ts'), 'export const number = ;\n');
  for (const time of ['first', 'second']) {
    t.match(
      run([runner, 'test/torn.test.ts']),
      { code: 1, output: /^FAILED .*compiled.*\ntest\/torn\.test\.ts\(1,23\): error TS1109/m },
      time,
    );
  }
  rmSync(join(dir, 'test/torn.test.ts'));
  t.end();
});

t.test('what changed is compiled by itself, and types are looked at where that is asked for', (t) => {
  const file = join(dir, 'test/wrong.test.ts');
  writeFileSync(file, `const number: number = 'text';\n${passing.replace('quick', '${number}').replace(/"/g, '`')}`);
  t.match(run([runner, 'test/wrong.test.ts']), { code: 0, output: /compiled without a look at types/ });
  t.match(run([runner, '--types', 'test/wrong.test.ts']), {
    code: 1,
    output: /^FAILED .*types\ntest\/wrong\.test\.ts\(1,7\): error TS2322/m,
  });
  writeFileSync(file, `${passing}process.exitCode = 3;\n`);
  t.match(run([runner, 'test/wrong.test.ts']), { code: 1, output: 'ended with exit code 3' }, 'as it is now');
  rmSync(file);
  t.end();
});

t.test('it is compiled to what the compiler makes of it', (t) => {
  const source = join(dir, 'src/decision/rule.ts');
  const compiled = ['rule.js', 'rule.js.map'].map((name) => join(dir, '.build/src/decision', name));
  const read = (): readonly string[] => compiled.map((path) => readFileSync(path, 'utf8'));
  run([runner, '--types', 'test/rule.test.ts']);
  const before = read();
  for (const path of compiled) rmSync(path);
  t.match(run([runner, 'test/rule.test.ts']), { code: 0, output: /compiled without a look at types/ });
  t.same(read(), before);
  writeFileSync(source, `\n${readFileSync(source, 'utf8')}`);
  run([runner, 'test/rule.test.ts']);
  t.not(read()[1], before[1], 'the source map follows');
  t.end();
});

t.test('tests of declarations have the compiler write them', (t) => {
  mkdirSync(join(dir, 'test/support'));
  writeFileSync(join(dir, 'test/support/type-faults.ts'), 'export {};\n');
  writeFileSync(join(dir, 'test/declared.test.ts'), `import './support/type-faults.js';\n${passing}`);
  t.match(run([runner, 'test/declared.test.ts']), { code: 0, output: /^ok .* types$/m });
  t.end();
});
