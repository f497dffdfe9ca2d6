import { sessionKeyIds, sessionIssuerName } from '../decision/session/token.js';
import { systemClock, systemTimers } from '../adapters/system/clock.js';
import { localFiles } from '../adapters/files/files.js';
import { createKeySource } from '../adapters/jwks/key-source.js';
import { loadSessionSdk, type SessionSdk } from '../adapters/session/session-sdk.js';
import { createSessionVerifier } from '../adapters/session/session-verifier.js';
import type { SessionSettings } from '../config/types.js';
import { accept, refuse, type Result } from '../lib/result.js';
import type { KeySourceState } from '../ports/auth.js';
import type { Log } from '../ports/system.js';
import type { Metrics } from '../ports/observability.js';
import type { ActiveSessions } from '../proxy/auth/credentials/session.js';
import { startFailure, type StartFailure } from './start-failure.js';

/** What verifies sessions while the proxy runs. */
export interface Sessions {
  readonly activeConfig: ActiveSessions;
  readonly keyState: () => KeySourceState;
  /** Answers requests that wait for a key that may be new. */
  readonly endWaits: () => void;
  readonly close: () => Promise<void>;
}

/** Loads what routes that accept sessions need, and nothing where none does. */
export async function loadSessions(settings: SessionSettings | null): Promise<Result<SessionSdk | null, StartFailure>> {
  if (settings === null) return accept(null);
  const sdk = await loadSessionSdk(settings);
  return sdk.ok ? sdk : refuse(startFailure('invalid', sdk.error));
}

/** Opens them and begins to fetch the Core's keys; the settings count until the process ends. */
export function openSessions(
  settings: SessionSettings,
  sdk: SessionSdk,
  {
    log,
    metrics,
  }: { readonly log: Log; readonly metrics: Pick<Metrics, 'jwksRefresh' | 'discoveryRefresh' | 'jwksWait'> },
): Sessions {
  const verifier = createSessionVerifier(sdk, settings, { log, clock: systemClock, timers: systemTimers });
  const deps = { clock: systemClock, timers: systemTimers, files: localFiles, log, metrics };
  const keys = createKeySource(settings.keys, sessionIssuerName, sessionKeyIds, deps);
  void keys.start();
  return {
    activeConfig: { settings, keys, verifier },
    keyState: keys.state,
    endWaits: keys.endWaits,
    close: async () => {
      await Promise.all([keys.close(), verifier.close()]);
    },
  };
}
