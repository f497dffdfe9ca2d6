import { networkOf } from '../../lib/ip-ranges.js';
import type { KeyAsker } from '../../ports/auth.js';

/** Questions that may be asked at once, by how many may be asked in a second. */
const burstS = 5;

/** Networks that are counted for themselves: some 100 bytes each. Beyond, whoever asked least lately begins anew. */
const maxNetworks = 4_096;

interface Bucket {
  left: number;
  atMs: number;
}

interface Section {
  readonly all: Bucket;
  /** By the network of their clients; whoever asked last is last. */
  readonly networks: Map<string, Bucket>;
}

/** A question that may be asked; called where its answer was `active`. */
export type Refund = () => void;

/** Bounds questions about tokens of which nothing good is known. */
export interface Budget {
  /** `null` where the question is not to be asked. */
  readonly take: (asker: KeyAsker | null, nowMs: number) => Refund | null;
}

/**
 * Two token buckets for each question: that of the caller's network, and one for all. Callers whose connection has
 * shown a good credential before have buckets of their own, so that strangers who send made-up tokens do not keep them
 * from showing a new one. What proves to be good is given back: only others count.
 */
export function createBudget(perSecond: number, perAddress: number): Budget {
  const newSection = (): Section => ({ all: full(perSecond, 0), networks: new Map() });
  const known = newSection();
  const strangers = newSection();
  return {
    take: (asker, nowMs) => {
      const section = asker?.isKnown() === true ? known : strangers;
      const network = networkOf(asker?.address() ?? '');
      const own = section.networks.get(network) ?? full(perAddress, nowMs);
      section.networks.delete(network);
      section.networks.set(network, own);
      if (section.networks.size > maxNetworks) {
        const [oldest = ''] = section.networks.keys();
        section.networks.delete(oldest);
      }
      refill(own, perAddress, nowMs);
      refill(section.all, perSecond, nowMs);
      if (own.left < 1 || section.all.left < 1) return null;
      own.left -= 1;
      section.all.left -= 1;
      return () => {
        own.left = Math.min(perAddress * burstS, own.left + 1);
        section.all.left = Math.min(perSecond * burstS, section.all.left + 1);
      };
    },
  };
}

function full(rate: number, nowMs: number): Bucket {
  return { left: rate * burstS, atMs: nowMs };
}

function refill(bucket: Bucket, rate: number, nowMs: number): void {
  bucket.left = Math.min(rate * burstS, bucket.left + (Math.max(0, nowMs - bucket.atMs) / 1_000) * rate);
  bucket.atMs = nowMs;
}
