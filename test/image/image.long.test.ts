/**
 * The Dockerfile's own steps, run in an empty root with the Node.js 24 of the npm registry, and what they make, run as
 * the image would be.
 */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, cpSync, existsSync, mkdirSync, readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import t, { type Test } from 'tap';
import { startJwksServer } from '../support/jwks-server.js';
import { rsaKey } from '../support/keys.js';
import '../support/linux.js';
import { projectDir } from '../support/project-dir.js';
import { request } from '../support/raw-client.js';
import { freePort } from '../support/listening.js';
import { startUpstreamServer } from '../support/upstream-server.js';
import { env, sh } from '../support/sh.js';
import { tempDir } from '../support/temp-dir.js';
import { mintToken } from '../support/tokens.js';
import { until } from '../support/until.js';
import { baseConfig } from '../support/proxy-process.js';
import { argumentsOf, parseDockerfile, stageChain, stagesOf } from './dockerfile.js';

const root = tempDir(t);
/** A container's paths, in our root. */
const inRoot = (text: string): string =>
  text.replaceAll(/(?<![\w./-])\/(build|app|image)\b/g, (_path, name: string) => join(root, name));
const instructions = parseDockerfile(readFileSync(join(projectDir, 'Dockerfile'), 'utf8'));
const stages = stagesOf(instructions);
const revision = '0123456789abcdef0123456789abcdef01234567';
const final = stageChain(instructions);

function word(name: string): string {
  return final.find((instruction) => instruction.name === name)?.words ?? '';
}

/** The files of the two images. */
const image = join(root, 'proxy');
const toolsImage = join(root, 'tools');
const entry = JSON.parse(word('ENTRYPOINT')) as string[];
// Without root there is no chroot: then the same files are run where they are.
const isRoot = process.getuid?.() === 0;
const at = (files: string, argv: readonly string[]): readonly string[] =>
  isRoot
    ? ['chroot', `--userspec=${word('USER')}`, files, ...argv]
    : argv.map((one) => (one.startsWith('/') ? join(files, one) : one));
// `-i`: what coverage gives to each child of a test names files that are not in the image.
const inImage = (argv: readonly string[], files = image): readonly string[] => [
  '-i',
  'NODE_COMPILE_CACHE=/app/cache',
  `PATH=${process.env['PATH'] ?? ''}`,
  ...at(files, argv),
];

t.setTimeout(580_000);

t.test('the build stages run, and leave node, its libraries and the bundle', { timeout: 500_000 }, async (t) => {
  const found = spawnSync('npx', ['-y', '-p', 'node@24', 'node', '-p', 'process.execPath'], {
    encoding: 'utf8',
    cwd: root,
  });
  // As the base image has it; its licence comes from the archive of Node.js, which the registry leaves out.
  const local = join(root, 'usr/local');
  mkdirSync(join(local, 'bin'), { recursive: true });
  cpSync(found.stdout.trim(), join(local, 'bin/node'));
  writeFileSync(join(local, 'LICENSE'), 'Node.js is licensed for use as follows\n');
  const env = {
    ...process.env,
    ...argumentsOf(instructions, { REVISION: revision }),
    PATH: `${join(local, 'bin')}:${process.env['PATH'] ?? ''}`,
  };
  let dir = root;
  const runStage = (stage: string, files: string): void => {
    for (const { name, words } of stages.find(([from]) => from?.words.endsWith(` AS ${stage}`)) ?? []) {
      if (name === 'WORKDIR') mkdirSync((dir = inRoot(words)), { recursive: true });
      if (name === 'COPY') {
        const paths = words.split(/\s+/);
        const to = paths.pop() ?? '';
        for (const path of paths) {
          cpSync(join(projectDir, path), join(dir, to.endsWith('/') ? join(to, basename(path)) : to), {
            recursive: true,
          });
        }
      }
      if (name !== 'RUN') continue;
      const { status, stdout, stderr } = spawnSync(sh, ['-c', inRoot(words)], { cwd: dir, env, encoding: 'utf8' });
      t.equal(status, 0, `${words.slice(0, 60)}: ${status === 0 ? '' : stdout + stderr}`);
    }
    cpSync(join(root, 'image'), files, { recursive: true, verbatimSymlinks: true });
    cpSync(join(root, 'app'), join(files, 'app'), { recursive: true });
  };
  runStage('build', image);
  runStage('build-tools', toolsImage);
  for (const files of [image, toolsImage]) {
    t.same(readdirSync(join(files, 'usr/local/bin')), ['node'], 'no other program, no shell');
  }
  t.ok(existsSync(join(image, 'app/cache')), 'compiled code is kept');
  t.notOk(existsSync(join(image, 'app/node_modules')), 'the proxy has no native module');
  t.same(readdirSync(join(toolsImage, 'app/node_modules')), ['@node-rs']);
  const asked = spawnSync(join(local, 'bin/node'), [join(image, 'app/main.js'), '--version'], { encoding: 'utf8' });
  t.match(asked.stdout, revision, 'the commit that was given is the one it says');
});

