/** gRPC with a real Redis: calls that run once, and tokens that are revoked while a stream lasts. */
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { status } from '@grpc/grpc-js';
import t from 'tap';
import { run } from '../../src/cli/program.js';
import { captureIo } from '../cli/captured-io.js';
import { baseConfig, type ConfigTree } from '../support/proxy-process.js';
import { startRedis } from '../support/redis-server.js';
import { tempDir } from '../support/temp-dir.js';
import { until } from '../support/until.js';
import { routes, startGrpcProxy, who } from './deployment.js';
import { allBytes, createCaller, outcomeOf, prefix, startNodeService, type Outcome } from './service.js';

t.setTimeout(120_000);

const permissions = ['orders:write'];

t.test('a unary call runs once behind two proxies, and its response is shown again with its trailers', async (t) => {
  const redis = await startRedis(t);
  const service = await startNodeService(t);
  const reserved = {
    ...{ name: 'orders', grpc: 'shop.v1.Orders', ...who },
    idempotency: { mode: 'required', store_headers: ['x-trailing', 'x-trailing-bin'] },
  };
  const store: ConfigTree = { redis: { url: `redis://127.0.0.1:${String(redis.port)}` } };
  const one = await startGrpcProxy(t, service.port, { store, routes: [reserved] });
  const other = await startGrpcProxy(t, service.port, {
    store,
    routes: [reserved],
    issuers: { core: { jwks_url: one.jwks.url } },
  });
  const { Authorization } = one.authorization({ permissions });
  const callers = [one, other].map(({ port }) => createCaller(t, port, Authorization));
  const metadata = { 'idempotency-key': 'one', 'x-text': 'a text', 'x-data-bin': allBytes };
  const write = async (number: number, text = 'order', method = 'Unary'): Promise<Outcome | undefined> =>
    callers[number]?.unary(`${prefix}${method}`, Buffer.from(text), { metadata });
  const answers = [await write(0), await write(1), await write(0)];
  t.equal(service.runs(), 1);
  for (const answer of answers) {
    t.same([answer?.status.code, answer?.messages.map(String)], [status.OK, ['order']]);
    t.same(answer?.status.metadata.get('x-trailing'), ['a text']);
    t.same(answer?.status.metadata.get('x-trailing-bin'), [allBytes]);
  }
  t.same(
    answers.map((answer) => answer?.initial?.get('idempotent-replayed')),
    [[], ['true'], ['true']],
  );
  t.equal((await write(1, 'another'))?.status.code, status.FAILED_PRECONDITION);
  const atOnce = { ...metadata, 'idempotency-key': 'at-once' };
  const both = await Promise.all(
    callers.map(async (caller) => caller.unary(`${prefix}Unary`, Buffer.from('b'), { metadata: atOnce })),
  );
  t.equal(service.runs(), 2, 'of two at once one runs');
  t.ok(both.some((answer) => answer.status.code === status.OK));
  t.ok(both.every(({ status: { code } }) => code === status.OK || code === status.ABORTED));

  await redis.kill();
  const late = await callers[0]?.unary(`${prefix}Unary`, Buffer.from('c'), {
    metadata: { ...metadata, 'idempotency-key': 'two' },
  });
  t.equal(late?.status.code, status.UNAVAILABLE, 'without the store nothing is done');
  t.equal(service.runs(), 2);
});

t.test('a stream ends when its token is revoked through Redis, and other streams go on', async (t) => {
  const redis = await startRedis(t);
  const service = await startNodeService(t);
  const store: ConfigTree = { redis: { url: `redis://127.0.0.1:${String(redis.port)}` } };
  const proxy = await startGrpcProxy(t, service.port, { store });
  const [stolen, kept] = ['stolen', 'kept'].map((jti) => proxy.authorization({ permissions, jti }).Authorization);
  const call = createCaller(t, proxy.port, stolen).split(`${prefix}Ticks`);
  const ended = outcomeOf(call);
  const otherCall = createCaller(t, proxy.port, kept).split(`${prefix}Ticks`);
  const other = outcomeOf(otherCall);
  await Promise.all([once(call, 'data'), once(otherCall, 'data')]);

  const cwd = tempDir(t);
  writeFileSync(join(cwd, 'sallyport.yaml'), baseConfig({ store, routes }));
  const io = captureIo({ cwd });
  const words = ['--token-id', 'stolen', '--for', '1h', '--reason', 'a leak'];
  await run(['revoke', '--config', 'sallyport.yaml', ...words], io);
  t.equal(io.code(), 0, io.err());

  const { status: end, messages } = await ended;
  t.equal(end.code, status.UNAUTHENTICATED);
  t.ok(messages.length > 0, 'behind the messages that came before');
  await until('the service has noticed', () => service.cancelled() === 1);
  let isOver = false;
  void other.then(() => {
    isOver = true;
  });
  await once(otherCall, 'data');
  await once(otherCall, 'data');
  t.equal(isOver, false);
  const again = await outcomeOf(createCaller(t, proxy.port, stolen).split(`${prefix}Ticks`));
  t.equal(again.status.code, status.UNAUTHENTICATED);
  t.equal(service.cancelled(), 1);
});
