import { waitUntil } from '../../lib/wait-until.js';
import { systemClock, systemTimers } from '../../adapters/system/clock.js';
import type { Revocations } from '../../decision/route/policy.js';
import type { Log } from '../../ports/system.js';
import type { RevocationSource, RevocationsState } from '../../ports/revocations.js';
import { createRevocationWatch } from '../../proxy/auth/revocation-poller.js';

/** Revocations through the store while the proxy runs. */
export interface OpenRevocations {
  readonly listed: () => readonly Revocations[];
  /** Whether they were read once, or need not be for protected routes to be served. */
  readonly areKnown: () => boolean;
  /** `null` where no store tells of any. */
  readonly state: () => RevocationsState | null;
  /** Begins to look, and gives the first list a moment: what comes in before would be judged without it. */
  readonly start: () => Promise<void>;
  readonly close: () => void;
}

/**
 * How long a start waits for the first list, milliseconds. Out of reach for longer, protected routes and `/readyz` wait
 * for it.
 */
const firstWithinMs = 1_500;

interface RevocationsDeps {
  readonly log: Log;
  readonly areRequired: boolean;
  /** More is revoked than before. */
  readonly onRevoked: () => void;
}

export function openRevocations(source: RevocationSource | null, deps: RevocationsDeps): OpenRevocations {
  if (source === null) {
    return {
      listed: () => [],
      areKnown: () => true,
      state: () => null,
      start: () => Promise.resolve(),
      close: () => undefined,
    };
  }
  const watch = createRevocationWatch({ source, clock: systemClock, timers: systemTimers, ...deps });
  return {
    listed: watch.rules,
    areKnown: watch.areKnown,
    state: watch.state,
    start: async () => {
      watch.start();
      await waitUntil(() => watch.state().isLoaded, firstWithinMs);
    },
    close: watch.close,
  };
}
