import { isDeepStrictEqual } from 'node:util';
import { systemClock, systemTimers } from '../../adapters/system/clock.js';
import { localFiles } from '../../adapters/files/files.js';
import { createKeySource, sameSource, type RefreshedKeySource } from '../../adapters/jwks/key-source.js';
import { createCacheBudget } from '../../adapters/oauth/response-cache.js';
import { createIntrospector, type RunningIntrospection } from '../../adapters/oauth/introspector.js';
import type { ProcessMetrics } from '../../adapters/metrics/metrics.js';
import type { CompiledConfig, IssuerSettings, UpstreamSettings } from '../../config/types.js';
import type { Revocations } from '../../decision/route/policy.js';
import { longestKeyWaitMs } from '../../decision/http/http-freshness.js';
import type {
  IntrospectionState,
  KeySourceState,
  ProofKeeper,
  TokenCacheState,
  TokenLookups,
} from '../../ports/auth.js';
import type { Log } from '../../ports/system.js';
import { type ActiveConfig, createActiveConfig } from '../../proxy/auth/active-config.js';
import type { ProbedUpstream } from '../../admin/upstream-probe.js';
import { sessionIssuerName } from '../../decision/session/token.js';
import type { ActiveSessions } from '../../proxy/auth/credentials/session.js';
import { createVerifiedTokens } from '../../proxy/auth/verified-token-cache.js';
import { createUpstream, type Upstream } from '../../proxy/upstream/pool/pool.js';
import type { Assertions } from '../keys/assertion-keys.js';
import { warnOfExposure } from '../config/named-files.js';
import { createKeyMemory } from '../keys/key-carry-over.js';
import type { OpenRevocations } from '../store/store.js';
import { createReplacedParts, isSameUpstream } from './replaced-parts.js';

interface ConfigActivatorDeps {
  /** What verifies sessions; `null` where no route accepted them at start. It outlives every reload. */
  readonly sessions: ActiveSessions | null;
  /** Signs assertions; it outlives every reload. */
  readonly assertions: Pick<Assertions, 'headers'>;
  /** What knows of proofs of possession; it outlives every reload. */
  readonly proofs: ProofKeeper | null;
  /** What is revoked through the store; it outlives every reload. */
  readonly revocations: Pick<OpenRevocations, 'listed' | 'areKnown'>;
  readonly log: Log;
  readonly metrics: ProcessMetrics;
  /** Told what issuers are shown by the config in force, as PEM text by their names, whenever that may have changed. */
  readonly onClientCertificates: (chains: ReadonlyMap<string, string>) => void;
}

/** Puts a config in force, and holds the active one with the parts that run beside it. */
export interface ConfigActivator {
  readonly activeConfig: () => ActiveConfig;
  readonly keyStates: () => readonly KeySourceState[];
  /** Of the issuers that are asked about opaque tokens. */
  readonly introspectionStates: () => readonly IntrospectionState[];
  /** `null` where no token is remembered. */
  readonly tokenCache: () => TokenCacheState | null;
  /** The upstream that is in force, as its probes reach it. */
  readonly upstream: () => ProbedUpstream;
  /**
   * Puts a config in force, whole. Keys stay where they come from the same place, connections where the upstream does.
   * Waits for the first attempt at the keys of new sources, so that a reload does not open a gap; never rejects for
   * want of them.
   *
   * @param mayFollow asked when nothing is left to wait for: the config is put in force once it resolves, and not at
   *   all where it rejects. Left out where no other process takes the config as well.
   */
  readonly replace: (
    config: CompiledConfig,
    upstreamCa: string | null,
    mayFollow?: () => Promise<void>,
  ) => Promise<void>;
  /** Answers requests that wait for a key that may be new; from now on nobody waits for one. */
  readonly endWaits: () => void;
  /** Ends fetches and connections. */
  readonly close: () => Promise<void>;
}

interface RunningIssuer {
  readonly settings: IssuerSettings;
  readonly source: RefreshedKeySource;
  /** `null` where it has no opaque tokens. */
  readonly introspection: RunningIntrospection | null;
}

interface RunningUpstream {
  readonly settings: UpstreamSettings;
  readonly ca: string | null;
  readonly upstream: Upstream;
}

interface Running {
  readonly activeConfig: ActiveConfig;
  readonly issuers: readonly RunningIssuer[];
  readonly upstream: RunningUpstream;
}

/** What every config runs with, whichever is in force. */
interface RunDeps extends Pick<ConfigActivatorDeps, 'sessions' | 'assertions' | 'proofs' | 'revocations'> {
  readonly lookups: TokenLookups;
  /** What the config in force revokes. */
  readonly revokedNow: () => Revocations;
}

