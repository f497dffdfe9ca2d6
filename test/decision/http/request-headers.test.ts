import fc from 'fast-check';
import t from 'tap';
import { readBearer, type RememberedTokens } from '../../../src/decision/token/credential.js';
import { responseOf } from '../../../src/decision/denial.js';
import type { HeaderRuleSettings } from '../../../src/decision/http/header-rules.js';
import type { RequestHeaders } from '../../../src/decision/http/request-headers.js';
import { readVectors } from '../../vectors/corpus.js';
import { host, read } from './read-headers.js';

const plain: RequestHeaders = {
  passed: [],
  stripped: {},
  strippedUnlessTrusted: 0,
  authorization: null,
  bearer: readBearer(null),
  bearerDigest: null,
  saysBound: false,
  dpop: null,
  host: 'orders.example.com',
  contentLength: null,
  chunked: false,

  hasBody: false,
  isHttp2: false,
  expectsContinue: false,
  upgrade: null,
  upgrades: false,
  requestId: null,
  traceparent: null,
  tracestate: null,
  idempotencyKey: null,
  forwardedFor: null,
  forwardedProto: null,
  forwardedHost: null,
  via: null,
  clientCert: null,
  takesTrailers: false,
  closes: false,
};

const trace = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';

interface Accepted {
  readonly name: string;
  readonly input: readonly string[];
  readonly expected: Partial<RequestHeaders>;
  readonly settings?: Partial<HeaderRuleSettings>;
  readonly httpVersion?: string;
}