t.test('licences of all that is in an image are in it', async (t) => {
  for (const files of [image, toolsImage]) checkLicences(t, files);
});

function checkLicences(t: Test, image: string): void {
  t.match(readFileSync(join(image, 'app/LICENSE'), 'utf8'), /Apache License\s+Version 2\.0/);
  t.match(readFileSync(join(image, 'app/THIRD-PARTY-NOTICES'), 'utf8'), /^fastify \d/m);
  t.match(readFileSync(join(image, 'usr/local/LICENSE'), 'utf8'), 'Node.js is licensed');
  const copyrights = readdirSync(join(image, 'usr/share/doc'));
  for (const owner of ['libc6', 'libstdc++6', 'libgcc-s1']) t.ok(copyrights.includes(owner), owner);
  // What they only refer to.
  for (const owner of copyrights) {
    const named = readFileSync(join(image, 'usr/share/doc', owner, 'copyright'), 'utf8').matchAll(
      /\/usr\/share\/common-licenses\/[A-Za-z0-9.-]*[A-Za-z0-9]/g,
    );
    for (const [path] of named) t.ok(existsSync(join(image, path)), path);
  }
}

t.test('the image serves as its numeric user, is healthy, and ends by SIGTERM', { timeout: 100_000 }, async (t) => {
  const receiver = await startUpstreamServer(t);
  const key = rsaKey();
  const jwks = await startJwksServer(t, { keys: [key] });
  const port = 20_000 + (process.pid % 20_000);
  const config = baseConfig({
    listen: { host: '127.0.0.1', port },
    admin: { host: '127.0.0.1', port: port + 1 },
    upstream: { url: receiver.url },
    issuers: { core: { jwks_url: jwks.url } },
    shutdown: { delay: '0ms', grace: '1s' },
  });
  mkdirSync(join(image, 'etc/sallyport'), { recursive: true });
  writeFileSync(join(image, 'etc/sallyport/sallyport.yaml'), config);
  // What is made for a test belongs to its user alone.
  for (const path of [root, image]) chmodSync(path, 0o755);
  const command = JSON.parse(word('CMD')) as string[];
  const health = JSON.parse(word('HEALTHCHECK').slice(word('HEALTHCHECK').indexOf('['))) as string[];
  const files = (): readonly string[] =>
    readdirSync(image, { recursive: true, encoding: 'utf8' }).map(
      (file) => `${file} ${String(statSync(join(image, file)).mtimeMs)}`,
    );
  const before = files();
  const serve = spawn(env, inImage([...entry, ...command]), { stdio: 'ignore' });
  const ended = once(serve, 'close') as Promise<[number | null]>;
  t.teardown(() => serve.kill('SIGKILL'));
  // Not waited for in this thread: the issuer and the service answer from it.
  await until(
    'healthy',
    async () => {
      const [code] = (await once(spawn(env, inImage(health), { stdio: 'ignore' }), 'close')) as [number | null];
      return code === 0;
    },
    60_000,
  );
  const answer = await request(port, { path: '/orders', headers: { Authorization: `Bearer ${mintToken({ key })}` } });
  t.equal(answer.status, 200);
  if (isRoot) t.match(readFileSync(`/proc/${String(serve.pid)}/status`, 'utf8'), /^Uid:\s+65532\s/m, 'not root');
  serve.kill('SIGTERM');
  t.equal((await ended)[0], 0, 'SIGTERM reaches the process, and it ends in order');
  t.same(files(), before, 'nothing is written: the root may be read-only');
});

t.test('the image of the proxy has no tools, and says where they are', async (t) => {
  for (const files of [image, toolsImage]) chmodSync(files, 0o755);
  for (const command of ['core', 'dev', 'import']) {
    const { status, stderr } = spawnSync(env, inImage([...entry, command]), { encoding: 'utf8' });
    t.equal(status, 2, command);
    t.match(stderr, /^error: .*docker build --target tools.*\n$/, command);
  }
});

t.test(
  'the emulator of the Core runs in the image of the tools, with its native modules',
  { timeout: 100_000 },
  async (t) => {
    const port = await freePort();
    const core = spawn(env, inImage([...entry, 'core', '--host', '127.0.0.1', '--port', String(port)], toolsImage), {
      stdio: 'ignore',
    });
    const ended = once(core, 'close') as Promise<[number | null]>;
    t.teardown(() => core.kill('SIGKILL'));
    const answers = async (): Promise<boolean> =>
      (await request(port, { path: '/hello' }).catch(() => null))?.status === 200;
    await until('an answer, or the end', async () => core.exitCode !== null || (await answers()), 60_000);
    t.equal(core.exitCode, null, 'every library is there that a native module asks for');
    core.kill('SIGTERM');
    t.equal((await ended)[0], 0);
  },
);
