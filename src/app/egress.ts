/** The calling side while it runs: its targets, their tokens and connections. */
import { isDeepStrictEqual } from 'node:util';
import { systemClock } from '../adapters/system/clock.js';
import { localFiles } from '../adapters/files/files.js';
import type { ProcessMetrics } from '../adapters/metrics/metrics.js';
import type { CompiledConfig, EgressSettings, TargetSettings, TokenSourceSettings } from '../config/types.js';
import { RetryBudget } from '../decision/egress/retry-budget.js';
import { describeBug } from '../lib/errors.js';
import type { EgressState } from '../ports/observability.js';
import type { FileWatch, Log } from '../ports/system.js';
import { createActiveConfig, type ActiveConfig } from '../proxy/auth/active-config.js';
import { createEgressUpstream } from '../proxy/egress/egress-upstream.js';
import { RetryBufferBudget } from '../proxy/egress/retry-buffer.js';
import { servingConfig } from '../proxy/egress/serving-config.js';
import type { EgressTarget, TargetProofs } from '../proxy/egress/target.js';
import { createUpstream, type Upstream } from '../proxy/upstream/pool/pool.js';
import type { CertificateExpiry } from './certificates/certificate-expiry.js';
import type { CertificatePair } from './certificates/certificates.js';
import { isAskedForAsShown, watchTargetCertificates } from './certificates/target-certificates.js';
import type { CompleteConfig } from './config/load-complete.js';
import { createReplacedParts, isSameUpstream } from './reload/replaced-parts.js';
import { createTokenSource, type AttachedTokens } from './token-sources.js';

interface EgressDeps {
  readonly log: Log;
  readonly metrics: Pick<ProcessMetrics, 'egress'>;
  /** Is told what targets are shown from now on. */
  readonly expiry: Pick<CertificateExpiry, 'useShown'>;
  /** Milliseconds between two looks at files. */
  readonly watchIntervalMs: number | undefined;
}

/** What was read of the files that targets name. */
type TargetFiles = Pick<CompleteConfig, 'targetAuthorities' | 'targetCertificates'>;

export interface Egress {
  readonly activeConfig: () => ActiveConfig;
  /** Puts another config in force; what did not change goes on. */
  readonly replace: (config: CompiledConfig, settings: EgressSettings, files: TargetFiles) => void;
  readonly state: () => EgressState;
  readonly close: () => Promise<void>;
}

interface RunningTarget {
  readonly settings: TargetSettings;
  readonly ca: string | null;
  readonly certificate: CertificatePair | null;
  readonly upstream: Upstream;
  readonly budget: RetryBudget;
  readonly proofs: TargetProofs | null;
}

interface RunningToken {
  readonly settings: TokenSourceSettings;
  /** That its tokens are bound to, where targets are shown the same files. */
  readonly certificate: CertificatePair | null;
  readonly source: AttachedTokens;
}

interface Running {
  readonly activeConfig: ActiveConfig;
  readonly targets: readonly RunningTarget[];
  readonly tokens: readonly RunningToken[];
}

/** A request that began under the config before may still ask for its token. */
const lastAskMs = 10 * 60_000;

