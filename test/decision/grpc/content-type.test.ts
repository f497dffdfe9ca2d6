import t from 'tap';
import { isGrpc } from '../../../src/decision/grpc/content-type.js';

const rows: readonly (readonly [string | null, boolean])[] = [
  ['application/grpc', true],
  ['application/grpc+proto', true],
  ['application/grpc+json', true],
  ['application/grpc+x-own.1', true],
  ['application/grpc;charset=utf-8', true],
  ['application/grpc+proto ; a=b', true],
  ['Application/gRPC+Proto', true],
  [null, false],
  ['', false],
  ['application/grpc-web', false],
  ['application/grpc-web+proto', false],
  ['application/grpc-web-text', false],
  ['application/grpcx', false],
  ['application/grpc+', false],
  ['application/grpc+proto, text/plain', false],
  ['application/grpc proto', false],
  [' application/grpc', false],
  ['text/plain; a=application/grpc', false],
  ['application/json', false],
];

for (const [contentType, expected] of rows) {
  t.test(`${JSON.stringify(contentType)} is ${expected ? '' : 'not '}gRPC`, (t) => {
    t.equal(isGrpc(contentType), expected);
    t.end();
  });
}