/** Puts a first config in force and starts to fetch keys, without waiting for them. */
export function createConfigActivator(
  config: CompiledConfig,
  upstreamCa: string | null,
  deps: ConfigActivatorDeps,
): ConfigActivator {
  const { metrics } = deps;
  const replaced = createReplacedParts();
  const memory = createKeyMemory(systemClock);
  const cacheBudget = createCacheBudget();
  const lookups: TokenLookups = { hits: 0, misses: 0 };
  let closed = false;
  label(config, config.issuers);
  const parts: RunDeps = { ...deps, lookups, revokedNow: () => running.activeConfig.config.revoked };
  let running = run(config, config.issuers.map(newIssuer), newUpstream(config.upstream, upstreamCa), parts);
  for (const issuer of running.issuers) void startIssuer(issuer);

  function newIssuer(settings: IssuerSettings): RunningIssuer {
    const { rules, keys } = settings;
    const sourceDeps = { clock: systemClock, timers: systemTimers, files: localFiles, log: deps.log, metrics };
    const source = createKeySource(keys, rules.name, rules.keyIds, sourceDeps, memory.recall(keys));
    return { settings, source, introspection: newIntrospection(settings, source) };
  }

  function newIntrospection(
    { rules, introspection }: IssuerSettings,
    keys: RefreshedKeySource,
  ): RunningIntrospection | null {
    if (introspection === null) return null;
    const made = createIntrospector(introspection, rules, {
      clock: systemClock,
      files: localFiles,
      log: deps.log,
      metrics,
      keys,
      cacheBudget,
      onSecretRead: (path) => warnOfExposure(path, localFiles, deps.log),
      onCertificate: () => {
        if (running.issuers.some((issuer) => issuer.introspection === made)) tellCertificates();
      },
    });
    return made;
  }

  async function replace(
    next: CompiledConfig,
    nextCa: string | null,
    mayFollow: () => Promise<void> = () => Promise.resolve(),
  ): Promise<void> {
    const before = running;
    const kept = new Map<IssuerSettings, RunningIssuer>();
    for (const settings of next.issuers) {
      const same = before.issuers.find((issuer) => isSameIssuer(issuer.settings, settings));
      if (same !== undefined) kept.set(settings, same);
    }
    for (const { settings, source } of before.issuers) memory.remember(settings.keys, source.held());
    const created = next.issuers.filter((settings) => !kept.has(settings)).map(newIssuer);
    label(before.activeConfig.config, [...before.activeConfig.config.issuers, ...next.issuers]);
    const asked = new Map<IssuerSettings, RunningIntrospection | null>();
    for (const [settings, { settings: earlier, source, introspection }] of kept) {
      asked.set(settings, asksTheSame(earlier, settings) ? introspection : newIntrospection(settings, source));
    }
    const begun = [...asked.values()].filter(
      (introspection) =>
        introspection !== null && !before.issuers.some((issuer) => issuer.introspection === introspection),
    );
    for (const { source, introspection } of created) {
      replaced.add(source);
      if (introspection !== null) replaced.add(introspection);
    }
    for (const introspection of begun) if (introspection !== null) replaced.add(introspection);
    await Promise.all([...created.map(startIssuer), ...begun.map((introspection) => introspection?.start())]);
    try {
      await mayFollow();
    } catch (error) {
      for (const { source, introspection } of created) {
        replaced.closeLater(source, 0);
        if (introspection !== null) replaced.closeLater(introspection, 0);
      }
      for (const introspection of begun) if (introspection !== null) replaced.closeLater(introspection, 0);
      label(before.activeConfig.config, before.activeConfig.config.issuers);
      throw error;
    }
    if (closed) return;

    // From here on nothing waits and nothing fails: no request sees half of it.
    const issuers = next.issuers.map((settings) => {
      const { source, introspection } =
        kept.get(settings) ?? created.find((issuer) => issuer.settings === settings) ?? newIssuer(settings);
      if (!kept.has(settings)) return { settings, source, introspection };
      source.update(settings.keys, settings.rules.keyIds);
      return { settings, source, introspection: asked.get(settings) ?? null };
    });
    const isSame = before.upstream.ca === nextCa && isSameUpstream(before.upstream.settings, next.upstream);
    const upstream = isSame ? { ...before.upstream, settings: next.upstream } : newUpstream(next.upstream, nextCa);
    running = run(next, issuers, upstream, parts);
    for (const { source, introspection } of issuers) {
      replaced.remove(source);
      if (introspection !== null) replaced.remove(introspection);
    }
    label(next, next.issuers);
    tellCertificates();
    // A request that began under it may go on for hours; what it remembers is of no use to anybody any more.
    before.activeConfig.verified?.close();
    retire(before, running);
  }

  function tellCertificates(): void {
    const chains = running.issuers.flatMap(({ settings, introspection }) => {
      const chain = introspection?.certificate() ?? null;
      return chain === null ? [] : [[settings.rules.name, chain] as const];
    });
    deps.onClientCertificates(new Map(chains));
  }

  function retire(before: Running, after: Running): void {
    if (before.upstream.upstream !== after.upstream.upstream) {
      replaced.retire(
        before.upstream.upstream,
        Math.max(0, ...before.issuers.map(({ settings }) => longestWaitMs(settings))),
      );
    }
    for (const { source, introspection, settings } of before.issuers) {
      if (!after.issuers.some((issuer) => issuer.source === source)) {
        replaced.closeLater(source, longestWaitMs(settings));
      }
      if (introspection === null || after.issuers.some((issuer) => issuer.introspection === introspection)) continue;
      replaced.closeLater(introspection, settings.introspection?.timeoutMs ?? 0);
    }
  }

  function label({ routes, egress, sha256 }: CompiledConfig, issuers: readonly IssuerSettings[]): void {
    metrics.setLabels({
      routes: [...new Set([...routes, ...(egress?.table.routes ?? [])].map(({ name }) => name))],
      issuers: [...issuers.map(({ rules }) => rules.name), ...(deps.sessions === null ? [] : [sessionIssuerName])],
      configSha256: sha256,
    });
  }

  return {
    activeConfig: () => running.activeConfig,
    keyStates: () => running.issuers.map(({ source }) => source.state()),
    introspectionStates: () => running.issuers.flatMap(({ introspection }) => introspection?.state() ?? []),
    tokenCache: () => {
      const { verified } = running.activeConfig;
      return verified === null ? null : { ...lookups, bytes: verified.bytes() };
    },
    upstream: () => running.upstream,
    replace,
    endWaits: () => {
      for (const { source } of running.issuers) source.endWaits();
    },
    close: async () => {
      closed = true;
      const parts = [
        ...running.issuers.flatMap(({ source, introspection }) => [source, ...(introspection ? [introspection] : [])]),
        running.upstream.upstream,
        replaced,
      ];
      await Promise.all(parts.map((part) => part.close()));
    },
  };
}

