/**
 * `sallyport revoke` before, during and after a fail-over of Redis: what it said was done is refused by every proxy,
 * also by one that starts afterwards and has read nothing before. What the lost primary alone had was never said to be
 * done.
 */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { startJwksServer } from '../support/jwks-server.js';
import { rsaKey } from '../support/keys.js';
import { projectDir } from '../support/project-dir.js';
import { request } from '../support/raw-client.js';
import { startUpstreamServer } from '../support/upstream-server.js';
import { startSentinels } from '../support/redis-sentinel.js';
import { startRedis, startReplica, type RedisServer } from '../support/redis-server.js';
import { mintToken } from '../support/tokens.js';
import { until } from '../support/until.js';
import { startProxyProcess, type ProxyProcess } from '../support/proxy-process.js';

t.setTimeout(600_000);

/** docs/contract.md 9 says a second; machines that run tests are slow at times. */
const boundMs = 10_000;

interface Done {
  readonly subject: string;
  readonly code: number;
  readonly endedMs: number;
  readonly out: string;
  readonly err: string;
}

interface Deployment {
  readonly primary: RedisServer;
  readonly replicas: readonly RedisServer[];
  readonly sentinels: readonly RedisServer[];
  readonly startProxy: () => Promise<ProxyProcess>;
  readonly revoke: (subject: string) => Promise<Done>;
  readonly listed: () => Promise<string>;
  readonly status: (proxy: ProxyProcess, subject: string) => Promise<number>;
  /** Milliseconds from `sinceMs` until all of them refuse the subject. */
  readonly refusedAfterMs: (proxies: readonly ProxyProcess[], subject: string, sinceMs: number) => Promise<number>;
}

const name = 'orders';
const subjects = Array.from({ length: 200 }, (_, index) => `caller-${String(index)}`);

async function deploy(t: Test, confirming: number): Promise<Deployment> {
  const primary = await startRedis(t);
  const replicas = [await startReplica(t, primary.port), await startReplica(t, primary.port)];
  const sentinels = await startSentinels(t, { name, primaryPort: primary.port, quorum: 2, replicas: 2, count: 3 });
  const [receiver, key] = [await startUpstreamServer(t), rsaKey()];
  const jwks = await startJwksServer(t, { keys: [key] });
  const config = {
    store: {
      redis: {
        sentinel: { name, nodes: sentinels.map(({ port }) => `127.0.0.1:${String(port)}`) },
        replicas: confirming,
        reserve_timeout: '2s',
      },
    },
    routes: [{ name: 'list', methods: ['GET'], path: '/orders', subjects, permissions: [] }],
  };
  const startProxy = async (): Promise<ProxyProcess> => startProxyProcess(t, { receiver, key, jwks, config });
  const { configFile } = await startProxy();
  const command = async (args: readonly string[]): Promise<Omit<Done, 'subject' | 'endedMs'>> =>
    new Promise((resolve) => {
      execFile(
        process.execPath,
        [join(projectDir, 'dist/main.js'), 'revoke', '--config', configFile, ...args],
        { timeout: 60_000 },
        (error, out, err) => {
          resolve({ code: error === null ? 0 : Number(error.code ?? 1), out, err });
        },
      );
    });
  const status: Deployment['status'] = async (proxy, subject) => {
    const headers = { Authorization: `Bearer ${mintToken({ key, claims: { sub: subject } })}` };
    return (await request(proxy.port, { path: '/orders', headers })).status;
  };
  return {
    primary,
    replicas,
    sentinels,
    startProxy,
    status,
    revoke: async (subject) => {
      const ended = await command(['--subject', subject, '--for', '1h', '--reason', 'a test', '--json']);
      return { subject, endedMs: Date.now(), ...ended };
    },
    listed: async () =>
      until('the list', async () => {
        const { code, out } = await command(['--list']);
        return code === 0 ? out : null;
      }),
    refusedAfterMs: async (proxies, subject, sinceMs) => {
      const refused = proxies.map(async (proxy) =>
        until(`${subject} is refused`, async () => (await status(proxy, subject)) === 401, 60_000),
      );
      await Promise.all(refused);
      return Date.now() - sinceMs;
    },
  };
}

async function promoted(replicas: readonly RedisServer[]): Promise<RedisServer> {
  return until(
    'a replica is promoted',
    async () => {
      for (const replica of replicas) if ((await replica.client.role())[0] === 'master') return replica;
      return null;
    },
    60_000,
  );
}

