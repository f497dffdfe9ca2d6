/**
 * docs/examples/compose without an engine: its programs with their arguments and files on this machine's loopback, and
 * its commands to try.
 */
import { execFile, spawn } from 'node:child_process';
import { cpSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { parse } from 'yaml';
import '../support/curl.js';
import { projectDir } from '../support/project-dir.js';
import { request } from '../support/raw-client.js';
import { freePort } from '../support/listening.js';
import '../support/redis-cli.js';
import { startRedis } from '../support/redis-server.js';
import { startServe } from '../support/serve-process.js';
import { sh } from '../support/sh.js';
import { tempDir } from '../support/temp-dir.js';
import { until } from '../support/until.js';
import { parseDockerfile } from '../image/dockerfile.js';
import { blockThatBegins, fencedBlocks } from './fenced-blocks.js';

interface Service {
  readonly command: readonly string[];
  readonly build?: { readonly context: string; readonly target?: string };
  readonly image?: string;
  readonly healthcheck?: { readonly test: readonly string[] };
  readonly volumes?: readonly string[];
  readonly network_mode?: string;
  readonly ports?: readonly string[];
  readonly read_only?: boolean;
}

t.setTimeout(120_000);

const folder = join(projectDir, 'docs/examples/compose');
const read = (name: string): string => readFileSync(join(folder, name), 'utf8');
const { services } = parse(read('compose.yaml')) as { readonly services: Readonly<Record<string, Service>> };
const serviceFile = '/srv/service.mjs';

async function run(
  command: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<string> {
  return new Promise((resolve, reject) => {
    execFile(command, args, { cwd: folder, env: { ...process.env, ...env } }, (error, stdout, stderr) => {
      if (error === null) resolve(stdout);
      else reject(new Error(`${command} ${args.join(' ')}: ${stdout}${stderr}`));
    });
  });
}

t.test(
  'nothing has to be made first: files are there, the image is built from here, and no image of that name is asked for',
  async (t) => {
    for (const [name, { build, image, volumes = [] }] of Object.entries(services)) {
      for (const mount of volumes.filter((volume) => volume.startsWith('./'))) {
        t.ok(existsSync(join(folder, mount.split(':')[0] ?? '')), mount);
      }
      if (build === undefined) t.match(image, /^(?:node|redis):\d/, `${name} is an image that Docker publishes`);
      else t.ok(existsSync(join(folder, build.context, 'Dockerfile')) && image === undefined, name);
    }
    t.same(
      Object.entries(services)
        .filter(([, { build }]) => build !== undefined)
        .map(([name]) => name),
      ['sallyport', 'core'],
    );
    t.equal(services['sallyport']?.build?.target, undefined, 'the proxy alone');
    t.equal(services['core']?.build?.target, 'tools');
    const [base] = parseDockerfile(readFileSync(join(projectDir, 'Dockerfile'), 'utf8')).filter(({ words }) =>
      words.startsWith('NODE_IMAGE='),
    );
    t.equal(
      base?.words,
      `NODE_IMAGE=${services['orders']?.image ?? ''}`,
      'the service runs in the image that is there for the build',
    );
  },
);

t.test('only loopback is published, and there is no way past Sallyport', async (t) => {
  for (const { ports = [] } of Object.values(services)) for (const port of ports) t.match(port, /^127\.0\.0\.1:/);
  t.equal(services['orders']?.network_mode, 'service:sallyport');
  t.match(read('service.mjs'), /server\.listen\(.*, '127\.0\.0\.1'/);
  t.ok(['sallyport', 'core', 'orders'].every((name) => services[name]?.read_only === true));
  t.ok(services['orders']?.command.includes(serviceFile));
});

t.test(
  "Redis forgets nothing, gives Sallyport's user the rights of docs/storage.md, and nobody else any",
  async (t) => {
    t.match(services['redis']?.command.join(' '), /--appendonly yes .*--maxmemory-policy noeviction --aclfile/);
    const acl = read('users.acl').split('\n');
    const documented = /^user sallyport on .*$/m.exec(readFileSync(join(projectDir, 'docs/storage.md'), 'utf8'))?.[0];
    t.ok(documented !== undefined && acl.includes(documented));
    t.equal(acl[0], 'user default off');
  },
);

t.test('it runs, and each line of try.sh gets what it expects', async (t) => {
  const dir = tempDir(t);
  // The places of the containers, in a folder of ours; users that are only there are not asked for.
  const places = (text: string): string =>
    text
      .replaceAll('/run/sallyport', dir)
      .replaceAll('/etc/redis/users.acl', join(folder, 'users.acl'))
      .replaceAll('/tmp/users.acl', join(dir, 'users.acl'))
      .replaceAll(/^chown \S+/gm, 'test -s')
      .replaceAll('docker-entrypoint.sh ', '')
      .replaceAll('$$', '$');
  const [shell = '', flags = '', script = ''] = services['redis']?.command ?? [];
  const redis = await startRedis(t, [], {
    instead: (data, port) => {
      const here = `exec redis-server --port ${String(port)} --bind 127.0.0.1 --dir ${data}`;
      writeFileSync(join(dir, 'redis.sh'), places(script).replace('exec redis-server', here));
      return ['--port', String(port), '--bind', '127.0.0.1', '--dir', data, '--save', '', '--appendonly', 'no'];
    },
  });
  await redis.kill();
  const start = (command: string, args: readonly string[], env: Readonly<Record<string, string>> = {}): void => {
    const child = spawn(command, args, { stdio: 'ignore', env: { ...process.env, ...env } });
    t.teardown(() => child.kill('SIGKILL'));
  };
  start(shell, [flags, readFileSync(join(dir, 'redis.sh'), 'utf8')]);
  const [, client = '', ...asked] = services['redis']?.healthcheck?.test ?? [];
  const pong = async (): Promise<string> => run(client, ['-p', String(redis.port), ...asked]).catch(() => '');
  await until('Redis is healthy, by the check of the file', async () => (await pong()).includes('PONG'));
  const password = readFileSync(join(dir, 'redis-password'), 'utf8');
  t.match(password, /^[0-9a-f]{48}$/, 'a password that Redis made up');

  const ports = { core: await freePort(), proxy: await freePort(), orders: await freePort() };
  const main = join(projectDir, 'dist/main.js');
  start(process.execPath, [main, ...(services['core']?.command ?? []), '--port', String(ports.core)]);
  await until(
    'the emulator',
    async () => (await request(ports.core, { path: '/hello' }).catch(() => null))?.status === 200,
  );
  cpSync(join(folder, 'service.mjs'), join(dir, 'service.mjs'));
  const [, ...orders] = services['orders']?.command ?? [];
  start(
    process.execPath,
    orders.map((word) => word.replace(serviceFile, join(dir, 'service.mjs'))),
    { PORT: String(ports.orders) },
  );
  await until(
    'the service',
    async () => (await request(ports.orders, { path: '/healthz' }).catch(() => null))?.status === 200,
  );

  const config = places(read('sallyport.yaml'))
    .replace('host: 0.0.0.0', 'host: 127.0.0.1')
    .replace('port: 8080', `port: ${String(ports.proxy)}`)
    .replace('http://127.0.0.1:3000', `http://127.0.0.1:${String(ports.orders)}`)
    .replace('http://core:3567', `http://127.0.0.1:${String(ports.core)}`)
    .replace('redis:6379', `127.0.0.1:${String(redis.port)}`);
  writeFileSync(join(dir, 'sallyport.yaml'), `${config}admin: { port: 0 }\n`);
  const serve = startServe(t, join(dir, 'sallyport.yaml'));
  await serve.port('proxy');
  const admin = await serve.port('admin');
  const status = async (): Promise<string> => (await request(admin, { path: '/readyz' })).text;
  await until(
    'ready, with the store',
    async () => /"status":"ok"/.test(await status()) && !(await status()).includes('degraded'),
  );

  const steps = blockThatBegins('docs/deployment.md', 'cd docs/examples/compose').text.split('\n');
  t.match(
    steps,
    [/^cd /, 'docker compose up --detach --wait', 'sh try.sh'],
    'what is done here by hand, and what is run',
  );
  const printed = await run(sh, ['try.sh'], {
    CORE: `http://127.0.0.1:${String(ports.core)}`,
    ORDERS: `http://127.0.0.1:${String(ports.proxy)}`,
  });
  const expected = [...printed.matchAll(/^(\d+): .*$/gm)].map(([, code]) => code);
  t.same(expected, ['200', '401', '200', '200', '403', '201', '201', '422', '200']);
  t.same(
    [...printed.matchAll(/ -> (\d+)$/gm)].map(([, code]) => code),
    expected,
    printed,
  );
  t.equal(printed.match(/"caller":"checkout","orders"/g)?.length, 3, 'whatever a caller says of itself');
  t.match(
    printed,
    /\{"caller":"checkout","orders":\[\{"number":1,"item":"book","caller":"checkout"\}\]\} -> 200\n$/,
    'written once',
  );
  const [shown] = fencedBlocks('docs/deployment.md').filter(({ text }) => text.startsWith('401: no token'));
  for (const answer of shown?.text.trimEnd().split('\n\n') ?? ['nothing']) t.ok(printed.includes(answer), answer);
  t.notMatch(printed + serve.output(), password);
});
