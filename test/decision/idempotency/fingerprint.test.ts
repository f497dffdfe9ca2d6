import fc from 'fast-check';
import t from 'tap';
import {
  fingerprintOf,
  volatileHeaders,
  type FingerprintInput,
} from '../../../src/decision/idempotency/fingerprint.js';

const base: FingerprintInput = {
  method: 'POST',
  operation: 'create',
  path: '/orders',
  query: null,
  contentType: null,
  contentEncoding: null,
  body: new Uint8Array(),
  headers: [],
};

t.test('SHA-256 in base64url, the same for the same', (t) => {
  t.match(fingerprintOf(base), /^[A-Za-z0-9_-]{43}$/);
  t.equal(fingerprintOf(base), fingerprintOf({ ...base, body: Buffer.alloc(0) }));
  t.end();
});

const text = fc.string({ maxLength: 6 });
const optional = fc.option(text);
const input: fc.Arbitrary<FingerprintInput> = fc.record({
  method: text,
  operation: text,
  path: text,
  query: optional,
  contentType: optional,
  contentEncoding: optional,
  body: fc.uint8Array({ maxLength: 6 }),
  headers: fc.array(fc.record({ name: text.map((name) => name.toLowerCase()), value: optional }), { maxLength: 3 }),
});

t.test('two requests have one fingerprint only when every part is the same', (t) => {
  fc.assert(
    fc.property(input, input, (a, b) => {
      const same = JSON.stringify([a, [...a.body]]) === JSON.stringify([b, [...b.body]]);
      return (fingerprintOf(a) === fingerprintOf(b)) === same;
    }),
    { numRuns: 2_000 },
  );
  t.end();
});

t.test('parts that would be the same when joined are not', (t) => {
  const pairs: readonly (readonly [Partial<FingerprintInput>, Partial<FingerprintInput>])[] = [
    [
      { method: 'POSTc', operation: 'reate' },
      { method: 'POST', operation: 'create' },
    ],
    [
      { path: '/a?', query: null },
      { path: '/a', query: '' },
    ],
    [
      { contentType: '', contentEncoding: null },
      { contentType: null, contentEncoding: '' },
    ],
    [
      { headers: [{ name: 'a', value: 'b' }] },
      {
        headers: [
          { name: 'a', value: null },
          { name: 'b', value: null },
        ],
      },
    ],
    [{ headers: [{ name: 'a', value: null }] }, { headers: [{ name: 'a', value: '' }] }],
    [{ headers: [{ name: 'a', value: 'absent' }] }, { headers: [{ name: 'a', value: null }] }],
  ];
  for (const [a, b] of pairs) t.not(fingerprintOf({ ...base, ...a }), fingerprintOf({ ...base, ...b }));
  t.end();
});

t.test('names of listed headers count in any case', (t) => {
  t.equal(
    fingerprintOf({ ...base, headers: [{ name: 'If-Match', value: 'x' }] }),
    fingerprintOf({ ...base, headers: [{ name: 'if-match', value: 'x' }] }),
  );
  t.end();
});

t.test('what differs between honest retries can never be part of it', (t) => {
  for (const name of ['authorization', 'date', 'traceparent', 'tracestate', 'x-request-id', 'idempotency-key']) {
    t.ok(volatileHeaders.has(name), name);
  }
  t.end();
});

t.test('a fingerprint outlives an upgrade: the same request has the one that is stored', (t) => {
  const request: FingerprintInput = {
    ...base,
    query: null,
    contentType: 'application/json',
    body: Buffer.from('{}'),
    headers: [
      { name: 'If-Match', value: null },
      { name: 'Prefer', value: 'x' },
    ],
  };
  t.equal(fingerprintOf(request), '6GJqFLklejmVNzMQPURQwjwEA4mjPBk-nrP-sVEqz4U');
  t.end();
});

t.test('what differs between honest retries may not be part of it', (t) => {
  t.same([...volatileHeaders].sort(), [
    'authorization',
    'baggage',
    'date',
    'dpop',
    'forwarded',
    'idempotency-key',
    'traceparent',
    'tracestate',
    'via',
    'x-request-id',
  ]);
  t.end();
});
