/** Vectors of all algorithms that an issuer can allow, each by the key beside it: our own, and public ones. */
import t from 'tap';
import { createPublicKey, type KeyObject } from 'node:crypto';
import { verifySignature } from '../../src/decision/token/compact-jws.js';
import { checkJwk } from '../../src/decision/token/jwk.js';
import { algorithmNames, type Algorithm } from '../../src/decision/token/profiles.js';
import { headerProblem } from '../../src/decision/token/service-header.js';
import { parseTokenForm } from '../../src/decision/token/service-token.js';
import type { JsonObject } from '../../src/lib/strict-json.js';
import { issuerRules } from '../decision/samples.js';
import { readCorpus, readVectors } from '../vectors/corpus.js';

interface VectorFile {
  readonly testGroups: readonly {
    readonly comment: string;
    readonly public?: JsonObject;
    readonly private?: JsonObject;
    readonly tests: readonly {
      readonly tcId: number;
      readonly comment: string;
      readonly jws?: unknown;
      readonly result: string;
    }[];
  }[];
}

const rules = issuerRules({
  profile: 'oauth',
  algorithms: new Set(algorithmNames),
  headerTypes: new Set(['jwt', 'absent']),
  keyIds: { accept: ['*'], reject: [] },
});

interface Usable {
  readonly keyId: string;
  readonly algorithm: Algorithm;
  readonly key: KeyObject;
}

function readKey(jwk: JsonObject): Usable | null {
  const checked = checkJwk(jwk, { algorithms: rules.algorithms, use: 'sig' });
  if (!checked.ok) return null;
  const { keyId, algorithm, publicKey } = checked.value;
  return { keyId, algorithm, key: createPublicKey({ key: publicKey, format: 'jwk' }) };
}

/** What a request goes through, up to the claims. */
function isAccepted(jws: unknown, jwk: JsonObject): boolean {
  const token = parseTokenForm(typeof jws === 'string' ? jws : '');
  const usable = readKey(jwk);
  if (!token.ok || usable === null || headerProblem(token.value.header, rules) !== null) return false;
  const { header, keyId } = token.value;
  return (
    keyId === usable.keyId &&
    header['alg'] === usable.algorithm &&
    verifySignature(token.value, usable.key, usable.algorithm)
  );
}

/** Of the accepted ones, how many each algorithm has, and those that are not valid. */
function judge(file: VectorFile): { readonly accepted: Readonly<Record<string, number>>; readonly wrong: string[] } {
  const accepted: Record<string, number> = {};
  const wrong: string[] = [];
  for (const group of file.testGroups) {
    const jwk = group.public ?? group.private ?? {};
    for (const { tcId, comment, jws, result } of group.tests) {
      if (!isAccepted(jws, jwk)) continue;
      const algorithm = readKey(jwk)?.algorithm ?? '';
      accepted[algorithm] = (accepted[algorithm] ?? 0) + 1;
      if (result !== 'valid') wrong.push(`${String(tcId)} ${group.comment}: ${comment}`);
    }
  }
  return { accepted, wrong };
}

t.test('own vectors: of each algorithm one is valid', (t) => {
  const { accepted, wrong } = judge(readVectors('jws-algorithms.json') as VectorFile);
  t.same(wrong, [], 'no invalid one is accepted');
  t.same(accepted, Object.fromEntries(algorithmNames.map((name) => [name, 1])));
  t.end();
});

const corpus = readCorpus('wycheproof-jws.json');
if (corpus !== null) {
  t.test('Wycheproof JWS, under the algorithm of each key', (t) => {
    const { accepted, wrong } = judge(JSON.parse(corpus) as VectorFile);
    t.same(wrong, [], 'no invalid one is accepted');
    // Of each, the one with an empty payload is no token; two under PS256 say PS384, and nothing is called ES521.
    t.same(accepted, { ES256: 2, RS256: 7, RS384: 3, RS512: 3, PS256: 5, PS384: 3, PS512: 3 });
    t.end();
  });
}
