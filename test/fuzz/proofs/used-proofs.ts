/** Proofs that come again, to proxies whose clocks differ, at a store that fails: by the product and by a model. */
import { createMemoryStore } from '../../../src/adapters/memory/reservation-store.js';
import { accept, refuse } from '../../../src/lib/result.js';
import type { ReservationStore } from '../../../src/ports/idempotency.js';
import { createUsedProofs } from '../../../src/proxy/auth/used-proofs.js';
import { drawFrom, pick, type Draw } from '../draw.js';
import type { ProofReport } from './proof-campaign.js';

const startMs = 1_750_000_000_000;
const maxAgeMs = 60_000;
const clockSkewMs = 5_000;

/** One use of a proof. */
interface Use {
  readonly key: string;
  readonly id: string;
  readonly issuedAtS: number;
  /** The store's clock, and how far the proxy's is ahead of it: 10 s at most. */
  readonly storeMs: number;
  readonly aheadMs: number;
  /** From when on what the store knows is whole, seconds: when it is asked, and when it has answered. */
  readonly floors: readonly [number | null, number | null];
  readonly answers: 'well' | 'badly' | 'oddly';
  readonly confirmed: number | null;
}

function someUses(draw: Draw): readonly Use[] {
  let storeMs = startMs;
  const uses: Use[] = [];
  for (let count = 0; count < 12; count += 1) {
    storeMs += pick(draw, [0, 10, 1_000, 20_000, 59_000]);
    const nowS = Math.floor(storeMs / 1_000);
    const issuedAtS = pick(draw, uses.map((use) => use.issuedAtS).concat(nowS, nowS + 4, nowS - 30));
    const floor = (): number | null =>
      pick(draw, [null, null, null, null, issuedAtS - 6, issuedAtS - 5, issuedAtS - 4, issuedAtS]);
    const use: Use = {
      key: pick(draw, ['a', 'b']),
      // Who makes two proofs gives each an id of its own.
      id: `${pick(draw, ['1', '2', 'a1'])}-${String(issuedAtS)}`,
      issuedAtS,
      storeMs,
      aheadMs: pick(draw, [0, 0, 5_000, 9_999]),
      floors: [floor(), floor()],
      answers: pick(draw, ['well', 'well', 'well', 'well', 'badly', 'oddly'] as const),
      confirmed: pick(draw, [2, 1, 1, 0, null]),
    };
    // One that is over is refused before anybody asks whether it was used.
    if (storeMs + use.aheadMs < issuedAtS * 1_000 + maxAgeMs + clockSkewMs) uses.push(use);
  }
  return uses;
}

/** docs/bound-tokens.md: a proof counts once, and while nobody knows whether it was used it counts not at all. */
function judgeUse(use: Use, replicas: number, used: Set<string>): 'new' | 'used' | 'unavailable' {
  const isForgotten = (floorS: number | null): boolean =>
    floorS !== null && use.issuedAtS < floorS + clockSkewMs / 1_000;
  const [before, after] = use.floors.map(isForgotten);
  if (before === true || use.answers !== 'well') return 'unavailable';
  const name = JSON.stringify([use.key, use.id]);
  if (used.has(name)) return 'used';
  used.add(name);
  return after === true || (use.confirmed ?? 0) < replicas ? 'unavailable' : 'new';
}

export async function runUsedProofs(seed: number, cases: number, maxFaults = 5): Promise<ProofReport> {
  const faults: string[] = [];
  let [done, accepted] = [0, 0];
  while (done < cases && faults.length < maxFaults) {
    const draw = drawFrom(seed, done);
    const replicas = pick(draw, [0, 1, 2]);
    const uses = someUses(draw);
    const [said, expected] = [await byProduct(uses, replicas), byModel(uses, replicas)];
    if (said.join() !== expected.join()) {
      faults.push(
        `case ${done}, ${String(replicas)} replicas: ${said.join()}, not ${expected.join()}\n${JSON.stringify(uses)}`,
      );
    }
    accepted += said.filter((outcome) => outcome === 'new').length;
    done += 1;
  }
  return { cases: done, accepted, faults };
}

function byModel(uses: readonly Use[], replicas: number): readonly string[] {
  const used = new Set<string>();
  return uses.map((use) => judgeUse(use, replicas, used));
}

async function byProduct(uses: readonly Use[], replicas: number): Promise<readonly string[]> {
  let [storeMs, isAsked] = [startMs, false];
  let now: Use | undefined;
  const memory = createMemoryStore({ now: () => storeMs, monotonic: () => storeMs });
  const store: ReservationStore = {
    ...memory,
    issuedBeforeFloorS: () => now?.floors[isAsked ? 1 : 0] ?? null,
    reserve: async (scope, command) => {
      isAsked = true;
      if (now?.answers === 'badly') return refuse({ kind: 'timeout', reason: 'away', mayHaveRun: false });
      if (now?.answers === 'oddly') return accept({ reserved: { kind: 'unsupported' }, confirmedReplicas: 2 });
      const answer = await memory.reserve(scope, command);
      return answer.ok ? accept({ ...answer.value, confirmedReplicas: now?.confirmed ?? null }) : answer;
    },
  };
  const use = createUsedProofs({ store, replicas }, clockSkewMs);
  const outcomes: string[] = [];
  for (const one of uses) {
    [now, storeMs, isAsked] = [one, one.storeMs, false];
    const { key, id, issuedAtS, aheadMs } = one;
    const endsAtMs = issuedAtS * 1_000 + maxAgeMs + clockSkewMs;
    outcomes.push(await use({ key, id, issuedAtS, endsAtMs }, storeMs + aheadMs));
  }
  await memory.close();
  return outcomes;
}
