/** Unary calls that run once: `idempotency-key` as metadata. */
import { status } from '@grpc/grpc-js';
import t from 'tap';
import { startGrpcProxy, who } from './deployment.js';
import { allBytes, createCaller, prefix, startNodeService, type Outcome } from './service.js';

t.setTimeout(120_000);

const reserved = {
  name: 'orders',
  grpc: 'shop.v1.Orders',
  ...who,
  idempotency: { mode: 'required', store_headers: ['x-trailing', 'x-trailing-bin'] },
};

t.test('a call is run once, and its response is shown again with its trailers', async (t) => {
  const service = await startNodeService(t);
  const proxy = await startGrpcProxy(t, service.port, { store: { memory: {} }, routes: [reserved] });
  const caller = createCaller(t, proxy.port, proxy.authorization({ permissions: ['orders:write'] }).Authorization);
  const write = (key: string, text = 'order', method = 'Unary'): Promise<Outcome> =>
    caller.unary(`${prefix}${method}`, Buffer.from(text), {
      metadata: { 'idempotency-key': key, 'x-text': 'a text', 'x-data-bin': allBytes },
    });
  const first = await write('one');
  const again = await write('one');
  t.equal(service.runs(), 1);
  for (const { status: end, messages } of [first, again]) {
    t.same([end.code, messages.map(String)], [status.OK, ['order']]);
    t.same(end.metadata.get('x-trailing'), ['a text']);
    t.same(end.metadata.get('x-trailing-bin'), [allBytes]);
  }
  t.same(first.initial?.get('idempotent-replayed'), []);
  t.same(again.initial?.get('idempotent-replayed'), ['true']);

  t.equal((await write('one', 'another')).status.code, status.FAILED_PRECONDITION);
  t.equal((await caller.unary(`${prefix}Unary`)).status.code, status.INVALID_ARGUMENT, 'without a key');
  t.equal(service.runs(), 1);

  const failed = await write('two', 'details', 'Fail');
  const failedAgain = await write('two', 'details', 'Fail');
  for (const { status: end } of [failed, failedAgain]) {
    t.equal(end.code, status.FAILED_PRECONDITION);
    t.equal(end.details, 'half ä and 100%');
    t.same(end.metadata.get('grpc-status-details-bin'), [Buffer.from('details')]);
  }

  const waits = write('three', '', 'Wait');
  while (service.waiting() === 0) await new Promise((resolve) => setTimeout(resolve, 10));
  t.equal((await write('three', '', 'Wait')).status.code, status.ABORTED, 'while the first is under way');
  service.release();
  t.equal((await waits).status.code, status.OK);
});
