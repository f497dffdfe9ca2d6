/** `check --proto`: routes against what the files of the services declare. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { run } from '../../../src/cli/program.js';
import { baseConfig, type ConfigTree } from '../../support/proxy-process.js';
import type { Scope } from '../../support/scope.js';
import { writeDescriptorSet } from '../../support/protoc.js';
import { tempDir } from '../../support/temp-dir.js';
import { captureIo, type CapturedIo } from '../captured-io.js';

const orders = `
syntax = "proto3";
package shop.v1;
import "shop/v1/stock.proto";
import "google/api/annotations.proto";
service Orders {
  rpc List(Request) returns (Reply) { option (google.api.http) = { get: "/v1/orders" }; }
  rpc Create(Request) returns (Reply);
  rpc Watch(Request) returns (stream Reply);
  rpc Upload(stream Request) returns (Reply);
  rpc Chat(stream Request) returns (stream Reply);
}
message Request { message Inner { string name = 1; } Inner inner = 1; }
message Reply {}
`;
const stock =
  'syntax = "proto3"; package shop.v1; service Stock { rpc Get(Request2) returns (Request2); } message Request2 {}';

const none = { mode: 'none', because: 'x' };
const all = route('all', 'shop.v1.Orders');

function route(name: string, grpc: unknown, more: ConfigTree = {}): ConfigTree {
  return { name, grpc, subjects: ['checkout'], permissions: ['orders:read'], idempotency: none, ...more };
}

async function check(t: Scope, routes: readonly ConfigTree[], ...options: readonly string[]): Promise<CapturedIo> {
  const cwd = tempDir(t);
  mkdirSync(join(cwd, 'api/shop/v1'), { recursive: true });
  writeFileSync(join(cwd, 'api/shop/v1/orders.proto'), orders);
  writeFileSync(join(cwd, 'api/shop/v1/stock.proto'), stock);
  writeFileSync(join(cwd, 'broken.proto'), 'service {');
  writeFileSync(join(cwd, 'sallyport.yaml'), baseConfig({ routes, store: { memory: {} }, upstream: { http2: true } }));
  writeFileSync(
    join(cwd, 'plain.proto'),
    orders.replaceAll(/import .*|\{ option .*\}/g, (text) => (text[0] === '{' ? ';' : '')),
  );
  writeDescriptorSet(cwd, [join(cwd, 'plain.proto')], join(cwd, 'set.binpb'));
  const io = captureIo({ cwd, env: {} });
  await run(['check', 'sallyport.yaml', ...options], io);
  return io;
}

const proto = ['--proto', 'api/shop/v1/orders.proto'];
const store = /warning: reservations are kept by this process alone/;
const rows: readonly {
  readonly name: string;
  readonly routes: readonly ConfigTree[];
  readonly says: readonly RegExp[];
}[] = [
  { name: 'every method has a route', routes: [all], says: [] },
  {
    name: 'methods without a route',
    routes: [route('some', ['shop.v1.Orders/List', 'shop.v1.Orders/Create'])],
    says: [
      /warning: no route takes shop\.v1\.Orders\/Watch, shop\.v1\.Orders\/Upload, shop\.v1\.Orders\/Chat: calls are refused/,
    ],
  },
  {
    name: 'a route with methods and path takes calls, too',
    routes: [route('some', undefined, { methods: ['POST'], path: '/shop.v1.Orders/{method}' })],
    says: [],
  },
  {
    name: 'a service that does not exist, near one that does',
    routes: [all, route('x', 'shop.v1.Order')],
    says: [
      /error: routes\[1\]\.grpc is "shop\.v1\.Order", and there is no such service; allowed: shop\.v1\.Orders, if that was meant/,
    ],
  },
  {
    name: 'a service that is near none',
    routes: [all, route('x', 'bank.Accounts')],
    says: [/is "bank\.Accounts", and there is no such service; allowed: shop\.v1\.Orders, shop\.v1\.Stock$/],
  },
  {
    name: 'a method that does not exist, named at its place',
    routes: [all, route('x', ['shop.v1.Orders/List', 'shop.v1.Orders/Craete'])],
    says: [
      /error: routes\[1\]\.grpc\[1\] is "shop\.v1\.Orders\/Craete", and there is no such method; allowed: shop\.v1\.Orders\/Create, if/,
    ],
  },
  { name: 'a service that is imported exists', routes: [all, route('x', 'shop.v1.Stock/Get')], says: [] },
  {
    name: 'streams on a route that reserves',
    routes: [route('all', 'shop.v1.Orders', { idempotency: 'required' })],
    says: [
      /error: routes\[0\]\.idempotency reserves calls that stream: shop\.v1\.Orders\/Watch, shop\.v1\.Orders\/Upload, shop\.v1\.Orders\/Chat; allowed: a route of its own/,
    ],
  },
  {
    name: 'streams that another route takes',
    routes: [
      route('all', 'shop.v1.Orders', { idempotency: 'required' }),
      route('x', ['shop.v1.Orders/Watch', 'shop.v1.Orders/Upload', 'shop.v1.Orders/Chat']),
    ],
    says: [],
  },
  {
    name: 'a token that passes once, and a stream both ways',
    routes: [route('all', 'shop.v1.Orders', { single_use: true })],
    says: [/error: routes\[0\]\.single_use reserves calls that stream: shop\.v1\.Orders\/Chat; /],
  },
];

for (const { name, routes, says } of rows) {
  t.test(`check --proto: ${name}`, async (t) => {
    const io = await check(t, routes, ...proto, '--json');
    const { problems } = JSON.parse(io.out()) as { problems: { severity: string; message: string; allowed: string }[] };
    const lines = problems.map(({ severity, message, allowed }) => `${severity}: ${message}; allowed: ${allowed}`);
    const told = lines.filter((line) => !store.test(line) && !line.includes('less restrictive'));
    t.equal(told.length, says.length, told.join('\n'));
    says.forEach((pattern, index) => t.match(told[index], pattern));
  });
}

t.test('a descriptor set says the same as its source', async (t) => {
  const routes = [route('some', ['shop.v1.Orders/List', 'shop.v1.Orders/Watch'], { idempotency: 'required' })];
  const source = await check(t, routes, '--proto', 'plain.proto');
  const set = await check(t, routes, '--proto', 'set.binpb');
  t.match(set.out(), /no route takes shop\.v1\.Orders\/Create/);
  t.match(set.out(), /reserves calls that stream: shop\.v1\.Orders\/Watch/);
  t.equal(set.out(), source.out());
  t.equal(set.code(), 1);
});

t.test('a missing route is an error under --strict', async (t) => {
  const routes = [route('some', 'shop.v1.Stock')];
  const files = ['--proto', 'api/shop/v1/stock.proto', '--proto', 'plain.proto'];
  const lax = await check(t, routes, ...files);
  t.equal(lax.code(), 0, lax.out());
  t.equal((await check(t, routes, ...files, '--strict')).code(), 1);
});

t.test('files that cannot be read are named', async (t) => {
  for (const [file, says] of [
    ['missing.proto', /missing\.proto: /],
    ['broken.proto', /broken\.proto: illegal /],
    [
      'sallyport.yaml',
      /sallyport\.yaml: is no binary FileDescriptorSet; allowed: that, or a file that ends in \.proto/,
    ],
  ] as const) {
    const io = await check(t, [all], '--proto', file);
    t.equal(io.code(), 2, file);
    t.match(io.err(), says, file);
  }
});
