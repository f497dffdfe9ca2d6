/**
 * One sequence of writes, and what becomes of each by the sidecar and by the plugin in the application; with Redis both
 * know the writes of the other.
 */
import { randomUUID } from 'node:crypto';
import t from 'tap';
import { startProxyProcess, type ConfigTree } from '../support/proxy-process.js';
import type { RawResponse, RequestInput } from '../support/raw-client.js';
import { startUpstreamServer } from '../support/upstream-server.js';
import { startRedis } from '../support/redis-server.js';
import { rsaKey } from '../support/keys.js';
import type { Scope } from '../support/scope.js';
import { mintToken, type Claims } from '../support/tokens.js';
import { until } from '../support/until.js';
import { openApp } from './open-app.js';

/** A way to the decision. Another one is a line of `doors`. */
interface Door {
  readonly name: string;
  readonly open: (t: Scope, config: ConfigTree) => Promise<(input: RequestInput) => Promise<RawResponse>>;
}

/** What the service does, in the place of a program of its own or of handlers. */
const service: Readonly<Record<string, { readonly status: number; readonly body: string }>> = {
  '/orders': { status: 201, body: '{"id":7}' },
  '/orders/failing': { status: 500, body: '{"failed":true}' },
  '/orders/busy': { status: 429, body: '{"later":true}' },
  '/orders/once': { status: 200, body: '{"once":true}' },
};

const doors: readonly Door[] = [
  {
    name: 'sidecar',
    open: async (t, config) => {
      const receiver = await startUpstreamServer(t);
      receiver.behave((req, res) => {
        const { status, body } = service[req.url ?? ''] ?? { status: 404, body: '{}' };
        req.resume().on('end', () => res.writeHead(status, { 'content-type': 'application/json' }).end(body));
      });
      return (await startProxyProcess(t, { config, receiver })).request;
    },
  },
  {
    name: 'plugin',
    open: async (t, config) => {
      const { request } = await openApp(t, {
        config,
        routes: (app) => {
          for (const [path, { status, body }] of Object.entries(service)) {
            app.post(path, (_request, reply) =>
              reply.code(status).header('content-type', 'application/json').send(body),
            );
          }
        },
      });
      return request;
    },
  },
];

function policies(store: ConfigTree): ConfigTree {
  const orders = { methods: ['POST'], subjects: ['checkout', 'reporting'], permissions: ['orders:write'] };
  const reserved = { ...orders, idempotency: 'required' };
  return {
    store,
    issuers: { core: { clock_skew: '0s' } },
    routes: [
      { ...reserved, name: 'create-order', path: '/orders', max_body: '1KiB' },
      { ...reserved, name: 'failing', path: '/orders/failing' },
      { ...reserved, name: 'busy', path: '/orders/busy' },
      {
        ...orders,
        name: 'once',
        path: '/orders/once',
        max_body: '1KiB',
        idempotency: { mode: 'none', because: 'a test' },
        single_use: true,
      },
    ],
  };
}

interface Row {
  readonly name: string;
  readonly path?: string;
  readonly key?: string;
  readonly claims?: Claims;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly status: number;
  /** `undefined`: it ran. */
  readonly replayed?: true;
  readonly type?: string;
}

const order = '{"sku":"a"}';
const chunked = { 'Transfer-Encoding': 'chunked' };
const inChunks = (body: string): string => `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`;
const large = JSON.stringify('x'.repeat(1_024));
const once: Claims = { jti: 'token-1' };

