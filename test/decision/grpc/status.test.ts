import t from 'tap';
import { grpcCodes, grpcNumberOf, httpStatusOf, type ResponseEnd } from '../../../src/decision/grpc/status.js';

const end = (over: Partial<ResponseEnd>): ResponseEnd => ({
  status: 200,
  headers: ['content-type', 'application/grpc'],
  trailers: [],
  hasBody: true,
  ...over,
});
const inTrailers = (value: string): ResponseEnd => end({ trailers: ['grpc-status', value] });

t.test('google/rpc/code.proto: each code has its number and its status in HTTP', (t) => {
  const rows: readonly (readonly [(typeof grpcCodes)[number], number, number])[] = [
    ['OK', 0, 200],
    ['CANCELLED', 1, 499],
    ['UNKNOWN', 2, 500],
    ['INVALID_ARGUMENT', 3, 400],
    ['DEADLINE_EXCEEDED', 4, 504],
    ['NOT_FOUND', 5, 404],
    ['ALREADY_EXISTS', 6, 409],
    ['PERMISSION_DENIED', 7, 403],
    ['RESOURCE_EXHAUSTED', 8, 429],
    ['FAILED_PRECONDITION', 9, 400],
    ['ABORTED', 10, 409],
    ['OUT_OF_RANGE', 11, 400],
    ['UNIMPLEMENTED', 12, 501],
    ['INTERNAL', 13, 500],
    ['UNAVAILABLE', 14, 503],
    ['DATA_LOSS', 15, 500],
    ['UNAUTHENTICATED', 16, 401],
  ];
  t.same(
    rows.map(([code]) => code),
    grpcCodes,
  );
  for (const [code, number, status] of rows) {
    t.equal(grpcNumberOf(code), number, code);
    t.equal(httpStatusOf(inTrailers(String(number))), status, code);
  }
  t.end();
});

const rows: readonly { readonly name: string; readonly end: ResponseEnd; readonly expected: number | null }[] = [
  { name: 'a code of a later version', end: inTrailers('17'), expected: 500 },
  { name: 'no status at all', end: end({}), expected: null },
  { name: 'trailers without a status', end: end({ trailers: ['x', 'y'] }), expected: null },
  { name: 'a status twice', end: end({ trailers: ['grpc-status', '0', 'grpc-status', '0'] }), expected: null },
  { name: 'a status that is no number', end: inTrailers('OK'), expected: null },
  { name: 'an empty status', end: inTrailers(''), expected: null },
  { name: 'a negative status', end: inTrailers('-1'), expected: null },
  { name: 'a status with a zero before', end: inTrailers('00'), expected: null },
  {
    name: 'a head and nothing else',
    end: end({ headers: ['Grpc-Status', '5'], hasBody: false }),
    expected: 404,
  },
  {
    name: 'a head that promises what its body takes back',
    end: end({ headers: ['grpc-status', '0'] }),
    expected: null,
  },
  {
    name: 'trailers beside a status in the head: the trailers count',
    end: end({ headers: ['grpc-status', '0'], trailers: ['grpc-status', '10'], hasBody: false }),
    expected: 409,
  },
  {
    name: 'a status of HTTP, which no server of gRPC sent',
    end: end({ status: 503, trailers: ['grpc-status', '0'] }),
    expected: 503,
  },
];

for (const { name, end, expected } of rows) {
  t.test(`how a call ended: ${name}`, (t) => {
    t.equal(httpStatusOf(end), expected);
    t.end();
  });
}
