import type { ClaimRule, SessionPolicy } from '../../decision/session/claim-rules.js';
import { isJsonObject, type JsonObject, type JsonValue } from '../../lib/strict-json.js';

/** The fewest claims of a session that a route's policy is content with. */
export function claimsHolding({ claims }: SessionPolicy): JsonObject {
  return claims.reduce<JsonObject>((held, { path, value }) => withClaim(held, path, value), { sub: 'user' });
}

function withClaim(held: JsonObject, [first = '', ...rest]: readonly string[], value: ClaimRule['value']): JsonObject {
  const inner: JsonValue | undefined = held[first];
  return { ...held, [first]: rest.length === 0 ? value : withClaim(isJsonObject(inner) ? inner : {}, rest, value) };
}
