import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { smallProject } from './small-project.js';

t.setTimeout(240_000);

/** Notes the process that a file runs in. */
const noting = `import { appendFileSync } from 'node:fs';
import { basename } from 'node:path';
appendFileSync('processes', basename(import.meta.filename, '.test.js') + ' ' + process.pid + '\\n');
`;
const start = `import t from 'tap';\n${noting}`;

const { dir, run, runner } = smallProject(t, 'project', {
  'test/support/own-process.ts': 'export {};\n',
  'test/support/campaign.ts': 'export {};\n',
  'test/support/bash.ts': "export const bash = 'bash';\n",
  'test/helper.ts': "import { spawnSync } from 'node:child_process';\nexport { spawnSync };\n",
  'test/one.test.ts': `${start}t.test('first', async (t) => t.equal(1, 1));
await t.test('second', async (t) => {
  t.test('below it', async (t) => t.ok(true));
  t.same([1], [1]);
});
t.equal(globalThis.closed, undefined);
t.teardown(() => { globalThis.closed = 'by one'; });
declare global { var closed: string | undefined; }
`,
  'test/two.test.ts': `${start}declare global { var closed: string | undefined; }
t.beforeEach(() => { t.comment('before each'); });
t.test((t) => {
  t.equal(globalThis.closed, 'by one', 'what a file closes is closed before the next one begins');
  t.end();
});
`,
  'test/fails.test.ts': `${start}t.equal(1, 1, 'what held');\nt.equal(1, 2, 'what did not hold');\n`,
  'test/throws.test.ts': `${start}t.pass('what held');\nthrow new Error('thrown at the top');\n`,
  'test/throws-later.test.ts': `${start}t.test('waits', () => new Promise(() => { setTimeout(() => { throw new Error('thrown later'); }, 1); }));\n`,
  'test/waits.test.ts': `${start}t.setTimeout(200);\nt.test('for ever', () => new Promise(() => { setTimeout(() => undefined, 1_000); }));\n`,
  'test/skips.test.ts': `${start}t.test('left out', { skip: true }, () => undefined);\n`,
  'test/says-nothing.test.ts': `${start}void t;\n`,
  'test/exits.test.ts': `${start}t.test('not at its end', async () => process.exit(0));\n`,
  'test/spoils.test.ts': `${start}process.env['SPOILED'] = 'yes';\nprocess.exitCode = 3;\nprocess.on('SIGHUP', () => undefined);
globalThis.setTimeout = (() => undefined) as unknown as typeof setTimeout;\nprocess.chdir('/');\nt.pass();\n`,
  'test/unspoiled.test.ts': `${start}t.equal(process.env['SPOILED'], undefined);\nt.equal(process.cwd(), import.meta.dirname.slice(0, -12));
t.test('time goes on', () => new Promise((resolve) => { setTimeout(resolve, 1); }));\n`,
  'test/alone.test.ts': `import './support/own-process.js';\n${start}t.pass();\n`,
  'test/campaign.test.ts': `import './support/campaign.js';\n${start}t.pass();\n`,
  'test/program.test.ts': `import { bash } from './support/bash.js';\n${start}t.equal(bash, 'bash');\n`,
  'test/process.test.ts': `import { spawnSync } from './helper.js';\n${start}t.type(spawnSync, 'function');\n`,
  'test/socket.test.ts': `import { createServer } from 'node:net';\n${start}t.type(createServer, 'function');\n`,
  'test/stays.test.ts': `${start}t.pass();\nsetInterval(() => undefined, 1_000);\n`,
});

/** The process that each file ran in, since the last call. */
function processes(): ReadonlyMap<string, string> {
  const lines = readFileSync(join(dir, 'processes'), 'utf8')
    .trim()
    .split('\n')
    .map((line) => line.split(' '));
  return new Map(lines.map(([name = '', pid = '']) => [name, pid]));
}

t.test('files that need no process share one, and count as if each had its own', (t) => {
  const apart = ['one', 'two'].map((name) => run([runner, `test/${name}.test.ts`]).output);
  t.match(apart[0], /\n4 passed, 0 failed\n$/);
  const { code, output } = run([
    runner,
    '--unit',
    'test/one.test.ts',
    'test/two.test.ts',
    'test/program.test.ts',
    'test/process.test.ts',
    'test/socket.test.ts',
  ]);
  t.match(output, /^2 test files/);
  t.match(output, /\n5 passed, 0 failed\n$/);
  t.equal(code, 0);
  t.equal(processes().get('one'), processes().get('two'));
  t.end();
});

t.test('what needs a process or a program, opens a socket or asks for it has one of its own', (t) => {
  const named = ['one', 'two', 'alone', 'program', 'process', 'socket'].map((name) => `test/${name}.test.ts`);
  t.match(run([runner, ...named]), { code: 0, output: /\n9 passed, 0 failed\n$/ });
  const where = processes();
  t.equal(where.get('one'), where.get('two'));
  t.equal(new Set(where.values()).size, 5);
  t.match(
    run([runner, '--unit', ...named]).output,
    /^3 test files/,
    'what asks for a process of its own is a unit test none the less',
  );
  t.match(
    run([runner, '--unit', 'test/one.test.ts', 'test/campaign.test.ts']).output,
    /^1 test file\b/,
    'what searches for long is none',
  );
  t.match(run([runner, 'test/campaign.test.ts']), { code: 0, output: /\n1 passed, 0 failed\n$/ });
  t.end();
});

t.test('a file that fails in a shared process fails alone, with what it said', (t) => {
  const failing = ['fails', 'throws', 'throws-later', 'waits', 'skips', 'says-nothing', 'exits', 'spoils'];
  const { code, output } = run([
    runner,
    '--unit',
    ...[...failing, 'unspoiled', 'one', 'two'].map((name) => `test/${name}.test.ts`),
  ]);
  t.equal(code, 1);
  const lines = [...output.matchAll(/^(ok|FAILED) .*\/(.*)\.test\.ts$/gm)].map(([, verdict, name]) => [name, verdict]);
  t.same(Object.fromEntries(lines), {
    ...Object.fromEntries(failing.map((name) => [name, 'FAILED'])),
    unspoiled: 'ok',
    one: 'ok',
    two: 'ok',
  });
  const outputOf = (name: string): string =>
    new RegExp(`FAILED .*/${name}\\.test\\.ts\n([^]*?)(?=\n(?:ok|FAILED) )`).exec(output)?.[1] ?? '';
  t.match(outputOf('fails'), 'not ok 2 - what did not hold');
  t.match(outputOf('throws'), 'thrown at the top');
  t.match(outputOf('throws-later'), 'thrown later');
  t.match(outputOf('waits'), 'timeout!');
  const spoiled = [
    'the variable SPOILED of the environment',
    'the working folder',
    'the exit code',
    'a listener of SIGHUP',
    'globalThis.setTimeout',
  ];
  for (const what of spoiled) {
    t.match(outputOf('spoils'), `not put back, for the files that share the process: ${what}`);
  }
  t.notMatch(output, /ok \d+ - what held/);
  t.end();
});

t.test('a process that does not end when its files have is a failure, which names what is open', (t) => {
  const { code, output } = run([runner, '--unit', 'test/one.test.ts', 'test/stays.test.ts', 'test/two.test.ts']);
  t.equal(code, 1);
  t.match(
    output,
    /^FAILED a process that test files share did not end by itself\nstill open: Timeout\n.*\n.*stays\.test\.js: Timeout$/m,
  );
  t.match(output, /\n6 passed, 1 failed\n$/);
  t.end();
});
