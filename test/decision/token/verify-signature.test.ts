import { constants, createSecretKey, generateKeyPairSync, sign } from 'node:crypto';
import t from 'tap';
import { verifySignature } from '../../../src/decision/token/compact-jws.js';
import { rsaKey } from '../../support/keys.js';

const { privateKey, publicKey } = rsaKey();
const signingInput = Buffer.from('header.payload');
const signature = sign('sha256', signingInput, privateKey);

function flipped(bit: number): Buffer {
  const copy = Buffer.from(signature);
  const at = bit >> 3;
  copy[at] = (copy[at] ?? 0) ^ (1 << (bit & 7));
  return copy;
}

t.test('RSASSA-PKCS1-v1_5 with SHA-256', (t) => {
  const pss = { key: privateKey, padding: constants.RSA_PKCS1_PSS_PADDING };
  const cases = [
    { name: 'the signature', signature, expected: true },
    { name: 'none', signature: Buffer.alloc(0), expected: false },
    { name: 'one byte', signature: Buffer.alloc(1), expected: false },
    { name: 'zeros', signature: Buffer.alloc(256), expected: false },
    { name: 'ones', signature: Buffer.alloc(256, 0xff), expected: false },
    { name: 'cut short', signature: signature.subarray(0, 255), expected: false },
    { name: 'a byte more', signature: Buffer.concat([signature, Buffer.alloc(1)]), expected: false },
    { name: 'a zero byte in front', signature: Buffer.concat([Buffer.alloc(1), signature]), expected: false },
    { name: 'as long as a token', signature: Buffer.alloc(6144, 1), expected: false },
    { name: 'the first bit', signature: flipped(0), expected: false },
    { name: 'the last bit', signature: flipped(2047), expected: false },
    { name: 'another digest', signature: sign('sha384', signingInput, privateKey), expected: false },
    { name: 'another padding', signature: sign('sha256', signingInput, pss), expected: false },
    { name: 'another text', signature: sign('sha256', Buffer.from('header.payloae'), privateKey), expected: false },
    { name: 'another key', signature: sign('sha256', signingInput, rsaKey('d-2').privateKey), expected: false },
  ];
  for (const { name, signature, expected } of cases) {
    t.equal(verifySignature({ signingInput, signature }, publicKey), expected, name);
  }
  t.end();
});

t.test('only a public RSA key verifies; others refuse instead of throwing or choosing another algorithm', (t) => {
  const secret = createSecretKey(Buffer.from(publicKey.export({ type: 'spki', format: 'pem' })));
  const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const edwards = generateKeyPairSync('ed25519');
  const rsaPss = generateKeyPairSync('rsa-pss', { modulusLength: 2048 });
  const cases = [
    { name: 'the private key', key: privateKey, signature },
    { name: 'a secret key', key: secret, signature },
    { name: 'an elliptic curve', key: ec.publicKey, signature: sign('sha256', signingInput, ec.privateKey) },
    { name: 'Ed25519', key: edwards.publicKey, signature: sign(null, signingInput, edwards.privateKey) },
    { name: 'RSA bound to PSS', key: rsaPss.publicKey, signature: sign('sha256', signingInput, rsaPss.privateKey) },
  ];
  for (const { name, key, signature } of cases) t.equal(verifySignature({ signingInput, signature }, key), false, name);
  t.end();
});