const accepted: readonly Accepted[] = [
  { name: 'nothing but Host', input: [], expected: {} },
  {
    name: 'fields of caller and receiver pass in their order and spelling, repeated ones apart',
    input: ['accept', '*/*', 'COOKIE', 'a=b', 'Cookie', 'c=d', 'X-Empty', '', 'X-Latin', 'caf\u00e9', 'X-Tab', 'a\tb'],
    expected: {
      passed: [
        'accept',
        '*/*',
        'COOKIE',
        'a=b',
        'Cookie',
        'c=d',
        'X-Empty',
        '',
        'X-Latin',
        'caf\u00e9',
        'X-Tab',
        'a\tb',
      ],
    },
  },
  {
    name: 'Content-Type passes as it came',
    input: ['content-Type', 'application/json ;charset=utf-8'],
    expected: { passed: ['content-Type', 'application/json ;charset=utf-8'] },
  },
  {
    name: 'Authorization is kept apart',
    input: ['AUTHORIZATION', 'Bearer a.b.c'],
    expected: { authorization: 'Bearer a.b.c' },
  },
  { name: 'an empty Authorization is one', input: ['Authorization', ''], expected: { authorization: '' } },
  {
    name: 'Idempotency-Key is read and passes',
    input: ['Idempotency-Key', '"a"'],
    expected: { idempotencyKey: '"a"', passed: ['Idempotency-Key', '"a"'] },
  },
  {
    name: 'what only we set, and look-alikes of what we judge, are dropped and counted',
    input: [
      'X-Caller',
      'a',
      'X_Auth.Subject',
      'b',
      'Idempotency_Key',
      'c',
      'X_Forwarded_For',
      'd',
      'Author-ization',
      'e',
      'Content_Length',
      '9',
      'H-ost',
      'f',
      'Transfer_Encoding',
      'chunked',
      'Idempotency-Record',
      'g',
      'X-HTTP-Method-Override',
      'DELETE',
      'Forwarded',
      'for=h',
      'X-Original-URL',
      '/admin',
    ],
    expected: { stripped: { identity: 4, override: 4, forwarded: 2, hop: 2 } },
  },
  {
    name: 'other names with an underscore are dropped and counted',
    input: ['my_field', 'a', '__proto__', 'b'],
    expected: { stripped: { underscore: 2 } },
  },
  {
    name: 'other names with an underscore may pass',
    input: ['my_field', 'a', '__proto__', 'b', 'X_Caller', 'c'],
    settings: { underscoreFields: 'allow' },
    expected: { passed: ['my_field', 'a', '__proto__', 'b'], stripped: { identity: 1 } },
  },
  {
    name: 'hop-by-hop fields end here and are not counted',
    input: [
      'Connection',
      'keep-alive',
      'Keep-Alive',
      'x',
      'Proxy-Connection',
      'keep-alive',
      'Proxy-Authorization',
      'Basic YTpi',
      'TE',
      'trailers',
      'Trailer',
      'X-Sum',
      'HTTP2-Settings',
      'AAMAAABkAAQAAP__',
      'Proxy-Authenticate',
      'Basic',
      'Proxy-Authentication-Info',
      'a=b',
    ],
    expected: { takesTrailers: true },
  },
  {
    name: 'RFC 9110 §7.6.1: fields that Connection names end here, wherever it stands and however often',
    input: [
      'X-One',
      'a',
      'Connection',
      'x-one, close',
      'X-Two',
      'b',
      'connection',
      'X-TWO,Cookie',
      'Cookie',
      'c',
      'X-Three',
      'd',
    ],
    expected: { passed: ['X-Three', 'd'], closes: true },
  },
  { name: 'a length', input: ['Content-Length', '5'], expected: { contentLength: 5, hasBody: true } },
  { name: 'a length of 0 is no body', input: ['Content-Length', '0'], expected: { contentLength: 0 } },
  { name: 'chunks', input: ['Transfer-Encoding', 'Chunked'], expected: { chunked: true, hasBody: true } },
  {
    name: '100-continue',
    input: ['Expect', '100-Continue', 'Content-Length', '5'],
    expected: { expectsContinue: true, contentLength: 5, hasBody: true },
  },
  {
    name: 'h2c is ignored',
    input: ['Connection', 'Upgrade, HTTP2-Settings', 'Upgrade', 'h2c', 'HTTP2-Settings', 'AAMA'],
    expected: { upgrades: true },
  },
  {
    name: 'h2c is ignored in any case, and its body is one',
    input: ['Upgrade', 'H2C', 'Content-Length', '5'],
    expected: { contentLength: 5, hasBody: true },
  },
  { name: 'an empty Upgrade is none', input: ['Upgrade', ''], expected: {} },
  {
    name: 'another protocol is told',
    input: ['Connection', 'upgrade', 'Upgrade', 'WebSocket'],
    expected: { upgrade: 'websocket', upgrades: true },
  },
  {
    name: 'another protocol is told even beside h2c',
    input: ['Upgrade', 'h2c, TLS/1.0', 'Upgrade', 'websocket'],
    expected: { upgrade: 'tls/1.0, websocket' },
  },
  {
    name: 'another protocol is told without Connection too',
    input: ['Upgrade', 'websocket'],
    expected: { upgrade: 'websocket' },
  },
  { name: 'a sound request id is kept', input: ['x-request-id', 'A.b_c-9'], expected: { requestId: 'A.b_c-9' } },
  {
    name: 'a request id as long as may be',
    input: ['X-Request-Id', 'a'.repeat(128)],
    expected: { requestId: 'a'.repeat(128) },
  },
  {
    name: 'a request id one byte too long is replaced',
    input: ['X-Request-Id', 'a'.repeat(129)],
    expected: { stripped: { forwarded: 1 } },
  },
  {
    name: 'a request id that could forge a log line is replaced',
    input: ['X-Request-Id', 'a b'],
    expected: { stripped: { forwarded: 1 } },
  },
  { name: 'an empty request id is replaced', input: ['X-Request-Id', ''], expected: { stripped: { forwarded: 1 } } },
  {
    name: 'two request ids are none',
    input: ['X-Request-Id', 'a', 'X-Request-Id', 'b'],
    expected: { stripped: { forwarded: 1 } },
  },
  {
    name: 'a sound trace goes on',
    input: ['traceparent', trace, 'tracestate', 'a=b', 'Tracestate', 'c=d'],
    expected: { traceparent: trace, tracestate: 'a=b, c=d' },
  },
  { name: 'a trace without state', input: ['Traceparent', trace], expected: { traceparent: trace } },
  { name: 'a state without a trace ends here', input: ['tracestate', 'a=b'], expected: { stripped: { forwarded: 1 } } },
  {
    name: 'a broken trace ends here with its state',
    input: ['traceparent', 'x', 'tracestate', 'a=b'],
    expected: { stripped: { forwarded: 2 } },
  },
  {
    name: 'two traces are none',
    input: ['traceparent', trace, 'traceparent', trace],
    expected: { stripped: { forwarded: 1 } },
  },
  {
    name: 'what earlier hops said is kept apart',
    input: [
      'X-Forwarded-For',
      '1.1.1.1',
      'x-forwarded-for',
      '2.2.2.2',
      'X-Forwarded-Proto',
      'https',
      'X-Forwarded-Host',
      'a.example',
      'Via',
      '1.1 b',
      'X-Forwarded-Port',
      '1',
    ],
    expected: {
      forwardedFor: '1.1.1.1, 2.2.2.2',
      forwardedProto: 'https',
      forwardedHost: 'a.example',
      via: '1.1 b',
      strippedUnlessTrusted: 5,
      stripped: { forwarded: 1 },
    },
  },
  {
    name: 'HTTP/1.0 where it is allowed',
    input: [],
    httpVersion: '1.0',
    settings: { http10: 'allow' },
    expected: { closes: true },
  },
  {
    name: 'HTTP/1.0 that stays',
    input: ['Connection', 'Keep-Alive'],
    httpVersion: '1.0',
    settings: { http10: 'allow' },
    expected: {},
  },
  {
    name: 'HTTP/1.0 cannot wait for 100',
    input: ['Expect', '100-continue', 'Content-Length', '1'],
    httpVersion: '1.0',
    settings: { http10: 'allow' },
    expected: { closes: true, contentLength: 1, hasBody: true },
  },
  {
    name: 'as many fields as may be',
    input: Array<string[]>(255).fill(['A', 'b']).flat(),
    expected: { passed: Array<string[]>(255).fill(['A', 'b']).flat() },
  },
];

