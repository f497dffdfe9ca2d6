import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { run } from '../../../src/cli/program.js';
import { freePort } from '../../support/listening.js';
import { startSentinels } from '../../support/redis-sentinel.js';
import { startRedis, startReplica, type RedisServer } from '../../support/redis-server.js';
import { tempDir } from '../../support/temp-dir.js';
import { until } from '../../support/until.js';
import { baseConfig, merge, type ConfigTree } from '../../support/proxy-process.js';
import { captureIo, type CapturedIo } from '../captured-io.js';

const name = 'orders';
const password = 'hunter2-canary';

interface Redises {
  readonly primary: RedisServer;
  readonly replicas: readonly RedisServer[];
  readonly sentinels: readonly RedisServer[];
  readonly store: ConfigTree;
}

async function redises(t: Test, copies: number): Promise<Redises> {
  const primary = await startRedis(t);
  const replicas = await Promise.all(Array.from({ length: copies }, async () => startReplica(t, primary.port)));
  const sentinels = await startSentinels(t, { name, primaryPort: primary.port, quorum: 2, replicas: copies, count: 3 });
  return {
    primary,
    replicas,
    sentinels,
    store: { replicas: 1, sentinel: { name, nodes: sentinels.map(({ port }) => `127.0.0.1:${String(port)}`) } },
  };
}

interface Begun {
  readonly io: CapturedIo;
  /** Calls back in the moment in which standard error is told something. */
  readonly when: (message: string, act: () => unknown) => void;
  readonly ended: Promise<void>;
}

/** Begins the command. */
function begin(t: Test, redis: ConfigTree | null, ...args: readonly string[]): Begun {
  const cwd = tempDir(t);
  writeFileSync(join(cwd, 'sallyport.yaml'), baseConfig({ store: redis === null ? { memory: {} } : { redis } }));
  writeFileSync(join(cwd, 'password'), password, { mode: 0o600 });
  const captured = captureIo({ cwd });
  const acts = new Map<string, () => unknown>();
  const io: CapturedIo = {
    ...captured,
    stderr: (text) => {
      captured.stderr(text);
      for (const [message, act] of acts) if (text.includes(message)) act();
    },
  };
  return { io, when: (message, act) => acts.set(message, act), ended: run(['store', 'failover', ...args], io) };
}

async function failover(t: Test, redis: ConfigTree | null, ...args: readonly string[]): Promise<CapturedIo> {
  const { io, ended } = begin(t, redis, ...args);
  await ended;
  t.notMatch(io.out() + io.err(), password);
  t.equal(io.isListening(), false);
  return io;
}

/** Whether a write is taken within a moment. */
async function takesWrites({ client }: RedisServer): Promise<boolean> {
  const probe = client.duplicate();
  probe.on('error', () => undefined);
  try {
    return await Promise.race([
      probe.set('probe', '1').then(
        () => true,
        () => false,
      ),
      delay(300, false),
    ]);
  } finally {
    probe.disconnect();
  }
}

