import { spawn } from 'node:child_process';
import { once } from 'node:events';
import t from 'tap';
import { projectDir } from '../../../support/project-dir.js';
import { freePort } from '../../../support/listening.js';
import { startRedis } from '../../../support/redis-server.js';
import { startRelay } from '../../../support/tcp-relay.js';
import { freshScope, reserveOf } from '../../store-commands.js';
import { openStore, redisSettings } from '../redis-store.js';

t.jobs = 2;

t.test('many reconnects leave no listeners behind, and no rejection escapes', async (t) => {
  const warnings: string[] = [];
  const warn = (warning: Error): void => void warnings.push(warning.message);
  process.on('warning', warn);
  t.teardown(() => process.off('warning', warn));
  const server = await startRedis(t);
  const relay = await startRelay(t, server.port);
  const { store, up } = openStore(t, redisSettings(relay.port));
  for (let round = 0; round < 10; round += 1) {
    await up();
    const calls = Array.from({ length: 10 }, () => store.reserve(freshScope(), reserveOf('a')));
    relay.cut();
    for (const answer of await Promise.all(calls)) t.ok(answer.ok || answer.error.kind === 'unreachable');
  }
  t.same(warnings, []);
});

t.test('a closed store answers, and lets the process end, whatever its server does', async (t) => {
  const frozen = await startRedis(t);
  const well = await startRedis(t);
  const nobody = await freePort();
  frozen.freeze();
  t.teardown(frozen.thaw);
  await Promise.all(
    [frozen.port, well.port, nobody].map(async (port) => {
      const child = spawn(process.execPath, ['--input-type=module', '-e', program(port)], {
        cwd: projectDir,
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      let output = '';
      child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text));
      const [code] = (await once(child, 'close')) as [number | null];
      t.equal(code, 0);
      t.equal(output, 'unreachable unreachable\n');
    }),
  );
});

/** Opens a store, leaves a call under way, closes, and has nothing else to do. */
function program(port: number): string {
  return `
    const { createRedisStore } = await import('./.build/src/adapters/redis/reservation-store.js');
    const log = { debug() {}, info() {}, warn() {}, error() {} };
    const store = createRedisStore(${JSON.stringify(redisSettings(port, { replicas: 1 }))}, {
      clock: { now: Date.now, monotonic: () => performance.now() }, log, maxTokenLifetimeMs: () => 1000, onFailover() {},
    });
    const scope = { principal: 'p', operation: 'o', token: null };
    const command = { attempt: 'a', key: { fingerprint: 'f', route: 'create-order', leaseMs: 1, retentionMs: 1, takesOver: false }, markerTtlMs: null };
    const kinds = [];
    const first = store.reserve(scope, command);
    await new Promise((resolve) => setTimeout(resolve, 50));
    await store.close();
    for (const answer of [await first, await store.reserve(scope, command)]) kinds.push(answer.ok ? 'ok' : answer.error.kind);
    console.log(kinds.join(' '));
  `;
}
