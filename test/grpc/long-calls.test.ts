/** Calls that last: authorized again while they do, and let end in a drain. */
import { once } from 'node:events';
import { status } from '@grpc/grpc-js';
import t from 'tap';
import type { ConfigTree, ProxyProcess } from '../support/proxy-process.js';
import type { Scope } from '../support/scope.js';
import { until } from '../support/until.js';
import { configOf, routes, startGrpcProxy } from './deployment.js';
import { createCaller, outcomeOf, prefix, startNodeService, type NodeService, type Outcome } from './service.js';

t.setTimeout(120_000);

const permissions = ['orders:write'];

interface Stream {
  readonly service: NodeService;
  readonly proxy: ProxyProcess;
  readonly ended: Promise<Outcome>;
}

/** A call that streams back, and has begun. */
async function startStream(t: Scope, claims: ConfigTree = {}, config: ConfigTree = {}): Promise<Stream> {
  const service = await startNodeService(t);
  const proxy = await startGrpcProxy(t, service.port, config);
  const { Authorization } = proxy.authorization({ permissions, ...claims });
  const call = createCaller(t, proxy.port, Authorization).split(`${prefix}Ticks`);
  const ended = outcomeOf(call);
  await once(call, 'data');
  return { service, proxy, ended };
}

t.test('a stream ends where its token does', async (t) => {
  const exp = Math.floor(Date.now() / 1_000) + 6;
  const core = { clock_skew: '0s' };
  const { service, ended } = await startStream(t, { exp }, { issuers: { core } });
  const { status: end, messages } = await ended;
  t.equal(end.code, status.UNAUTHENTICATED);
  t.ok(Date.now() >= exp * 1_000, 'and not before');
  t.ok(messages.length > 1);
  await until('the service has noticed', () => service.cancelled() === 1);
});

const changes: readonly (readonly [string, ConfigTree, status])[] = [
  ['its subject is revoked', { revoked: { subjects: ['checkout'] } }, status.UNAUTHENTICATED],
  ['its route is taken away', { routes: routes.slice(1) }, status.PERMISSION_DENIED],
  [
    'its route asks for more',
    { routes: [{ ...routes[0], permissions: ['orders:admin'] }, ...routes.slice(1)] },
    status.PERMISSION_DENIED,
  ],
];

for (const [name, change, code] of changes) {
  t.test(`a stream ends with ${status[code]} when ${name}`, async (t) => {
    const { service, proxy, ended } = await startStream(t);
    proxy.rewrite(configOf(service.port, change));
    const { status: end, messages } = await ended;
    t.equal(end.code, code);
    t.ok(messages.length > 0, 'behind the messages that came before');
    await until('the service has noticed', () => service.cancelled() === 1);
  });
}

t.test('a reload that changes nothing for it lets a stream go on', async (t) => {
  const { service, proxy, ended } = await startStream(t);
  proxy.rewrite(configOf(service.port, { routes: routes.slice(0, 1) }));
  await proxy.loaded();
  const first = await Promise.race([ended, new Promise((resolve) => setTimeout(resolve, 500))]);
  t.equal(first, undefined);
  t.equal(service.cancelled(), 0);
});

t.test('a drain lets calls end that are under way', async (t) => {
  const service = await startNodeService(t);
  const proxy = await startGrpcProxy(t, service.port, { shutdown: { delay: '0s', grace: '20s' } });
  const { Authorization } = proxy.authorization({ permissions });
  const caller = createCaller(t, proxy.port, Authorization);
  const waits = caller.unary(`${prefix}Wait`);
  const both = caller.both(`${prefix}Both`);
  const ended = outcomeOf(both);
  both.write(Buffer.from('before'));
  await once(both, 'data');
  await until('both have arrived', () => service.waiting() === 1);
  proxy.signal('SIGTERM');
  await until('it drains', () => proxy.process.output().includes('"draining"'));
  both.write(Buffer.from('after'));
  await once(both, 'data');
  both.end();
  service.release();
  t.match(await waits, { status: { code: status.OK }, messages: [Buffer.from('released')] });
  const { status: end, messages } = await ended;
  t.equal(end.code, status.OK);
  t.same(messages.map(String), ['before', 'after']);
  t.match(await proxy.process.exited, { code: 0, signal: null });
});
