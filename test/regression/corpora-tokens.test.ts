import t, { type Test } from 'tap';
import { createPublicKey, type KeyObject } from 'node:crypto';
import { type SignedToken, verifySignature } from '../../src/decision/token/compact-jws.js';
import { parseServiceToken } from '../../src/decision/token/service-token.js';
import type { JsonObject } from '../../src/lib/strict-json.js';
import { checkJwk } from '../../src/decision/token/jwk.js';
import { readCorpus, readVectors } from '../vectors/corpus.js';
import { coreKeyRules } from '../../src/decision/token/profiles.js';

interface VectorFile {
  readonly testGroups: readonly {
    readonly comment: string;
    readonly public?: KeyMaterial;
    readonly private?: KeyMaterial;
    readonly tests: readonly Vector[];
  }[];
}

type KeyMaterial = JsonObject | { readonly keys: readonly JsonObject[] };

interface Vector {
  readonly tcId: number;
  readonly comment: string;
  readonly jws?: unknown;
  readonly result: 'valid' | 'invalid' | 'acceptable';
}

interface Verdict {
  readonly name: string;
  readonly valid: boolean;
  /** Through the parser and the signature: what a request goes through. */
  readonly accepted: boolean;
  /** The signature alone, where only the grammar of tokens stood in the way. */
  readonly held: boolean;
}

/** A key as the key sources import it, or `null` where they do not. */
function importKey(jwk: JsonObject): KeyObject | null {
  const { n, e } = jwk;
  if (!checkJwk(jwk, coreKeyRules).ok || typeof n !== 'string' || typeof e !== 'string') return null;
  return createPublicKey({ key: { kty: 'RSA', n, e }, format: 'jwk' });
}

function judge(file: VectorFile): readonly Verdict[] {
  return file.testGroups.flatMap((group) => {
    const material = group.public ?? group.private ?? {};
    const keys =
      'keys' in material && Array.isArray(material.keys) ? (material.keys as JsonObject[]) : [material as JsonObject];
    return group.tests.map((vector) => {
      const text = typeof vector.jws === 'string' ? vector.jws : '';
      const token = parseServiceToken(text);
      const usable = keys.flatMap((jwk) => {
        const key = importKey(jwk);
        return key === null ? [] : [{ keyId: jwk['kid'], key }];
      });
      const accepted =
        token.ok && usable.some(({ keyId, key }) => keyId === token.value.keyId && verifySignature(token.value, key));
      const held = usable.some(({ key }) => verifySignature(bare(text), key));
      return {
        name: `${String(vector.tcId)} ${group.comment}: ${vector.comment}`,
        valid: vector.result === 'valid',
        accepted,
        held,
      };
    });
  });
}

/** The signed bytes and the signature of any three parts, empty ones too. */
function bare(text: string): Pick<SignedToken, 'signingInput' | 'signature'> {
  const end = text.lastIndexOf('.');
  return {
    signingInput: Buffer.from(text.slice(0, Math.max(end, 0))),
    signature: Buffer.from(text.slice(end + 1), 'base64url'),
  };
}

function noneTooMany(t: Test, verdicts: readonly Verdict[]): void {
  t.same(
    verdicts.filter(({ accepted, valid }) => accepted && !valid).map(({ name }) => name),
    [],
    'no invalid one is accepted',
  );
}

function numbers(verdicts: readonly Verdict[]): readonly (string | undefined)[] {
  return verdicts.map(({ name }) => name.split(' ')[0]);
}

t.test('own vectors', (t) => {
  const verdicts = judge(readVectors('jws-rs256.json') as VectorFile);
  noneTooMany(t, verdicts);
  const valid = verdicts.filter((verdict) => verdict.valid);
  t.equal(valid.length, 5);
  t.ok(
    valid.every(({ held }) => held),
    'every valid signature holds',
  );
  t.same(numbers(valid.filter((verdict) => !verdict.accepted)), ['3'], 'but over an empty payload it makes no token');
  t.end();
});

/** Which vectors of the public corpora a token's way accepts; the tests of absent files are those above. */
const corpora = [
  {
    title: 'Wycheproof JWS',
    file: 'wycheproof-jws.json',
    count: 401,
    accepted: ['33', '260', '261', '262', '263', '345', '349'],
  },
  {
    title: 'Wycheproof JWK, keys that nobody should verify with',
    file: 'wycheproof-jwk.json',
    count: 26,
    accepted: ['5'],
  },
  { title: 'Wycheproof, other JOSE vectors', file: 'wycheproof-jwcrypto.json', count: 83, accepted: ['33'] },
];

for (const { title, file, count, accepted } of corpora) {
  const text = readCorpus(file);
  if (text === null) continue;
  t.test(title, (t) => {
    const verdicts = judge(JSON.parse(text) as VectorFile);
    t.equal(verdicts.length, count);
    noneTooMany(t, verdicts);
    t.same(numbers(verdicts.filter((verdict) => verdict.accepted)), accepted);
    t.end();
  });
}

const jws = readCorpus('wycheproof-jws.json');
if (jws !== null) {
  t.test('pinned to RS256, exactly 8 Wycheproof JWS hold; the one with an empty payload is no token', (t) => {
    const verdicts = judge(JSON.parse(jws) as VectorFile).filter(({ valid, held }) => valid && held);
    t.same(numbers(verdicts), ['33', '259', '260', '261', '262', '263', '345', '349']);
    t.same(numbers(verdicts.filter(({ accepted }) => !accepted)), ['259']);
    t.end();
  });
}

const rfc7520 = readCorpus('rfc7520-4.1.json');
if (rfc7520 !== null) {
  t.test('RFC 7520 section 4.1', (t) => {
    const { input, output } = JSON.parse(rfc7520) as { input: { key: JsonObject }; output: { compact: string } };
    t.match(checkJwk(input.key, coreKeyRules), { ok: false }, 'with its private half it is no key to publish');
    const { kty = '', kid = '', use = '', n = '', e = '' } = input.key;
    const key = importKey({ kty, kid, use, n, e });
    const token = parseServiceToken(output.compact);
    t.ok(token.ok && key !== null && verifySignature(token.value, key));
    t.equal(token.ok && token.value.keyId, 'bilbo.baggins@hobbiton.example');
    t.end();
  });
}
