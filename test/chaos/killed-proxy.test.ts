/**
 * docs/idempotency.md "When something fails": a proxy killed at each point of a reserved write, and what another proxy
 * then makes of a retry.
 */
import type { ServerResponse } from 'node:http';
import t from 'tap';
import { connectRaw, requestBytes } from '../support/raw-client.js';
import { until } from '../support/until.js';
import { beginWrite, kill, problemOrStatus, shareRedis, write, writeTo } from './shared-redis.js';

const shared = await shareRedis(t);
const relay = await shared.startRelay();
const survivor = await shared.startProxy();
// Redis knows the scripts from then on.
await write(survivor);
const answers: ServerResponse[] = [];

/** The receiver answers when it is told to. */
function holdReceiver(): void {
  answers.length = 0;
  shared.receiver.behave((req, res) => {
    req.resume().on('end', () => answers.push(res));
  });
}

t.beforeEach(async () => {
  relay.resume();
  shared.receiver.behave(null);
  shared.receiver.requests.length = 0;
  // The records alone: a store that is emptied is noticed, and gets back what was settled last.
  await shared.redis.client.del('none', ...(await shared.redis.client.keys('sallyport:*:i:*')));
});

t.test('killed within the body: nothing is written, a retry runs', async (t) => {
  const victim = await shared.startProxy(relay);
  const connection = await connectRaw(victim.port);
  t.teardown(connection.end);
  connection.write(requestBytes(victim.port, writeTo(victim, { key: 'k' })).subarray(0, -2));
  await until('the request to be under way', async () => (await victim.metric('sallyport_requests_in_flight')) === 1);
  await kill(victim);
  t.same(await shared.states(), []);
  t.equal((await write(survivor, { key: 'k' })).status, 200);
  t.equal(shared.executions().length, 1);
});

t.test(
  'killed after RESERVE, before the upstream is asked: in progress until the lease ends, never sent',
  async (t) => {
    const victim = await shared.startProxy(relay);
    relay.holdAnswers();
    await beginWrite(t, victim, { key: 'k' });
    await until('the reservation', async () => (await shared.states()).includes('pending'));
    await kill(victim);
    t.equal(problemOrStatus(await write(survivor, { key: 'k' })), 'idempotency-in-progress');
    t.equal(problemOrStatus(await write(survivor, { key: 'k', body: 'other' })), 'idempotency-key-reused');
    t.equal(shared.executions().length, 0);
  },
);

t.test('killed while the upstream works, and while its response is written down: in progress, sent once', async (t) => {
  const victim = await shared.startProxy(relay);
  holdReceiver();
  await beginWrite(t, victim, { key: 'working' });
  await beginWrite(t, victim, { key: 'writing' });
  await until('the receiver to have both', () => answers.length === 2);
  relay.stall();
  const writing = shared.executions().findIndex((received) => received.field('Idempotency-Key')[0] === 'writing');
  answers[writing]?.end('done');
  // What was held on its way to Redis is lost with the process: the relay passes nothing on.
  await kill(victim);
  relay.cut();
  for (const key of ['working', 'writing']) {
    t.equal(problemOrStatus(await write(survivor, { key })), 'idempotency-in-progress');
  }
  t.equal(shared.executions().length, 2);
});

t.test('killed after the result was written, before the caller has it: a retry gets it', async (t) => {
  const victim = await shared.startProxy(relay);
  holdReceiver();
  const connection = await beginWrite(t, victim, { key: 'k' });
  await until('the receiver to have it', () => answers.length === 1);
  relay.holdAnswers();
  answers[0]?.end('done');
  await until('the result', async () => (await shared.states()).includes('completed'));
  await kill(victim);
  await connection.closed;
  t.equal(connection.pending().length, 0);
  const retry = await write(survivor, { key: 'k' });
  t.match({ text: retry.text, replayed: retry.field('Idempotent-Replayed') }, { text: 'done', replayed: 'true' });
  t.equal(shared.executions().length, 1);
});

t.test('the result of one proxy is replayed by another, byte for byte', async (t) => {
  const other = await shared.startProxy(relay);
  const body = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte));
  shared.receiver.behave((req, res) => {
    req
      .resume()
      .on('end', () =>
        res.writeHead(201, { 'Content-Type': 'application/x-any', Location: '/orders/\u00fc' }).end(body),
      );
  });
  t.equal((await write(survivor, { key: 'k' })).status, 201);
  const replay = await write(other, { key: 'k' });
  t.equal(replay.status, 201);
  t.ok(replay.body.equals(body));
  t.equal(replay.field('Location'), '/orders/\u00fc');
  t.equal(shared.executions().length, 1);
});
