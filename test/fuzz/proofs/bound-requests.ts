/** Whole requests with bound tokens, through every listener that there is, judged by the product and by the model. */
import type { Scope } from '../../support/scope.js';
import { drawFrom, pick } from '../draw.js';
import { someBoundHead } from '../heads.js';
import { createStages, tryHead } from '../in-process.js';
import { makeTokens } from '../keyring.js';
import type { ProofReport } from './proof-campaign.js';

export async function runBoundRequests(t: Scope, seed: number, cases: number, maxFaults = 5): Promise<ProofReport> {
  const [stages, tokens] = [createStages(t), makeTokens(seed, 20)];
  const faults: string[] = [];
  let [done, accepted] = [0, 0];
  while (done < cases && faults.length < maxFaults) {
    const draw = drawFrom(seed, done);
    const head = someBoundHead(draw, tokens);
    const { fault, forwarded } = await tryHead(head, pick(draw, stages));
    if (fault !== null) faults.push(`seed ${String(seed)}, case ${String(done)}: ${fault}\n${JSON.stringify(head)}`);
    if (forwarded) accepted += 1;
    done += 1;
  }
  return { cases: done, accepted, faults };
}
