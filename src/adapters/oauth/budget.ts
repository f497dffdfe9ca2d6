import { clientNetworks } from '../../lib/ip-ranges.js';
import type { KeyAsker } from '../../ports/auth.js';

/** Questions that may be asked at once, by how many may be asked in a second. */
const burstS = 5;

/** Networks that are counted for themselves: some 100 bytes each. Beyond, whoever asked least lately begins anew. */
const maxNetworks = 4_096;

/**
 * What a /48 of IPv6 may ask, by what one /64 in it may: enough that one customer of a provider does not use up what
 * its neighbour in the same /48 may ask, and half of all with the defaults.
 */
const networksOfSite = 2;

interface Bucket {
  left: number;
  atMs: number;
}

interface Section {
  readonly all: Bucket;
  /** By the network of their clients, and by the site that it belongs to; whoever asked last is last. */
  readonly networks: Map<string, Bucket>;
  readonly sites: Map<string, Bucket>;
}

/** A question that may be asked; called where its response was `active`. */
export type Refund = () => void;

/** Bounds questions about tokens of which nothing good is known. */
interface Budget {
  /** `null` where the question is not to be asked. */
  readonly take: (asker: KeyAsker | null, nowMs: number) => Refund | null;
}

/**
 * Token buckets for each question: that of the caller's network, that of its site where it is of IPv6, and one for all.
 * Callers whose connection has shown a good credential before have buckets of their own, so that strangers who send
 * made-up tokens do not keep them from showing a new one. What proves to be good is given back: only others count.
 */
export function createBudget(perSecond: number, perAddress: number): Budget {
  const newSection = (): Section => ({ all: full(perSecond, 0), networks: new Map(), sites: new Map() });
  const known = newSection();
  const strangers = newSection();

  /** What counts for the question, each with its rate; a network that its site leaves nothing for is not counted. */
  function bucketsFor({ all, networks, sites }: Section, address: string, nowMs: number): readonly Rated[] {
    const { own, site } = clientNetworks(address);
    const rated: Rated[] = [{ bucket: all, rate: perSecond }];
    if (site !== own) {
      const rate = perAddress * networksOfSite;
      const bucket = renew(sites, site, rate, nowMs);
      rated.push({ bucket, rate });
      refill(bucket, rate, nowMs);
      if (bucket.left < 1) return rated;
    }
    rated.push({ bucket: renew(networks, own, perAddress, nowMs), rate: perAddress });
    return rated;
  }

  return {
    take: (asker, nowMs) => {
      const rated = bucketsFor(asker?.hasAuthenticated() === true ? known : strangers, asker?.address() ?? '', nowMs);
      for (const { bucket, rate } of rated) refill(bucket, rate, nowMs);
      if (rated.some(({ bucket }) => bucket.left < 1)) return null;
      for (const { bucket } of rated) bucket.left -= 1;
      return () => {
        for (const { bucket, rate } of rated) bucket.left = Math.min(rate * burstS, bucket.left + 1);
      };
    },
  };
}

interface Rated {
  readonly bucket: Bucket;
  readonly rate: number;
}

/** The bucket of this name, as the one that was asked for last. */
function renew(buckets: Map<string, Bucket>, name: string, rate: number, nowMs: number): Bucket {
  const bucket = buckets.get(name) ?? full(rate, nowMs);
  buckets.delete(name);
  buckets.set(name, bucket);
  if (buckets.size > maxNetworks) {
    const [oldest = ''] = buckets.keys();
    buckets.delete(oldest);
  }
  return bucket;
}

function full(rate: number, nowMs: number): Bucket {
  return { left: rate * burstS, atMs: nowMs };
}

function refill(bucket: Bucket, rate: number, nowMs: number): void {
  bucket.left = Math.min(rate * burstS, bucket.left + (Math.max(0, nowMs - bucket.atMs) / 1_000) * rate);
  bucket.atMs = nowMs;
}
