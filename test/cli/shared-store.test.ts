/** What `revoke` and `record` do while parts of the store are away. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { slotCount, slotOf } from '../../src/adapters/redis/topology/discovery.js';
import { run } from '../../src/cli/program.js';
import { freePort } from '../support/listening.js';
import { baseConfig } from '../support/proxy-process.js';
import { startCluster } from '../support/redis-cluster.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';
import { tempDir } from '../support/temp-dir.js';
import { until } from '../support/until.js';
import { captureIo, type CapturedIo } from './captured-io.js';

const why = ['--for', '3h', '--reason', 'a leak'];

/** The id of a record in such a slot. */
function recordIdIn(isWanted: (slot: number) => boolean): string {
  for (let index = 0; ; index += 1) {
    const principal = String(index).padStart(43, 'p');
    if (isWanted(slotOf(principal))) return `${principal}.${'o'.repeat(43)}`;
  }
}

async function command(t: Test, redis: object, ...args: readonly string[]): Promise<CapturedIo> {
  const cwd = tempDir(t);
  writeFileSync(join(cwd, 'sallyport.yaml'), baseConfig({ store: { redis } }));
  const io = captureIo({ cwd, stdin: '' });
  const [name = '', ...rest] = args;
  await run([name, '--config', 'sallyport.yaml', ...rest], io);
  return io;
}

/** What needs no other part of the Cluster than the one that is asked goes on, and the rest says what is missing. */
async function othersGoOn(
  t: Test,
  nodes: readonly string[],
  { lost, missing, problem }: { readonly lost: (slot: number) => boolean; missing: RegExp; problem: RegExp },
): Promise<void> {
  const redis = { cluster: { nodes } };
  const made = await command(t, redis, 'revoke', '--subject', 'checkout', ...why, '--json');
  t.equal(made.code(), 0, made.err());
  const { id } = JSON.parse(made.out()) as { readonly id: string };
  const listed = await command(t, redis, 'revoke', '--list', '--json');
  t.match([listed.code(), JSON.parse(listed.out())], [0, { revocations: [{ id }] }], listed.err());
  t.equal((await command(t, redis, 'revoke', '--undo', id)).code(), 0);
  const there = recordIdIn((slot) => !lost(slot));
  const shown = await command(t, redis, 'record', 'show', there);
  t.match([shown.code(), shown.err()], [1, /^there is no record/]);
  const resolved = await command(t, redis, 'record', 'resolve', there, '--outcome', 'committed', '--reason', 'x');
  t.match([resolved.code(), JSON.parse(resolved.out())], [1, { result: 'absent' }]);
  const away = await command(t, redis, 'record', 'show', recordIdIn(lost));
  t.match([away.code(), away.err()], [3, missing]);
  const search = await command(t, redis, 'record', 'list');
  t.match([search.code(), search.err()], [3, problem], 'a search looks through all');
}

/** A Cluster of one server, which serves all slots but one. */
async function clusterWithout(t: Test, slot: number): Promise<RedisServer> {
  const bus = await freePort();
  const args = ['--cluster-enabled', 'yes', '--cluster-port', String(bus), '--cluster-require-full-coverage', 'no'];
  const node = await startRedis(t, args);
  const ranges = [
    [0, slot - 1],
    [slot + 1, slotCount - 1],
  ].flat();
  await node.client.call('cluster', 'addslotsrange', ...ranges);
  await until('it serves', async () => String(await node.client.call('cluster', 'info')).includes('cluster_state:ok'));
  return node;
}

t.test('revoke and record work while a slot that they do not need has no primary', async (t) => {
  const slot = 8_192;
  const node = await clusterWithout(t, slot);
  await othersGoOn(t, [`127.0.0.1:${String(node.port)}`], {
    lost: (each) => each === slot,
    missing: /^error: the store is out of reach: no primary serves this part of the Cluster$/m,
    problem: /^error: the store is out of reach: parts of the Cluster have no primary$/m,
  });
});

t.test('revoke and record work while a primary that they do not need is away', async (t) => {
  const cluster = await startCluster(t, 3, 0, ['--cluster-require-full-coverage', 'no']);
  const ranges = (await cluster.nodes[0]?.client.call('cluster', 'slots')) as [number, number, [string, number]][];
  const isIn = ([first, last]: readonly [number, number, ...unknown[]], slot: number): boolean =>
    first <= slot && slot <= last;
  const range = ranges.find((each) => !isIn(each, slotOf('revoked'))) ?? [0, 0, ['', 0]];
  const away = cluster.at(range[2][1]);
  await away.kill();
  const nodes = cluster.nodes.map(({ port }) => `127.0.0.1:${String(port)}`);
  await othersGoOn(t, nodes, {
    lost: (slot) => isIn(range, slot),
    missing: /^error: the store is out of reach: .*ECONNREFUSED/m,
    problem: /^error: the store is out of reach: 127\.0\.0\.1:\d+: .*ECONNREFUSED/m,
  });
});

t.test('a store that cannot be used says why, in the words of the proxy', async (t) => {
  const node = await clusterWithout(t, 1);
  const io = await command(t, { url: `redis://127.0.0.1:${String(node.port)}` }, 'revoke', '--list');
  t.equal(io.code(), 3);
  t.match(io.err(), /^error: the store is out of reach: .* name its nodes in store\.redis\.cluster/m);
});
