import { setTimeout as delay } from 'node:timers/promises';
import { systemClock, systemTimers } from '../adapters/clock.js';
import type { Revocations } from '../decision/policy.js';
import type { Log } from '../ports.js';
import type { RevocationSource, RevocationsState } from '../ports-revocations.js';
import { createRevocationWatch } from '../proxy/revocation-watch.js';

/** Revocations through the store while the proxy runs. */
export interface OpenRevocations {
  readonly listed: () => readonly Revocations[];
  /** `null` where no store tells of any. */
  readonly state: () => RevocationsState | null;
  /** Begins to look, and gives the first list a moment: what comes in before would be judged without it. */
  readonly start: () => Promise<void>;
  readonly close: () => void;
}

/** How long a start waits for the first list, milliseconds. Out of reach for longer, the store is waited for by `/readyz`. */
const firstWithinMs = 1_500;

const lookEveryMs = 10;

/** @param onRevoked called when more is revoked than before. */
export function openRevocations(source: RevocationSource | null, log: Log, onRevoked: () => void): OpenRevocations {
  if (source === null) return { listed: () => [], state: () => null, start: () => Promise.resolve(), close: () => undefined };
  const watch = createRevocationWatch({ source, clock: systemClock, timers: systemTimers, log, onRevoked });
  return {
    listed: watch.rules,
    state: watch.state,
    start: async () => {
      watch.start();
      const deadline = systemClock.monotonic() + firstWithinMs;
      while (!watch.state().isLoaded && systemClock.monotonic() < deadline) await delay(lookEveryMs);
    },
    close: watch.close,
  };
}
