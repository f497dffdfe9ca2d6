import { appendFileSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { git } from '../support/git.js';
import { smallProject } from './small-project.js';

t.setTimeout(240_000);

const test = "import t from 'tap';\nt.pass();\n";

const { dir, run, runner } = smallProject(t, 'project', {
  '.gitignore': '.build\ndist\nnode_modules\n.tap\n',
  'docs/guide.md': '# Guide\n',
  'docs/other/page.md': '# Page\n',
  'charts/values.yaml': 'a: 1\n',
  'notes.txt': 'nobody reads this\n',
  'src/lib/text.ts': "export const text = '';\n",
  'src/rule.ts': "import { text } from './lib/text.js';\nexport const rule = text;\n",
  'src/types.ts': 'export interface Shape { readonly a: string }\n',
  'src/main.ts': "import { rule } from './rule.js';\nvoid rule;\n",
  'test/helper.ts': "import { rule } from '../src/rule.js';\nexport { rule };\n",
  'test/worker.ts': 'export {};\n',
  'test/rule.test.ts': `import { rule } from '../src/rule.js';\nvoid rule;\n${test}`,
  'test/through-helper.test.ts': `import { rule } from './helper.js';\nvoid rule;\n${test}`,
  'test/later.test.ts': `void (await import('../src/rule.js'));\n${test}`,
  'test/types.test.ts': `import type { Shape } from '../src/types.js';\nconst shape: Shape = { a: '' };\nvoid shape;\n${test}`,
  'test/starts.test.ts': `import { execFileSync } from 'node:child_process';\nexecFileSync(process.execPath, ['dist/main.js']);\n${test}`,
  'test/guide.test.ts': `const page = 'docs/guide.md';\nvoid page;\n${test}`,
  'test/all-docs.test.ts': `const folder = 'docs';\nvoid folder;\n${test}`,
  'test/works.test.ts': `const worker = new URL('./worker.js', import.meta.url);\nvoid worker;\n${test}`,
  'test/slow.long.test.ts': test,
});

/** Runs git there, as somebody. */
function commit(message: string): void {
  git(dir, 'add', '.');
  git(dir, '-c', 'user.name=A', '-c', 'user.email=a@example.com', 'commit', '-q', '-m', message);
}

/** The test files that run, by name, and the lines that say what does not. */
function chosen(...args: readonly string[]): {
  readonly ran: readonly string[];
  readonly left: readonly string[];
  readonly code: number | null;
} {
  const { output, code } = run([runner, ...args]);
  const ran = [...output.matchAll(/^ok .* test\/(.*)\.test\.ts$/gm)].map(([, name = '']) => name).sort();
  return { ran, left: output.split('\n').filter((line) => line.startsWith('NOT ')), code };
}

git(dir, 'init', '-q', '-b', 'main');
commit('first');
git(dir, 'switch', '-q', '-c', 'branch');

t.test('nothing changed, nothing runs', (t) => {
  const { output, code } = run([runner, '--changed']);
  t.match(output, /^changed since main: nothing\n0 test files/);
  t.match(output, /\n0 passed, 0 failed\n$/);
  t.equal(code, 0);
  t.end();
});

t.test(
  'the test files that load what changed, in a commit or in the work tree; those that start the program are named',
  (t) => {
    const starting = [
      'NOT SELECTED: 1 test file that starts the program, in which something changed: test/starts.test.ts',
    ];
    appendFileSync(join(dir, 'src/lib/text.ts'), '// Changed.\n');
    t.match(chosen('--changed'), { ran: ['later', 'rule', 'through-helper'], left: starting, code: 0 });
    commit('second');
    t.same(chosen('--changed').ran, ['later', 'rule', 'through-helper']);
    t.same(chosen('--changed', 'test/rule.test.ts', 'test/guide.test.ts').ran, ['rule'], 'of those that are named');
    t.same(chosen('--changed=HEAD'), { ran: [], left: [], code: 0 });
    git(dir, 'switch', '-q', 'main');
    appendFileSync(join(dir, 'charts/values.yaml'), 'b: 1\n');
    commit('beside');
    git(dir, 'switch', '-q', 'branch');
    t.same(chosen('--changed').left, starting, 'what main did since is no change of the branch');
    git(dir, 'reset', '-q', '--hard', 'main');
    t.end();
  },
);

t.test('the test files that name what changed, or a folder that holds it', (t) => {
  appendFileSync(join(dir, 'docs/guide.md'), 'More.\n');
  t.same(chosen('--changed'), { ran: ['all-docs', 'guide'], left: [], code: 0 });
  git(dir, 'checkout', '-q', '.');
  rmSync(join(dir, 'docs/other/page.md'));
  t.same(chosen('--changed'), { ran: ['all-docs'], left: [], code: 0 });
  git(dir, 'checkout', '-q', '.');
  appendFileSync(join(dir, 'test/worker.ts'), '// Changed.\n');
  t.same(chosen('--changed').ran, ['works']);
  git(dir, 'checkout', '-q', '.');
  t.end();
});

t.test('what no test is known to depend on is named, and so is what all of them do', (t) => {
  for (const file of [
    'notes.txt',
    'charts/values.yaml',
    'test/tsconfig.json',
    'src/types.ts',
    'test/slow.long.test.ts',
  ]) {
    appendFileSync(join(dir, file), '\n');
  }
  mkdirSync(join(dir, 'new'));
  writeFileSync(join(dir, 'new/file.txt'), '');
  t.same(chosen('--changed'), {
    ran: ['types'],
    code: 0,
    left: [
      'NOT SELECTED: the other test files, which all depend on test/tsconfig.json',
      'NOT KNOWN: which of these test files depend on charts/values.yaml new/file.txt notes.txt test/slow.long.test.ts',
    ],
  });
  t.same(chosen('--changed', '--long').ran, ['slow.long', 'types']);
  git(dir, 'checkout', '-q', '.');
  rmSync(join(dir, 'new'), { recursive: true });
  t.end();
});

t.test('a base that git does not know is a failure, which says so', (t) => {
  t.match(run([runner, '--changed=nowhere']), {
    code: 1,
    output: /^FAILED git does not say where this branch left nowhere; --changed=REF names another base$/m,
  });
  t.end();
});
