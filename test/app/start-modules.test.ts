/** A start loads no more than its config needs: each package costs every start some hundredth of a second. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { startProxyProcess, type ConfigTree } from '../support/proxy-process.js';
import type { Scope } from '../support/scope.js';
import { startRedis } from '../support/redis-server.js';
import { tempDir } from '../support/temp-dir.js';

/** Writes at the end of the process which CommonJS modules it has loaded. */
const probe = [
  'process.on("exit", () => {',
  '  require("node:fs").writeFileSync(process.env.LOADED_FILE, Object.keys(require.cache).join("\\n"));',
  '});',
].join('\n');

/** The packages that the proxy has loaded from its start to its end. */
async function packagesLoaded(t: Scope, config: ConfigTree): Promise<ReadonlySet<string>> {
  const dir = tempDir(t);
  const [hook, loaded] = [join(dir, 'probe.cjs'), join(dir, 'loaded')];
  writeFileSync(hook, probe);
  const proxy = await startProxyProcess(t, {
    config,
    env: { NODE_OPTIONS: `--require=${hook}`, LOADED_FILE: loaded },
  });
  await proxy.stop();
  const names = readFileSync(loaded, 'utf8').matchAll(/.*\/node_modules\/((?:@[^/\n]+\/)?[^/\n]+)\//g);
  return new Set([...names].map(([, name = '']) => name));
}

t.test('without a store, sessions and probes of the upstream, none of their packages is loaded', async (t) => {
  const packages = await packagesLoaded(t, {});
  t.ok(packages.has('fastify'), 'what is loaded is seen');
  const others = ['ioredis', 'supertokens-node', '@fastify/http-proxy'];
  const telemetry = ['otlp-transformer', 'resources'].map((name) => `@opentelemetry/${name}`);
  for (const absent of [...others, ...telemetry]) t.notOk(packages.has(absent), absent);
});

t.test('no compiler of schemas is loaded: no route has a schema', async (t) => {
  const packages = await packagesLoaded(t, {});
  for (const absent of ['ajv', '@fastify/fast-json-stringify-compiler']) t.notOk(packages.has(absent), absent);
});

t.test('a store in Redis loads its client', async (t) => {
  const redis = await startRedis(t);
  const url = `redis://127.0.0.1:${String(redis.port)}`;
  const packages = await packagesLoaded(t, { store: { redis: { url } } });
  t.ok(packages.has('ioredis'));
});