t.test('a store without Sentinel is told what to do by hand', async (t) => {
  const rows: readonly [ConfigTree | null, RegExp][] = [
    [null, /keeps reservations in memory/],
    [{ url: 'redis://127.0.0.1:1' }, /names one server: .*\n.*docs\/storage\.md#by-hand/],
    [{ cluster: { nodes: ['127.0.0.1:1'] } }, /names a Cluster: send CLUSTER FAILOVER .*\n.*docs\/storage\.md#by-hand/],
  ];
  for (const [store, message] of rows) {
    const io = await failover(t, store, '--yes');
    t.equal(io.code(), 2);
    t.match(io.err(), message);
  }
  t.equal((await failover(t, null, '--timeout', '1s')).code(), 2);
});

t.test('Sentinels that nobody reaches', async (t) => {
  const io = await failover(t, { sentinel: { name, nodes: [`127.0.0.1:${String(await freePort())}`] } }, '--yes');
  t.equal(io.code(), 3, io.err());
  t.match(io.err(), /^error: the Sentinel 127\.0\.0\.1:\d+ gives no answer: .*ECONNREFUSED.*\nnothing was done\n$/);
});

t.test('with one replica', async (t) => {
  const {
    primary,
    replicas: [replica],
    sentinels,
    store,
  } = await redises(t, 1);
  if (replica === undefined) throw new Error('no replica');
  const [first] = sentinels;
  const untouched = async (what: string): Promise<void> => {
    t.equal((await primary.client.role())[0], 'master', what);
    t.equal(await takesWrites(primary), true, `${what}: nothing is held`);
  };

  await t.test('a dry run does nothing, and says what it would do', async (t) => {
    const io = await failover(t, store);
    t.equal(io.code(), 0, io.err());
    const says = [
      `hold writes on the primary 127.0.0.1:${String(primary.port)},`,
      `wait until 127.0.0.1:${String(replica.port)} has`,
      'Nothing was done',
    ];
    for (const message of says) {
      t.ok(io.out().includes(message), message);
    }
    const json = JSON.parse((await failover(t, store, '--json')).out()) as object;
    t.match(json, {
      done: false,
      dry_run: true,
      old_primary: `127.0.0.1:${String(primary.port)}`,
      replicas_before: [{ lag_seconds: Number }],
      sentinels: 3,
    });
    await untouched('dry run');
  });

  await t.test('each thing that stands in the way is told, and nothing is done', async (t) => {
    const refused = async (what: string, redis: ConfigTree, message: RegExp): Promise<void> => {
      for (const args of [[], ['--yes']]) {
        const io = await failover(t, redis, ...args);
        t.equal(io.code(), 1, what);
        t.match(io.err(), message, what);
        t.match(io.err(), /nothing was done/, what);
      }
      await untouched(what);
    };
    await refused(
      'more replicas asked for',
      merge(store, { replicas: 2 }),
      /replicas in step that may be promoted: 1; store\.redis\.replicas asks for 2/,
    );
    await refused('another name', merge(store, { sentinel: { name: 'else' } }), /No such master/);

    const as = (user: string): ConfigTree => merge(store, { username: user, password_file: 'password' });
    const rights = ['+info', '+multi', '+discard', '+client|pause', '+client|unpause', '+replicaof', '+wait'];
    for (const missing of ['+client|pause', '+client|unpause', '+replicaof', '+multi']) {
      await primary.client.call(
        'acl',
        'setuser',
        'operator',
        'reset',
        'on',
        `>${password}`,
        ...rights.filter((right) => right !== missing),
      );
      await refused(missing, as('operator'), /refuses what a fail-over needs: .*NOPERM/);
    }
    await refused('a wrong password', as('nobody'), /WRONGPASS/);

    for (const { client } of sentinels) await client.call('acl', 'setuser', 'default', '-sentinel|failover');
    await refused('a Sentinel that does not let us', store, /refuses SENTINEL FAILOVER: NOPERM/);
    for (const { client } of sentinels) await client.call('acl', 'setuser', 'default', '+@all');

    await first?.client.call('sentinel', 'set', name, 'quorum', '4');
    await refused('no quorum', store, /no quorum: NOQUORUM/);
    await first?.client.call('sentinel', 'set', name, 'quorum', '2');

    await replica.kill();
    await until('the primary knows', async () =>
      (await primary.client.info('replication')).includes('connected_slaves:0'),
    );
    await refused('the replica is down', store, /127\.0\.0\.1:\d+ (is not in step|is down)/);
    await replica.restart();
    await until('it is back', async () => (await failover(t, store)).code() === 0);
  });

  await t.test('a signal before the Sentinel was told lets go at once', async (t) => {
    const { io, when, ended } = begin(t, store, '--yes');
    when('writes are held', () => io.signal('SIGINT'));
    await ended;
    t.equal(io.code(), 1, io.err());
    t.match(io.err(), /^error: stopped by a signal; no fail-over was begun$/m);
    await untouched('stopped');
  });

  await t.test(
    'it is done: the old primary is a replica, nothing is held, and a signal meanwhile does not change that',
    async (t) => {
      const { io, when, ended } = begin(t, store, '--yes', '--json');
      when('writes are held', () =>
        t.resolves(takesWrites(primary).then((taken) => t.equal(taken, false, 'they are'))),
      );
      when('the Sentinel has begun', () => io.signal('SIGINT'));
      await ended;
      t.equal(io.code(), 0, io.err() + io.out());
      t.match(io.err(), /the Sentinels cannot be stopped/);
      t.match(JSON.parse(io.out()), {
        done: true,
        dry_run: false,
        old_primary: `127.0.0.1:${String(primary.port)}`,
        new_primary: `127.0.0.1:${String(replica.port)}`,
        problems: [],
        held_ms: Number,
        promoted_after_ms: Number,
      });
      t.equal((await primary.client.role())[0], 'slave');
      t.equal(await takesWrites(replica), true);
      t.match(await primary.client.info('replication'), /master_link_status:up/, 'which store.redis.replicas asks for');
    },
  );
});

t.test('with two replicas, of which one is down, and an old primary that cannot be made a replica', async (t) => {
  const {
    primary,
    replicas: [replica, other],
    store,
  } = await redises(t, 2);
  if (replica === undefined || other === undefined) throw new Error('no replicas');
  await other.kill();
  const isWarned = new RegExp(`^warning: the replica 127\\.0\\.0\\.1:${String(other.port)} is down`, 'm');
  await until('the Sentinels see it', async () => isWarned.test((await failover(t, store)).err()));

  const rights = ['+info', '+multi', '+discard', '+client|pause', '+client|unpause', '+replicaof'];
  for (const { client } of [primary, replica]) {
    await client.call('acl', 'setuser', 'operator', 'reset', 'on', `>${password}`, ...rights);
  }
  const { io, when, ended } = begin(t, merge(store, { username: 'operator', password_file: 'password' }), '--yes');
  when('the Sentinel has begun', () => t.resolves(primary.client.call('acl', 'setuser', 'operator', '-replicaof')));
  when(':' + String(replica.port) + ' is primary', () => {
    io.signal('SIGTERM');
    io.signal('SIGTERM');
  });
  await ended;
  t.equal(io.code(), 1, io.err());
  t.match(io.err(), isWarned);
  t.match(
    io.err(),
    /^error: 127\.0\.0\.1:\d+ was no replica when a signal ended the wait: what it takes from now on is lost$/m,
  );
  t.match(io.out(), /^The fail-over is not done\.$/m);
  t.match(io.out(), new RegExp(`^new primary {3}127\\.0\\.0\\.1:${String(replica.port)}, after `, 'm'));
  t.equal(await takesWrites(primary), true, 'the second signal let go');
});
