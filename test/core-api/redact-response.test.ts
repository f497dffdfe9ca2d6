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