const sequence: readonly Row[] = [
  { name: 'the first', key: '"a"', status: 201 },
  { name: 'again', key: '"a"', status: 201, replayed: true },
  { name: 'again, the key bare', key: 'a', status: 201, replayed: true },
  { name: 'again, in chunks', key: 'a', headers: chunked, body: inChunks(order), status: 201, replayed: true },
  { name: 'another body', key: 'a', body: '{"sku":"b"}', status: 422, type: 'urn:sallyport:idempotency-key-reused' },
  { name: 'another query', path: '/orders?x', key: 'a', status: 422, type: 'urn:sallyport:idempotency-key-reused' },
  { name: 'another caller', key: 'a', claims: { sub: 'reporting' }, status: 201 },
  { name: 'no key', status: 400, type: 'urn:sallyport:idempotency-key-missing' },
  { name: 'a broken key', key: '"a', status: 400, type: 'urn:sallyport:idempotency-key-invalid' },
  { name: 'two keys', key: 'a', headers: { 'idempotency-key': 'b' }, status: 400 },
  { name: 'an expired token', key: 'a', claims: { exp: 1_000_000_000, iat: 999_999_000 }, status: 401 },
  { name: 'a permission too few', key: 'a', claims: { permissions: [] }, status: 403 },
  { name: 'a failure is kept', path: '/orders/failing', key: 'a', status: 500 },
  { name: 'and shown again', path: '/orders/failing', key: 'a', status: 500, replayed: true },
  { name: 'what says that nothing happened is not', path: '/orders/busy', key: 'a', status: 429 },
  { name: 'so it runs again', path: '/orders/busy', key: 'a', status: 429 },
  { name: 'too large', key: 'b', body: large, status: 413, type: 'urn:sallyport:body-too-large' },
  {
    name: 'too large, in chunks',
    key: 'b',
    headers: chunked,
    body: inChunks(large),
    status: 413,
    type: 'urn:sallyport:body-too-large',
  },
  { name: 'and the key is free', key: 'b', status: 201 },
  { name: 'a token that counts once', path: '/orders/once', claims: once, status: 200 },
  { name: 'a second time', path: '/orders/once', claims: once, status: 401 },
  { name: 'one without a name', path: '/orders/once', status: 401 },
];

async function send(
  request: (input: RequestInput) => Promise<RawResponse>,
  { path = '/orders', key, claims = {}, headers = {}, body = order }: Row,
): Promise<RawResponse> {
  return request({
    method: 'POST',
    path,
    headers: {
      Authorization: `Bearer ${mintToken({ key: rsaKey(), claims })}`,
      'Content-Type': 'application/json',
      ...(key === undefined ? {} : { 'Idempotency-Key': key }),
      ...headers,
    },
    body,
  });
}

for (const { name: door, open } of doors) {
  t.test(door, async (t) => {
    const redis = await startRedis(t);
    const stores: readonly ConfigTree[] = [
      { memory: {} },
      { redis: { url: `redis://127.0.0.1:${redis.port}`, durability: 'none' } },
    ];
    for (const store of stores) {
      await t.test(Object.keys(store).join(), async (t) => {
        const request = await open(t, policies(store));
        await until('tokens from after the start of the store', async () => {
          const row: Row = { name: '', path: '/orders/once', claims: { jti: randomUUID() }, status: 200 };
          return (await send(request, row)).status === 200;
        });
        for (const row of sequence) {
          const { name, path = '/orders', status, replayed, type } = row;
          const answer = await send(request, row);
          t.equal(answer.status, status, `${name}: ${answer.text}`);
          t.equal(answer.field('idempotent-replayed'), replayed === true ? 'true' : null, name);
          if (type !== undefined) t.match(JSON.parse(answer.text), { type }, name);
          if (answer.field('proxy-status') === null) t.equal(answer.text, service[path]?.body, name);
          if (replayed === true) t.match(answer.field('content-type'), /^application\/json/, name);
        }
      });
    }
  });
}

t.test('what one door has carried out, the other one answers', async (t) => {
  const redis = await startRedis(t);
  const config = policies({ redis: { url: `redis://127.0.0.1:${redis.port}`, durability: 'none' } });
  const requests = await Promise.all(doors.map(async ({ open }) => open(t, config)));
  for (const [i, request] of requests.entries()) {
    const row: Row = { name: '', key: `key-${String(i)}`, status: 201 };
    const first = await send(request, row);
    t.equal(first.status, 201);
    for (const other of requests) {
      const again = await send(other, row);
      t.equal(again.status, 201);
      t.equal(again.field('idempotent-replayed'), 'true');
      t.equal(again.text, first.text);
    }
  }
});
