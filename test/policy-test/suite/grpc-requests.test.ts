import t from 'tap';
import { readSuite } from '../../../src/policy-test/suite/suite.js';

const suite = (request: string): ReturnType<typeof readSuite> =>
  readSuite(`config: c.yaml\ncases: [{ name: a, request: ${request}, expect: { status: 200 } }]\n`, 'suite.yaml');

t.test('a request may name a gRPC method in the place of method and path', (t) => {
  t.match(suite('{ grpc: shop.v1.Orders/List, headers: { grpc-timeout: 1S } }').suite?.cases[0]?.request, {
    method: 'POST',
    path: '/shop.v1.Orders/List',
    headers: [
      ['Content-Type', 'application/grpc'],
      ['grpc-timeout', '1S'],
    ],
  });
  for (const request of ['{ grpc: a.B/C, path: /x }', '{ grpc: a.B }', '{ method: GET }', '{ path: /x }', '{}']) {
    t.not(suite(request).problems.length, 0, request);
    t.equal(suite(request).suite, null, request);
  }
  t.end();
});
