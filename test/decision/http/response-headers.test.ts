import fc from 'fast-check';
import t from 'tap';
import { createHeaderRules } from '../../../src/decision/http/header-rules.js';
import { clientHeaders } from '../../../src/decision/http/response-headers.js';

const rules = createHeaderRules({ identityNames: ['X-Caller'], underscoreFields: 'drop', http10: 'refuse' });

const cases = [
  { name: 'nothing', input: [], expected: [] },
  {
    name: 'fields pass in order, several Set-Cookie apart',
    input: ['Set-Cookie', 'a=1', 'Content-Type', 'text/plain', 'set-cookie', 'b=2', 'Server', 'x', 'my_field', ''],
    expected: ['Set-Cookie', 'a=1', 'Content-Type', 'text/plain', 'set-cookie', 'b=2', 'Server', 'x', 'my_field', ''],
  },
  {
    name: 'hop-by-hop fields end here',
    input: [
      'Connection',
      'keep-alive',
      'Keep-Alive',
      'timeout=5',
      'Proxy-Authenticate',
      'Basic',
      'Upgrade',
      'h2c',
      'Transfer-Encoding',
      'chunked',
      'Trailer',
      'X',
      'TE',
      'a',
      'Proxy-Connection',
      'close',
      'Content-Length',
      '3',
    ],
    expected: ['Content-Length', '3'],
  },
  {
    name: 'hop-by-hop fields that Connection names end here, before and after it',
    input: ['X-One', 'a', 'Connection', 'close, X-ONE', 'X-Two', 'b', 'connection', 'x-two, @,"', 'X-Three', 'c'],
    expected: ['X-Three', 'c'],
  },
  {
    name: 'identity names in any spelling',
    input: ['X-Caller', 'a', 'x_caller', 'b', 'X-Auth-Subject', 'c', 'X.Auth.Kind', 'd'],
    expected: [],
  },
  {
    name: 'what only we say of a reservation',
    input: [
      'Idempotent-Replayed',
      'true',
      'Idempotency-Outcome',
      'committed',
      'idempotent_replayed',
      'true',
      'Idempotency-Key',
      'k',
    ],
    expected: ['Idempotency-Key', 'k'],
  },
  {
    name: 'our member of Proxy-Status',
    input: [
      'Proxy-Status',
      'a, sallyport; error=b',
      'proxy-status',
      'sallyport',
      'Proxy-Status',
      'c; d="',
      'Proxy_Status',
      'sallyport',
    ],
    expected: ['Proxy-Status', 'a'],
  },
  {
    name: "the receiver's request id gives way to ours",
    input: ['x-request-id', 'other', 'X_Request_Id', 'other'],
    expected: [],
  },
  {
    name: 'a field that cannot be sent costs itself only',
    input: [
      'a b',
      'c',
      '',
      'd',
      'X-Nul',
      'e\u0000',
      'X-Line',
      'f\r\ng: h',
      'X-Wide',
      '\u0141',
      'b\u00e9',
      'i',
      'X-Good',
      '\u00e9',
    ],
    expected: ['X-Good', '\u00e9'],
  },
  {
    name: 'names of object members',
    input: ['__proto__', 'a', 'constructor', 'b', 'hasOwnProperty', 'c'],
    expected: ['__proto__', 'a', 'constructor', 'b', 'hasOwnProperty', 'c'],
  },
  { name: 'a name without a value', input: ['X-One', 'a', 'X-Two'], expected: ['X-One', 'a', 'X-Two', ''] },
];

t.test("what the caller gets of the upstream's header section", (t) => {
  for (const { name, input, expected } of cases) {
    t.same(clientHeaders(200, input, rules, 'r-1'), ['X-Request-Id', 'r-1', ...expected], name);
  }
  t.end();
});

t.test('whatever an upstream sends, the response can be written', (t) => {
  const text = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 12 }),
    fc.constantFrom('Connection', 'Proxy-Status', 'X-Caller', 'close, a', '"', '\\', 'Transfer-Encoding'),
  );
  t.doesNotThrow(() =>
    fc.assert(
      fc.property(fc.array(text, { maxLength: 9 }), (rawHeaders) => {
        const headers = clientHeaders(200, rawHeaders, rules, 'r-1');
        return (
          headers.length % 2 === 0 &&
          headers.every((sent, i) =>
            (i % 2 === 0 ? /^[!#$%&'*+\-.^_`|~0-9a-z]+$/i : /^[\t\x20-\x7e\x80-\xff]*$/).test(sent),
          )
        );
      }),
      { numRuns: 1000 },
    ),
  );
  t.end();
});

t.test('RFC 9110 §8.6: 1xx and 204 have no length, other responses without a body may have one', (t) => {
  const input = ['content-length', '0', 'X-A', 'b', 'Content-Length', '0'];
  for (const status of [101, 103, 199, 204]) {
    t.same(clientHeaders(status, input, rules, 'r-1'), ['X-Request-Id', 'r-1', 'X-A', 'b']);
  }
  for (const status of [200, 205, 304]) {
    t.same(clientHeaders(status, input, rules, 'r-1'), ['X-Request-Id', 'r-1', ...input], String(status));
  }
  t.end();
});
