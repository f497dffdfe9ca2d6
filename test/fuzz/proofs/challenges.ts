/** What refusals of a listener ask for: the same of each 401, as docs/bound-tokens.md and docs/http.md have it. */
import { challengesOf } from '../../../src/decision/binding/challenges.js';
import { denial, reasons, responses } from '../../../src/decision/denial.js';
import { onlyBearer, problemOf } from '../../../src/decision/http/problem-details.js';
import { drawFrom, pick } from '../draw.js';
import type { ProofReport } from './proof-campaign.js';

type Said = readonly (readonly [name: string, value: string])[];

/** The fields of a 401; other refusals have none of them. */
function expectedOf(status: number, takesProofs: boolean, nonce: string | null): Said {
  if (status !== 401) return [];
  const algorithms = 'algs="ES256 Ed25519 EdDSA PS256 RS256"';
  const bearer = ['WWW-Authenticate', 'Bearer realm="sallyport"'] as const;
  if (!takesProofs) return [bearer];
  if (nonce === null) return [bearer, ['WWW-Authenticate', `DPoP realm="sallyport", ${algorithms}`]];
  const asked = `DPoP realm="sallyport", error="use_dpop_nonce", ${algorithms}`;
  return [bearer, ['WWW-Authenticate', asked], ['DPoP-Nonce', nonce]];
}

const names = ['www-authenticate', 'dpop-nonce'];

export function runChallenges(seed: number, cases: number, maxFaults = 5): Promise<ProofReport> {
  const faults: string[] = [];
  let [done, accepted] = [0, 0];
  while (done < cases && faults.length < maxFaults) {
    const draw = drawFrom(seed, done);
    const takesProofs = pick(draw, [true, true, false]);
    const nonces = takesProofs ? pick(draw, [null, ['n1', 'n2']]) : null;
    let made = 0;
    const challenges = challengesOf(takesProofs, nonces === null ? null : () => nonces[made++ % 2] ?? '');
    // A nonce is a new one each time, and everything else the same.
    for (const count of [0, 1]) {
      const reason = pick(draw, reasons);
      const { status } = responses[reason];
      if (status !== 401 && nonces !== null) made += 1;
      const { headers } = problemOf(denial(reason), 'r', draw.below(9) === 0 && !takesProofs ? onlyBearer : challenges);
      const said = pairs(headers).filter(([name]) => names.includes(name.toLowerCase()));
      const expected = expectedOf(status, takesProofs, nonces?.[count] ?? null);
      if (JSON.stringify(said) !== JSON.stringify(expected)) {
        faults.push(`case ${done}, ${reason}: ${JSON.stringify(said)}, not ${JSON.stringify(expected)}`);
      }
      if (status === 401) accepted += 1;
    }
    done += 1;
  }
  return Promise.resolve({ cases: done, accepted, faults });
}

function pairs(flat: readonly string[]): Said {
  return flat.flatMap((name, index) => (index % 2 === 0 ? [[name, flat[index + 1] ?? ''] as const] : []));
}
