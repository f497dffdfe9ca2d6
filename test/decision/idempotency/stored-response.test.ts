import t from 'tap';
import {
  isShowable,
  maxStoredHeaderBytes,
  mayBeStored,
  replayedHeaders,
  storedHeaders,
  storedTrailers,
  whyNeverStored,
} from '../../../src/decision/idempotency/stored-response.js';

const none = new Set<string>();

t.test('only listed headers are kept, in their order and spelling', (t) => {
  const fields = [
    'Content-Type',
    'text/plain',
    'Server',
    'x',
    'content-encoding',
    'gzip',
    'Content-Language',
    'de',
    'Location',
    '/a',
    'Content-Location',
    '/b',
    'ETag',
    '"1"',
    'Last-Modified',
    'then',
    'Link',
    '<a>',
    'link',
    '<b>',
    'Retry-After',
    '3',
    'X-Total-Count',
    '4',
    'Set-Cookie',
    'a=b',
  ];
  t.same(storedHeaders(fields, none), [
    'Content-Type',
    'text/plain',
    'content-encoding',
    'gzip',
    'Content-Language',
    'de',
    'Location',
    '/a',
    'Content-Location',
    '/b',
    'ETag',
    '"1"',
    'Last-Modified',
    'then',
    'Link',
    '<a>',
    'link',
    '<b>',
    'Retry-After',
    '3',
  ]);
  t.same(storedHeaders(['X-Total-Count', '4', 'X-Other', '5'], new Set(['x-total-count'])), ['X-Total-Count', '4']);
  t.end();
});

const never = [
  'Set-Cookie',
  'Set-Cookie2',
  'Authorization',
  'WWW-Authenticate',
  'Authentication-Info',
  'Proxy-Authenticate',
  'Proxy-Status',
  'Connection',
  'Keep-Alive',
  'TE',
  'Trailer',
  'Transfer-Encoding',
  'Upgrade',
  'Content-Length',
  'Date',
  'Age',
  'traceparent',
  'tracestate',
  'X-Request-Id',
  'Access-Control-Allow-Origin',
  'RateLimit',
  'RateLimit-Policy',
  'X-RateLimit-Remaining',
  'Cache-Control',
  'Idempotent-Replayed',
  'Cookie',
  'Expires',
  'Retry-After-Ms',
  'Idempotency-Key',
  'Idempotency-Outcome',
];

for (const name of never) {
  t.test(`${name} is never kept, even where a route adds it`, (t) => {
    t.same(
      storedHeaders([name, 'x', name.toLowerCase(), 'x', name.toUpperCase(), 'x'], new Set([name.toLowerCase()])),
      [],
    );
    t.equal(mayBeStored(name), false);
    t.type(whyNeverStored(name), 'string');
    t.end();
  });
}

t.test('up to 8 KiB of headers are kept, and no byte more', (t) => {
  t.equal(maxStoredHeaderBytes, 8_192);
  const value = 'x'.repeat(maxStoredHeaderBytes - 'Link'.length);
  t.same(storedHeaders(['Link', value, 'Server', 'does not count'], none), ['Link', value]);
  t.equal(storedHeaders(['Link', `${value}x`], none), null);
  t.same(storedHeaders([], none), []);
  t.end();
});

t.test('of trailers, what says how a gRPC call ended is kept, and what a route adds', (t) => {
  const trailers = [
    'Grpc-Status',
    '0',
    'x-total',
    '4',
    'grpc-message',
    '',
    'grpc-status-details-bin',
    'AA',
    'date',
    'x',
  ];
  const end = { headers: ['grpc-status', '13', 'x-total', '5'], trailers, hasBody: true };
  t.same(storedTrailers(end, none), ['Grpc-Status', '0', 'grpc-message', '', 'grpc-status-details-bin', 'AA']);
  t.same(storedTrailers({ ...end, trailers: ['x-total', '4'] }, new Set(['x-total'])), ['x-total', '4']);
  t.same(storedTrailers({ ...end, trailers: [] }, none), [], 'a body and no trailers: nothing says how it ended');
  const headAlone = { ...end, trailers: [], hasBody: false };
  t.same(storedTrailers(headAlone, new Set(['x-total'])), ['grpc-status', '13'], 'a head alone says it itself');
  t.equal(storedTrailers({ ...end, trailers: ['grpc-message', 'x'.repeat(8_192)] }, none), null);
  t.end();
});

t.test('a replayed response says so, is not cached, and echoes the key', (t) => {
  const response = { status: 201, headers: ['Content-Type', 'text/plain'], body: new Uint8Array(3) };
  t.same(replayedHeaders(response, '"k"', 'r-1'), [
    'X-Request-Id',
    'r-1',
    'Content-Type',
    'text/plain',
    'Cache-Control',
    'no-store',
    'Idempotency-Key',
    '"k"',
    'Idempotent-Replayed',
    'true',
  ]);
  t.end();
});

t.test('trailers that a store hands back are held to what fields are', (t) => {
  const of = (trailers: readonly string[]): boolean =>
    isShowable({ status: 200, headers: [], body: Buffer.alloc(0), trailers });
  t.ok(of(['grpc-status', '0']));
  t.notOk(of(['grpc-status']));
  t.notOk(of(['grpc-message', 'a\r\nb']));
  t.notOk(of(['set-cookie', 'a=b']));
  t.end();
});

t.test('a response that a store hands back is shown where an upstream can have given it, and nowhere else', (t) => {
  const cases: readonly { name: string; status: number; headers: readonly string[]; expected: boolean }[] = [
    { name: 'the least', status: 200, headers: [], expected: true },
    { name: 'the greatest', status: 999, headers: ['ETag', '"1"', 'X-Caf', 'caf\xe9\t'], expected: true },
    { name: 'an interim status', status: 199, headers: [], expected: false },
    { name: 'a status beyond all', status: 1000, headers: [], expected: false },
    { name: 'half a pair', status: 200, headers: ['ETag'], expected: false },
    { name: 'no name', status: 200, headers: ['', 'x'], expected: false },
    { name: 'a name that is two', status: 200, headers: ['a b', 'x'], expected: false },
    {
      name: 'a value that begins another line',
      status: 200,
      headers: ['ETag', 'a\r\nSet-Cookie: b=c'],
      expected: false,
    },
    { name: 'a value that is no bytes', status: 200, headers: ['ETag', '\u{1f642}'], expected: false },
    { name: 'a name that is never kept', status: 200, headers: ['Transfer-Encoding', 'chunked'], expected: false },
  ];
  for (const { name, status, headers, expected } of cases) {
    t.equal(isShowable({ status, headers, body: Buffer.alloc(0) }), expected, name);
  }
  t.end();
});
