/** Proofs with up to two things wrong with them, judged by the product and by the model. */
import { verifyDpopProof } from '../../../src/decision/binding/dpop-proof.js';
import { makeProof, type ProofInput, type ProofKey } from '../../support/dpop.js';
import { drawFrom, pick, type Draw } from '../draw.js';
import { keys, large, slow, thief } from './keys.js';
import { isProof, type Asked } from './model-proof.js';

export interface ProofReport {
  readonly cases: number;
  readonly accepted: number;
  /** What the product says otherwise than the model. */
  readonly faults: readonly string[];
}

const nowMs = 1_750_000_000_500;
const nowS = Math.floor(nowMs / 1_000);
const origin = 'https://orders.example';
const token = 'a.good.token';

type Change = (
  input: Required<Pick<ProofInput, 'claims' | 'header'>>,
  draw: Draw,
  key: ProofKey,
) => Partial<ProofInput>;

const claim =
  (name: string, ...values: readonly unknown[]): Change =>
  ({ claims }, draw) => ({ claims: { ...claims, [name]: values[draw.below(values.length)] } });
const member =
  (name: string, ...values: readonly unknown[]): Change =>
  ({ header }, draw) => ({ header: { ...header, [name]: values[draw.below(values.length)] } });
const inKey =
  (changes: (key: ProofKey) => object): Change =>
  ({ header }, _draw, key) => ({ header: { ...header, jwk: { ...key.jwk, ...changes(key) } } });

const junk = [undefined, null, '', 5, true, ['x'], {}] as const;

const changes: readonly Change[] = [
  claim('jti', ...junk, 'x'.repeat(256), 'x'.repeat(257), 'a b', 'é'),
  claim('htm', ...junk, 'POST', 'get', 'GET'),
  claim(
    'htu',
    ...junk,
    `${origin}/orders/~1`,
    `${origin}/orders/%7e1`,
    `${origin}:443/orders/%7E1`,
    'HTTPS://ORDERS.example/orders/%7E1',
    `${origin}/orders/1`,
    `${origin}/orders/~1?a=b`,
    `${origin}/orders/~1#a`,
    `${origin}/x/../orders/~1`,
    `${origin}:8443/orders/~1`,
    'http://orders.example/orders/~1',
    'https://other.example/orders/~1',
    'https://a@orders.example/orders/~1',
  ),
  claim('iat', ...junk, nowS - 64, nowS - 65, nowS - 66, nowS + 5, nowS + 6, nowS + 0.5, String(nowS), nowS * 1_000),
  claim('ath', ...junk, token, 'x'.repeat(43)),
  claim('nonce', 'x', 5),
  member('typ', ...junk, 'JWT', 'DPOP+jwt', 'application/dpop+jwt'),
  member('alg', ...junk, 'none', 'HS256', 'ES384', 'RS512', 'es256', 'EdDSA', 'PS256'),
  member('kid', 'x', 5),
  member('crit', ['b64'], []),
  member('b64', true),
  member('jku', 'https://x'),
  member('jwk', ...junk, thief.jwk, slow.jwk, { kty: 'oct', k: 'AAAA' }),
  inKey(({ privateKey }) => ({ d: privateKey.export({ format: 'jwk' }).d })),
  inKey(() => ({ k: 'AA' })),
  inKey(() => ({ use: 'enc' })),
  inKey(() => ({ use: 'sig' })),
  inKey(() => ({ kid: 'x' })),
  inKey(({ algorithm }) => ({ alg: algorithm === 'RS256' ? 'PS256' : 'HS256' })),
  () => ({ signer: thief }),
  () => ({ token: 'another.good.token' }),
  () => ({ method: 'DELETE' }),
];

/** Said of the text itself. */
const respellings: readonly ((proof: string) => string)[] = [
  (proof) => proof,
  (proof) => `${proof}=`,
  (proof) => `${proof}.`,
  (proof) => `${proof}, ${proof}`,
  (proof) => proof.slice(0, -2),
  (proof) => proof.replace('.', '=.'),
  (proof) => ` ${proof}`,
];

export async function runProofs(seed: number, cases: number, maxFaults = 5): Promise<ProofReport> {
  const faults: string[] = [];
  let [done, accepted] = [0, 0];
  while (done < cases && faults.length < maxFaults) {
    const draw = drawFrom(seed, done);
    const key = pick(draw, [...Object.values(keys), thief, slow, large]);
    let input: ProofInput = { uri: `${origin}/orders/~1`, token, nowMs };
    for (let left = draw.below(3); left > 0; left -= 1) {
      const { claims = {}, header = {} } = input;
      input = { ...input, ...pick(draw, changes)({ claims, header }, draw, key) };
    }
    const respelling = draw.below(6) === 0 ? pick(draw, respellings) : (proof: string) => proof;
    const proof = respelling(makeProof(key, input));
    const bound = draw.below(8) === 0 ? keys.ES256 : key;
    const asked: Asked = {
      method: 'GET',
      path: '/orders/~1',
      token,
      key: bound.thumbprint,
      nowMs,
      origin,
      maxAgeMs: 60_000,
      clockSkewMs: 5_000,
    };
    const rules = { origins: new Set([origin]), maxAgeMs: asked.maxAgeMs, clockSkewMs: asked.clockSkewMs };
    const said = verifyDpopProof(proof, { ...asked, isNonce: null }, rules).ok;
    const expected = await isProof(proof, asked);
    if (said !== expected) faults.push(`case ${done}: ${JSON.stringify(input)} ${said ? 'passes' : 'is refused'}`);
    if (said) accepted += 1;
    done += 1;
  }
  return { cases: done, accepted, faults };
}
