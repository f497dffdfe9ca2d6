import { createHash } from 'node:crypto';
import t from 'tap';
import { digestOf } from '../../src/lib/digest.js';

t.test('no two lists of parts collide by joining', (t) => {
  const lists: readonly (readonly string[])[] = [
    [],
    [''],
    ['', ''],
    ['a', 'b'],
    ['ab'],
    ['ab', ''],
    ['', 'ab'],
    ['a', '', 'b'],
    ['a|b', 'c'],
    ['a', 'b|c'],
    ['a,b'],
    ['a:b'],
    ['a\0b'],
    ['a\n', 'b'],
    ['a', '\nb'],
    ['{a}', 'b'],
    ['*'],
    ['a', 'b', ''],
  ];
  const digests = lists.map((parts) => digestOf('purpose', parts));
  t.equal(new Set(digests).size, lists.length);
  for (const digest of digests) t.match(digest, /^[A-Za-z0-9_-]{43}$/);
  t.end();
});

t.test('a value hashed for one purpose is never equal to one hashed for another', (t) => {
  t.not(digestOf('one', ['a']), digestOf('two', ['a']));
  t.not(digestOf('one', ['two', 'a']), digestOf('onetwo', ['a']));
  t.not(digestOf('one', []), digestOf('', ['one']));
  t.end();
});

t.test('bytes and the text they spell are one; the length is in bytes', (t) => {
  t.equal(digestOf('p', ['ä']), digestOf('p', [Buffer.from('ä')]));
  t.not(digestOf('p', [Buffer.from([0xe4])]), digestOf('p', ['ä']));
  const length = (bytes: number): Buffer => Buffer.from([0, 0, 0, 0, 0, 0, 0, bytes]);
  const expected = createHash('sha256')
    .update(Buffer.concat([length(1), Buffer.from('p'), length(2), Buffer.from('ä')]))
    .digest('base64url');
  t.equal(digestOf('p', ['ä']), expected, 'as the stores of other versions know it');
  t.end();
});
