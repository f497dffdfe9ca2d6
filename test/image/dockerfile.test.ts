import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { parse } from 'yaml';
import { projectDir } from '../support/project-dir.js';
import { argumentsOf, expand, parseDockerfile, stageChain, stagesOf, type Instruction } from './dockerfile.js';

function read(path: string): string {
  return readFileSync(join(projectDir, path), 'utf8');
}

const instructions = parseDockerfile(read('Dockerfile'));
const stages = stagesOf(instructions);
const final = stageChain(instructions);
const tools = stageChain(instructions, 'tools');

function wordsOf(name: string, of = instructions): readonly string[] {
  return of.filter((instruction) => instruction.name === name).map(({ words }) => words);
}

function execForm(words: string): readonly string[] {
  return JSON.parse(words) as readonly string[];
}

const manifest = JSON.parse(read('package.json')) as {
  readonly version: string;
  readonly scripts: Readonly<Record<string, string>>;
};

/** The labels, with what the arguments stand for. */
function labels(given: Readonly<Record<string, string>> = {}, of = final): Readonly<Record<string, string>> {
  const words = wordsOf('LABEL', of).join(' ');
  const values = argumentsOf(instructions, given);
  const pairs = [...words.matchAll(/org\.opencontainers\.image\.([a-z.]+)="([^"]*)"/g)];
  return Object.fromEntries(pairs.map(([, name = '', value = '']) => [name, expand(value, values)]));
}

