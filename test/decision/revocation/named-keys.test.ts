import t from 'tap';
import { namesKey } from '../../../src/decision/revocation/named-keys.js';

const base64url = (text: string | Buffer): string => Buffer.from(text as string).toString('base64url');
const of = (header: string | Buffer): string => `${base64url(header)}.e30.c2ln`;
const plain = of('{"alg":"RS256","kid":"d-1"}');

const rows: readonly (readonly [name: string, credential: string, expected: boolean])[] = [
  ['its kid', plain, true],
  ['behind a scheme', `Bearer ${plain}`, true],
  ['without a payload, and in the other alphabet', `${base64url('{"kid":"d-1"}')}..+/`, true],
  ['longer than any that is accepted', of(`{"kid":"d-1","x":"${'x'.repeat(9_000)}"}`), true],
  ['another member', of('{"kid":"d-2","x":"d-1"}'), false],
  ['a kid that is no text', of('{"kid":["d-1"]}'), false],
  ['a kid that is an object', of('{"kid":{"a":"d-1"}}'), false],
  [
    'two blanks, and a claim of this text',
    `Bearer  ${of('{"kid":"d-ok"}').replace('e30', base64url('{"env":"d-1"}'))}`,
    false,
  ],
  ['a tab', `Bearer\t${of('{"kid":"d-ok"}').replace('e30', base64url('{"env":"d-1"}'))}`, false],
  ['padded, and a claim of this text', `${of('{"kid":"d-ok"}').replace('e30', base64url('{"env":"d-1"}'))}==`, false],
  ['of five parts', `${of('{"kid":"d-ok"}')}.${base64url('"d-1"')}.c2ln`, false],
  ['of five parts, its kid', `Bearer  ${plain}.c2ln.c2ln`, true],
  ['a name that readers match without case', of('{"alg":"RS256","Kid":"d-1"}'), true],
  ['beside its kid', of('{"kid":"d-2","KID":"d-1"}'), true],
  ['with the Kelvin sign, which is a k without case', of('{"\u212aid":"d-1"}'), true],
  ['a name that only begins alike', of('{"kid2":"d-1"}'), false],
  ['no kid', of('{"alg":"RS256"}'), false],
  ['a name twice', of('{"kid":"d-1","kid":"d-2"}'), true],
  ['a name twice, of others', of('{"kid":"d-12","kid":"d-2"}'), false],
  ['escaped', of('{"kid":"d-2","kid":"\\u0064\\-1"}'), true],
  ['other quotes', of("{'kid':'d-1'}"), true],
  ['no quotes', of('{kid:d-1}'), true],
  ['UTF-16', of(Buffer.from('{"kid":"d-1"}', 'utf16le')), true],
  ['decoded from its second character', `x${plain}`, true],
  ['from its third', `xx${plain}`, true],
  ['from its fourth', `xxx${plain}`, true],
  ['characters in between', `Bearer "${plain.slice(0, 5)}=!${plain.slice(5)}"`, true],
  ['beside another token', `${of('{"kid":"d-2"}')} ${plain}`, true],
  ['no token', 'Bearer d-1', false],
  ['one dot', `${base64url('{"kid":"d-1"} ')}.`, false],
  ['nothing', '', false],
];

t.test('a key is found that a header names to anybody', async (t) => {
  for (const [name, credential, expected] of rows) {
    t.equal(
      namesKey(credential, (keyId) => keyId === 'd-1'),
      expected,
      name,
    );
  }
});

t.test('a key id of any visible characters', async (t) => {
  for (const keyId of ['a/b+c==', 'urn:x:1', "it's", 'a,b', 'ключ']) {
    const credential = of(JSON.stringify({ kid: 'd-2', 'k\u0069d ': 1 }).replace('1}', `1,"kid":"${keyId}",}`));
    t.equal(
      namesKey(credential, (text) => text === keyId),
      true,
      keyId,
    );
  }
});

t.test('a key id that is a number', async (t) => {
  t.equal(
    namesKey(of('{"kid":1}'), (keyId) => keyId === 1),
    true,
  );
});
