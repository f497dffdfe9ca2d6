/** `workers: 2` on one Redis: what a worker leaves that is killed, and what is revoked. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import t from 'tap';
import { problemOrStatus, shareRedis, write, writeTo } from '../../chaos/shared-redis.js';
import { childrenOf } from '../../support/linux.js';
import { projectDir } from '../../support/project-dir.js';
import { connectRaw, requestBytes } from '../../support/raw-client.js';
import { until } from '../../support/until.js';

const run = promisify(execFile);

/** A lease of 2 · 1 s + 3 s + 200 ms + 5 s. */
const shared = await shareRedis(t, {
  config: { workers: 2, upstream: { connect_timeout: '1s', response_timeout: '3s' } },
  store: { settle_timeout: '200ms' },
});
const proxy = await shared.startProxy();

function workers(): readonly number[] {
  return childrenOf(proxy.process.pid);
}

t.test('a key is reserved once, whichever worker is asked', async (t) => {
  const answers = await Promise.all(Array.from({ length: 6 }, async () => write(proxy, { key: 'once' })));
  t.equal(shared.executions().length, 1);
  t.ok(answers.some(({ status }) => status === 200));
  for (const answer of answers) {
    t.ok(answer.status === 200 || problemOrStatus(answer) === 'idempotency-in-progress', String(answer.status));
  }
});

t.test('of writes under way as a worker is killed each is answered, or in doubt and never run again', async (t) => {
  shared.receiver.requests.length = 0;
  const held: (() => void)[] = [];
  shared.receiver.behave((req, res) => {
    req.resume().on('end', () => held.push(() => res.end('done')));
  });
  const keys = ['a', 'b', 'c', 'd'];
  const open = await Promise.all(
    keys.map(async (key) => {
      const connection = await connectRaw(proxy.port);
      t.teardown(connection.end);
      connection.write(requestBytes(proxy.port, writeTo(proxy, { key })));
      return { key, connection };
    }),
  );
  await until('all to be under way', () => held.length === 4);
  const [victim = 0] = workers();
  process.kill(victim, 'SIGKILL');
  await until('its connections to end', () => open.some(({ connection }) => connection.isClosed()));
  for (const release of held) release();
  const first = await Promise.all(
    open.map(async ({ key, connection }) => ({ key, status: (await connection.readResponse())?.status ?? null })),
  );
  const answered = first.filter(({ status }) => status === 200);
  const lost = first.filter(({ status }) => status === null);
  t.same([answered.length, lost.length], [2, 2], 'the other worker answers its own');
  shared.receiver.behave(null);
  await shared.leasesOver();
  for (const { key } of lost) t.equal(problemOrStatus(await write(proxy, { key })), 'idempotency-outcome-unknown', key);
  for (const { key } of answered) t.equal((await write(proxy, { key })).field('Idempotent-Replayed'), 'true', key);
  t.equal(shared.executions().length, 4, 'each was sent once');
});

t.test('what is revoked is refused by both', async (t) => {
  const connections = await Promise.all(Array.from({ length: 4 }, async () => connectRaw(proxy.port)));
  t.teardown(() => {
    for (const { end } of connections) end();
  });
  const ask = async (): Promise<readonly (number | undefined)[]> =>
    Promise.all(
      connections.map(async (connection) => {
        const headers = { ...proxy.authorization(), Connection: 'keep-alive' };
        connection.write(requestBytes(proxy.port, { method: 'POST', path: '/plain', headers, body: 'body' }));
        return (await connection.readResponse())?.status;
      }),
    );
  t.same(await ask(), [200, 200, 200, 200]);
  await run(process.execPath, [
    join(projectDir, 'dist/main.js'),
    'revoke',
    '--config',
    proxy.configFile,
    '--issuer',
    'core',
    '--subject',
    'checkout',
    '--for',
    '1h',
    '--reason',
    'a test',
  ]);
  await until('both to refuse it', async () => (await ask()).every((status) => status === 401), 5_000);
});