t.test('header sections that are taken', (t) => {
  for (const { name, input, expected, settings, httpVersion } of accepted) {
    const bearer = readBearer(expected.authorization ?? null);
    t.same(
      read([...host, ...input], settings, httpVersion),
      { ok: true, value: { ...plain, bearer, ...expected } },
      name,
    );
  }
  t.end();
});

t.test('no registered header makes us fail, whatever it holds', (t) => {
  const names = readVectors('iana-field-names.json') as string[];
  for (const name of names) {
    for (const value of ['', 'a', '5', '"a"; b=c, d', '\u00ff', '0']) {
      const fields = read([...host, name, value]);
      if (!fields.ok && responseOf(fields.error.reason).status >= 500) t.fail(`${name}: ${value}`);
    }
  }
  const all = read([
    ...host,
    ...names
      .filter((name) => !/^(host|transfer-encoding|content-length|connection|expect|close)$/i.test(name))
      .flatMap((name) => [name, 'a']),
  ]);
  t.ok(all.ok, 'all of them together');
  t.end();
});

t.test('whatever a caller sends, nothing that we set gets through', (t) => {
  const token = /^[!#$%&'*+\-.^`|~0-9a-z]+$/i;
  const ours = new Set([
    'xcaller',
    'via',
    'te',
    'host',
    'connection',
    'xforwardedfor',
    'upgrade',
    'expect',
    'contentlength',
  ]);
  const name = fc.oneof(
    fc.constantFrom(
      'X-Caller',
      'x_caller',
      'Via',
      'TE',
      'Host',
      'Accept',
      'Cookie',
      'Connection',
      'X-Forwarded-For',
      'Upgrade',
      'Expect',
      'my_field',
      'Content-Length',
    ),
    fc.string({ maxLength: 12 }),
    fc.string({ unit: fc.constantFrom(...'xX-_.caller'.split('')), maxLength: 10 }),
  );
  const value = fc.oneof(
    fc.constantFrom('', 'a', 'close', 'x-caller', 'accept', '5', '100-continue', 'h2c'),
    fc.string({ unit: 'binary', maxLength: 12 }),
  );
  const fields = fc.array(fc.tuple(name, value), { maxLength: 8 });
  t.doesNotThrow(() =>
    fc.assert(
      fc.property(fields, (pairs) => {
        const result = read([...host, ...pairs.flat()]);
        if (!result.ok) return responseOf(result.error.reason).status < 500;
        const names = result.value.passed.filter((_, i) => i % 2 === 0);
        return names.every((passed) => token.test(passed) && !ours.has(passed.toLowerCase().replace(/[^a-z0-9]/g, '')));
      }),
      { numRuns: 2000 },
    ),
  );
  t.end();
});

t.test('a token is looked for where some are remembered, and read where it is not among them', (t) => {
  /** Its own digest, where it is a field that may have one. */
  const remembered: RememberedTokens = {
    digestOfHeader: (field) => (field.startsWith('Bearer ') ? field : null),
    has: (digest) => digest === 'Bearer a.b.c',
  };
  const cases: readonly (readonly [field: string, digest: string | null])[] = [
    ['Bearer a.b.c', 'Bearer a.b.c'],
    ['Bearer a.b.cd', 'Bearer a.b.cd'],
    ['bearer a.b.c', null],
  ];
  for (const [field, bearerDigest] of cases) {
    const expected = { ...plain, authorization: field, bearer: readBearer(field), bearerDigest };
    t.same(read([...host, 'Authorization', field], {}, '1.1', remembered), { ok: true, value: expected }, field);
  }
  const malformed = read([...host, 'Authorization', 'Bearer a b'], {}, '1.1', remembered);
  t.match(malformed, { ok: true, value: { bearer: { ok: false, error: { reason: 'credential_malformed' } } } });
  t.same(read([...host, 'Authorization', 'Bearer a\u0000'], {}, '1.1', remembered), {
    ok: false,
    error: { reason: 'field_malformed' },
  });
  for (const second of ['Bearer a.b.c', 'Bearer x']) {
    const twice = read([...host, 'Authorization', 'Bearer a.b.c', 'Authorization', second], {}, '1.1', remembered);
    t.same(twice, { ok: false, error: { reason: 'field_repeated' } });
  }
  t.end();
});
