import { verify, type KeyObject } from 'node:crypto';
import { availableParallelism } from 'node:os';
import { createFairQueue, type FairQueue, type Waiting } from '../../decision/limits/fair-queue.js';
import {
  isSlowToVerify,
  signatureCheck,
  verifySignature,
  type Signed,
  type SignatureCheck,
} from '../../decision/token/compact-jws.js';
import type { Algorithm } from '../../decision/token/profiles.js';
import { clientNetworks } from '../../lib/ip-ranges.js';
import type { KeyAsker, VerificationKey } from '../../ports/auth.js';

/** Whether a signature holds; `busy` where too many wait to hear that, so that nobody looked. */
export type SignatureVerdict = 'holds' | 'does not hold' | 'busy';

/** Signatures that are slow to check, off the event loop. */
export interface SignatureQueue {
  /** @param asker who waits for it; `null` where it is the proxy itself that authorizes again whom it admitted. */
  readonly check: (
    signed: Signed,
    key: KeyObject,
    algorithm: Algorithm,
    asker: KeyAsker | null,
  ) => Promise<SignatureVerdict>;
  readonly counts: () => { readonly waiting: number; readonly underWay: number };
}

interface QueueLimits {
  /** Checks that may wait: half of them of connections that have shown a good credential before, half of others. */
  readonly maxWaiting: number;
  /** Checks at a time. */
  readonly atOnce: number;
}

/**
 * As many may wait as for keys: with the slowest of them, an ES512, for three quarters of a second. The thread pool has
 * four threads, which read files and look up names as well; and what it computes takes processors from the event loop,
 * which shall have one of them for itself.
 */
const usualLimits: QueueLimits = { maxWaiting: 512, atOnce: Math.max(1, Math.min(2, availableParallelism() - 1)) };

interface PendingCheck extends Waiting {
  readonly signed: Signed;
  readonly check: SignatureCheck;
  readonly resolve: (verdict: SignatureVerdict) => void;
}

const nowhere = clientNetworks('');

/**
 * Checks signatures on the thread pool, a few at a time. Callers on connections that have shown a good credential, and
 * strangers, take turns, and among these the networks that they send from (`createFairQueue`), so that whoever sends
 * many wrong ones waits behind everybody else for all but the first.
 */
export function createSignatureQueue({ maxWaiting, atOnce }: QueueLimits = usualLimits): SignatureQueue {
  // Those without an asker are as many as open WebSockets, and were admitted.
  const ours = createFairQueue<PendingCheck>(Infinity);
  const known = createFairQueue<PendingCheck>(maxWaiting / 2);
  const strangers = createFairQueue<PendingCheck>(maxWaiting / 2);
  const turns = [ours, known, strangers];
  let underWay = 0;

  function sectionOf(asker: KeyAsker | null): FairQueue<PendingCheck> {
    if (asker === null) return ours;
    return asker.hasAuthenticated() ? known : strangers;
  }

  function next(): PendingCheck | null {
    for (const section of [...turns]) {
      turns.push(...turns.splice(turns.indexOf(section), 1));
      const pending = section.next();
      if (pending?.isGone() === true) {
        pending.resolve('busy');
        return next();
      }
      if (pending !== null) return pending;
    }
    return null;
  }

  function startSome(): void {
    while (underWay < atOnce) {
      const pending = next();
      if (pending === null) return;
      start(pending);
    }
  }

  function start({ signed, check, resolve }: PendingCheck): void {
    underWay += 1;
    verify(check.hash, signed.signingInput, check.key, check.signature, (error, holds) => {
      underWay -= 1;
      resolve(error === null && holds ? 'holds' : 'does not hold');
      startSome();
    });
  }

  return {
    check: (signed, key, algorithm, asker) =>
      new Promise((resolve) => {
        const check = signatureCheck(signed, key, algorithm);
        if (check === null) {
          resolve('does not hold');
          return;
        }
        const { entered, ousted } = sectionOf(asker).enter({
          signed,
          check,
          resolve,
          networks: asker === null ? nowhere : clientNetworks(asker.address()),
          isGone: () => asker?.isGone() === true,
        });
        ousted?.resolve('busy');
        if (!entered) resolve('busy');
        startSome();
      }),
    counts: () => ({ waiting: ours.size() + known.size() + strangers.size(), underWay }),
  };
}

/** One for the process, as its thread pool is. */
const processQueue = createSignatureQueue();

/** Checks a signature: at once where that is fast, else when its turn has come. */
export function checkSignature(
  signed: Signed,
  { key, algorithm }: Pick<VerificationKey, 'key' | 'algorithm'>,
  asker: KeyAsker | null,
): SignatureVerdict | Promise<SignatureVerdict> {
  if (isSlowToVerify(key, algorithm)) return processQueue.check(signed, key, algorithm, asker);
  return verifySignature(signed, key, algorithm) ? 'holds' : 'does not hold';
}
