/** Proofs with up to two things wrong with them, judged by the product and by the model. */
import { verifyDpopProof } from '../../../src/decision/binding/dpop-proof.js';
import { drawFrom, pick } from '../draw.js';
import { keys, thief, uncounted } from './keys.js';
import { isProof, type Asked } from './model-proof.js';
import { someProof } from './some-proof.js';

export interface ProofReport {
  readonly cases: number;
  readonly accepted: number;
  /** What the product says otherwise than the model. */
  readonly faults: readonly string[];
}

const startMs = 1_750_000_000_000;
const origin = 'https://orders.example';
const path = '/orders/~1%2B';

export async function runProofs(seed: number, cases: number, maxFaults = 5): Promise<ProofReport> {
  const faults: string[] = [];
  let [done, accepted] = [0, 0];
  while (done < cases && faults.length < maxFaults) {
    const draw = drawFrom(seed, done);
    const key = pick(draw, [...Object.values(keys), ...Object.values(keys), thief, ...Object.values(uncounted)]);
    const nowMs = startMs + pick(draw, [0, 0, 1, 999]);
    const madeFor = { method: 'GET', origin, path, token: 'a.good.token', nowMs };
    const { proof, input } = someProof(draw, key, madeFor, draw.below(3));
    const bound = draw.below(8) === 0 ? keys.ES256 : key;
    const asked: Asked = { ...madeFor, key: bound.thumbprint, maxAgeMs: 60_000, clockSkewMs: 5_000 };
    const rules = { origins: new Set([origin]), maxAgeMs: asked.maxAgeMs, clockSkewMs: asked.clockSkewMs };
    const said = verifyDpopProof(proof, { ...asked, isNonce: null }, rules).ok;
    const expected = await isProof(proof, asked);
    if (said !== expected) faults.push(`case ${done}: ${JSON.stringify(input)} ${said ? 'passes' : 'is refused'}`);
    if (said) accepted += 1;
    done += 1;
  }
  return { cases: done, accepted, faults };
}
