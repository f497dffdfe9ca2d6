import fc from 'fast-check';
import t from 'tap';
import { proxyStatus, withoutOwnMember } from '../../../src/decision/http/proxy-status.js';

const cases = [
  { name: 'nothing of ours', input: 'cdn; error=dns_error', expected: 'cdn; error=dns_error' },
  { name: 'ours alone', input: 'sallyport; error=http_request_denied', expected: null },
  { name: 'ours without parameters', input: 'sallyport', expected: null },
  { name: 'as a string', input: '"sallyport"; error=a', expected: null },
  { name: 'as a string before others', input: '"sallyport", a,b', expected: 'a, b' },
  { name: 'others are left as they came', input: 'a ,b;c,  "d"', expected: 'a ,b;c,  "d"' },
  { name: 'a string with a comma first', input: '"a, sallyport", sallyport', expected: '"a, sallyport"' },
  { name: 'in another case', input: 'SallyPort;error=a', expected: null },
  { name: 'among others', input: 'a;x=1, sallyport; error=b ,\tc', expected: 'a;x=1, c' },
  { name: 'twice', input: 'sallyport, "sallyport"; a', expected: null },
  { name: 'a name that begins alike', input: 'sallyport2, sallyport-edge', expected: 'sallyport2, sallyport-edge' },
  {
    name: 'in a string of another',
    input: 'a; details="x, sallyport; error=y"',
    expected: 'a; details="x, sallyport; error=y"',
  },
  {
    name: 'after an escaped quote',
    input: 'a; details="\\", sallyport", b',
    expected: 'a; details="\\", sallyport", b',
  },
  { name: 'after an escaped backslash', input: 'a; details="\\\\", sallyport, b', expected: 'a; details="\\\\", b' },
  { name: 'a string without an end', input: 'a; details="b', expected: null },
  {
    name: 'the rest of such a string',
    input: 'b", sallyport; error=a, c; d="e',
    expected: 'b", sallyport; error=a, c; d="e',
  },
  { name: 'a string that ends in a backslash', input: 'a; details="b\\', expected: null },
  { name: 'empty', input: '', expected: '' },
];

t.test('no member of our name comes from an upstream', (t) => {
  for (const { name, input, expected } of cases) t.equal(withoutOwnMember(input), expected, name);
  t.end();
});

t.test('whatever an upstream sends, one call removes all there is', (t) => {
  const value = fc.string({ unit: fc.constantFrom('sallyport', '"', '\\', ',', ';', ' ', 'a', '='), maxLength: 10 });
  t.doesNotThrow(() =>
    fc.assert(
      fc.property(value, (input) => {
        const once = withoutOwnMember(input);
        return once === null || withoutOwnMember(once) === once;
      }),
      { numRuns: 2000 },
    ),
  );
  t.end();
});

t.test('our own member', (t) => {
  t.equal(proxyStatus('http_request_denied'), 'sallyport; error=http_request_denied');
  t.end();
});