/** Opens the calling side. Tokens are had when the first request needs them. */
export function openEgress(
  config: CompiledConfig,
  settings: EgressSettings,
  files: TargetFiles,
  { log, metrics, expiry, watchIntervalMs }: EgressDeps,
): Egress {
  const replaced = createReplacedParts();
  const bufferBudget = new RetryBufferBudget(settings.totalRetryBufferBytes);
  let given = { config, settings, files };
  let running = run(null);
  let watch = watchCertificates();

  function run(before: Running | null): Running {
    const { targets: targetSettings, tokens: tokenSettings } = given.settings;
    const { targetAuthorities, targetCertificates } = given.files;
    bufferBudget.resize(given.settings.totalRetryBufferBytes);
    const tokens = tokenSettings.map((each): RunningToken => {
      // Each looks at the files at moments of its own, and a token of one pair is worth nothing beside the other.
      const shown = targetSettings.find((target) => isAskedForAsShown(each, target));
      const certificate = targetCertificates.get(shown?.name ?? '') ?? null;
      const same = before?.tokens.find(
        (known) => isDeepStrictEqual(known.settings, each) && isSamePair(known.certificate, certificate),
      );
      return same ?? newToken(each, certificate);
    });
    const targets = targetSettings.map((each): RunningTarget => {
      const ca = each.upstream.caFile === null ? null : (targetAuthorities.get(each.upstream.caFile) ?? null);
      const certificate = targetCertificates.get(each.name) ?? null;
      const same = before?.targets.find(
        (known) =>
          known.settings.name === each.name &&
          known.ca === ca &&
          isSamePair(known.certificate, certificate) &&
          isSameUpstream(known.settings.upstream, each.upstream),
      );
      const signer = tokens.find((token) => token.settings.name === each.token)?.source.proofs ?? null;
      return {
        settings: each,
        ca,
        certificate,
        upstream: same?.upstream ?? createUpstream(each.upstream, ca, certificate),
        budget:
          same?.settings.retries.budget === each.retries.budget ? same.budget : new RetryBudget(each.retries.budget),
        proofs: signer === null ? null : { signer, origin: each.upstream.url, nonce: same?.proofs?.nonce ?? null },
      };
    });
    expiry.useShown('target', new Map([...targetCertificates].map(([name, { cert }]) => [name, cert])));
    metrics.egress.setTargets(targets.map(({ settings: { name } }) => name));
    const served = targets.map((target) => targetOf(target, tokens));
    const upstream = createEgressUpstream(served, {
      bufferBudget,
      clock: systemClock,
      random: Math.random,
      onBug: (error) => log.error('bug', describeBug(error)),
      onAttempt: metrics.egress.attempt,
      onNotRetried: metrics.egress.notRetried,
    });
    return {
      targets,
      tokens,
      activeConfig: createActiveConfig(servingConfig(given.config, given.settings), {
        issuers: [],
        sessions: null,
        assertion: null,
        upstream,
        verified: null,
        listed: () => [],
        knowsRevocations: () => true,
        isCallingSide: true,
      }),
    };
  }

  function newToken(each: TokenSourceSettings, certificate: CertificatePair | null): RunningToken {
    const source = createTokenSource(each, { clock: systemClock, files: localFiles, log }, certificate);
    return { settings: each, certificate, source };
  }

  function watchCertificates(): Pick<FileWatch, 'close'> {
    return watchTargetCertificates(given.settings.targets, given.files.targetCertificates, {
      files: localFiles,
      log,
      intervalMs: watchIntervalMs,
      onChange: (targets, pair) => {
        const targetCertificates = new Map([
          ...given.files.targetCertificates,
          ...targets.map((name) => [name, pair] as const),
        ]);
        put({ ...given, files: { ...given.files, targetCertificates } });
      },
    });
  }

  /** Puts it in force. Connections that show another certificate serve what is under way, and no more. */
  function put(next: typeof given): void {
    given = next;
    const before = running;
    running = run(before);
    for (const { upstream } of before.targets) {
      if (!running.targets.some((target) => target.upstream === upstream)) replaced.retire(upstream);
    }
    for (const { source } of before.tokens) {
      if (!running.tokens.some((token) => token.source === source)) replaced.closeLater(source, lastAskMs);
    }
  }

  return {
    activeConfig: () => running.activeConfig,
    replace: (nextConfig, nextSettings, nextFiles) => {
      put({ config: nextConfig, settings: nextSettings, files: nextFiles });
      watch.close();
      watch = watchCertificates();
    },
    state: () => ({
      heldBytes: bufferBudget.held(),
      targets: running.targets.map(({ settings: each, upstream }) => ({
        name: each.name,
        prefix: each.prefix,
        url: each.upstream.url,
        token: each.token,
        connections: upstream.connections(),
        ...upstream.counts(),
      })),
      tokens: running.tokens.map(({ settings: { name }, source }) => ({ name, ...source.status() })),
    }),
    close: async () => {
      watch.close();
      for (const { source } of running.tokens) source.close();
      await Promise.all([...running.targets.map(({ upstream }) => upstream.close()), replaced.close()]);
    },
  };
}

function isSamePair(a: CertificatePair | null, b: CertificatePair | null): boolean {
  return a?.cert === b?.cert && a?.key === b?.key;
}

function targetOf(
  { settings, upstream, budget, proofs }: RunningTarget,
  tokens: readonly RunningToken[],
): EgressTarget {
  const token = tokens.find((each) => each.settings.name === settings.token) ?? null;
  return {
    name: settings.name,
    prefix: settings.prefix,
    basePath: settings.basePath,
    upstream,
    tokens: token?.source ?? null,
    takesSubject: token?.settings.kind === 'oauth' && token.settings.grant !== 'client_credentials',
    proofs,
    missingKey: settings.missingKey,
    keyFrom: settings.keyFrom,
    retries: settings.retries,
    budget,
    retryBufferBytes: settings.retryBufferBytes,
  };
}
