import t from 'tap';
import { readRoutePath } from '../../../../src/config/sections/routes/route-path.js';

const literal = (text: string) => ({ kind: 'literal', text });
const parameter = (name: string) => ({ kind: 'parameter', name });

const read = [
  { input: '/', expected: [literal('')] },
  { input: '/orders', expected: [literal('orders')] },
  { input: '/orders/', expected: [literal('orders'), literal('')] },
  { input: '/orders/{id}', expected: [literal('orders'), parameter('id')] },
  { input: '/{a}/{b-c_1}/x', expected: [parameter('a'), parameter('b-c_1'), literal('x')] },
  { input: '/**', expected: [{ kind: 'rest' }] },
  { input: '/a/{x}/**', expected: [literal('a'), parameter('x'), { kind: 'rest' }] },
  { input: "/a-b._~!$&'()+,=:@0", expected: [literal("a-b._~!$&'()+,=:@0")] },
  { input: '/a%20b', expected: [literal('a b')] },
  { input: '/caf%C3%A9', expected: [literal('café')] },
  { input: '/caf%c3%a9', expected: [literal('café')] },
  { input: '/%7Bid%7D', expected: [literal('{id}')] },
  { input: '/%2A', expected: [literal('*')] },
  { input: '/...', expected: [literal('...')] },
];

const refused = [
  { input: '', expected: 'does not begin with /' },
  { input: 'orders', expected: 'does not begin with /' },
  { input: 'http://x/orders', expected: 'does not begin with /' },
  { input: '//', expected: 'has an empty segment' },
  { input: '/a//b', expected: 'has an empty segment' },
  { input: '/**/a', expected: 'has ** before its end' },
  { input: '/a/**/', expected: 'has ** before its end' },
  { input: '/*', expected: 'has an asterisk in "*"' },
  { input: '/a/*', expected: 'has an asterisk in "*"' },
  { input: '/a*', expected: 'has an asterisk in "a*"' },
  { input: '/a/***', expected: 'has an asterisk in "***"' },
  { input: '/{}', expected: 'has a malformed parameter in "{}"' },
  { input: '/{a', expected: 'has a malformed parameter in "{a"' },
  { input: '/a}', expected: 'has a malformed parameter in "a}"' },
  { input: '/x{a}', expected: 'has a malformed parameter in "x{a}"' },
  { input: '/{a}x', expected: 'has a malformed parameter in "{a}x"' },
  { input: '/{a}{b}', expected: 'has a malformed parameter in "{a}{b}"' },
  { input: '/{a b}', expected: 'has a malformed parameter in "{a b}"' },
  { input: '/{a:[0-9]+}', expected: 'has a malformed parameter in "{a:[0-9]+}"' },
  { input: '/{1}', expected: 'has a malformed parameter in "{1}"' },
  { input: '/{a}/{a}', expected: 'has two segments {a}' },
  ...[
    '.',
    '..',
    '%2e',
    '%2E%2e',
    '.%2e',
    '%61',
    '%2f',
    '%2F',
    '%5c',
    '%3b',
    '%3F',
    '%23',
    'a;b',
    'a\\b',
    'a#b',
    'a?b',
    'a b',
    'é',
    '%',
    '%4',
    '%zz',
    '%00',
    '%0a',
    '%7f',
    '%ff',
    '%c0%ae',
    '%2541',
    '\u0000',
    '\n',
    '"',
    '<',
    '^',
    '`',
    '|',
    '\u007f',
  ].map((part) => ({ input: `/x/${part}`, expected: `has ${JSON.stringify(part)}, which no request may have` })),
];

t.test('paths of routes', (t) => {
  for (const { input, expected } of read) {
    const path = readRoutePath(input);
    t.same(path, { ok: true, value: { text: input, segments: expected } }, input);
  }
  t.end();
});

t.test('a path that no request can have, or two readers may read differently', (t) => {
  for (const { input, expected } of refused) {
    const path = readRoutePath(input);
    t.equal(path.ok ? null : path.error.message, expected, JSON.stringify(input));
  }
  t.end();
});
