/** What decides on requests while the process runs, on whichever listener they come in. */
import { systemClock, systemTimers } from '../adapters/system/clock.js';
import { localFiles } from '../adapters/files/files.js';
import type { ProcessMetrics } from '../adapters/metrics/metrics.js';
import type { SessionSdk } from '../adapters/session/session-sdk.js';
import type { CompiledConfig } from '../config/types.js';
import { challengesOf } from '../decision/binding/challenges.js';
import type { Challenges } from '../decision/http/problem-details.js';
import { accept, type Result } from '../lib/result.js';
import type { KeySourceState } from '../ports/auth.js';
import type { StoreState } from '../ports/idempotency.js';
import type { Files, Log } from '../ports/system.js';
import { createCertificateExpiry, type CertificateExpiry } from './certificates/certificate-expiry.js';
import type { CompleteConfig } from './config/load-complete.js';
import { createAssertions, type Assertions } from './keys/assertion-keys.js';
import { openProofs, readNonceKeyFile, type NonceKeyFile } from './keys/proofs.js';
import { createConfigActivator, type ConfigActivator } from './reload/activate-config.js';
import { loadSessions, openSessions, type Sessions } from './sessions.js';
import { startFailure, type StartFailure } from './start-failure.js';
import { watchStoreAuthorities, type StoreAuthorities } from './store/store-authorities.js';
import {
  loadStore,
  openLimits,
  openReservations,
  openRevocations,
  readStoreFiles,
  type LimitCounters,
  type LoadedStore,
  type OpenLimits,
  type OpenRevocations,
  type Reservations,
} from './store/store.js';

/** What a decision needs besides the config, read and loaded: it counts at start only. */
export interface DecisionFiles {
  /** `null` where no store is configured. */
  readonly store: LoadedStore | null;
  /** PEM text of the store's authorities, or `null` for the system's. */
  readonly storeCa: string | null;
  /** `null` where no route accepts sessions. */
  readonly sessionSdk: SessionSdk | null;
  /** Keys of nonces; `null` where proofs need none. */
  readonly nonceKeys: NonceKeyFile | null;
}

interface DecisionDeps {
  readonly log: Log;
  readonly metrics: ProcessMetrics;
  /** Milliseconds between two looks at the files that the config names; half a second unless given. */
  readonly watchIntervalMs: number | undefined;
  /** Where requests of callers are counted; in this process where it is left out. */
  readonly limitCounters: LimitCounters | undefined;
}

/** What decides: the config in force, with keys, revocations, limits and the store. */
export interface Decision {
  readonly activator: ConfigActivator;
  /** `null` where no store is configured. */
  readonly reservations: Reservations | null;
  readonly revocations: OpenRevocations;
  readonly limits: OpenLimits;
  /** `null` where no route accepts sessions. */
  readonly sessions: Sessions | null;
  readonly assertions: Assertions;
  readonly certificates: CertificateExpiry;
  readonly storeAuthorities: StoreAuthorities;
  /** What every 401 asks for, on whichever listener the request came: `listen.dpop` holds for all of them. */
  readonly challenges: Challenges;
  readonly keyStates: () => readonly KeySourceState[];
  readonly storeState: () => StoreState | null;
  /** Answers requests that wait for a key that may be new; from now on nobody waits for one. */
  readonly endWaits: () => void;
  /** Ends fetches and watches, then the connections. */
  readonly close: () => Promise<void>;
}

/** Reads the files that a decision needs, and loads the programs that its settings ask for. */
export async function loadDecisionFiles(
  { listen, store, sessions }: CompiledConfig,
  files: Files = localFiles,
): Promise<Result<DecisionFiles, StartFailure>> {
  const storeFiles = await readStoreFiles(store, files);
  if (!storeFiles.ok) return storeFiles;
  const sessionSdk = await loadSessions(sessions);
  if (!sessionSdk.ok) return sessionSdk;
  const nonceKeys = await readNonceKeyFile(listen.dpop, files);
  if (!nonceKeys.ok) return nonceKeys;
  return accept({
    store: store === null ? null : await loadStore(store),
    storeCa: storeFiles.value.ca,
    sessionSdk: sessionSdk.value,
    nonceKeys: nonceKeys.value,
  });
}

/** Opens what decides. From here on the issuers' keys are fetched and the store is connected to. */
export function openDecision(
  first: CompleteConfig,
  { store, storeCa, sessionSdk, nonceKeys }: DecisionFiles,
  { log, metrics, watchIntervalMs, limitCounters }: DecisionDeps,
): Decision {
  const opened = first.config;
  const sessions =
    opened.sessions === null || sessionSdk === null
      ? null
      : openSessions(opened.sessions, sessionSdk, { log, metrics });
  const assertions = createAssertions(first.assertion, { files: localFiles, clock: systemClock, log });
  const certificates = createCertificateExpiry({ clock: systemClock, timers: systemTimers, log });
  const storeAuthorities = watchStoreAuthorities(opened.store, storeCa, {
    expiry: certificates,
    files: localFiles,
    log,
    watchIntervalMs,
  });
  const reservations = openReservations(
    store,
    storeAuthorities.ca,
    () => activator.activeConfig().config,
    metrics.reservations,
    log,
  );
  const proofs = openProofs(opened.listen.dpop, reservations?.parts ?? null, nonceKeys, {
    files: localFiles,
    clock: systemClock,
    log,
    watchIntervalMs,
  });
  const revocations = openRevocations(reservations?.revocations ?? null, {
    log,
    areRequired: reservations?.requiresRevocations ?? false,
  });
  const activator = createConfigActivator(opened, first.upstreamCa, {
    log,
    metrics,
    sessions: sessions?.activeConfig ?? null,
    assertions,
    proofs: proofs?.keeper ?? null,
    revocations,
    onClientCertificates: (chains) => {
      certificates.useShown('introspection', chains);
    },
  });
  return {
    activator,
    reservations,
    revocations,
    limits: openLimits(reservations?.rates ?? null, () => activator.activeConfig().config.routes, log, limitCounters),
    sessions,
    assertions,
    certificates,
    storeAuthorities,
    challenges: challengesOf(proofs !== null, proofs?.nonce ?? null),
    keyStates: () => [...activator.keyStates(), ...(sessions === null ? [] : [sessions.keyState()])],
    storeState: () => reservations?.state() ?? null,
    endWaits: () => {
      activator.endWaits();
      sessions?.endWaits();
    },
    close: async () => {
      assertions.close();
      proofs?.close();
      certificates.close();
      storeAuthorities.close();
      revocations.close();
      await Promise.all([activator.close(), reservations?.close(), sessions?.close()]);
    },
  };
}

/**
 * Reads what is in the store before anybody is served. Returns why the store must not be used: one that may forget lets
 * writes run twice, and will not mend itself. One that is away may be back any moment.
 */
export async function findUnfitStore({
  reservations,
  revocations,
}: Pick<Decision, 'reservations' | 'revocations'>): Promise<StartFailure | null> {
  const [problem] = await Promise.all([reservations?.lastingProblem() ?? null, revocations.start()]);
  return problem === null ? null : startFailure('invalid', `store.redis: ${problem}`);
}
