import t from 'tap';
import { readableResponse } from '../../src/core-api/redact-response.js';

const secret = 'key-of-twenty-characters';

const rows: readonly { readonly name: string; readonly body: string; readonly expected: string }[] = [
  { name: 'plain text', body: 'Invalid API key\n', expected: 'Invalid API key' },
  {
    name: 'a page',
    body: '<html><head><title>x</title></head><body><h1>502</h1>Bad &amp; gone</body></html>',
    expected: '502 Bad & gone',
  },
  { name: 'a head without its end', body: '<HEAD><style>a{}</style><Body class="a">502</Body>', expected: '502' },
  { name: 'a head in a head', body: '<head><head></head>502', expected: '502' },
  { name: 'a script with a comparison', body: 'a<script>if (1<2 || 3>2) "</b>"</script>b', expected: 'a b' },
  { name: 'a name that only begins like one', body: '<header>502</header>', expected: '502' },
  { name: 'less than', body: '1 < 2', expected: '1 < 2' },
  { name: 'a secret between tags', body: `<b>${secret}</b>`, expected: '[hidden]' },
  { name: 'a secret behind entities', body: '&lt;key-of-twenty-characters&gt;', expected: '<[hidden]>' },
];

t.test('an answer in one readable line', (t) => {
  for (const { name, body, expected } of rows) t.equal(readableResponse(body, [secret]), expected, name);
  t.end();
});

const key = 'q7=Hs8Kd92LmPw0ZxYt5RvBn3';

/** The key with each character as an escape makes of its code, two hexadecimal digits. */
function escaped(escape: (code: string) => string): string {
  return Array.from(key, (each) => escape(each.charCodeAt(0).toString(16))).join('');
}

const repeated: readonly (readonly [string, string])[] = [
  ['broken over two lines', 'bad key: q7=Hs8Kd92\n LmPw0ZxYt5RvBn3'],
  ['with a NUL in it', 'bad key: q7=Hs8Kd92LmPw0\0ZxYt5RvBn3'],
  ['with a blank without width in it', 'bad key: q7=Hs8K\u200bd92LmPw0ZxYt5RvBn3'],
  ['without its beginning', `bad key: ${key.slice(1)}`],
  ['its end', `bad key: ${key.slice(-9)}`],
  ['in lower case', `bad key: ${key.toLowerCase()}`],
  ['escaped as HTML', 'bad key: q7&#61;Hs8Kd92LmPw0ZxYt5RvBn3'],
  ['escaped as HTML, each character', escaped((code) => `&#x${code};`)],
  ['escaped as JSON', escaped((code) => `\\u00${code}`)],
  ['escaped as JavaScript', escaped((code) => `\\x${code}`)],
  ['escaped as a URL', escaped((code) => `%${code}`)],
  ['in UTF-16', Array.from(key).join('\0')],
  ['in hexadecimal digits', Buffer.from(key).toString('hex')],
  ['in Base64', Buffer.from(key).toString('base64')],
  ['in Base64 with something before it', Buffer.from(`a:${key}`).toString('base64url')],
  ['in Base64 with something else before it', Buffer.from(`ab:c:${key}`).toString('base64')],
];

t.test('of an answer that repeats a piece of a secret nothing is shown', (t) => {
  for (const [name, body] of repeated) t.match(readableResponse(body, [key]), /not shown/, name);
  t.equal(readableResponse(`Invalid API key: ${key}`, [key]), 'Invalid API key: [hidden]');
  t.equal(
    readableResponse('Invalid API key: %zz &#99999999; \\u00', ['short', 'ab-cd-', key]),
    'Invalid API key: %zz &#99999999; \\u00',
  );
  t.end();
});

/**
 * As large as an answer may be. Looked at twice over, each of these took minutes, in which the process did nothing
 * else.
 */
const largest = (piece: string): string => piece.repeat(Math.floor((1024 * 1024) / piece.length));

const hostile: readonly { readonly name: string; readonly piece: string }[] = [
  { name: 'tags that do not end', piece: '<' },
  { name: 'names that do not end', piece: '<a' },
  { name: 'scripts that do not end', piece: '<script>' },
  { name: 'heads without their ends', piece: '<head ' },
  { name: 'ends without their heads', piece: '</head ' },
  { name: 'heads with other ends', piece: '<head></style>' },
];

t.test('what a Core answers costs no more than its length', (t) => {
  for (const { name, piece } of hostile) t.ok(readableResponse(largest(piece), [secret]).length <= 202, name);
  t.end();
});
