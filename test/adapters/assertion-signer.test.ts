import { generateKeyPairSync } from 'node:crypto';
import { importJWK, jwtVerify } from 'jose';
import t from 'tap';
import { readAssertionKeys, signAssertion } from '../../src/adapters/assertion-signer.js';

const pair = (namedCurve: string) => generateKeyPairSync('ec', { namedCurve }).privateKey;
const pem = (type: 'pkcs8' | 'sec1' = 'pkcs8', namedCurve = 'P-256'): string =>
  pair(namedCurve).export({ format: 'pem', type }).toString();

t.test('keys of a PEM file, in both forms, the first one first', async (t) => {
  const read = readAssertionKeys(
    `# a comment\n${pem()}\n-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n${pem('sec1')}`,
  );
  if (!read.ok) throw new Error(read.error);
  const [first, second] = read.value;
  if (first === undefined || second === undefined) throw new Error('no keys');
  t.not(first.keyId, second.keyId);
  t.match(first.jwk, { kty: 'EC', crv: 'P-256', use: 'sig', alg: 'ES256', kid: first.keyId });
  t.notOk('d' in first.jwk, 'never the private part');
  const { payload, protectedHeader } = await jwtVerify(signAssertion(first, { sub: 'ä"' }), await importJWK(first.jwk));
  t.same([payload, protectedHeader], [{ sub: 'ä"' }, { alg: 'ES256', typ: 'JWT', kid: first.keyId }]);
});

t.test('what is no such key is refused, and never quoted', (t) => {
  const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 })
    .privateKey.export({ format: 'pem', type: 'pkcs8' })
    .toString();
  const locked = pair('P-256')
    .export({ format: 'pem', type: 'pkcs8', cipher: 'aes-256-cbc', passphrase: 'x' })
    .toString();
  const cases = [
    { name: 'nothing', text: '', expected: 'holds no PEM private key' },
    {
      name: 'a certificate',
      text: '-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n',
      expected: 'holds no PEM private key',
    },
    {
      name: 'a broken key',
      text: '-----BEGIN PRIVATE KEY-----\nMIIB\n-----END PRIVATE KEY-----\n',
      expected: 'holds no PEM private key',
    },
    {
      name: 'another curve',
      text: pem('pkcs8', 'P-384'),
      expected: 'holds a key that is none of P-256, which ES256 needs',
    },
    { name: 'RSA', text: rsa, expected: 'holds a key that is none of P-256, which ES256 needs' },
    { name: 'a locked key', text: locked, expected: 'is locked with a passphrase, which nobody could type here' },
    {
      name: 'a good one and a bad one',
      text: pem() + rsa,
      expected: 'holds a key that is none of P-256, which ES256 needs',
    },
    {
      name: 'a good one and one that is half written',
      text: pem() + pem().slice(0, 90),
      expected: 'holds a PEM private key that does not end',
    },
    {
      name: 'one that is half written and a good one',
      text: pem().slice(0, 90) + pem(),
      expected: 'holds a PEM private key that does not end',
    },
    { name: 'too many', text: pem().repeat(9), expected: 'holds more than 8 keys' },
  ];
  for (const { name, text, expected } of cases) t.same(readAssertionKeys(text), { ok: false, error: expected }, name);
  t.end();
});
