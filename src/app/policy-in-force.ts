import type { CompiledConfig, IssuerSettings } from '../config/compiled.js';
import { createFieldRules } from '../decision/field-rules.js';
import type { KeySource } from '../ports.js';
import type { InForce } from '../proxy/in-force.js';
import type { SessionsInForce } from '../proxy/session-credential.js';
import { createUpstream } from '../proxy/upstream.js';

/** What runs beside a config. */
export type RunningParts = Omit<InForce, 'config' | 'fieldRules'>;

/** A config with the parts that run beside it: what requests are decided by. */
export function putInForce(config: CompiledConfig, parts: RunningParts): InForce {
  const { underscoreFields, http10 } = config.listen;
  const names: readonly (string | null)[] = [...Object.values<string | null>({ ...config.identity }), config.assertion?.header ?? null];
  const identityNames = names.filter((name) => name !== null);
  return { config, fieldRules: createFieldRules({ identityNames, underscoreFields, http10 }), ...parts };
}

/** A config as it would decide, with other keys: nothing is sent to its receiving service. */
export function decideOnly(config: CompiledConfig, keysOf: (issuer: IssuerSettings) => KeySource, sessions: SessionsInForce | null): InForce {
  return putInForce(config, {
    issuers: config.issuers.map((issuer) => ({ rules: issuer.rules, keys: keysOf(issuer) })),
    sessions,
    // Made when a request goes out, and none does.
    assertion: null,
    // Opens no connection before the first request is sent.
    upstream: createUpstream(config.upstream, null),
    // Decisions may be asked for at any time, also backwards.
    verified: null,
  });
}
