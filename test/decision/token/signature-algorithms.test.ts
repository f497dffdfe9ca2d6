import { createPublicKey, createSecretKey, sign, type JsonWebKey, type KeyObject } from 'node:crypto';
import t from 'tap';
import { isSlowToVerify, verifySignature } from '../../../src/decision/token/compact-jws.js';
import { algorithmNames, type Algorithm } from '../../../src/decision/token/profiles.js';
import { keyFor, signatureBy } from '../../support/profile-tokens.js';

const signingInput = Buffer.from('header.payload');

function holds(signature: Buffer, key: KeyObject, algorithm: Algorithm): boolean {
  return verifySignature({ signingInput, signature }, key, algorithm);
}

t.test('each algorithm verifies what its own key signed by it, and nothing else does', (t) => {
  for (const signed of algorithmNames) {
    const signature = signatureBy(signed, keyFor(signed).privateKey, signingInput);
    for (const algorithm of algorithmNames) {
      t.equal(holds(signature, keyFor(signed).publicKey, algorithm), algorithm === signed, `${signed} as ${algorithm}`);
      if (algorithm === signed) continue;
      t.notOk(holds(signature, keyFor(algorithm).publicKey, algorithm), `${signed} under a key for ${algorithm}`);
    }
    const changed = Buffer.from(signature);
    changed[0] = (changed[0] ?? 0) ^ 1;
    t.notOk(holds(changed, keyFor(signed).publicKey, signed), `${signed}: a bit`);
    t.notOk(holds(signature.subarray(1), keyFor(signed).publicKey, signed), `${signed}: a byte less`);
    t.notOk(
      holds(Buffer.concat([signature, Buffer.of(0)]), keyFor(signed).publicKey, signed),
      `${signed}: a byte more`,
    );
    t.notOk(holds(Buffer.alloc(signature.length), keyFor(signed).publicKey, signed), `${signed}: nothing but zeros`);
    t.notOk(holds(Buffer.alloc(0), keyFor(signed).publicKey, signed), `${signed}: nothing`);
    t.notOk(holds(signature, keyFor(signed).privateKey, signed), `${signed}: a private key verifies nothing`);
  }
  t.end();
});

t.test('a public key is no secret, and a secret no key', (t) => {
  const pem = keyFor('RS256').publicKey.export({ type: 'spki', format: 'pem' });
  const secret = createSecretKey(Buffer.from(pem));
  for (const algorithm of algorithmNames) t.notOk(holds(Buffer.alloc(64), secret, algorithm), algorithm);
  t.end();
});

/** Of a modulus that is all ones: whether anybody could sign by it makes no difference. */
function rsa(bits: number, exponent = [1, 0, 1]): KeyObject {
  const n = Buffer.alloc(bits / 8, 0xff).toString('base64url');
  return createPublicKey({ format: 'jwk', key: { kty: 'RSA', n, e: Buffer.from(exponent).toString('base64url') } });
}

t.test('which keys are slow to verify with', (t) => {
  const rows: { name: string; key: KeyObject; algorithm: Algorithm; expected: boolean }[] = [
    ...algorithmNames.map((algorithm) => ({
      name: algorithm,
      key: keyFor(algorithm).publicKey,
      algorithm,
      expected: algorithm === 'ES384' || algorithm === 'ES512',
    })),
    { name: '4,096 bits', key: rsa(4_096), algorithm: 'RS256', expected: false },
    { name: 'more', key: rsa(4_104), algorithm: 'PS512', expected: true },
    { name: 'a large exponent', key: rsa(2_048, [1, 0, 3]), algorithm: 'RS256', expected: true },
    { name: 'a small one', key: rsa(2_048, [3]), algorithm: 'RS256', expected: false },
  ];
  for (const { name, key, algorithm, expected } of rows) t.equal(isSlowToVerify(key, algorithm), expected, name);
  t.end();
});

t.test('ECDSA in DER is refused', (t) => {
  for (const algorithm of ['ES256', 'ES384', 'ES512'] as const) {
    const { privateKey, publicKey } = keyFor(algorithm);
    const der = sign(`sha${algorithm.slice(2)}`, signingInput, { key: privateKey, dsaEncoding: 'der' });
    t.notOk(holds(der, publicKey, algorithm), algorithm);
  }
  t.end();
});

