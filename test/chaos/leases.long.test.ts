/**
 * docs/storage.md "States of a write" and docs/idempotency.md "When something fails": what waits for a lease to end
 * takes seconds.
 */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import t from 'tap';
import { projectDir } from '../support/project-dir.js';
import { until } from '../support/until.js';
import { beginWrite, kill, problemOrStatus, shareRedis, write } from './shared-redis.js';

const run = promisify(execFile);

/** The lease is 2 · 100 ms + 300 ms + 200 ms + 5 s. */
const short = {
  config: { upstream: { connect_timeout: '100ms', response_timeout: '300ms' } },
  store: { reserve_timeout: '10s', settle_timeout: '200ms' },
};

t.setTimeout(120_000);

t.test('a proxy killed after RESERVE: in progress, then in doubt, never run; an operator frees the key', async (t) => {
  const shared = await shareRedis(t, short);
  const relay = await shared.startRelay();
  const [victim, survivor] = [await shared.startProxy(relay), await shared.startProxy()];
  let reached = 0;
  shared.receiver.behave((req) => {
    req.resume().on('end', () => (reached += 1));
  });
  await beginWrite(t, victim, { key: 'level-2', path: '/deduplicates' });
  await until('the receiver to have one', () => reached === 1);
  relay.holdAnswers();
  await beginWrite(t, victim, { key: 'k' });
  await until('the other reservation', async () => (await shared.states()).length === 2);
  await kill(victim);
  shared.receiver.behave(null);
  t.equal(problemOrStatus(await write(survivor, { key: 'k' })), 'idempotency-in-progress');
  await shared.leasesOver();
  const doubtful = await write(survivor, { key: 'k' });
  t.equal(problemOrStatus(doubtful), 'idempotency-outcome-unknown');
  t.equal(doubtful.field('Retry-After'), null);
  t.equal(reached, 1);
  t.equal(
    (await write(survivor, { key: 'level-2', path: '/deduplicates' })).status,
    200,
    'level 2: run, for the receiver deduplicates',
  );

  const { record } = JSON.parse(doubtful.text) as { record: string };
  const args = [join(projectDir, 'dist/main.js'), 'record', '--config', survivor.configFile];
  t.match((await run(process.execPath, [...args, 'show', record])).stdout, /unknown|doubt/);
  await run(process.execPath, [
    ...args,
    'resolve',
    record,
    '--outcome',
    'not-applied',
    '--reason',
    'the receiver has no such order',
  ]);
  t.equal((await write(survivor, { key: 'k' })).status, 200);
  t.equal(shared.executions().filter(({ target }) => target === '/orders').length, 1);
});

t.test('a proxy that was stopped past its lease dispatches nothing when it goes on', async (t) => {
  const shared = await shareRedis(t, short);
  const relay = await shared.startRelay();
  const [sleeper, other] = [await shared.startProxy(relay), await shared.startProxy()];
  await write(other, { key: 'so-that-redis-knows-the-scripts' });
  shared.receiver.requests.length = 0;
  relay.holdAnswers();
  const connection = await beginWrite(t, sleeper, { key: 'k' });
  await until('the reservation', async () => (await shared.states()).includes('pending'));
  sleeper.process.signal('SIGSTOP');
  t.teardown(() => {
    sleeper.process.signal('SIGCONT');
  });
  relay.resume();
  await shared.leasesOver();
  t.equal(problemOrStatus(await write(other, { key: 'k' })), 'idempotency-outcome-unknown');
  sleeper.process.signal('SIGCONT');
  t.equal((await connection.readResponse())?.status, 503);
  t.equal(shared.receiver.requests.length, 0);
});

t.test('a proxy that was stopped while the upstream worked completes its write, however late', async (t) => {
  const shared = await shareRedis(t, short);
  const [sleeper, other] = [await shared.startProxy(), await shared.startProxy()];
  let reached = 0;
  shared.receiver.behave((req, res) => {
    req.resume().on('end', () => {
      reached += 1;
      sleeper.process.signal('SIGSTOP');
      res.end('done');
    });
  });
  const connection = await beginWrite(t, sleeper, { key: 'k' });
  await until('the receiver to have it', () => reached === 1);
  t.teardown(() => {
    sleeper.process.signal('SIGCONT');
  });
  await shared.leasesOver();
  t.equal(problemOrStatus(await write(other, { key: 'k' })), 'idempotency-outcome-unknown');
  sleeper.process.signal('SIGCONT');
  const answer = await connection.readResponse();
  // Whether its answer or the end of its time is noticed first is chance; either way nothing runs twice.
  t.match(answer?.status, /^(200|504)$/);
  if (answer?.status === 200) await until('the result', async () => (await write(other, { key: 'k' })).text === 'done');
  else t.equal(problemOrStatus(await write(other, { key: 'k' })), 'idempotency-outcome-unknown');
  t.equal(reached, 1);
});

t.test('Redis frozen at RESERVE: 503 within the deadline, and the key is free when it goes on', async (t) => {
  const shared = await shareRedis(t, { ...short, store: { reserve_timeout: '200ms', settle_timeout: '200ms' } });
  const proxy = await shared.startProxy();
  shared.redis.freeze();
  t.equal(problemOrStatus(await write(proxy, { key: 'k' })), 'store-unavailable');
  shared.redis.thaw();
  await until('a retry to run', async () => (await write(proxy, { key: 'k' })).status === 200);
  t.equal(shared.executions().length, 1);
});
