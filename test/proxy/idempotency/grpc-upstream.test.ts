/** What a real gRPC server answers to a reserved call, and what is kept of it. */
import { Metadata, status, type handleUnaryCall } from '@grpc/grpc-js';
import t from 'tap';
import type { StoredResponse } from '../../../src/decision/idempotency/record.js';
import { frameMessage } from '../../../src/decision/grpc/messages.js';
import { startGrpcServer } from '../../support/grpc-server.js';
import type { Scope } from '../../support/scope.js';
import { startReservingProxy, type ReservingProxy } from './reserving-proxy.js';

const path = '/shop.v1.Orders/Create';
const route = { name: 'create', grpc: 'shop.v1.Orders', subjects: ['checkout'], permissions: ['orders:write'] };

async function start(
  t: Scope,
  handle: handleUnaryCall<Buffer, Buffer>,
  idempotency: object = { mode: 'required', store_headers: ['x-total'] },
): Promise<{ readonly proxy: ReservingProxy; readonly kill: () => void; readonly kept: StoredResponse[] }> {
  const server = await startGrpcServer(t, { [path]: handle });
  const upstreamUrl = `http://127.0.0.1:${String(server.port)}`;
  const kept: StoredResponse[] = [];
  const proxy = await startReservingProxy(t, {
    watch: (store) => ({
      ...store,
      complete: (scope, command) => {
        kept.push(command.response);
        return store.complete(scope, command);
      },
    }),
    upstreamUrl,
    config: { upstream: { url: upstreamUrl, http2: true }, routes: [{ ...route, idempotency }] },
  });
  return { proxy, kill: server.kill, kept };
}

function call(proxy: ReservingProxy, key: string): ReturnType<ReservingProxy['write']> {
  const body = Buffer.from(frameMessage(Buffer.from('order')));
  return proxy.write({ path, key, body, headers: { 'Content-Type': 'application/grpc' } });
}

t.test('a response is kept with how it ended, and shown again without a second run', async (t) => {
  let runs = 0;
  const { proxy, kept } = await start(t, (request, reply) => {
    runs += 1;
    t.equal(String(request.request), 'order');
    const trailer = new Metadata();
    trailer.set('x-total', '7');
    trailer.set('x-other', '8');
    reply(null, Buffer.from('made'), trailer);
  });
  const first = await call(proxy, 'k');
  t.match(first, { status: 200, text: String(Buffer.from(frameMessage(Buffer.from('made')))) });
  const again = await call(proxy, 'k');
  t.match(again, { status: 200, text: first.text });
  t.equal(again.field('idempotent-replayed'), 'true');
  t.equal(runs, 1);
  t.same(proxy.results, ['acquired', 'completed', 'replayed']);
  const trailers = kept[0]?.trailers ?? [];
  t.same(Object.fromEntries(trailers.flatMap((name, at) => (at % 2 === 0 ? [[name, trailers[at + 1]]] : []))), {
    'grpc-status': '0',
    'grpc-message': 'OK',
    'x-total': '7',
  });
});

const codes: readonly (readonly [string, status, readonly string[]])[] = [
  ['UNAUTHENTICATED', status.UNAUTHENTICATED, ['acquired', 'released']],
  ['PERMISSION_DENIED', status.PERMISSION_DENIED, ['acquired', 'released']],
  ['RESOURCE_EXHAUSTED, which may come after it acted,', status.RESOURCE_EXHAUSTED, ['acquired', 'completed']],
  ['ABORTED', status.ABORTED, ['acquired', 'completed']],
  ['UNAVAILABLE', status.UNAVAILABLE, ['acquired', 'completed']],
];

for (const [name, code, expected] of codes) {
  t.test(`a call that ends with ${name} is ${expected[1] ?? ''}`, async (t) => {
    const { proxy } = await start(t, (_request, reply) => reply({ code, details: 'no' }));
    await call(proxy, 'k');
    t.same(proxy.results, expected);
  });
}

t.test('what release_on names by its status in HTTP frees the key', async (t) => {
  const { proxy } = await start(t, (_request, reply) => reply({ code: status.ABORTED, details: 'no' }), {
    mode: 'required',
    release_on: [409],
  });
  await call(proxy, 'k');
  t.same(proxy.results, ['acquired', 'released']);
});

t.test('a server that ends in the middle of a call leaves it in doubt', async (t) => {
  let kill = (): void => undefined;
  const started = await start(t, (request) => {
    request.sendMetadata(new Metadata());
    setTimeout(() => kill(), 50);
  });
  ({ kill } = started);
  const { status: answered } = await call(started.proxy, 'k');
  t.equal(answered, 502);
  t.equal(started.proxy.unknowns.length, 1, 'its head alone says nothing of how it ended');
});
