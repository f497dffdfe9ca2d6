import t from 'tap';
import { createMemoryStore } from '../../../src/adapters/memory/reservation-store.js';
import { createReservedWrites } from '../../../src/proxy/idempotency/coordinator.js';
import type { ReservedRequest } from '../../../src/proxy/idempotency/reserved-write.js';
import type { ResponseSink } from '../../../src/proxy/upstream/call.js';
import type { UnreservedWrite } from '../../../src/proxy/upstream/pool/reservation-queue.js';
import { until } from '../../support/until.js';
import { collectingLog, freshScope } from '../../adapters/store-commands.js';

t.test('a bug while a response is kept ends the request: nothing of it is left behind', async (t) => {
  const clock = { now: Date.now, monotonic: () => performance.now() };
  const store = createMemoryStore(clock);
  t.teardown(store.close);
  const nothing = (): void => undefined;
  const metrics = {
    reservation: nothing,
    storeCall: nothing,
    unknownOutcome: nothing,
    replicaShortfall: nothing,
    shareExceeded: nothing,
    offeredAgain: nothing,
  };
  const timers = { after: () => nothing };
  const reserving = createReservedWrites(
    { store, metrics, share: null, replicas: 0, settleTimeoutMs: 1_000 },
    { clock, timers, log: collectingLog() },
  );
  const sinks: ResponseSink[] = [];
  const failures: unknown[] = [];
  let over = 0;
  const order = {
    admission: {
      target: { raw: '/', path: '/', query: null },
      headers: { passed: [], contentLength: null, chunked: false },
      forwarded: [],
      route: { responseTimeoutMs: 1_000 },
      requestId: 'r',
      principal: null,
      revoked: () => null,
    },
    preparation: {
      rules: {
        singleUse: false,
        operation: 'o',
        fields: [],
        receiver: 'plain',
        retentionMs: 60_000,
        maxStoredResponseBytes: 1_000,
        storeHeaders: new Set(),
        releaseOn: new Set(),
      },
      principal: { expiresAtS: clock.now() / 1000 + 60 },
      issuer: { clockSkewS: 0 },
      scope: { ...freshScope(), token: null },
      recordId: 'p.o',
      sentKey: 'k',
    },
    method: 'POST',
    body: null,
    trace: null,
    activeConfig: {
      config: { upstream: { connectTimeoutMs: 100 } },
      assertion: null,
      get headerRules(): never {
        throw new Error('a bug');
      },
      upstream: {
        awaitTurn: ({ onTurn }: UnreservedWrite) => {
          onTurn(nothing);
          return nothing;
        },
        send: (_request: unknown, sink: ResponseSink) => {
          sinks.push(sink);
          return { cancel: nothing, resume: nothing, mayBeSent: () => true };
        },
      },
    },
    client: {
      isGone: () => false,
      upstreamAsked: nothing,
      upstreamResponded: nothing,
      fail: (error: unknown) => failures.push(error),
    },
    onOver: () => (over += 1),
  };
  reserving.start(order as unknown as ReservedRequest);
  await until('it is dispatched', () => sinks.length === 1);
  t.equal(reserving.active(), 1);
  sinks[0]?.onHead(200, []);
  sinks[0]?.onEnd(null);
  await until('it is over', () => over === 1);
  t.equal(reserving.active(), 0);
  t.match(failures, [/a bug/]);
});
