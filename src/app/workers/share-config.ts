/** What one worker has of bounds that hold for all of them together. */
import { nameOf } from '../../config/load/report.js';
import { leavesNothing } from '../../config/sections/workers.js';
import type { CompiledConfig, IssuerSettings, ListenSettings } from '../../config/types.js';
import { connectionBounds } from './count.js';
import type { SharedBound } from './messages.js';
import { maxConnectionsOf } from '../../proxy/inbound/client-connections.js';

/** Which of how many workers. */
export interface Share {
  /** From 1. */
  readonly number: number;
  readonly count: number;
}

/**
 * The config as one worker has it: its part of each bound, so that all of them together never have more than the config
 * says. Whole stay limits by caller and the places of listeners, which the primary counts for all.
 */
export function shareConfig(config: CompiledConfig, share: Share): CompiledConfig {
  const whole = (bound: number): number => partOf(bound, share);
  const { egress, telemetry, log, tokenCacheBytes } = config;
  return {
    ...config,
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
            totalRetryBufferBytes: whole(egress.totalRetryBufferBytes),
            targets: egress.targets.map((target) => ({
              ...target,
              upstream: { ...target.upstream, maxConnections: whole(target.upstream.maxConnections) },
            })),
          },
  };
}

/** What of a config leaves some of so many workers no connection; `null` where each has one. */
export function findWithoutPart(config: CompiledConfig, count: number): string | null {
  const found = connectionBounds(config).find(({ connections }) => connections < count);
  return found === undefined ? null : leavesNothing(nameOf(found.path), found.connections, count);
}

/** Of connections to a listener, which follow from its places, so many are one worker's. */
export function ownConnections({ maxInFlight, maxWebSockets }: ListenSettings, share: Share): number {
  return maxConnectionsOf({ maxInFlight: partOf(maxInFlight, share), maxWebSockets: partOf(maxWebSockets, share) });
}

/** The remainder goes to the first ones. */
export function partOf(bound: number, { number, count }: Share): number {
  return Math.floor(bound / count) + (number <= bound % count ? 1 : 0);
}

/** One name for each bound: it has no line break, and a holder may. */
export function boundKey({ name, holder }: Pick<SharedBound, 'name' | 'holder'>): string {
  return holder === null ? name : `${name}\n${holder}`;
}

/** Questions about opaque tokens are limited to a few a second; a worker's part may be one question in some seconds. */
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
