/** Reserved gRPC calls, as far as they do not depend on the version of HTTP. */
import t from 'tap';
import { frameMessage } from '../../../src/decision/grpc/messages.js';
import { answering, startReservingProxy } from './reserving-proxy.js';

const approved = { subjects: ['checkout'], permissions: ['orders:write'] };
const config = {
  routes: [
    { name: 'create', grpc: 'shop.v1.Orders/Create', ...approved, idempotency: 'required' },
    { name: 'once', grpc: 'shop.v1.Orders/Once', ...approved, idempotency: 'none', single_use: true },
  ],
};
const headers = { 'Content-Type': 'application/grpc' };
const one = Buffer.from(frameMessage(Buffer.from('order')));

t.test('a reserved call has exactly one message: nothing else is reserved or sent', async (t) => {
  const proxy = await startReservingProxy(t, { config });
  const bodies = { two: Buffer.concat([one, one]), cut: one.subarray(0, -1), none: '' };
  for (const [name, body] of Object.entries(bodies)) {
    const { status, text } = await proxy.write({ path: '/shop.v1.Orders/Create', key: name, body, headers });
    t.equal(status, 400, name);
    t.match(JSON.parse(text), { title: 'A reserved call has to have exactly one message' }, name);
  }
  t.same(proxy.results, [], 'nothing was reserved');
  t.same(proxy.executions(), [], 'and nothing sent');
});

t.test('where the token alone is reserved, a call may have several messages', async (t) => {
  const proxy = await startReservingProxy(t, { config });
  proxy.receiver.behave(answering(200, { 'Content-Type': 'application/grpc', 'grpc-status': '0' }, ''));
  const claims = { jti: 'once' };
  const body = Buffer.concat([one, one]);
  const { status } = await proxy.write({ path: '/shop.v1.Orders/Once', key: null, body, headers, claims });
  t.equal(status, 200);
  t.equal(proxy.executions().length, 1);
});

t.test('a call that ends without a status is in doubt', async (t) => {
  const proxy = await startReservingProxy(t, { config });
  proxy.receiver.behave(answering(200, { 'Content-Type': 'application/grpc' }, 'no status behind it'));
  const write = { path: '/shop.v1.Orders/Create', key: 'k', body: one, headers };
  await proxy.write(write);
  t.equal(proxy.unknowns.length, 1);
  const retry = await proxy.write(write);
  t.match(JSON.parse(retry.text), { type: 'urn:sallyport:idempotency-outcome-unknown' });
  t.equal(proxy.executions().length, 1, 'it does not run again');
});
