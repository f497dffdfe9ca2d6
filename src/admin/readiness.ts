import type { KeySourceState } from '../ports/auth.js';
import type { StoreState } from '../ports/idempotency.js';
import type { RevocationsState } from '../ports/revocations.js';

/** What `/readyz` says. Names come from the config; no detail, since kubelets and monitors may read it. */
export interface Readiness {
  /** `degraded` answers 200: requests are served, but somebody should look. */
  readonly status: 'ready' | 'degraded' | 'unavailable';
  /** Every check in a fixed order, so that the failing one is named. */
  readonly checks: readonly Check[];
}

interface Check {
  /**
   * `listener`, `shutdown`, `keys`, `keys:<issuer>` or, with a store, `store` and, where it is Redis, `revocations`.
   */
  readonly name: string;
  readonly status: 'ok' | 'stale' | 'failed';
}

/** Where the process is between start and end. */
export type Phase = 'starting' | 'serving' | 'stopping';

/**
 * Says whether requests should be sent here. Needs the keys of one issuer and not of all: an outage of one issuer
 * must not take away the service from the callers of the others. Needs no store: routes that reserve nothing serve on.
 * Needs to have read once what is revoked, where that is required: protected routes are refused until then.
 */
export function readinessOf(
  phase: Phase,
  sources: readonly KeySourceState[],
  store: StoreState | null,
  revocations: RevocationsState | null,
): Readiness {
  const inPart = [
    ...sources.map(keysCheck),
    ...(store === null ? [] : [storeCheck(store)]),
    ...(revocations === null ? [] : [revocationsCheck(revocations)]),
  ];
  const anyKeys = sources.length === 0 || sources.some((source) => source.usable);
  const checks: Check[] = [
    { name: 'listener', status: phase === 'starting' ? 'failed' : 'ok' },
    { name: 'shutdown', status: phase === 'stopping' ? 'failed' : 'ok' },
    { name: 'keys', status: anyKeys ? 'ok' : 'failed' },
    ...inPart,
  ];
  if (phase !== 'serving' || !anyKeys || (revocations?.areRequired === true && !revocations.isLoaded)) {
    return { status: 'unavailable', checks };
  }
  return { status: inPart.every((check) => check.status === 'ok') ? 'ready' : 'degraded', checks };
}

function keysCheck(source: KeySourceState): Check {
  const name = `keys:${source.issuer}`;
  if (!source.usable) return { name, status: 'failed' };
  return { name, status: source.stale ? 'stale' : 'ok' };
}

function storeCheck({ up }: StoreState): Check {
  return { name: 'store', status: up ? 'ok' : 'failed' };
}

function revocationsCheck({ isLoaded, isStale, notInForce, lost }: RevocationsState): Check {
  const name = 'revocations';
  if (!isLoaded || notInForce > 0) return { name, status: 'failed' };
  return { name, status: isStale || lost.length > 0 ? 'stale' : 'ok' };
}
