import t from 'tap';
import { grpcPathOf, readGrpcMethod } from '../../../src/decision/grpc/method.js';

const named: readonly (readonly [string, string, string | null])[] = [
  ['shop.v1.Orders/List', 'shop.v1.Orders', 'List'],
  ['shop.v1.Orders', 'shop.v1.Orders', null],
  ['Orders', 'Orders', null],
  ['_a.b_2.C/d_3', '_a.b_2.C', 'd_3'],
];

for (const [text, service, method] of named) {
  t.test(`${text} names ${method === null ? 'a service' : 'a method'}`, (t) => {
    t.same(readGrpcMethod(text), { ok: true, value: { service, method } });
    t.end();
  });
}

const refused: readonly (readonly [string, string])[] = [
  ['/shop.v1.Orders/List', 'begins with /'],
  ['shop.v1.Orders/*', 'has an asterisk: a service alone is all of its methods'],
  ['shop.v1.Orders/', 'is no name of a service or method'],
  ['shop.v1.Orders/List/x', 'is no name of a service or method'],
  ['shop..Orders', 'is no name of a service or method'],
  ['.shop.Orders', 'is no name of a service or method'],
  ['shop.1.Orders', 'is no name of a service or method'],
  ['shop-v1.Orders', 'is no name of a service or method'],
  ['shop.v1.Orders/L%69st', 'is no name of a service or method'],
  ['', 'is no name of a service or method'],
];

for (const [text, error] of refused) {
  t.test(`${JSON.stringify(text)} names nothing`, (t) => {
    t.same(readGrpcMethod(text), { ok: false, error });
    t.end();
  });
}

t.test('the path of a method, and of all methods of a service', (t) => {
  t.same(grpcPathOf({ service: 'shop.v1.Orders', method: 'List' }), {
    text: '/shop.v1.Orders/List',
    segments: [
      { kind: 'literal', text: 'shop.v1.Orders' },
      { kind: 'literal', text: 'List' },
    ],
  });
  t.same(grpcPathOf({ service: 'shop.v1.Orders', method: null }), {
    text: '/shop.v1.Orders/{method}',
    segments: [
      { kind: 'literal', text: 'shop.v1.Orders' },
      { kind: 'parameter', name: 'method' },
    ],
  });
  t.end();
});
