import type { IdentityHeaders } from '../route/policy.js';
import type { Principal } from '../token/principal.js';

/**
 * The fields that tell the receiver who is calling, names and values in turn. Each value is visible
 * ASCII, as the claims were read; permissions keep the token's order.
 */
export function identityFields(names: IdentityHeaders, principal: Principal): readonly string[] {
  const fields: string[] = [];
  if (names.subject !== null) fields.push(names.subject, principal.subject);
  if (names.issuer !== null) fields.push(names.issuer, principal.issuer);
  if (names.permissions !== null) fields.push(names.permissions, principal.permissions.join(' '));
  if (names.tokenId !== null && principal.tokenId !== null) fields.push(names.tokenId, principal.tokenId);
  if (names.kind !== null) fields.push(names.kind, principal.kind);
  return fields;
}
