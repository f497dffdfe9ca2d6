import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { parse } from 'yaml';
import { projectDir } from '../support/project-dir.js';
import { parseDockerfile, stagesOf } from './dockerfile.js';

function read(path: string): string {
  return readFileSync(join(projectDir, path), 'utf8');
}

const instructions = parseDockerfile(read('Dockerfile'));
const stages = stagesOf(instructions);
const final = stages.at(-1) ?? [];

function wordsOf(name: string, of = instructions): readonly string[] {
  return of.filter((instruction) => instruction.name === name).map(({ words }) => words);
}

function execForm(words: string): readonly string[] {
  return JSON.parse(words) as readonly string[];
}

const manifest = JSON.parse(read('package.json')) as { readonly version: string; readonly scripts: Readonly<Record<string, string>> };

t.test('the base is pinned by digest, and none is made up', async (t) => {
  t.same(wordsOf('FROM'), ['node:24-bookworm-slim@${NODE_DIGEST} AS build', 'scratch']);
  t.same(wordsOf('ARG', stages[0]), ['NODE_DIGEST'], 'without a default');
});

t.test('what it copies is there, and passes .dockerignore', async (t) => {
  const passing = read('.dockerignore').split('\n').filter((line) => line.startsWith('!')).map((line) => line.slice(1));
  t.match(read('.dockerignore'), /^\*$/m, 'everything else stays outside');
  const copied = wordsOf('COPY').filter((words) => !words.startsWith('--from=')).flatMap((words) => words.split(/\s+/).slice(0, -1));
  t.ok(copied.length > 4);
  for (const path of copied) {
    t.ok(existsSync(join(projectDir, path)), path);
    t.ok(passing.includes(path.replace(/^\.\//, '')), `${path} passes .dockerignore`);
  }
  t.same(passing.filter((path) => !copied.includes(path)), [], 'and nothing passes that is not copied');
  t.same(wordsOf('ADD'), [], 'nothing is fetched past the lock file');
});

t.test('scripts that it runs are there; installs are those of the lock file, without scripts', async (t) => {
  const runs = wordsOf('RUN').join(' && ');
  for (const [, script = ''] of runs.matchAll(/npm run (\S+)/g)) t.ok(script in manifest.scripts, script);
  t.match(runs, 'npm ci --ignore-scripts');
  t.notMatch(runs, /npm (?:i|install)\b|curl|wget|apt|chmod 777/);
});

t.test('the image: numeric user that is not root, exec form, health check by the binary, labels', async (t) => {
  t.match(wordsOf('USER', final), [/^[1-9][0-9]{3,}:[1-9][0-9]{3,}$/]);
  t.same(execForm(wordsOf('ENTRYPOINT', final)[0] ?? ''), ['/usr/local/bin/node', '--disable-sigusr1', '/app/main.js']);
  t.same(execForm(wordsOf('CMD', final)[0] ?? ''), ['serve', '--config', '/etc/sallyport/sallyport.yaml']);
  const health = wordsOf('HEALTHCHECK', final)[0] ?? '';
  t.same(execForm(health.slice(health.indexOf('['))), ['/usr/local/bin/node', '/app/main.js', 'health', '--config', '/etc/sallyport/sallyport.yaml']);
  t.same(wordsOf('RUN', final), [], 'the last stage has no shell to run anything');
  t.same(wordsOf('VOLUME', final), [], 'nothing is written');
  for (const label of ['title', 'description', 'version', 'revision', 'licenses', 'base.name', 'base.digest']) {
    t.match(wordsOf('LABEL', final)[0], `org.opencontainers.image.${label}=`);
  }
  t.ok(wordsOf('ARG', final).includes(`VERSION=${manifest.version}`), 'the version of package.json');
});

t.test('no secret goes in', async (t) => {
  for (const words of [...wordsOf('ARG'), ...wordsOf('ENV'), ...wordsOf('LABEL')]) t.notMatch(words, /secret|password|token=|api_?key|private/i, words);
});

t.test('the chart runs the image as it is', async (t) => {
  const values = parse(read('helm/sallyport/values.yaml')) as { image: { repository: string }; ports: Record<string, number> };
  const exposed = (wordsOf('EXPOSE', final)[0] ?? '').split(' ').map(Number);
  t.same(exposed, [values.ports['proxy'], values.ports['probes']]);
  const pod = read('helm/sallyport/templates/_pod.tpl');
  t.match(pod, `runAsUser: ${(wordsOf('USER', final)[0] ?? '').split(':')[0] ?? ''}`);
  t.match(pod, 'args: [serve, --config, /etc/sallyport/sallyport.yaml]', 'arguments only: the entry point is the image\'s');
});
