import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import t from 'tap';
import { QueueBudget } from '../../../src/proxy/inbound/queue-budget.js';
import {
  ClientConnection,
  type ClientConnectionOptions,
  type PipelinedRequest,
} from '../../../src/proxy/inbound/client-connection.js';
import { listen } from '../../support/listening.js';
import type { Scope } from '../../support/scope.js';
import { until } from '../../support/until.js';

const options: ClientConnectionOptions = {
  peer: { remoteAddress: '127.0.0.1', encrypted: false, trusted: false },
  maxHeadBytes: 16 * 1024,
  queueBudget: new QueueBudget({ requests: 100, bytes: 100_000 }),
  clock: { monotonic: () => 0 },
  onQueueOverflow: () => undefined,
};

async function pair(t: Scope): Promise<{ readonly ours: Socket; readonly callers: Socket }> {
  const server = createServer({ allowHalfOpen: true });
  const { port } = await listen(t, server);
  const callers = connect(port, '127.0.0.1');
  t.teardown(() => callers.destroy());
  const [ours] = (await once(server, 'connection')) as [Socket];
  return { ours, callers };
}

function turn(started: string[], name: string, isReceived = true): PipelinedRequest {
  return {
    start: () => started.push(name),
    isReceived: () => isReceived,
    failBody: (reason) => started.push(`${name} broken by ${reason.reason}`),
    shortenBodyTimeouts: () => undefined,
    cutOff: () => started.push(`${name} cut off`),
    onDrain: () => started.push(`${name} drained`),
  };
}

t.test('a caller that takes a large response all the time is not given up', async (t) => {
  const { ours, callers } = await pair(t);
  const connection = new ClientConnection(ours, options);
  let taken = 0;
  const size = 32 * 1024 * 1024;
  callers.on('data', (piece) => {
    taken += piece.length;
    if (taken === size) return;
    callers.pause();
    // Of 64 KiB each: it takes all within 5 s or more.
    setTimeout(() => callers.resume(), 10);
  });
  ours.write(Buffer.alloc(size));
  connection.startWriteTimeout(3_000, () => t.fail('it was given up'));
  await until('all is taken', () => taken === size, 25_000);
});

t.test('a caller that leaves what was written in its connection is given up, one that takes it is not', async (t) => {
  const { ours, callers } = await pair(t);
  const connection = new ClientConnection(ours, options);
  callers.pause();
  ours.write(Buffer.alloc(32 * 1024 * 1024));
  let isStalled = false;
  connection.startWriteTimeout(100, () => {
    isStalled = true;
  });
  await until('it is given up', () => isStalled);

  const other = await pair(t);
  const taken = new ClientConnection(other.ours, options);
  other.ours.write('short');
  await until('it is taken', () => other.ours.writableLength === 0);
  taken.startWriteTimeout(1, () => t.fail('nothing is left to take'));
  await new Promise((resolve) => setTimeout(resolve, 20));
});

t.test('turns come one after another, in order, as those before them finish', async (t) => {
  const { ours } = await pair(t);
  const connection = new ClientConnection(ours, options);
  const started: string[] = [];
  const [first, second, third] = [turn(started, 'first'), turn(started, 'second'), turn(started, 'third')];
  for (const next of [first, second, third]) connection.enqueue(next);
  t.same(started, ['first']);
  connection.finish(second, 0);
  t.same(started, ['first'], 'only the one that is being served can finish');
  connection.finish(first, 0);
  t.same(started, ['first', 'second']);
  connection.stopServing();
  connection.finish(second, 0);
  t.same(started, ['first', 'second'], 'nothing follows the last answer');
  t.notOk(connection.accepts());
});

t.test('what the parser chokes on is the body that it was reading, or stands for a request of its own', async (t) => {
  const reason = { reason: 'framing' } as const;
  const started: string[] = [];
  const inBody = new ClientConnection((await pair(t)).ours, options);
  inBody.enqueue(turn(started, 'upload', false));
  inBody.stopReading(reason, turn(started, 'refusal'));
  t.same(started.splice(0), ['upload', 'upload broken by framing']);

  const behind = new ClientConnection((await pair(t)).ours, options);
  const whole = turn(started, 'whole');
  behind.enqueue(whole);
  behind.enqueue(turn(started, 'waiting upload', false));
  behind.stopReading(reason, turn(started, 'refusal'));
  t.same(started.splice(0), ['whole', 'waiting upload broken by framing']);

  const between = new ClientConnection((await pair(t)).ours, options);
  between.enqueue(whole);
  between.stopReading(reason, turn(started, 'refusal'));
  between.stopReading(reason, turn(started, 'another refusal'));
  t.same(started.splice(0), ['whole']);
  between.finish(whole, 0);
  t.same(started.splice(0), ['refusal']);
});
