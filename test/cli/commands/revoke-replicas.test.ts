/** `store.redis.replicas` and `sallyport revoke`: what a fail-over may forget is not said to be done. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { run } from '../../../src/cli/program.js';
import { startRedis, startReplica, type RedisServer } from '../../support/redis-server.js';
import { tempDir } from '../../support/temp-dir.js';
import { until } from '../../support/until.js';
import { baseConfig } from '../../support/proxy-process.js';
import { captureIo, type CapturedIo } from '../captured-io.js';

// Most of the time is waited for.
t.jobs = 4;

const key = 'sallyport:{revoked}:list';
const why = ['--for', '3h', '--reason', 'a leak'];

async function revoke(t: Test, redis: RedisServer, replicas: number, args: readonly string[]): Promise<CapturedIo> {
  const cwd = tempDir(t);
  writeFileSync(
    join(cwd, 'sallyport.yaml'),
    baseConfig({ store: { redis: { url: `redis://127.0.0.1:${String(redis.port)}`, replicas } } }),
  );
  const io = captureIo({ cwd, stdin: '' });
  await run(['revoke', '--config', 'sallyport.yaml', ...args], io);
  return io;
}

function idOf(io: CapturedIo): string {
  return (JSON.parse(io.out()) as { readonly id: string }).id;
}

t.test('revoke exits 0 once as many replicas hold it as the config asks for', async (t) => {
  const redis = await startRedis(t);
  const replica = await startReplica(t, redis.port);
  const made = await revoke(t, redis, 1, ['--subject', 'checkout', ...why, '--json']);
  t.match([made.code(), made.err(), JSON.parse(made.out())], [0, '', { replicas: 1, confirmed_replicas: 1 }]);
  t.equal(await replica.client.hexists(key, `e:${idOf(made)}`), 1);
  const words = await revoke(t, redis, 1, ['--subject', 'reporting', ...why]);
  t.match(words.out(), /^replicas 1 confirmed, of 1$/m);
  const undone = await revoke(t, redis, 1, ['--undo', idOf(made), '--json']);
  t.match([undone.code(), JSON.parse(undone.out())], [0, { result: 'undone', replicas: 1, confirmed_replicas: 1 }]);
  t.equal(await replica.client.hexists(key, `u:${idOf(made)}`), 1);
});

t.test('a replica that hangs: written, refused with exit code 3, and done when it is asked for again', async (t) => {
  const redis = await startRedis(t);
  const replica = await startReplica(t, redis.port);
  replica.freeze();
  t.teardown(replica.thaw);
  const made = await revoke(t, redis, 1, ['--subject', 'checkout', ...why, '--json']);
  t.match([made.code(), JSON.parse(made.out())], [3, { replicas: 1, confirmed_replicas: 0 }]);
  t.match(
    made.err(),
    /^error: only 0 of 1 replicas confirmed it in time: proxies refuse it now, and a fail-over may lose it: revoke again/m,
  );
  t.equal(await redis.client.hexists(key, `e:${idOf(made)}`), 1, 'it is in force all the same');
  replica.thaw();
  await until('the replica has caught up', async () => (await replica.client.hexists(key, `e:${idOf(made)}`)) === 1);
  t.equal((await revoke(t, redis, 1, ['--subject', 'checkout', ...why])).code(), 0);
});

t.test('no replica at all, and fewer than are asked for; without the setting nobody is asked', async (t) => {
  const redis = await startRedis(t);
  const alone = await revoke(t, redis, 0, ['--subject', 'checkout', ...why, '--json']);
  t.match([alone.code(), JSON.parse(alone.out())], [0, { replicas: 0, confirmed_replicas: null }]);
  const undone = await revoke(t, redis, 1, ['--undo', idOf(alone), '--json']);
  t.match([undone.code(), JSON.parse(undone.out())], [3, { result: 'undone', confirmed_replicas: 0 }]);
  t.match(undone.err(), /only 0 of 1 replicas .* may bring the revocation back: undo it again/);
  await startReplica(t, redis.port);
  const short = await revoke(t, redis, 2, ['--subject', 'checkout', ...why]);
  t.equal(short.code(), 3);
  t.match(short.out(), /^replicas 1 confirmed, of 2$/m);
});

t.test('a server that never ran the script has the entry before it waits, and not when it has waited', async (t) => {
  const redis = await startRedis(t);
  const made = await revoke(t, redis, 1, ['--subject', 'checkout', ...why, '--json']);
  t.equal(made.code(), 3);
  await redis.client.script('FLUSH');
  t.equal((await revoke(t, redis, 1, ['--undo', idOf(made)])).code(), 3);
  t.notMatch(await redis.client.info('errorstats'), /NOSCRIPT/, 'nobody waited for a script that was not there');
});

t.test('an undo of what is not there is told from one that few replicas have', async (t) => {
  const redis = await startRedis(t);
  const undone = await revoke(t, redis, 1, ['--undo', 'A'.repeat(22)]);
  t.equal(undone.code(), 1);
  t.match(undone.err(), /holds no such revocation/);
});

t.test('a user that may not wait learns that nobody knows', async (t) => {
  const redis = await startRedis(t);
  await startReplica(t, redis.port);
  await redis.client.acl('SETUSER', 'default', '-wait');
  const made = await revoke(t, redis, 1, ['--subject', 'checkout', ...why]);
  t.equal(made.code(), 3);
  t.match(made.err(), /NOPERM.*; it may have taken effect: look with --list/);
  t.equal(await redis.client.hlen(key), 2, 'it did');
  t.equal((await revoke(t, redis, 1, ['--list'])).code(), 0);
});
