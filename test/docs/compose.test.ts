/** docs/compose.yaml without an engine: its programs with its arguments and files, on this machine's loopback, and the lines of docs/deployment.md. */
import { execFile, spawn } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { parse } from 'yaml';
import { projectDir } from '../support/project-dir.js';
import { request } from '../support/raw-client.js';
import { startReceiver } from '../support/receiver.js';
import { freePort, startRedis } from '../support/redis-server.js';
import { startServe } from '../support/serve-process.js';
import { tempDir } from '../support/temp-dir.js';
import { until } from '../support/until.js';
import { blockThatBegins } from './fenced-blocks.js';

interface Compose {
  readonly services: Readonly<Record<string, { readonly command: readonly string[]; readonly healthcheck?: { readonly test: readonly string[] } }>>;
}

t.setTimeout(120_000);

const { services } = parse(readFileSync(join(projectDir, 'docs/compose.yaml'), 'utf8')) as Compose;
const cwd = tempDir(t);
const examples = join(cwd, 'docs/examples/compose');
mkdirSync(examples, { recursive: true });
cpSync(join(projectDir, 'docs/examples/compose'), examples, { recursive: true });

async function run(command: string, ...args: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    execFile(command, args, { cwd }, (error, stdout, stderr) => {
      if (error === null) resolve(stdout);
      else reject(new Error(`${command} ${args.join(' ')}: ${stderr}`));
    });
  });
}

t.test('a legacy application behind it, from the password to the answer', async (t) => {
  const [password = '', up = ''] = blockThatBegins('docs/deployment.md', 'openssl rand').text.split('\n');
  t.match(up, /^docker compose --file docs\/compose\.yaml up\b/, 'what is done here by hand');
  await run('sh', '-c', password);

  const places = (text: string): string => text.replaceAll('/run/secrets/redis-password', join(examples, 'redis-password'))
    .replaceAll('/etc/redis/users.acl', join(examples, 'users.acl')).replaceAll('/tmp/users.acl', join(cwd, 'users.acl')).replaceAll('$$', '$');
  const [, , script = ''] = services['redis']?.command ?? [];
  const start = join(cwd, 'redis.sh');
  const redis = await startRedis(t, [], {
    instead: (dir, port) => {
      const here = `exec redis-server --port ${String(port)} --bind 127.0.0.1 --dir ${dir}`;
      writeFileSync(start, places(script).replace('exec redis-server', here));
      return ['--port', String(port), '--bind', '127.0.0.1', '--dir', dir, '--save', '', '--appendonly', 'no'];
    },
  });
  await redis.kill();
  const server = spawn('sh', [start], { stdio: 'ignore' });
  t.teardown(() => server.kill('SIGKILL'));
  const [, client = '', ...asked] = services['redis']?.healthcheck?.test ?? [];
  const pong = async (): Promise<string> => run(client, '-p', String(redis.port), ...asked).catch(() => '');
  await until('Redis is healthy, by the check of the file', async () => (await pong()).includes('PONG'));

  const ports = { core: await freePort(), proxy: await freePort() };
  const core = spawn(process.execPath, [
    join(projectDir, 'dist/main.js'), ...(services['core']?.command ?? []).map((word) => word.replace('0.0.0.0', '127.0.0.1')), '--port', String(ports.core),
  ], { stdio: 'ignore' });
  t.teardown(() => core.kill('SIGKILL'));
  await until('the emulator', async () => (await request(ports.core, { path: '/hello' }).catch(() => null))?.status === 200);

  const receiver = await startReceiver(t);
  const config = places(readFileSync(join(examples, 'sallyport.yaml'), 'utf8')).replace('host: 0.0.0.0', 'host: 127.0.0.1')
    .replace('port: 8443', `port: ${String(ports.proxy)}`).replace('http://127.0.0.1:3000', receiver.url)
    .replace('http://core:3567', `http://127.0.0.1:${String(ports.core)}`).replace('redis:6379', `127.0.0.1:${String(redis.port)}`);
  writeFileSync(join(cwd, 'sallyport.yaml'), `${config}admin: { port: 0 }\n`);
  const serve = startServe(t, join(cwd, 'sallyport.yaml'));
  await serve.port('proxy');
  const admin = await serve.port('admin');
  const status = async (): Promise<string> => (await request(admin, { path: '/readyz' })).text;
  await until('ready, with the store', async () => /"status":"ok"/.test(await status()) && !(await status()).includes('degraded'));

  const lines = blockThatBegins('docs/deployment.md', 'TOKEN=').text.replaceAll('127.0.0.1:3567', `127.0.0.1:${String(ports.core)}`)
    .replaceAll('127.0.0.1:8443', `127.0.0.1:${String(ports.proxy)}`);
  t.equal((await run('sh', '-ec', lines)).trim(), '200');
  t.same(receiver.requests.map(({ target }) => target), ['/etc/hostname']);
  t.same(receiver.requests[0]?.field('x-auth-subject'), ['checkout']);
  t.equal((await request(ports.proxy, { path: '/etc/hostname' })).status, 401);
  const minted = /TOKEN=\$\(([^]*?)\)\n/.exec(lines)?.[1]?.replace('orders:read', 'orders:write') ?? '';
  const token = (await run('sh', '-ec', minted)).trim();
  const write = { method: 'POST', path: '/orders', body: '{}', headers: {
    'Authorization': `Bearer ${token}`, 'Content-Type': 'application/json', 'Content-Length': '2', 'Idempotency-Key': 'once',
  } };
  const answers = [await request(ports.proxy, write), await request(ports.proxy, write)];
  t.same(answers.map((answer) => answer.status), [200, 200], 'Redis takes reservations of the user with few rights');
  t.equal(receiver.requests.filter(({ method }) => method === 'POST').length, 1, 'and the write ran once');
});
