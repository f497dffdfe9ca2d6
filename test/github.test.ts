/**
 * What the repository's host reads: the workflow, the forms for issues and changes, the updates of dependencies, and
 * what editors read.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { parseDocument } from 'yaml';
import { projectDir } from './support/project-dir.js';
import { projectFiles, readProjectFile } from './support/source-files.js';

interface Step {
  readonly uses?: string;
  readonly with?: Readonly<Record<string, unknown>>;
  readonly run?: string;
}

interface Job {
  readonly 'timeout-minutes'?: number;
  readonly container?: string;
  readonly strategy?: { readonly matrix: { readonly node: readonly number[] } };
  readonly permissions?: unknown;
  readonly 'continue-on-error'?: unknown;
  readonly steps: readonly Step[];
}

interface Workflow {
  readonly on: Readonly<Record<string, unknown>>;
  readonly permissions?: unknown;
  readonly jobs: Readonly<Record<string, Job>>;
}

interface Update {
  readonly 'package-ecosystem': string;
  readonly directory: string;
  readonly schedule: { readonly interval: string };
}

interface Form {
  readonly name: string;
  readonly description: string;
  readonly body: readonly { readonly type: string; readonly id?: string }[];
}

const manifest = JSON.parse(readProjectFile('package.json')) as {
  readonly engines: { readonly node: string };
  readonly dependencies: Readonly<Record<string, string>>;
  readonly devDependencies: Readonly<Record<string, string>>;
};

const yamlFiles = projectFiles('.github').filter((path) => /\.ya?ml$/.test(path));

function readYaml(path: string): unknown {
  const document = parseDocument(readProjectFile(path));
  if (document.errors.length > 0 || document.warnings.length > 0) {
    throw new Error(`${path}: ${[...document.errors, ...document.warnings].join('; ')}`);
  }
  return document.toJS() as unknown;
}

t.test('every YAML file of .github parses', (t) => {
  t.ok(yamlFiles.length >= 6, yamlFiles.join(', '));
  for (const path of yamlFiles) t.doesNotThrow(() => readYaml(path), path);
  t.end();
});

t.test('the workflow runs .ci/run with each Node.js that is promised, for changes and for main', (t) => {
  const workflow = readYaml('.github/workflows/check.yml') as Workflow;
  t.ok('pull_request' in workflow.on);
  t.same(workflow.on['push'], { branches: ['main'] });
  t.same(Object.keys(workflow.jobs), ['check']);
  const { check } = workflow.jobs;
  t.same(check?.strategy?.matrix.node, [20, 24]);
  t.match(manifest.engines.node, /^>=20\./, 'the oldest that package.json allows');
  t.match(readProjectFile('Dockerfile'), /^ARG NODE_IMAGE=node:24-/m, 'the one of the image');
  t.match(check?.container, /^node:\$\{\{ matrix\.node \}\}-/);
  t.ok(check?.steps.some(({ run }) => run === '.ci/run'));
  t.ok(existsSync(join(projectDir, '.ci/run')));
  t.notOk(check?.['continue-on-error'], 'what fails, fails');
  t.ok(Number(check?.['timeout-minutes']) <= 90, 'it ends');
  t.end();
});

t.test('workflows may read and nothing else, hold no secret, and name each action by its commit', (t) => {
  const workflows = yamlFiles.filter((name) => name.startsWith('.github/workflows/'));
  t.not(workflows.length, 0);
  for (const path of workflows) {
    const workflow = readYaml(path) as Workflow;
    t.same(workflow.permissions, { contents: 'read' }, path);
    t.notMatch(readProjectFile(path), /secrets\.|pull_request_target|GITHUB_TOKEN/, path);
    for (const [name, job] of Object.entries(workflow.jobs)) {
      t.equal(job.permissions, undefined, `${path}: ${name} asks for no more`);
      for (const { uses, with: input } of job.steps) {
        if (uses === undefined) continue;
        t.match(uses, /^[\w-]+\/[\w-]+@[0-9a-f]{40}$/, path);
        if (uses.startsWith('actions/checkout@')) t.equal(input?.['persist-credentials'], false, path);
      }
    }
  }
  t.end();
});

t.test('updates are asked for of all that names versions, and nothing is left out that is not used', (t) => {
  const { version, updates } = readYaml('.github/dependabot.yml') as {
    readonly version: number;
    readonly updates: readonly (Update & { readonly ignore?: readonly { readonly 'dependency-name': string }[] })[];
  };
  t.equal(version, 2);
  t.same(
    updates.map((update) => update['package-ecosystem']),
    ['npm', 'docker', 'docker-compose', 'github-actions'],
  );
  for (const { directory, schedule } of updates) {
    t.ok(existsSync(join(projectDir, directory)), directory);
    t.equal(schedule.interval, 'weekly');
  }
  const used = { ...manifest.dependencies, ...manifest.devDependencies };
  for (const name of updates.flatMap(({ ignore = [] }) => ignore.map((entry) => entry['dependency-name']))) {
    t.ok(name in used, name);
  }
  t.end();
});

t.test('the forms for issues have what the host asks for; holes are sent to SECURITY.md', (t) => {
  t.same(readYaml('.github/ISSUE_TEMPLATE/config.yml'), { blank_issues_enabled: false });
  for (const name of ['bug', 'feature', 'security']) {
    const path = `.github/ISSUE_TEMPLATE/${name}.yml`;
    const form = readYaml(path) as Form;
    t.ok(form.name.length > 0 && form.description.length > 0, path);
    const fields = form.body.filter(({ type }) => type !== 'markdown');
    t.ok(fields.length > 0, `${path} has a field, without which the host refuses it`);
    t.equal(new Set(fields.map(({ id }) => id)).size, fields.length, `${path}: ids are there, and differ`);
    t.same(
      form.body.filter(({ type }) => !['markdown', 'input', 'textarea', 'dropdown', 'checkboxes'].includes(type)),
      [],
    );
  }
  t.match(readProjectFile('.github/ISSUE_TEMPLATE/security.yml'), /SECURITY\.md/);
  t.match(readProjectFile('.github/ISSUE_TEMPLATE/bug.yml'), /No token, key/);
  t.match(readProjectFile('.github/PULL_REQUEST_TEMPLATE.md'), /^- \[ \] .*test.*fails without/m);
  t.end();
});

t.test('.editorconfig says of every file what the tree holds to', (t) => {
  const settings = readProjectFile('.editorconfig').split('\n');
  for (const line of [
    'root = true',
    'charset = utf-8',
    'end_of_line = lf',
    'insert_final_newline = true',
    'indent_style = space',
  ]) {
    t.ok(settings.includes(line), line);
  }
  const texts = projectFiles().filter((path) => /\.(?:ts|mjs|js|json|ya?ml|md|svg|sh)$/.test(path));
  t.ok(texts.length > 500);
  t.same(
    texts.filter((path) => /\r/.test(readProjectFile(path)) && !path.startsWith('test/')),
    [],
    'line ends',
  );
  t.same(
    texts.filter((path) => !readProjectFile(path).endsWith('\n')),
    [],
    'the last line has its end',
  );
  t.same(
    texts.filter((path) => /^src\/.*\.ts$/.test(path) && /^\t/m.test(readProjectFile(path))),
    [],
    'no tabs',
  );
  t.same(
    texts.filter((path) => /[ \t]$/m.test(readProjectFile(path))),
    [],
    'no blanks at the end of a line',
  );
  t.end();
});
