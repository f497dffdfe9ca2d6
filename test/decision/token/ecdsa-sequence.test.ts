import { generateKeyPairSync, sign, verify } from 'node:crypto';
import t from 'tap';
import { ecdsaSequence } from '../../../src/decision/token/ecdsa-sequence.js';

const hex = (text: string): Buffer => Buffer.from(text.replaceAll(' ', ''), 'hex');

t.test('two numbers become a sequence of the shortest integers', (t) => {
  const rows: readonly (readonly [name: string, numbers: string, sequence: string])[] = [
    ['small ones', '0001 007f', '3006 020101 02017f'],
    ['what would be a sign has a zero before it', '0080 ff00', '3009 02020080 020300ff00'],
    ['zero is one byte', '0000 0100', '3007 020100 02020100'],
    ['66 bytes each: the length takes two bytes', 'ff'.repeat(132), `30818a${`024300${'ff'.repeat(66)}`.repeat(2)}`],
  ];
  for (const [name, numbers, sequence] of rows) t.same(ecdsaSequence(hex(numbers)), hex(sequence), name);
  t.end();
});

t.test('what Node.js signs in one form holds in the other', (t) => {
  for (const [namedCurve, hash] of [
    ['P-256', 'sha256'],
    ['P-384', 'sha384'],
    ['P-521', 'sha512'],
  ] as const) {
    const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve });
    let held = 0;
    for (let i = 0; i < 100; i += 1) {
      const text = Buffer.from(String(i));
      const numbers = sign(hash, text, { key: privateKey, dsaEncoding: 'ieee-p1363' });
      if (verify(hash, text, publicKey, ecdsaSequence(numbers))) held += 1;
    }
    t.equal(held, 100, namedCurve);
  }
  t.end();
});
