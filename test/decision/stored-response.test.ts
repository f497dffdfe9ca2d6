import t from 'tap';
import { maxStoredHeaderBytes, mayBeStored, replayedFields, storedFields, whyNeverStored } from '../../src/decision/stored-response.js';

const none = new Set<string>();

t.test('REPLAY 5: only listed fields are kept, in their order and spelling', (t) => {
  const fields = [
    'Content-Type', 'text/plain', 'Server', 'x', 'content-encoding', 'gzip', 'Content-Language', 'de', 'Location', '/a', 'Content-Location', '/b',
    'ETag', '"1"', 'Last-Modified', 'then', 'Link', '<a>', 'link', '<b>', 'Retry-After', '3', 'X-Total-Count', '4', 'Set-Cookie', 'a=b',
  ];
  t.same(storedFields(fields, none), [
    'Content-Type', 'text/plain', 'content-encoding', 'gzip', 'Content-Language', 'de', 'Location', '/a', 'Content-Location', '/b',
    'ETag', '"1"', 'Last-Modified', 'then', 'Link', '<a>', 'link', '<b>', 'Retry-After', '3',
  ]);
  t.same(storedFields(['X-Total-Count', '4', 'X-Other', '5'], new Set(['x-total-count'])), ['X-Total-Count', '4']);
  t.end();
});

const never = [
  'Set-Cookie', 'Set-Cookie2', 'Authorization', 'WWW-Authenticate', 'Authentication-Info', 'Proxy-Authenticate', 'Proxy-Status', 'Connection', 'Keep-Alive',
  'TE', 'Trailer', 'Transfer-Encoding', 'Upgrade', 'Content-Length', 'Date', 'Age', 'traceparent', 'tracestate', 'X-Request-Id',
  'Access-Control-Allow-Origin', 'RateLimit', 'RateLimit-Policy', 'X-RateLimit-Remaining', 'Cache-Control', 'Idempotent-Replayed',
];

for (const name of never) {
  t.test(`REPLAY 5: ${name} is never kept, even where a route adds it`, (t) => {
    t.same(storedFields([name, 'x', name.toLowerCase(), 'x', name.toUpperCase(), 'x'], new Set([name.toLowerCase()])), []);
    t.equal(mayBeStored(name), false);
    t.type(whyNeverStored(name), 'string');
    t.end();
  });
}

t.test('REPLAY 5: up to 8 KiB of fields are kept, and no byte more', (t) => {
  const value = 'x'.repeat(maxStoredHeaderBytes - 'Link'.length);
  t.same(storedFields(['Link', value, 'Server', 'does not count'], none), ['Link', value]);
  t.equal(storedFields(['Link', `${value}x`], none), null);
  t.same(storedFields([], none), []);
  t.end();
});

t.test('contract 4: a replayed answer says so, is not cached, and echoes the key', (t) => {
  const response = { status: 201, fields: ['Content-Type', 'text/plain'], body: new Uint8Array(3) };
  t.same(replayedFields(response, '"k"', 'r-1'), [
    'X-Request-Id', 'r-1', 'Content-Type', 'text/plain', 'Cache-Control', 'no-store', 'Idempotency-Key', '"k"', 'Idempotent-Replayed', 'true',
  ]);
  t.end();
});
