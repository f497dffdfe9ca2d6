/** What one worker has of bounds that hold for all of them together. */
import type { CompiledConfig, IssuerSettings, ListenSettings } from '../../config/types.js';

/** Which of how many workers. */
export interface Share {
  /** From 1. */
  readonly number: number;
  readonly count: number;
}

/**
 * The config as one worker has it: its part of each bound, so that all of them together never have more than the config
 * says. Limits by caller stay whole, which the primary counts for all.
 */
export function shareConfig(config: CompiledConfig, share: Share): CompiledConfig {
  const whole = (bound: number): number => partOf(bound, share);
  const listener = (listen: ListenSettings): ListenSettings => ({
    ...listen,
    maxInFlight: whole(listen.maxInFlight),
    maxWebSockets: whole(listen.maxWebSockets),
  });
  const { egress, telemetry, log, tokenCacheBytes } = config;
  return {
    ...config,
    listen: listener(config.listen),
    decide: config.decide.map((door) => ({ ...door, listen: listener(door.listen) })),
    upstream: { ...config.upstream, maxConnections: whole(config.upstream.maxConnections) },
    issuers: config.issuers.map((issuer) => sharedIssuer(issuer, share)),
    tokenCacheBytes: tokenCacheBytes === null ? null : whole(tokenCacheBytes),
    telemetry: { ...telemetry, followedPerSecond: whole(telemetry.followedPerSecond) },
    log: { ...log, refusalsPerSecond: log.refusalsPerSecond === null ? null : whole(log.refusalsPerSecond) },
    egress:
      egress === null
        ? null
        : {
            ...egress,
            listen: listener(egress.listen),
            maxHeldBytes: whole(egress.maxHeldBytes),
            targets: egress.targets.map((target) => ({
              ...target,
              upstream: { ...target.upstream, maxConnections: whole(target.upstream.maxConnections) },
            })),
          },
  };
}

/** The remainder goes to the first ones. */
function partOf(bound: number, { number, count }: Share): number {
  return Math.floor(bound / count) + (number <= bound % count ? 1 : 0);
}

/** Questions about opaque tokens are few a second: a part of one is a question in some seconds. */
function sharedIssuer(issuer: IssuerSettings, { count }: Share): IssuerSettings {
  const { introspection } = issuer;
  if (introspection === null) return issuer;
  return {
    ...issuer,
    introspection: {
      ...introspection,
      unknownPerSecond: introspection.unknownPerSecond / count,
      unknownPerAddress: introspection.unknownPerAddress / count,
    },
  };
}
