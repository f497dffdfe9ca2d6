import { createServer } from 'node:http';
import { createServer as createNetServer } from 'node:net';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { run } from '../../../src/cli/program.js';
import type { KeySourceState } from '../../../src/ports/auth.js';
import { readinessOf } from '../../../src/admin/readiness.js';
import { createPageServer } from '../../../src/admin/server.js';
import { listen } from '../../support/listening.js';
import type { Scope } from '../../support/scope.js';
import { tempDir } from '../../support/temp-dir.js';
import { until } from '../../support/until.js';
import { baseConfig, startProxyProcess, type ConfigTree } from '../../support/proxy-process.js';
import { captureIo, type CapturedIo } from '../captured-io.js';
import { keyState } from '../../support/key-state.js';

const silent = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined };

/** An admin listener that says this of `/readyz`. */
async function admin(t: Scope, status: number, body: object, host = '127.0.0.1'): Promise<number> {
  const page = { status, type: 'application/json', body: JSON.stringify(body) };
  const server = createPageServer({
    listen: { host, port: 0 },
    checksHost: true,
    maxConnections: 8,
    pages: { '/readyz': () => page },
    log: silent,
  });
  t.teardown(server.close);
  return (await server.listen()).port;
}

async function health(t: Scope, config: ConfigTree, ...options: readonly string[]): Promise<CapturedIo> {
  const cwd = tempDir(t);
  writeFileSync(join(cwd, 'sallyport.yaml'), baseConfig(config));
  const io = captureIo({ cwd });
  await run(['health', '--config', 'sallyport.yaml', ...options], io);
  return io;
}

/** A port that nobody listens on. */
async function freePort(t: Scope): Promise<number> {
  const server = await listen(t, createNetServer());
  await server.close();
  return server.port;
}

function keys(usable: boolean, stale: boolean): KeySourceState {
  return keyState({ usable, stale, ageMs: null });
}

const ready = readinessOf('serving', [keys(true, false)], null, null);
const degraded = readinessOf('serving', [keys(true, true)], null, null);
const unavailable = readinessOf('serving', [keys(false, false)], null, null);

t.test('0 where the proxy is ready, 1 where it is not', async (t) => {
  const rows: readonly { name: string; status: number; body: object; code: number; out: string }[] = [
    { name: 'ready', status: 200, body: ready, code: 0, out: 'ready\n' },
    { name: 'degraded is ready', status: 200, body: degraded, code: 0, out: 'degraded; keys:core stale\n' },
    { name: 'not ready', status: 503, body: unavailable, code: 1, out: 'unavailable; keys failed; keys:core failed\n' },
  ];
  for (const { name, status, body, code, out } of rows) {
    const port = await admin(t, status, body);
    const io = await health(t, { admin: { port } });
    t.equal(io.code(), code, name);
    t.equal(io.out(), out, name);
    const json = await health(t, { admin: { port } }, '--json');
    t.same(JSON.parse(json.out()), body, `${name} with --json`);
    t.equal(json.code(), code, name);
  }
});

t.test('a listener on every address is asked on loopback', async (t) => {
  const port = await admin(t, 200, ready, '0.0.0.0');
  t.equal((await health(t, { admin: { host: '0.0.0.0', port } })).code(), 0);
});

t.test('the probes listener is asked where admin is not reached', async (t) => {
  const port = await admin(t, 200, ready);
  t.equal((await health(t, { admin: { port: await freePort(t) }, probes: { host: '127.0.0.1', port } })).code(), 0);
  t.equal((await health(t, { admin: { port: 0 }, probes: { host: '127.0.0.1', port } })).code(), 0);
});

t.test('3 where no proxy is reached', async (t) => {
  const closed = await health(t, { admin: { port: await freePort(t) } });
  t.equal(closed.code(), 3);
  t.match(closed.err(), /^error: 127\.0\.0\.1:\d+: not reached \(ECONNREFUSED\)\n$/);
  const { port: silentPort } = await listen(t, createNetServer());
  const hung = await health(t, { admin: { port: silentPort } });
  t.equal(hung.code(), 3);
  t.match(hung.err(), /no answer within 3000 ms/);
  const answers: readonly string[] = ['hello', '{}', '[1]', 'null', '{"status":1,"checks":[]}', '{"status":"ready"}'];
  for (const answer of answers) {
    const { port } = await listen(
      t,
      createServer((_req, res) => res.end(answer)),
    );
    const other = await health(t, { admin: { port } });
    t.equal(other.code(), 3, answer);
    t.match(other.err(), /something else/, answer);
  }
});

t.test('a response without end is not read to its end', async (t) => {
  const { port } = await listen(
    t,
    createServer((_req, res) => {
      const write = (): void => {
        while (!res.destroyed && res.write('x'.repeat(16_384)));
      };
      res.on('drain', write);
      write();
    }),
  );
  t.equal((await health(t, { admin: { port } })).code(), 3);
});

