/** Sends streams by the thousand, over a few proxies at once. */
import type { Scope } from '../support/scope.js';
import { drawFrom } from './draw.js';
import { someHead } from './heads.js';
import { tryHead, type Stage } from './in-process.js';
import { makeTokens, type Tokens } from './keyring.js';
import type { Head } from './model.js';
import { policies } from './policies.js';
import { startStreamStage, tryStream } from './stream-stage.js';
import { someStream } from './streams.js';

export interface StreamReport {
  readonly cases: number;
  /** Requests that reached a receiver. */
  readonly reached: number;
  readonly faults: readonly string[];
}

const maxFaults = 20;

/**
 * One proxy for each policy, and each tries its share one after the other: what a receiver gets belongs to one case.
 */
export async function runStreams(
  t: Scope,
  stages: readonly Stage[],
  seed: number,
  cases: number,
): Promise<StreamReport> {
  const tokens = makeTokens(seed, 100);
  // Heads that get through make the most of what a stream can hide.
  const kept = await passing(stages, seed, tokens);
  const faults: string[] = [];
  let number = 0;
  let reached = 0;
  await Promise.all(
    policies.map(async (policy) => {
      const stage = await startStreamStage(t, policy);
      while (number < cases && faults.length < maxFaults) {
        const mine = number;
        number += 1;
        const bytes = someStream(drawFrom(seed, mine), tokens, kept);
        const outcome = await tryStream(bytes, stage).catch((error: unknown) => ({ fault: String(error), reached: 0 }));
        reached += outcome.reached;
        if (outcome.fault !== null) {
          faults.push(
            `seed ${String(seed)}, case ${String(mine)}, ${policy.underscores}: ${outcome.fault}\n${JSON.stringify(bytes)}`,
          );
        }
      }
    }),
  );
  return { cases: number, reached, faults };
}

async function passing(stages: readonly Stage[], seed: number, tokens: Tokens): Promise<Head[]> {
  const kept: Head[] = [];
  for (let number = 0; kept.length < 100; number++) {
    const head = someHead(drawFrom(seed, number), tokens);
    const outcomes = await Promise.all(stages.map(async (stage) => tryHead(head, stage)));
    // Two of the policies take sessions and WebSockets.
    if (outcomes.filter(({ forwarded }) => forwarded).length >= 2) kept.push(head);
  }
  return kept;
}
