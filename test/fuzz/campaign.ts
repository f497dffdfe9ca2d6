/** Tries heads by the thousand: by grammar, and by small changes to those that took a way that none took before. */
import { drawFrom, once, pick, type Draw } from './draw.js';
import { someHead } from './heads.js';
import { tryHead, type Stage } from './in-process.js';
import { makeTokens, type Tokens } from './keyring.js';
import type { Head } from './model.js';
import { changedHead } from './mutations.js';

export interface CampaignReport {
  readonly cases: number;
  readonly forwarded: number;
  /** Ways through the decision that were seen. */
  readonly ways: number;
  /** The first faults, with what makes each happen again. */
  readonly faults: readonly string[];
}

export interface CampaignOptions {
  readonly seed: number;
  readonly cases: number;
  /** One in so many cases has a token that is signed anew. */
  readonly resignOdds: number;
  /** Faults after which it ends; 20 unless given. */
  readonly maxFaults?: number;
}

/** Signed once for all cases. */
const signedTokens = 200;
const maxKept = 5000;

/** Runs one. Case `n` of a seed depends on those before it only by which of them are kept as seeds of others. */
export async function runCampaign(stages: readonly Stage[], options: CampaignOptions): Promise<CampaignReport> {
  const { seed, cases, resignOdds, maxFaults = 20 } = options;
  const tokens = makeTokens(seed, signedTokens);
  const kept: Head[] = [];
  const ways = new Set<string>();
  const faults: string[] = [];
  let forwarded = 0;
  let number = 0;
  for (; number < cases && faults.length < maxFaults; number++) {
    const draw = drawFrom(seed, number);
    const head = nextHead(draw, kept, tokens, resignOdds);
    const stage = pick(draw, stages);
    const outcome = await tryHead(head, stage);
    if (outcome.forwarded) forwarded += 1;
    if (outcome.fault !== null) {
      faults.push(
        `seed ${String(seed)}, case ${String(number)}, ${stage.surroundings.policy.underscores}: ${outcome.fault}\n${JSON.stringify(head)}`,
      );
    }
    if (ways.has(outcome.way)) continue;
    ways.add(outcome.way);
    if (kept.length < maxKept) kept.push(head);
    else kept[draw.below(maxKept)] = head;
  }
  return { cases: number, forwarded, ways: ways.size, faults };
}

/** One third by grammar, so that what is kept never decides alone what is tried. */
function nextHead(draw: Draw, kept: readonly Head[], tokens: Tokens, resignOdds: number): Head {
  if (kept.length === 0 || once(draw, 3)) return someHead(draw, tokens);
  return changedHead(draw, pick(draw, kept), pick(draw, kept), resignOdds);
}