t.test('what a response says cannot steer the terminal', async (t) => {
  const port = await admin(t, 200, { status: 'ready\u001b[2J', checks: [] });
  const io = await health(t, { admin: { port } });
  t.notMatch(io.out(), /\u001b/);
});

t.test(
  'a config that became wrong makes a running proxy no less healthy: that is said, with what is wrong',
  async (t) => {
    const proxy = await startProxyProcess(t, { config: { admin: { host: '127.0.0.1', port: await freePort(t) } } });
    const healthOf = async (): Promise<CapturedIo> => {
      const io = captureIo();
      await run(['health', '--config', proxy.configFile], io);
      return io;
    };
    const well = await healthOf();
    t.equal(well.code(), 0, well.err());
    t.equal(well.err(), '');
    const good = readFileSync(proxy.configFile, 'utf8');
    writeFileSync(proxy.configFile, good.replace('path: /healthz', 'path: healthz'));
    const told = await until('the proxy has tried the new config', async () => {
      const io = await healthOf();
      t.equal(io.code(), 0, io.err());
      t.equal(io.out(), well.out());
      return io.err() === '' ? null : io.err();
    });
    t.match(
      told,
      /^warning: the proxy goes on with the config it had, for the new one is wrong: .*sallyport\.yaml:\d+:\d+: error: .*does not begin with \//,
    );
    writeFileSync(proxy.configFile, `\t${good}routes: [`);
    const noYaml = await healthOf();
    t.equal(noYaml.code(), 0, noYaml.err());
    t.match(noYaml.err(), /^warning: .*sallyport\.yaml: it is no YAML as a whole; asking at 127\.0\.0\.1:\d+$/m);
    proxy.process.signal('SIGTERM');
    await proxy.process.exited;
    t.equal((await healthOf()).code(), 3, 'one that is gone is not healthy');
  },
);

t.test('where the config cannot be read, the defaults are asked, and that is said', async (t) => {
  const cwd = tempDir(t);
  const rows: readonly {
    readonly argv: readonly string[];
    readonly env?: Readonly<Record<string, string>>;
    readonly says: RegExp;
  }[] = [
    {
      argv: ['none.yaml'],
      says: /^warning: none\.yaml: does not exist; asking at 127\.0\.0\.1:9901 and 127\.0\.0\.1:9902, the defaults$/m,
    },
    { argv: ['--config', 'none.yaml'], says: /^warning: none\.yaml: does not exist; asking/m },
    {
      argv: [],
      env: { SALLYPORT_CONFIG: 'none.yaml' },
      says: /^warning: none\.yaml: does not exist \(SALLYPORT_CONFIG names it\); asking/m,
    },
    { argv: [], says: /^warning: there is no config to read: .*; asking/m },
  ];
  for (const { argv, env = {}, says } of rows) {
    const io = captureIo({ cwd, env });
    await run(['health', ...argv], io);
    t.match(io.err(), says, argv.join(' '));
    t.match(String(io.code()), /^[013]$/, 'as the process that answers there, or none');
  }
});

t.test('--url says where to ask, without a config', async (t) => {
  const port = await admin(t, 200, ready);
  const cwd = tempDir(t);
  const asked = async (...argv: readonly string[]): Promise<CapturedIo> => {
    const io = captureIo({ cwd });
    await run(['health', ...argv], io);
    return io;
  };
  for (const url of [
    `http://127.0.0.1:${String(port)}`,
    `http://127.0.0.1:${String(port)}/`,
    `http://localhost:${String(port)}`,
  ]) {
    const io = await asked('--url', url);
    t.equal(io.code(), 0, url);
    t.equal(io.err(), '', url);
  }
  for (const url of [
    '127.0.0.1:9901',
    'https://127.0.0.1:9901',
    'http://127.0.0.1/readyz',
    'http://user@127.0.0.1',
    'http://',
    'http://127.0.0.1:99999',
  ]) {
    const io = await asked('--url', url);
    t.equal(io.code(), 2, url);
    t.match(io.err(), /^error: option '--url <url>' argument .* Allowed: http:\/\/HOST:PORT, without a path\.$/m, url);
  }
  t.match(
    (await asked('--url', `http://127.0.0.1:${String(port)}`, 'sallyport.yaml')).err(),
    /^error: either --url or a config says where to ask$/m,
  );
});

t.test('2 where the config says no port to ask', async (t) => {
  const anywhere = await health(t, { admin: { port: 0 } });
  t.equal(anywhere.code(), 2);
  t.match(anywhere.err(), /^error: admin\.port is 0.*\ngive it a port, or ask with --url$/m);
});