t.test('docker build . needs no argument: the base is a tag, and a digest pins it', async (t) => {
  for (const words of wordsOf('ARG', stages[0])) t.match(words, /=/, `${words} has a default`);
  const bases = (given = {}): readonly string[] =>
    wordsOf('FROM').map((words) => expand(words, argumentsOf(instructions, given)));
  const others = ['build AS build-tools', 'scratch AS settings', 'settings AS tools', 'settings AS proxy'];
  t.same(bases(), ['node:24-bookworm-slim AS build', ...others]);
  const NODE_DIGEST = `sha256:${'a'.repeat(64)}`;
  t.same(bases({ NODE_DIGEST }), [`node:24-bookworm-slim@${NODE_DIGEST} AS build`, ...others]);
  const NODE_IMAGE = 'mirror.example.com/node:24-bookworm-slim';
  t.same(bases({ NODE_IMAGE, NODE_DIGEST }), [`${NODE_IMAGE}@${NODE_DIGEST} AS build`, ...others]);
  t.match(
    labels(),
    { 'base.name': 'node:24-bookworm-slim', 'base.digest': '' },
    'no digest is claimed that was not asked for',
  );
  t.match(labels({ NODE_IMAGE, NODE_DIGEST }), { 'base.name': NODE_IMAGE, 'base.digest': NODE_DIGEST });
  t.notMatch(read('Dockerfile'), /^# *syntax=/m, 'and no parser is fetched');
});

t.test(
  'labels: what it is, of which version and commit; addresses of whoever builds it, and none that is made up',
  async (t) => {
    t.match(labels(), {
      title: 'sallyport',
      description: /\w/,
      version: manifest.version,
      revision: 'unknown',
      licenses: 'Apache-2.0',
    });
    t.match(labels(), { url: '', source: '', documentation: '' });
    const SOURCE_URL = 'https://git.example.com/sallyport';
    const DOCUMENTATION_URL = 'https://docs.example.com/sallyport';
    t.match(labels({ SOURCE_URL, REVISION: 'abc' }), {
      source: SOURCE_URL,
      url: SOURCE_URL,
      documentation: SOURCE_URL,
      revision: 'abc',
    });
    t.match(labels({ SOURCE_URL, DOCUMENTATION_URL }), { source: SOURCE_URL, documentation: DOCUMENTATION_URL });
  },
);

t.test('the commit of the label is the one in the program, and licences of all that is in it go in', async (t) => {
  const runs = wordsOf('RUN').join('\n');
  t.match(runs, 'npm run build -- "${REVISION}"');
  t.match(
    wordsOf('ARG', stages[1]),
    ['REVISION=unknown'],
    'the same argument, without which the stage would not have it',
  );
  // The bundle brings those of Sallyport and its packages; image.long.test.ts runs all of it.
  for (const place of ['/../LICENSE" /image/usr/local/LICENSE', '/usr/share/common-licenses /image']) {
    t.match(runs, place);
  }
  t.match(runs, 'sh .release/libraries.sh /image /image/usr/local/bin/node');
  t.match(read('.release/libraries.sh'), 'cp --parents -L /usr/share/doc/{}/copyright "$root"');
});

t.test('the compiled code that is kept is that of serve and health, which help does not load', async (t) => {
  const runs = wordsOf('RUN').join(' && ');
  const warmed = [...runs.matchAll(/NODE_COMPILE_CACHE=\S+ node \S+ (\w+) (--\w+)/g)].map(
    ([, command = '', option = '']) => `${command} ${option}`,
  );
  t.same(warmed, ['health --url', 'serve --config']);
});

t.test('what it copies is there, and passes .dockerignore', async (t) => {
  const passing = read('.dockerignore')
    .split('\n')
    .filter((line) => line.startsWith('!'))
    .map((line) => line.slice(1));
  t.match(read('.dockerignore'), /^\*$/m, 'everything else stays outside');
  const copied = wordsOf('COPY')
    .filter((words) => !words.startsWith('--from='))
    .flatMap((words) => words.split(/\s+/).slice(0, -1));
  t.ok(copied.length > 4);
  t.ok(!passing.includes('.git'), 'history stays outside');
  for (const path of copied) {
    t.ok(existsSync(join(projectDir, path)), path);
    t.ok(passing.includes(path.replace(/^\.\//, '')), `${path} passes .dockerignore`);
  }
  t.same(
    passing.filter((path) => !copied.includes(path)),
    [],
    'and nothing passes that is not copied',
  );
  t.same(wordsOf('ADD'), [], 'nothing is fetched past the lock file');
});

t.test('scripts that it runs are there; installs are those of the lock file, without scripts', async (t) => {
  const runs = wordsOf('RUN').join(' && ');
  for (const [, script = ''] of runs.matchAll(/npm run (\S+)/g)) t.ok(script in manifest.scripts, script);
  t.match(runs, 'npm ci --ignore-scripts');
  t.notMatch(runs, /npm (?:i|install)\b|curl|wget|apt|chmod 777/);
});

t.test('the image: numeric user that is not root, exec form, health check by the binary', async (t) => {
  t.match(wordsOf('USER', final), [/^[1-9][0-9]{3,}:[1-9][0-9]{3,}$/]);
  t.same(execForm(wordsOf('ENTRYPOINT', final)[0] ?? ''), [
    '/usr/local/bin/node',
    '--disable-sigusr1',
    '--max-semi-space-size=4',
    '/app/main.js',
  ]);
  t.same(execForm(wordsOf('CMD', final)[0] ?? ''), ['serve', '--config', '/etc/sallyport/sallyport.yaml']);
  const health = wordsOf('HEALTHCHECK', final)[0] ?? '';
  t.same(execForm(health.slice(health.indexOf('['))), [
    '/usr/local/bin/node',
    '/app/main.js',
    'health',
    '--config',
    '/etc/sallyport/sallyport.yaml',
  ]);
  t.same(wordsOf('RUN', final), [], 'the last stage has no shell to run anything');
  t.same(wordsOf('VOLUME', final), [], 'nothing is written');
});

t.test(
  'without --target it is the proxy alone; the tools are asked for by name, and run in the same way',
  async (t) => {
    t.match(wordsOf('FROM').at(-1), / AS proxy$/, 'the last stage');
    const filesOf = (of: readonly Instruction[]): readonly string[] => wordsOf('COPY', of);
    t.same(filesOf(final), ['--from=build /image /', '--from=build /app /app']);
    t.same(filesOf(tools), ['--from=build-tools /image /', '--from=build-tools /app /app']);
    t.notMatch(wordsOf('RUN', stageChain(instructions, 'build')).join(), '--tools');
    t.match(wordsOf('RUN', stageChain(instructions, 'build-tools')).join(), 'npm run bundle -- --tools');
    for (const name of ['USER', 'ENTRYPOINT', 'CMD', 'HEALTHCHECK', 'ENV', 'STOPSIGNAL']) {
      t.same(wordsOf(name, tools), wordsOf(name, final), name);
    }
    t.same(wordsOf('RUN', tools), []);
    t.match(labels({ REVISION: 'abc' }, tools), {
      title: 'sallyport-tools',
      revision: 'abc',
      version: manifest.version,
    });
    t.match(labels({}, tools)['description'], 'not for production traffic');
  },
);

t.test('no secret goes in', async (t) => {
  for (const words of [...wordsOf('ARG'), ...wordsOf('ENV'), ...wordsOf('LABEL')]) {
    t.notMatch(words, /secret|password|token=|api_?key|private/i, words);
  }
});

t.test('the chart runs the image as it is', async (t) => {
  const values = parse(read('helm/sallyport/values.yaml')) as {
    image: { repository: string };
    ports: Record<string, number>;
  };
  const exposed = (wordsOf('EXPOSE', final)[0] ?? '').split(' ').map(Number);
  t.same(exposed, [values.ports['proxy'], values.ports['probes']]);
  const pod = read('helm/sallyport/templates/_pod.tpl');
  t.match(read('helm/sallyport/values.yaml'), `runAsUser: ${(wordsOf('USER', final)[0] ?? '').split(':')[0] ?? ''}`);
  t.match(
    pod,
    'args: [serve, --config, /etc/sallyport/sallyport.yaml]',
    "arguments only: the entry point is the image's",
  );
});