function run(
  config: CompiledConfig,
  issuers: readonly RunningIssuer[],
  upstream: RunningUpstream,
  { sessions, assertions, proofs, revocations, lookups, revokedNow }: RunDeps,
): Running {
  const { assertion } = config;
  return {
    issuers,
    upstream,
    activeConfig: createActiveConfig(config, {
      issuers: issuers.map(({ settings: { rules, introspection: asked }, source, introspection }) => ({
        rules,
        keys: source,
        ...(introspection === null || asked === null
          ? {}
          : { introspection: { rules: asked.rules, source: introspection } }),
      })),
      sessions,
      proofs,
      listed: revocations.listed,
      revokedNow,
      knowsRevocations: revocations.areKnown,
      assertion: assertion === null ? null : (request) => assertions.headers(request, assertion),
      upstream: upstream.upstream,
      verified: config.tokenCacheBytes === null ? null : createVerifiedTokens(config.tokenCacheBytes, lookups),
    }),
  };
}

/** Longest time that a request waits for a key of the issuer. */
function longestWaitMs({ keys }: IssuerSettings): number {
  return Math.max(longestKeyWaitMs, keys.timeoutMs);
}

function newUpstream(settings: UpstreamSettings, ca: string | null): RunningUpstream {
  return { settings, ca, upstream: createUpstream(settings, ca) };
}

/** Labels and log lines bear the name, so a renamed issuer starts anew. */
function isSameIssuer(a: IssuerSettings, b: IssuerSettings): boolean {
  return a.rules.name === b.rules.name && sameSource(a.keys, b.keys);
}

/** Whether questions are put as before, and their responses believed as before. */
function asksTheSame(a: IssuerSettings, b: IssuerSettings): boolean {
  return isDeepStrictEqual(a.introspection, b.introspection) && isDeepStrictEqual(a.rules, b.rules);
}

async function startIssuer({ source, introspection }: RunningIssuer): Promise<void> {
  await Promise.all([source.start(), introspection?.start()]);
}
