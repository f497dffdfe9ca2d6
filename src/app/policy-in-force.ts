import type { CompiledConfig, IssuerSettings, UpstreamSettings } from '../config/types.js';
import { createFieldRules } from '../decision/http/header-rules.js';
import type { Revocations } from '../decision/route/policy.js';
import type { KeySource } from '../ports/auth.js';
import type { InForce } from '../proxy/auth/active-config.js';
import type { SessionsInForce } from '../proxy/auth/verify-session.js';
import type { Upstream } from '../proxy/upstream/pool/pool.js';
import { upstreamHost } from '../proxy/upstream/connector.js';

/** What runs beside a config. */
interface RunningParts extends Omit<InForce, 'config' | 'fieldRules' | 'revocations'> {
  /** What is revoked through the store. */
  readonly listed: () => readonly Revocations[];
}

/** A config with the parts that run beside it: what requests are decided by. */
export function putInForce(config: CompiledConfig, { listed, ...parts }: RunningParts): InForce {
  const { underscoreFields, http10 } = config.listen;
  const { stripFields, passFields } = config.upstream;
  const names: readonly (string | null)[] = [
    ...Object.values<string | null>({ ...config.identity }),
    config.assertion?.header ?? null,
  ];
  const identityNames = names.filter((name) => name !== null);
  const own = [config.revoked];
  const revocations = (): readonly Revocations[] => {
    const more = listed();
    return more.length === 0 ? own : [...own, ...more];
  };
  return {
    config,
    fieldRules: createFieldRules({ identityNames, underscoreFields, http10, stripFields, passFields }),
    revocations,
    ...parts,
  };
}

/** A config as it would decide, with other keys: nothing is sent to its receiving service. */
export function decideOnly(
  config: CompiledConfig,
  keysOf: (issuer: IssuerSettings) => KeySource,
  sessions: SessionsInForce | null,
): InForce {
  return putInForce(config, {
    issuers: config.issuers.map((issuer) => ({ rules: issuer.rules, keys: keysOf(issuer) })),
    sessions,
    // Made when a request goes out, and none does.
    assertion: null,
    upstream: noUpstream(config.upstream),
    // Decisions may be asked for at any time, also backwards.
    verified: null,
    // The store is not asked: what is decided here has to be the same tomorrow.
    listed: () => [],
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
    takeEarlyPlace: () => null,
    awaitTurn: () => {
      throw new Error('what only decides reserves nothing');
    },
    retire: () => undefined,
    close: () => Promise.resolve(),
    counts: () => ({ active: 0, waiting: 0 }),
  };
}
