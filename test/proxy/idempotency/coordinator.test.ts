import { PassThrough, type Readable } from 'node:stream';
import t, { type Test } from 'tap';
import { createMemoryStore } from '../../../src/adapters/memory/reservation-store.js';
import { createHeaderRules } from '../../../src/decision/http/header-rules.js';
import type { ReservedRequest } from '../../../src/proxy/idempotency/reserved-write.js';
import {
  createReservedWrites,
  maxBufferedBytes,
  type ReservedWrites,
} from '../../../src/proxy/idempotency/coordinator.js';
import type { ResponseSink, UpstreamRequest } from '../../../src/proxy/upstream/call.js';
import type { UnreservedWrite } from '../../../src/proxy/upstream/pool/reservation-queue.js';
import { manualTime, type ManualTime } from '../../adapters/manual-time.js';
import { collectingLog, freshScope } from '../../adapters/store-commands.js';
import { until } from '../../support/until.js';
import { createFaultyStore, down, type FaultyStore } from './faulty-store.js';
import { tick } from './run-bench.js';

interface Bench {
  readonly reserving: ReservedWrites;
  readonly store: FaultyStore;
  readonly time: ManualTime;
  readonly lines: readonly string[];
  readonly sent: UpstreamRequest[];
  readonly sinks: ResponseSink[];
}

interface Ordered {
  readonly order: ReservedRequest;
  /** What its caller and its receiver heard. */
  readonly events: string[];
}

function bench(t: Test): Bench {
  const time = manualTime();
  const memory = createMemoryStore(time.clock);
  t.teardown(memory.close);
  const store = createFaultyStore(memory);
  const log = collectingLog();
  const nothing = (): void => undefined;
  const metrics = {
    reservation: nothing,
    storeCall: nothing,
    unknownOutcome: nothing,
    replicaShortfall: nothing,
    shareExceeded: nothing,
    offeredAgain: nothing,
  };
  const parts = { store: store.store, metrics, share: null, replicas: 0, settleTimeoutMs: 500 };
  const reserving = createReservedWrites(parts, { clock: time.clock, timers: time.timers, log });
  return { reserving, store, time, lines: log.lines, sent: [], sinks: [] };
}

/** A write, by default of a caller and with a key of its own. */
function ordered(
  { time, sent, sinks }: Bench,
  body: Readable | null = null,
  principal = freshScope().principal,
): Ordered {
  const events: string[] = [];
  const say = (what: string) => () => void events.push(what);
  const order = {
    admission: {
      target: { raw: '/', path: '/', query: null },
      route: { responseTimeoutMs: 1_000, access: 'protected' },
      requestId: 'r',
      principal: null,
      headers: { passed: [], contentLength: null, chunked: false },
      forwarded: [],
      revoked: () => null,
    },
    preparation: {
      rules: {
        singleUse: false,
        operation: 'o',
        fields: [],
        receiver: 'plain',
        retentionMs: 60_000,
        maxStoredResponseBytes: 10,
        storeHeaders: new Set(),
        releaseOn: new Set(),
      },
      principal: { expiresAtS: time.clock.now() / 1000 + 600 },
      issuer: { clockSkewS: 0 },
      scope: { ...freshScope(), principal, token: null },
      recordId: 'p.o',
      sentKey: 'k',
    },
    method: 'POST',
    body,
    trace: null,
    activeConfig: {
      config: { upstream: { connectTimeoutMs: 100 } },
      assertion: null,
      headerRules: createHeaderRules({ identityNames: [], underscoreFields: 'drop', http10: 'refuse' }),
      upstream: {
        awaitTurn: ({ onTurn }: UnreservedWrite) => {
          onTurn(() => undefined);
          return () => undefined;
        },
        send: (request: UpstreamRequest, sink: ResponseSink) => {
          sent.push(request);
          sinks.push(sink);
          return { cancel: say('cancel'), resume: say('resume'), mayBeSent: () => true };
        },
      },
    },
    client: {
      isGone: () => false,
      upstreamAsked: () => undefined,
      upstreamResponded: () => undefined,
      onEnd: say('end'),
      onData: () => true,
      onHead: say('begin'),
      respond: say('give'),
      fail: (error: unknown) => void events.push(`fail ${String(error)}`),
      refuse: ({ reason }: { readonly reason: string }) => void events.push(`refuse ${reason}`),
    },
    onOver: say('over'),
  };
  return { order: order as unknown as ReservedRequest, events };
}

