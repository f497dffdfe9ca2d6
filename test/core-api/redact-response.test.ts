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

const bcryptHash = '$2a$10$N9qo8uLOickgx2ZMRZoMyeIjZAgcfl7p92ldGxad68LJZdL17lhWy';
const argon2Hash = '$argon2id$v=19$m=65536,t=3,p=4$c2FsdHNhbHQ$ZGlnZXN0ZGlnZXN0';
const scryptHash = `$f_scrypt$${'aGFz'.repeat(21)}aA==$c2FsdA==$m=14$r=8$s=Bw==`;

const hashes: readonly { readonly name: string; readonly body: string; readonly expected: string }[] = [
  ...[
    ['bcrypt', bcryptHash],
    ['bcrypt with another identifier', bcryptHash.replace('2a', '2y')],
    ['argon2', argon2Hash],
    ['argon2d', argon2Hash.replace('2id', '2d')],
    ['hosted scrypt', scryptHash],
    ['argon2 as a JSON library escapes it', argon2Hash.replaceAll('=', '\\u003d')],
  ].flatMap(([name = '', hash = '']) => [
    { name: `${name} at the end`, body: `as of another row: ${hash}`, expected: 'as of another row: [hash]' },
    { name: `${name} in JSON`, body: `{"hash":"${hash}","n":1}`, expected: '{"hash":"[hash]","n":1}' },
    { name: `${name} behind a prefix`, body: `'{x}${hash}'`, expected: "'{x}[hash]'" },
  ]),
  { name: 'bcrypt in a sentence', body: `of ${bcryptHash}, it is`, expected: 'of [hash], it is' },
  { name: 'two', body: `'${bcryptHash}' '${scryptHash}'`, expected: "'[hash]' '[hash]'" },
  {
    name: 'identifiers alone',
    body: 'must begin with $2a$, $2b$12$, $argon2id$ or $f_scrypt$ and so on',
    expected: 'must begin with $2a$, $2b$12$, $argon2id$ or $f_scrypt$ and so on',
  },
  { name: 'sums of money', body: 'costs $2 to $2000', expected: 'costs $2 to $2000' },
];

t.test('a password hash that no call carried is not shown', (t) => {
  for (const { name, body, expected } of hashes) t.equal(readableResponse(body, []), expected, name);
  t.end();
});

const hashPieces: readonly (readonly [string, string])[] = [
  ['bcrypt over two lines', `${bcryptHash.slice(0, 40)}\n${bcryptHash.slice(40)}`],
  ['bcrypt broken behind its cost', `${bcryptHash.slice(0, 7)}\n ${bcryptHash.slice(7)}`],
  ['bcrypt cut short', bcryptHash.slice(0, 30)],
  ['bcrypt escaped as a URL', encodeURIComponent(bcryptHash)],
  ['bcrypt escaped as HTML', bcryptHash.replaceAll('$', '&#36;')],
  ['bcrypt with slashes escaped', bcryptHash.replace('L17', '\\/').replace('Wy', 'Wyab')],
  ['argon2 over two lines', `${argon2Hash.slice(0, 40)}\n${argon2Hash.slice(40)}`],
  ['argon2 escaped as a URL', encodeURIComponent(argon2Hash)],
  ['argon2 in a sentence, whose end may be its own', `the hash ${argon2Hash} is known`],
  ['hosted scrypt over two lines', `${scryptHash.slice(0, 40)}\n${scryptHash.slice(40)}`],
  ['hosted scrypt escaped as JavaScript', scryptHash.replaceAll('$', '\\x24')],
];

t.test('of an answer that repeats a password hash in pieces nothing is shown', (t) => {
  for (const [name, body] of hashPieces) t.match(readableResponse(body, []), /^\[not shown/, name);
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
  { name: 'password hashes without an end', piece: '$f_scrypt$' },
  { name: 'password hashes with an odd end', piece: '$argon2id$v= ' },
];

t.test('what a Core answers costs no more than its length', (t) => {
  for (const { name, piece } of hostile) t.ok(readableResponse(largest(piece), [secret]).length <= 202, name);
  t.end();
});
