import { createServer } from 'node:http';
import { createServer as createNetServer } from 'node:net';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { run } from '../../src/cli/program.js';
import type { KeySourceState } from '../../src/ports.js';
import { readinessOf } from '../../src/proxy/admin/readiness.js';
import { createPageServer } from '../../src/proxy/admin/server.js';
import { listen } from '../support/listening.js';
import type { Scope } from '../support/scope.js';
import { tempDir } from '../support/temp-dir.js';
import { baseConfig, type ConfigTree } from '../support/world.js';
import { captureIo, type CapturedIo } from './captured-io.js';

const silent = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined };

/** An admin listener that says this of `/readyz`. */
async function admin(t: Scope, status: number, body: object, host = '127.0.0.1'): Promise<number> {
  const page = { status, type: 'application/json', body: JSON.stringify(body) };
  const server = createPageServer({ listen: { host, port: 0 }, checksHost: true, maxConnections: 8, pages: { '/readyz': () => page }, log: silent });
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
  return { issuer: 'core', usable, stale, ageMs: null, keys: [], lastError: null };
}

const ready = readinessOf('serving', [keys(true, false)], null, null);
const degraded = readinessOf('serving', [keys(true, true)], null, null);
const unavailable = readinessOf('serving', [keys(false, false)], null, null);

t.test('contract 1: 0 where the proxy is ready, 1 where it is not', async (t) => {
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

t.test('contract 1: 3 where no proxy is reached', async (t) => {
  const closed = await health(t, { admin: { port: await freePort(t) } });
  t.equal(closed.code(), 3);
  t.match(closed.err(), /^127\.0\.0\.1:\d+: not reached \(ECONNREFUSED\)\n$/);
  const { port: silentPort } = await listen(t, createNetServer());
  const hung = await health(t, { admin: { port: silentPort } });
  t.equal(hung.code(), 3);
  t.match(hung.err(), /no answer within 3000 ms/);
  const answers: readonly string[] = ['hello', '{}', '[1]', 'null', '{"status":1,"checks":[]}', '{"status":"ready"}'];
  for (const answer of answers) {
    const { port } = await listen(t, createServer((_req, res) => res.end(answer)));
    const other = await health(t, { admin: { port } });
    t.equal(other.code(), 3, answer);
    t.match(other.err(), /something else/, answer);
  }
});

t.test('an answer without end is not read to its end', async (t) => {
  const { port } = await listen(t, createServer((_req, res) => {
    const write = (): void => {
      while (!res.destroyed && res.write('x'.repeat(16_384)));
    };
    res.on('drain', write);
    write();
  }));
  t.equal((await health(t, { admin: { port } })).code(), 3);
});

t.test('what an answer says cannot steer the terminal', async (t) => {
  const port = await admin(t, 200, { status: 'ready\u001b[2J', checks: [] });
  const io = await health(t, { admin: { port } });
  t.notMatch(io.out(), /\u001b/);
});

t.test('contract 1: 1 where the config is wrong', async (t) => {
  const bad = await health(t, { listen: { port: 'x' } });
  t.equal(bad.code(), 1);
  t.match(bad.err(), /error: /);
});

t.test('contract 1: 2 where the config cannot be read, or says no port to ask', async (t) => {
  const io = captureIo();
  await run(['health', '--config', join(tempDir(t), 'none.yaml')], io);
  t.equal(io.code(), 2);
  t.match(io.err(), /none\.yaml: does not exist/);
  const anywhere = await health(t, { admin: { port: 0 } });
  t.equal(anywhere.code(), 2);
  t.match(anywhere.err(), /admin\.port is 0/);
});
