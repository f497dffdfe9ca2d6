import type { CompiledConfig, OpaqueTokenRules } from '../../config/types.js';
import type { AssertedRequest } from '../../decision/token/assertion.js';
import { type HeaderRules, createHeaderRules } from '../../decision/http/header-rules.js';
import type { IssuerRules, Revocations } from '../../decision/route/policy.js';
import type { Introspection, KeySource, ProofKeeper } from '../../ports/auth.js';
import type { ActiveSessions } from './credentials/session.js';
import type { Upstream } from '../upstream/pool/pool.js';
import type { VerifiedTokens } from './verified-token-cache.js';

/** An issuer of the config with the source of its keys. */
export interface ActiveIssuer {
  readonly rules: IssuerRules;
  readonly keys: KeySource;
  /** Left out where it has no opaque tokens. */
  readonly introspection?: IntrospectionInForce;
}

/** What asks an issuer about its opaque tokens. */
export interface IntrospectionInForce {
  readonly rules: OpaqueTokenRules;
  readonly source: Introspection;
}

/**
 * Everything that a decision needs. A reload replaces it whole, and a request takes it once, when it is decided, so
 * that no request is judged by two policies. What it refers to goes on changing: revocations, keys, remembered tokens
 * and connections.
 */
export interface ActiveConfig {
  readonly config: CompiledConfig;
  readonly headerRules: HeaderRules;
  /** Whether nobody is asked for a credential: true on the calling side. Left out elsewhere. */
  readonly asksNobody?: boolean;
  readonly issuers: readonly ActiveIssuer[];
  /** `null` where no route may accept sessions. */
  readonly sessions: ActiveSessions | null;
  /** Signs who asks for what; `null` where the upstream gets no assertion. */
  readonly assertion: ((request: AssertedRequest) => readonly string[]) | null;
  readonly upstream: Upstream;
  /** Left out where no proof of a key is taken (`listen.dpop`). */
  readonly proofs?: ProofKeeper | null;
  /** Tokens that these issuers' keys verified; `null` where each is verified each time. */
  readonly verified: VerifiedTokens | null;
  /**
   * What is revoked, by this config and the one in force by then, and through the store. The one part that changes by
   * itself: asked whenever something is judged, so that a request that waited for a key or a body is held to what was
   * revoked meanwhile.
   */
  readonly revocations: () => readonly Revocations[];
  /**
   * Whether what is revoked through the store has been read once, or need not be. Until then a credential may be one
   * that every other proxy refuses. Once true, it stays so.
   */
  readonly knowsRevocations: () => boolean;
}

/** What runs beside a config. */
interface RunningParts extends Omit<ActiveConfig, 'config' | 'headerRules' | 'revocations' | 'asksNobody'> {
  /** Whether it is the calling side: nobody is asked who they are, and upstreams may be such proxies. */
  readonly isCallingSide?: boolean;
  /** What is revoked through the store. */
  readonly listed: () => readonly Revocations[];
  /** What the config in force revokes, which may be a later one by then. Left out where there is no later one. */
  readonly revokedNow?: () => Revocations;
}

/** A config with the parts that run beside it: what requests are decided by. */
export function createActiveConfig(
  config: CompiledConfig,
  { listed, revokedNow = () => config.revoked, isCallingSide = false, ...parts }: RunningParts,
): ActiveConfig {
  const own = [config.revoked];
  const revocations = (): readonly Revocations[] => {
    const more = listed();
    const now = revokedNow();
    if (now !== config.revoked) return [...own, now, ...more];
    return more.length === 0 ? own : [...own, ...more];
  };
  return {
    config,
    headerRules: headerRulesOf(config, isCallingSide),
    asksNobody: isCallingSide,
    revocations,
    ...parts,
  };
}

/** What the names of headers mean under a config. */
function headerRulesOf({ listen, upstream, identity, assertion }: CompiledConfig, isCallingSide: boolean): HeaderRules {
  const { underscoreFields, http10, readsClientCert } = listen;
  const { stripFields, passFields } = upstream;
  const names: readonly (string | null)[] = [
    ...Object.values<string | null>({ ...identity }),
    assertion?.header ?? null,
  ];
  return createHeaderRules({
    identityNames: names.filter((name) => name !== null),
    underscoreFields,
    http10,
    readsClientCert,
    stripFields,
    passFields,
    passesOwnWord: isCallingSide,
  });
}

/**
 * Returns what a decide listener decides by. The certificate of a caller is not known there, and an assertion is given
 * only where the operator has it so.
 */
export function askedConfig(from: ActiveConfig, givesAssertion: boolean): ActiveConfig {
  const config = { ...from.config, listen: { ...from.config.listen, readsClientCert: false } };
  return {
    ...from,
    config,
    headerRules: headerRulesOf(config, false),
    // The header's name stays among the rules, so that a client's own is never forwarded.
    assertion: givesAssertion ? from.assertion : null,
  };
}
