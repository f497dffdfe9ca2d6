import type { CompiledConfig, IssuerSettings, UpstreamSettings } from '../../config/types.js';
import type { Revocations } from '../../decision/route/policy.js';
import type { Introspection, KeySource } from '../../ports/auth.js';
import { type ActiveConfig, createActiveConfig } from '../../proxy/auth/active-config.js';
import type { ActiveSessions } from '../../proxy/auth/credentials/session.js';
import type { Upstream } from '../../proxy/upstream/pool/pool.js';
import { upstreamHost } from '../../proxy/upstream/address.js';

/** A config as it would decide, with other keys: nothing is sent to its upstream. */
export function decideOnly(
  config: CompiledConfig,
  keysOf: (issuer: IssuerSettings) => KeySource,
  sessions: ActiveSessions | null,
  introspectionOf: (issuer: IssuerSettings) => Introspection | null = () => null,
  // Unless given the store is not asked: what is decided here has to be the same tomorrow.
  listed: () => readonly Revocations[] = () => [],
): ActiveConfig {
  return createActiveConfig(config, {
    issuers: config.issuers.map((issuer) => {
      const source = introspectionOf(issuer);
      return {
        rules: issuer.rules,
        keys: keysOf(issuer),
        ...(source === null || issuer.introspection === null
          ? {}
          : { introspection: { rules: issuer.introspection.rules, source } }),
      };
    }),
    sessions,
    // Every proof is the first of its kind, and repeats whatever nonce was handed out.
    proofs: { use: () => Promise.resolve('new'), isNonce: null },
    // Made when a request goes out, and none does.
    assertion: null,
    upstream: noUpstream(config.upstream),
    // Decisions may be asked for at any time, also backwards.
    verified: null,
    listed,
    knowsRevocations: () => true,
  });
}

/**
 * Has a name, which requests are addressed to, and no connections: loading what makes them takes longer than deciding.
 */
function noUpstream({ url }: UpstreamSettings): Upstream {
  return {
    host: upstreamHost(url),
    send: () => {
      throw new Error('what only decides sends no request');
    },
    takeStreamingSlot: () => null,
    awaitTurn: () => {
      throw new Error('what only decides reserves nothing');
    },
    retire: () => undefined,
    close: () => Promise.resolve(),
    connections: () => 0,
    counts: () => ({ active: 0, waiting: 0 }),
  };
}