t.test('who waited for the end until its time was up hears no more of it', async (t) => {
  const one = bench(t);
  const { after } = one.time.timers;
  let calledOff = 0;
  const counting: typeof after = (delayMs, task) => {
    const callOff = after(delayMs, task);
    return () => {
      if (delayMs === 300) calledOff += 1;
      callOff();
    };
  };
  Object.assign(one.time.timers, { after: counting });
  const write = ordered(one);
  one.reserving.start(write.order);
  await until('it to be sent', () => one.sent.length === 1);
  const waited = one.reserving.idle(300);
  one.time.advance(300);
  await waited;
  const atItsEnd = calledOff;
  one.sinks[0]?.onHead(200, []);
  one.sinks[0]?.onEnd(null);
  await until('the write to be over', () => one.reserving.active() === 0);
  t.equal(calledOff, atItsEnd);
});

t.test('a write is active until it is over; whoever waits for the end is told then', async (t) => {
  const one = bench(t);
  let ends = 0;
  await one.reserving.idle(60_000);
  const [first, second] = [ordered(one), ordered(one)];
  one.reserving.start(first.order);
  one.reserving.start(second.order);
  for (let i = 0; i < 2; i += 1) void one.reserving.idle(60_000).then(() => (ends += 1));
  await until('both to be sent', () => one.sent.length === 2);
  t.equal(one.sent[0]?.body, null, 'it has no body');
  t.equal(one.reserving.active(), 2);
  one.sinks[0]?.onHead(200, []);
  one.sinks[0]?.onEnd(null);
  await until('the first to be over', () => first.events.length === 2);
  t.same(first.events, ['give', 'over']);
  t.equal(one.reserving.active(), 1);
  await tick();
  t.equal(ends, 0);
  one.sinks[1]?.onHead(200, []);
  one.sinks[1]?.onEnd(null);
  await until('everybody to be told', () => ends === 2);
  t.equal(one.reserving.active(), 0);
});

t.test('the hundred and first write of a caller is refused, and over at once; places come back', async (t) => {
  const one = bench(t);
  const writes = Array.from({ length: 101 }, () => ordered(one, null, 'a'));
  const started = writes.map(({ order }) => one.reserving.start(order));
  t.same(
    writes.map(({ events }) => events.join()).filter((events) => events !== ''),
    ['refuse too_many_pending,over'],
  );
  t.same(writes[100]?.events, ['refuse too_many_pending', 'over']);
  t.equal(one.reserving.active(), 100);
  started[100]?.resume();
  started[100]?.cancel();
  t.equal(writes[100]?.events.length, 2, 'nothing of it is left');
  await until('the others to be sent', () => one.sent.length === 100);
  one.sinks[0]?.onHead(200, []);
  one.sinks[0]?.onEnd(null);
  await until('one to be over', () => one.reserving.active() === 99);
  const another = ordered(one, null, 'a');
  one.reserving.start(another.order);
  t.same(another.events, []);
  t.equal(one.reserving.active(), 100);
});