t.test('a key of another curve verifies nothing, however long the signature is', (t) => {
  const curves = ['ES256', 'ES384', 'ES512'] as const;
  for (const algorithm of curves) {
    const { length } = signatureBy(algorithm, keyFor(algorithm).privateKey, signingInput);
    for (const other of curves.filter((name) => name !== algorithm)) {
      t.notOk(holds(Buffer.alloc(length, 1), keyFor(other).publicKey, algorithm), `${other} as ${algorithm}`);
    }
  }
  t.end();
});

t.test('PSS with another salt length is refused', (t) => {
  const { privateKey, publicKey } = keyFor('PS256');
  for (const saltLength of [0, 20, 31, 33, 64]) {
    // RSA_PKCS1_PSS_PADDING
    const signature = sign('sha256', signingInput, { key: privateKey, padding: 6, saltLength });
    t.notOk(holds(signature, publicKey, 'PS256'), String(saltLength));
  }
  t.end();
});

t.test('PSS without its leading zeros is refused: RFC 8017 §8.1.2 has it as long as the modulus', (t) => {
  const { privateKey, publicKey } = keyFor('PS256');
  let signature = signatureBy('PS256', privateKey, signingInput);
  // The salt is chance, and one signature in 256 begins so.
  while (signature[0] !== 0) signature = signatureBy('PS256', privateKey, signingInput);
  t.ok(holds(signature, publicKey, 'PS256'), 'whole');
  t.notOk(holds(signature.subarray(1), publicKey, 'PS256'), 'a byte less');
  t.notOk(holds(Buffer.concat([Buffer.alloc(1), signature]), publicKey, 'PS256'), 'a byte more');
  t.end();
});

interface Example {
  readonly name: string;
  readonly algorithm: Algorithm;
  readonly jwk: JsonWebKey;
  readonly jws: string;
}

const examples: readonly Example[] = [
  {
    name: 'RFC 7515 appendix A.3',
    algorithm: 'ES256',
    jwk: {
      kty: 'EC',
      crv: 'P-256',
      x: 'f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU',
      y: 'x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0',
    },
    jws:
      'eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ' +
      '.DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q',
  },
  {
    name: 'RFC 7515 appendix A.4',
    algorithm: 'ES512',
    jwk: {
      kty: 'EC',
      crv: 'P-521',
      x: 'AekpBQ8ST8a8VcfVOTNl353vSrDCLLJXmPk06wTjxrrjcBpXp5EOnYG_NjFZ6OvLFV1jSfS9tsz4qUxcWceqwQGk',
      y: 'ADSmRA43Z1DSNx_RvcLI87cdL07l6jQyyBXMoxVg_l2Th-x3S1WDhjDly79ajL4Kkd0AZMaZmh9ubmf63e3kyMj2',
    },
    jws:
      'eyJhbGciOiJFUzUxMiJ9.UGF5bG9hZA.AdwMgeerwtHoh-l192l60hp9wAHZFVJbLfD_UxMi70cwnZOYaRI1bKPWROc-mZZqwqT2SI-KGDKB34XO0aw_7Xdt' +
      'AG8GaSwFKdCAPZgoXD2YBJZCPEX3xKpRwcdOO8KpEHwJjyqOgzDO7iKvU8vcnwNrmxYbSW9ERBXukOXolLzeO_Jn',
  },
  {
    name: 'RFC 8037 appendix A.4',
    algorithm: 'EdDSA',
    jwk: { kty: 'OKP', crv: 'Ed25519', x: '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo' },
    jws:
      'eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc' +
      '.hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg',
  },
];

t.test('the examples of the standards', (t) => {
  for (const { name, algorithm, jwk, jws } of examples) {
    const end = jws.lastIndexOf('.');
    const token = {
      signingInput: Buffer.from(jws.slice(0, end)),
      signature: Buffer.from(jws.slice(end + 1), 'base64url'),
    };
    const key = createPublicKey({ key: jwk, format: 'jwk' });
    for (const other of algorithmNames) {
      t.equal(verifySignature(token, key, other), other === algorithm, `${name} as ${other}`);
    }
  }
  t.end();
});
