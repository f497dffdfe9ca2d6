import t from 'tap';
import { readCoreUrl } from '../../src/core-api/core-url.js';

const accepted: { input: string; expected: string }[] = [
  { input: 'http://127.0.0.1:3567', expected: 'http://127.0.0.1:3567' },
  { input: 'https://core.example/', expected: 'https://core.example' },
  { input: 'https://core.example/appid-a/', expected: 'https://core.example/appid-a' },
  { input: 'https://core.example/A_z~0.9-/b', expected: 'https://core.example/A_z~0.9-/b' },
  ...[
    '/recipe/user/passwordhash/import',
    '/recipe/signinup/code/consume',
    '/recipe/signinup/code',
    '/recipe/signinup',
    '/recipe/signin',
    '/recipe/user',
    '/recipe/jwt',
    '/apiversion',
    '/hello',
  ].flatMap((call) => [
    { input: `http://localhost:3567${call}`, expected: 'http://localhost:3567' },
    { input: `http://localhost:3567/base${call}/`, expected: 'http://localhost:3567/base' },
    { input: `http://localhost:3567${call}/more`, expected: `http://localhost:3567${call}/more` },
  ]),
];

const refused: { name: string; input: string; expected: RegExp }[] = [
  { name: 'nothing', input: '', expected: /^is no URL that begins/ },
  { name: 'no scheme', input: 'core.example', expected: /^is no URL that begins/ },
  { name: 'another scheme that holds one', input: 'xhttp://core.example', expected: /^is no URL that begins/ },
  { name: 'one URL in another', input: 'ftp://a/http://core.example', expected: /^is no URL that begins/ },
  { name: 'no host', input: 'http://', expected: /^is no URL/ },
  { name: 'no host, and what browsers take for one', input: 'http:///core.example', expected: /^is no URL/ },
  { name: 'a port that is none', input: 'http://core.example:x', expected: /^is no URL$/ },
  { name: 'white space at its end', input: 'http://core.example ', expected: /^is no URL$/ },
  { name: 'a backslash', input: 'http://core.example\\a', expected: /^is no URL$/ },
  { name: 'a user', input: 'http://user@core.example', expected: /^holds a user/ },
  { name: 'an empty user', input: 'http://@core.example', expected: /^holds a user/ },
  { name: 'a user and a password', input: 'http://user:secret@core.example', expected: /^holds a user/ },
  { name: 'a query', input: 'http://core.example?a', expected: /^has a query/ },
  { name: 'an empty query', input: 'http://core.example/?', expected: /^has a query/ },
  { name: 'a fragment', input: 'http://core.example#a', expected: /^has a query/ },
  { name: 'an empty fragment', input: 'http://core.example/a#', expected: /^has a query/ },
  { name: 'an at sign further on', input: 'http://core.example/http://a@b', expected: /^has a path/ },
  { name: 'an empty segment', input: 'http://core.example/a//b', expected: /^has a path/ },
  { name: 'a dot segment', input: 'http://core.example/./a', expected: /^has a path/ },
  { name: 'two dots', input: 'http://core.example/a/..', expected: /^has a path/ },
  { name: 'an escape', input: 'http://core.example/%61', expected: /^has a path/ },
];

t.test('where the Core is, with the path of one of its calls cut off', (t) => {
  for (const { input, expected } of accepted) t.same(readCoreUrl(input), { ok: true, value: expected }, input);
  t.end();
});

t.test('what curl would send besides is refused, in words that say nothing of it', (t) => {
  for (const { name, input, expected } of refused) {
    const read = readCoreUrl(input);
    t.match(read, { ok: false, error: expected }, name);
    t.notMatch(read, { error: /secret|core\.example/ }, name);
  }
  t.end();
});