t.test('a body is read whole before anything is reserved; who leaves before leaves nothing behind', async (t) => {
  const one = bench(t);
  const body = new PassThrough();
  const write = ordered(one, body);
  const onward = one.reserving.start(write.order);
  body.write('ab');
  await until('some of it to be read', () => body.readableLength === 0);
  onward.resume();
  t.same(one.store.calls, []);
  body.end('cd');
  await until('it to be sent', () => one.sent.length === 1);
  t.same(one.sent[0]?.body, Buffer.from('abcd'));
  onward.cancel();
  t.same(write.events, [], 'what was sent goes on');
  t.equal(one.reserving.active(), 1);

  const gone = new PassThrough();
  const left = ordered(one, gone);
  const leaving = one.reserving.start(left.order);
  leaving.cancel();
  leaving.cancel();
  t.same(left.events, ['over']);
  t.equal(one.reserving.active(), 1);
  gone.end('late');
  await until('its end', () => gone.readableEnded);
  t.equal(one.store.calls.length, 1, 'nothing is reserved any more');
});

t.test('a streamed answer waits for its caller, and goes on with it', async (t) => {
  const one = bench(t);
  const write = ordered(one);
  const onward = one.reserving.start(write.order);
  await until('it to be sent', () => one.sent.length === 1);
  one.sinks[0]?.onHead(200, ['Content-Length', '11']);
  await until('the head', () => write.events.includes('begin'));
  write.events.length = 0;
  onward.resume();
  t.same(write.events, ['resume']);
  onward.cancel();
  t.same(write.events, ['resume', 'cancel', 'over'], 'its status is kept');
});

t.test(
  'bodies that are held take 256 MiB together; beyond that a write is refused, and what it held given back',
  (t) => {
    t.equal(maxBufferedBytes, 268_435_456);
    const one = bench(t);
    // Only its length counts here.
    const chunk = (length: number): object => ({ length, buffer: { byteLength: length } });
    const body = new PassThrough();
    const write = ordered(one, body);
    one.reserving.start(write.order);
    body.emit('data', chunk(maxBufferedBytes));
    t.same(write.events, []);
    const other = new PassThrough();
    const refused = ordered(one, other);
    one.reserving.start(refused.order);
    other.emit('data', chunk(1));
    t.same(refused.events, ['refuse overloaded', 'over']);
    t.ok(other.destroyed);
    body.emit('data', chunk(1));
    t.same(write.events, ['refuse overloaded', 'over']);
    const next = new PassThrough();
    const fits = ordered(one, next);
    one.reserving.start(fits.order);
    next.emit('data', chunk(maxBufferedBytes));
    t.same(fits.events, []);
    t.equal(one.reserving.active(), 1);
    t.end();
  },
);

t.test('when time is up what is not sent never is, what is sent is in doubt, and nothing new begins', async (t) => {
  const one = bench(t);
  const [sent, reading] = [ordered(one), ordered(one, new PassThrough())];
  one.reserving.start(sent.order);
  one.reserving.start(reading.order);
  await until('the first to be sent', () => one.sent.length === 1);
  one.reserving.abortAll();
  t.same(reading.events, ['refuse shutting_down', 'over']);
  await until('the other to be over', () => one.reserving.active() === 0);
  t.same(sent.events, ['cancel', 'refuse upstream_timeout', 'over']);
  t.equal(one.store.callsOf('mark'), 1);
  const late = ordered(one);
  one.reserving.start(late.order);
  t.same(late.events, ['refuse shutting_down', 'over']);
  t.equal(one.store.callsOf('reserve'), 1);
  t.equal(one.reserving.floorS(), null);
});

t.test('what is left is settled once more at the end', async (t) => {
  const one = bench(t);
  one.store.behave('complete', down);
  const write = ordered(one);
  one.reserving.start(write.order);
  await until('it to be sent', () => one.sent.length === 1);
  one.sinks[0]?.onHead(200, []);
  one.sinks[0]?.onEnd(null);
  await until('it to be over', () => write.events.includes('over'));
  t.equal(one.time.due().length, 1, 'its settlement waits');
  one.store.behave('complete', null);
  await one.reserving.close();
  t.equal(one.store.callsOf('complete'), 2);
  t.same(one.lines, []);
  t.same(one.time.due(), []);
});
