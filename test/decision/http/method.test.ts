import t from 'tap';
import { readMethod } from '../../../src/decision/http/request-head.js';

const cases = [
  ...['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'M-SEARCH', 'X1', 'QUERY', "!#$%&'*+-.^_`|~09AZ"].map(
    (input) => ({ input, expected: null }),
  ),
  ...['TRACE', 'TRACK', 'CONNECT', 'PRI'].map((input) => ({ input, expected: { reason: 'method_not_allowed' } })),
  ...[
    '',
    'get',
    'Get',
    'GEt',
    'trace',
    'connect',
    'GE T',
    ' GET',
    'GET\n',
    'G\u00c9T',
    'GET/',
    'GET,POST',
    'GET"',
    '(GET)',
    'GET\u0000',
    '\u212aEEP',
  ].map((input) => ({ input, expected: { reason: 'method_malformed' } })),
];

t.test('methods are upper-case tokens, and those that are none of a resource are refused', (t) => {
  for (const { input, expected } of cases) t.same(readMethod(input), expected, JSON.stringify(input));
  t.end();
});
