import { isJsonArray, type JsonObject, type JsonValue } from '../../lib/strict-json.js';
import { isClaim, valueAt } from '../token/profile-claims.js';

/** What a route asks of sessions: a policy of its own, apart from that for service tokens. */
export interface SessionPolicy {
  /** All of them have to hold; none lets every user with a session through. */
  readonly claims: readonly ClaimRule[];
  /** Whether the upstream gets the session's cookies and headers. */
  readonly forwardsTokens: boolean;
}

/** One claim of the access token and what it has to hold. */
export interface ClaimRule {
  /** Names from the payload inwards: `["st-role", "v"]`. */
  readonly path: readonly string[];
  readonly value: string | number | boolean;
}

/** The rules that a session's payload does not meet, in their order. */
export function unmetClaims(policy: SessionPolicy, payload: JsonObject): readonly ClaimRule[] {
  return policy.claims.filter((rule) => !holds(valueAt(payload, rule.path), rule.value));
}

/** Whether everybody whom `one` lets through is let through by `other` too, as far as the rules themselves tell. */
export function isSubsetOf(one: SessionPolicy, other: SessionPolicy): boolean {
  return one.claims.every((rule) => other.claims.some((theirs) => isSameRule(rule, theirs)));
}

/** The value, or an array that holds it. Nothing is converted: `"1"` is not `1`. */
function holds(claim: JsonValue | undefined, value: ClaimRule['value']): boolean {
  return isJsonArray(claim) ? claim.some((item) => isClaim(item, value)) : isClaim(claim, value);
}

function isSameRule(one: ClaimRule, other: ClaimRule): boolean {
  return one.value === other.value && one.path.join('.') === other.path.join('.');
}
