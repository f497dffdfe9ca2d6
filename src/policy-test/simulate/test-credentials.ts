import type { Route } from '../../decision/route/policy.js';
import { readTarget } from '../../decision/http/request-target.js';
import { matchRoute } from '../../decision/route/route-table.js';
import type { JsonObject } from '../../lib/strict-json.js';
import type { InForce } from '../../proxy/auth/active-config.js';
import { completeClaims, completeSessionClaims, issuerMeant } from './test-claims.js';
import { acceptedKeyId, type AssumedKeys } from './test-keys.js';
import { headOf, type PolicyRequest } from './request.js';

/** A credential as it comes with a request, and what is to be said of it. */
export interface ShownCredential {
  /** Names and values in turn. */
  readonly fields: readonly string[];
  readonly notes: readonly string[];
}

export const noCredential: ShownCredential = { fields: [], notes: [] };

/** A token with these claims, as if the issuer that they name had made it. */
export function assumeToken(
  given: JsonObject,
  request: PolicyRequest,
  inForce: InForce,
  keys: AssumedKeys,
  nowMs: number,
): ShownCredential {
  const { config } = inForce;
  const rules = issuerMeant(config, given, routeOf(request, inForce));
  if (rules === null) {
    return {
      fields: bearer(keys.token('d-assumed', given)),
      notes: ['assumed; the config has no issuer that could have made it'],
    };
  }
  const { claims, filledIn } = completeClaims(given, rules, nowMs);
  const filled =
    filledIn.length === 0
      ? []
      : [
          `filled in as issuer ${rules.name} would: ${filledIn.map((name) => `${name} ${JSON.stringify(claims[name])}`).join(', ')}`,
        ];
  return {
    fields: bearer(keys.token(acceptedKeyId(rules.keyIds, config.revoked), claims)),
    notes: ['assumed: these claims are taken for granted, and no signature was verified', ...filled],
  };
}

/** A session with these claims, as if the Core had made it and stood by it. */
export function assumeSession(
  given: JsonObject,
  { sessions }: InForce,
  keys: AssumedKeys,
  nowMs: number,
): ShownCredential {
  const { claims, filledIn } = completeSessionClaims(given, sessions?.settings.issuer ?? '', nowMs);
  const filled = filledIn.map((name) => `${name} ${JSON.stringify(claims[name])}`).join(', ');
  return {
    fields: bearer(keys.sessionToken('d-assumed', claims)),
    notes: [
      'assumed: a session with these claims, for which the Core vouches',
      ...(filled === '' ? [] : [`filled in: ${filled}`]),
    ],
  };
}

/** A token whose form is right and whose signature is not. */
export function forgeToken(inForce: InForce, keys: AssumedKeys): ShownCredential {
  const [issuer] = inForce.issuers;
  const keyId = issuer === undefined ? 'd-assumed' : acceptedKeyId(issuer.rules.keyIds, inForce.config.revoked);
  return { fields: bearer(keys.forgedToken(keyId)), notes: ['a token with a signature that does not hold'] };
}

function routeOf(request: PolicyRequest, { config }: InForce): Route | null {
  const { method, target: raw } = headOf(request);
  const target = readTarget(raw, config.listen.maxTargetBytes);
  return target.ok ? matchRoute(config.table, method, target.value) : null;
}

function bearer(token: string): readonly string[] {
  return ['Authorization', `Bearer ${token}`];
}
