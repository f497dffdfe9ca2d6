/** What callers of gRPC are refused, by the code that they see and by the bytes. */
import { status } from '@grpc/grpc-js';
import t from 'tap';
import { frameMessage } from '../../src/decision/grpc/messages.js';
import { ask, connectHttp2 } from '../support/http2-client.js';
import type { ProxyProcess } from '../support/proxy-process.js';
import { routes, startGrpcProxy, who } from './deployment.js';
import { createCaller, prefix, startNodeService } from './service.js';

t.setTimeout(120_000);

const permissions = ['orders:write'];

interface Refused {
  readonly name: string;
  readonly path?: string;
  readonly authorization: (proxy: ProxyProcess) => string | null;
}

const good = (proxy: ProxyProcess): string => proxy.authorization({ permissions }).Authorization ?? '';

/** Calls that end alike, by how they do. */
const kinds: readonly { readonly code: status; readonly calls: readonly Refused[] }[] = [
  {
    code: status.UNAUTHENTICATED,
    calls: [
      { name: 'nothing is shown', authorization: () => null },
      { name: 'no token', authorization: () => 'Bearer x' },
      { name: 'expired', authorization: (proxy) => proxy.authorization({ permissions, exp: 1 }).Authorization ?? '' },
      {
        name: 'another audience',
        authorization: (proxy) => proxy.authorization({ permissions, aud: 'others' }).Authorization ?? '',
      },
      { name: 'nothing is shown, of an unknown service', path: '/shop.v1.None/Any', authorization: () => null },
    ],
  },
  {
    code: status.PERMISSION_DENIED,
    calls: [
      {
        name: 'without the permission',
        authorization: (proxy) => proxy.authorization({ permissions: ['orders:read'] }).Authorization ?? '',
      },
      {
        name: 'another subject',
        authorization: (proxy) => proxy.authorization({ permissions, sub: 'reporting' }).Authorization ?? '',
      },
      { name: 'an unknown service', path: '/shop.v1.None/Any', authorization: good },
      { name: 'an unknown method', path: '/shop.v1.One/Other', authorization: good },
    ],
  },
];

for (const { code, calls } of kinds) {
  t.test(`every ${status[code]} is the same, but for its id`, async (t) => {
    const service = await startNodeService(t);
    const one = { name: 'one', grpc: 'shop.v1.One/Only', ...who, idempotency: { mode: 'none', because: 'a test' } };
    const proxy = await startGrpcProxy(t, service.port, { routes: [...routes, one] });
    const session = await connectHttp2(t, `http://127.0.0.1:${String(proxy.port)}`);
    const seen = new Set<string>();
    for (const { name, path = `${prefix}Unary`, authorization } of calls) {
      const shown = authorization(proxy);
      const { status: end } = await createCaller(t, proxy.port, shown).unary(path);
      t.equal(end.code, code, name);
      const { headers, trailers, body } = await ask(
        session,
        {
          ':method': 'POST',
          ':path': path,
          'content-type': 'application/grpc',
          te: 'trailers',
          ...(shown === null ? {} : { authorization: shown }),
        },
        Buffer.from(frameMessage(new Uint8Array())),
      );
      t.same([trailers, body.length], [null, 0], 'a head and nothing else');
      t.type(headers['x-request-id'], 'string');
      seen.add(JSON.stringify({ ...headers, 'x-request-id': '', date: '' }));
    }
    t.equal(seen.size, 1, [...seen].join('\n'));
    t.equal(service.runs(), 0);
    t.same(await proxy.exposures(), []);
  });
}

t.test('what is over a limit is RESOURCE_EXHAUSTED', async (t) => {
  const service = await startNodeService(t);
  const limited = {
    name: 'limited',
    grpc: 'shop.v1.Orders',
    ...who,
    max_body: '1KiB',
    limits: { requests_per_second: 1, burst: 1 },
    idempotency: { mode: 'none', because: 'a test' },
  };
  const proxy = await startGrpcProxy(t, service.port, { routes: [limited, ...routes.slice(1)] });
  const caller = createCaller(t, proxy.port, good(proxy));
  const large = await caller.unary('/shop.v1.Small/Unary', Buffer.alloc(70_000));
  t.equal(large.status.code, status.RESOURCE_EXHAUSTED, 'messages');
  const metadata = { 'x-large': 'a'.repeat(15_000), 'x-larger': 'a'.repeat(2_000) };
  t.equal((await caller.unary('/shop.v1.Small/Unary', undefined, { metadata })).status.code, 8, 'metadata');
  const ends = await Promise.all(Array.from({ length: 5 }, async () => caller.unary(`${prefix}Unary`)));
  const codes = new Set(ends.map((end) => end.status.code));
  t.same(codes, new Set([status.OK, status.RESOURCE_EXHAUSTED]), 'calls a second');
  const late = ends.find((end) => end.status.code !== status.OK)?.status;
  t.ok(Number(late?.metadata.get('grpc-retry-pushback-ms')[0]) >= 1_000);
});

t.test('where the service is not there nothing was done: UNAVAILABLE', async (t) => {
  const service = await startNodeService(t);
  const proxy = await startGrpcProxy(t, service.port);
  const caller = createCaller(t, proxy.port, good(proxy));
  t.equal((await caller.unary(`${prefix}Unary`)).status.code, status.OK);
  service.kill();
  const { status: end } = await caller.unary(`${prefix}Unary`);
  t.equal(end.code, status.UNAVAILABLE);
  t.match(String(end.metadata.get('proxy-status')[0]), /^sallyport/);
});
