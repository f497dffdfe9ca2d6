/** The calling side while it runs: its targets, their tokens and connections. */
import { isDeepStrictEqual } from 'node:util';
import { systemClock } from '../adapters/system/clock.js';
import { localFiles } from '../adapters/files/files.js';
import type { ProcessMetrics } from '../adapters/metrics/metrics.js';
import type { CompiledConfig, EgressSettings, TargetSettings, TokenSourceSettings } from '../config/types.js';
import { RetryBudget } from '../decision/egress/retry-budget.js';
import { describeBug } from '../lib/errors.js';
import type { EgressState } from '../ports/observability.js';
import type { Log } from '../ports/system.js';
import type { TokenSource } from '../ports/tokens.js';
import { createActiveConfig, type ActiveConfig } from '../proxy/auth/active-config.js';
import { createEgressUpstream } from '../proxy/egress/egress-upstream.js';
import { BodyRoom } from '../proxy/egress/kept-body.js';
import { servingConfig } from '../proxy/egress/serving-config.js';
import type { EgressTarget } from '../proxy/egress/target.js';
import { createUpstream, type Upstream } from '../proxy/upstream/pool/pool.js';
import { createTokenSource } from './token-sources.js';

interface EgressDeps {
  readonly log: Log;
  readonly metrics: Pick<ProcessMetrics, 'egress'>;
}

/** Authorities that vouch for targets, as PEM texts by the paths of their files. */
export type TargetAuthorities = ReadonlyMap<string, string>;

export interface Egress {
  readonly activeConfig: () => ActiveConfig;
  /** Puts another config in force; what did not change goes on. */
  readonly replace: (config: CompiledConfig, settings: EgressSettings, authorities: TargetAuthorities) => void;
  readonly state: () => EgressState;
  readonly close: () => Promise<void>;
}

interface RunningTarget {
  readonly settings: TargetSettings;
  readonly ca: string | null;
  readonly upstream: Upstream;
  readonly budget: RetryBudget;
}

interface RunningToken {
  readonly settings: TokenSourceSettings;
  readonly source: TokenSource;
}

interface Running {
  readonly activeConfig: ActiveConfig;
  readonly targets: readonly RunningTarget[];
  readonly tokens: readonly RunningToken[];
}

/** Between looks at whether connections that were replaced still serve requests. */
const idleCheckMs = 1_000;

/** A request that began under the config before may still ask for its token. */
const lastAskMs = 10 * 60_000;

/** Opens the calling side. Tokens are had when the first request needs them. */
export function openEgress(
  config: CompiledConfig,
  settings: EgressSettings,
  authorities: TargetAuthorities,
  { log, metrics }: EgressDeps,
): Egress {
  /** What is in force no more, and may still serve requests. */
  const retired = new Set<() => Promise<void> | void>();
  const room = new BodyRoom(settings.maxHeldBytes);
  let running = run(config, settings, authorities, null);

  function run(
    next: CompiledConfig,
    { targets: targetSettings, tokens: tokenSettings, ...rest }: EgressSettings,
    cas: TargetAuthorities,
    before: Running | null,
  ): Running {
    room.resize(rest.maxHeldBytes);
    const tokens = tokenSettings.map(
      (each) => before?.tokens.find((known) => isDeepStrictEqual(known.settings, each)) ?? newToken(each),
    );
    const targets = targetSettings.map((each) => {
      const ca = each.upstream.caFile === null ? null : (cas.get(each.upstream.caFile) ?? null);
      const same = before?.targets.find(
        (known) =>
          known.settings.name === each.name &&
          known.ca === ca &&
          isDeepStrictEqual(known.settings.upstream, each.upstream),
      );
      return {
        settings: each,
        ca,
        upstream: same?.upstream ?? createUpstream(each.upstream, ca),
        budget:
          same?.settings.retries.budget === each.retries.budget ? same.budget : new RetryBudget(each.retries.budget),
      };
    });
    metrics.egress.setTargets(targets.map(({ settings: { name } }) => name));
    const served = targets.map((target) => targetOf(target, tokens));
    const upstream = createEgressUpstream(served, {
      room,
      clock: systemClock,
      random: Math.random,
      onBug: (error) => log.error('bug', describeBug(error)),
      onAttempt: metrics.egress.attempt,
      onNotRetried: metrics.egress.notRetried,
    });
    return {
      targets,
      tokens,
      activeConfig: createActiveConfig(
        servingConfig(next, { ...rest, targets: targetSettings, tokens: tokenSettings }),
        {
          issuers: [],
          sessions: null,
          assertion: null,
          upstream,
          verified: null,
          listed: () => [],
          knowsRevocations: () => true,
          isCallingSide: true,
        },
      ),
    };
  }

  function newToken(each: TokenSourceSettings): RunningToken {
    return { settings: each, source: createTokenSource(each, { clock: systemClock, files: localFiles, log }) };
  }

  function retire(before: Running): void {
    for (const { upstream } of before.targets) {
      if (running.targets.some((target) => target.upstream === upstream)) continue;
      upstream.retire();
      closeWhenIdle(upstream);
    }
    for (const { source } of before.tokens) {
      if (running.tokens.some((token) => token.source === source)) continue;
      closeAfter(lastAskMs, source.close);
    }
  }

  function closeWhenIdle(upstream: Upstream): void {
    closeAfter(idleCheckMs, () => {
      const { active, waiting } = upstream.counts();
      if (active + waiting > 0) closeWhenIdle(upstream);
      else void upstream.close();
    });
  }

  function closeAfter(delayMs: number, close: () => Promise<void> | void): void {
    retired.add(close);
    setTimeout(() => {
      if (retired.delete(close)) void close();
    }, delayMs).unref();
  }

  return {
    activeConfig: () => running.activeConfig,
    replace: (next, nextSettings, cas) => {
      const before = running;
      running = run(next, nextSettings, cas, before);
      retire(before);
    },
    state: () => ({
      heldBytes: room.held(),
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
      const late = [...retired];
      retired.clear();
      for (const { source } of running.tokens) source.close();
      await Promise.all([...running.targets.map(({ upstream }) => upstream.close()), ...late.map((close) => close())]);
    },
  };
}

function targetOf({ settings, upstream, budget }: RunningTarget, tokens: readonly RunningToken[]): EgressTarget {
  const token = tokens.find((each) => each.settings.name === settings.token) ?? null;
  return {
    name: settings.name,
    prefix: settings.prefix,
    basePath: settings.basePath,
    upstream,
    tokens: token?.source ?? null,
    takesSubject: token?.settings.kind === 'oauth' && token.settings.grant !== 'client_credentials',
    keyMode: settings.keyMode,
    keyFrom: settings.keyFrom,
    retries: settings.retries,
    budget,
    maxHeldBytes: settings.maxHeldBytes,
  };
}