t.test('revocations before, during and just after a primary is lost: done is done', async (t) => {
  const deployment = await deploy(t, 1);
  const proxies = [await deployment.startProxy(), await deployment.startProxy(), await deployment.startProxy()];
  const ended: Done[] = [];
  const spreads: Promise<number>[] = [];
  let isOver = false;
  const ignored = new Set<string>();
  /** One command after the other, of which each that was done is watched from its end on. */
  const revoker = async (own: readonly string[]): Promise<void> => {
    for (const subject of own) {
      if (isOver) return;
      const done = await deployment.revoke(subject);
      ended.push(done);
      if (done.code === 0) spreads.push(deployment.refusedAfterMs(proxies, subject, done.endedMs));
      else ignored.add(subject);
    }
  };
  const revokers = [revoker(subjects.slice(0, 90)), revoker(subjects.slice(90, 180))];
  const done = (): number => ended.filter(({ code }) => code === 0).length;
  await until('some are revoked before', () => done() >= 6, 60_000);
  const before = done();
  await deployment.primary.kill();
  await promoted(deployment.replicas);
  const during = done();
  await until('some are revoked after', () => done() >= during + 6, 120_000);
  isOver = true;
  await Promise.all(revokers);
  const lastMs = Math.max(...(await Promise.all(spreads)));
  t.comment(
    `${String(ended.length)} commands: ${String(before)} done before, ${String(done() - before)} during and after, ` +
      `${String(ignored.size)} not done; all refuse within ${String(lastMs)} ms of the command's end`,
  );
  t.ok(lastMs < boundMs, `${String(lastMs)} ms`);
  t.same(
    ended.filter(({ code }) => code !== 0 && code !== 3),
    [],
    'the rest is out of reach, and says so',
  );
  t.ok(ended.every(({ code, err }) => code === 0 || err !== ''));

  const late = await deployment.startProxy();
  const list = await deployment.listed();
  for (const { subject } of ended.filter(({ code }) => code === 0)) {
    const statuses = await Promise.all([...proxies, late].map(async (proxy) => deployment.status(proxy, subject)));
    t.same([...new Set(statuses)], [401], `${subject} is refused by all, and by the one that came later`);
    t.ok(list.includes(`subject ${subject};`), `${subject} is in the list`);
  }
  t.equal(await deployment.status(late, 'caller-199'), 200, 'who was not revoked is served');

  // The lost one comes back as a replica: it brings nothing back, and takes nothing away.
  await deployment.primary.restart();
  await until(
    'the old primary is a replica',
    async () => (await deployment.primary.client.role())[0] === 'slave',
    60_000,
  );
  const kept = await deployment.listed();
  t.ok(ended.filter(({ code }) => code === 0).every(({ subject }) => kept.includes(`subject ${subject};`)));
});

/**
 * Sentinel demotes the old primary a while after it has promoted another one. Until then the old one takes writes, and
 * a replica that still follows it confirms them: only where every replica has to confirm is the promoted one missed.
 */
t.test('a planned fail-over, with revocations all the while, where every replica has to confirm', async (t) => {
  const deployment = await deploy(t, 2);
  const proxies = [await deployment.startProxy()];
  const ended: Done[] = [];
  let isOver = false;
  const revoker = async (own: readonly string[]): Promise<void> => {
    for (const subject of own) if (!isOver) ended.push(await deployment.revoke(subject));
  };
  const revokers = [revoker(subjects.slice(0, 90)), revoker(subjects.slice(90, 180))];
  const done = (): readonly Done[] => ended.filter(({ code }) => code === 0);
  await until('some are revoked before', () => done().length >= 4, 60_000);
  await deployment.sentinels[0]?.client.call('sentinel', 'failover', name);
  await promoted(deployment.replicas);
  const before = done().length;
  await until('some are revoked after', () => done().length >= before + 6, 120_000);
  isOver = true;
  await Promise.all(revokers);
  for (const { subject, endedMs } of done()) await deployment.refusedAfterMs(proxies, subject, endedMs);
  const late = await deployment.startProxy();
  for (const { subject } of done()) {
    const statuses = await Promise.all([...proxies, late].map(async (proxy) => deployment.status(proxy, subject)));
    t.same([...new Set(statuses)], [401], `${subject} is refused by all, and by the one that came later`);
  }
  t.same(
    ended.filter(({ code }) => code !== 0 && code !== 3),
    [],
  );
  t.comment(`${String(done().length)} of ${String(ended.length)} were done`);
});

t.test(
  'what no replica has is not done, is lost with the primary, and is done when it is asked for again',
  async (t) => {
    const deployment = await deploy(t, 1);
    const proxy = await deployment.startProxy();
    // No replica gets anything more; Sentinel still takes them for fit.
    await deployment.primary.client.acl('SETUSER', 'default', '-psync', '-sync');
    await deployment.primary.client.call('CLIENT', 'KILL', 'TYPE', 'replica');
    const written = await deployment.revoke('caller-1');
    t.equal(written.code, 3);
    t.match(
      written.err,
      /only 0 of 1 replicas confirmed it in time: proxies refuse it now, and a fail-over may lose it/,
    );
    t.ok((await deployment.refusedAfterMs([proxy], 'caller-1', written.endedMs)) < boundMs);
    await deployment.primary.kill();
    await promoted(deployment.replicas);
    const late = await deployment.startProxy();
    t.equal(await deployment.status(late, 'caller-1'), 200, 'one that starts now does not know of it, as was said');
    t.equal(await deployment.status(proxy, 'caller-1'), 401, 'one that had read it holds it');
    await until(
      'it says that the store lost it',
      async () => (await proxy.metric('sallyport_revocations_lost')) === 1,
      60_000,
    );
    const again = await until(
      'a replica confirms',
      async () => {
        const done = await deployment.revoke('caller-1');
        if (done.code === 0) return done;
        await delay(100);
        return null;
      },
      120_000,
    );
    t.ok((await deployment.refusedAfterMs([proxy, late], 'caller-1', again.endedMs)) < boundMs);
  },
);
