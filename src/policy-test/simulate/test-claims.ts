import type { CompiledConfig } from '../../config/types.js';
import type { IssuerRules, Route } from '../../decision/route/policy.js';
import type { JsonObject, JsonValue } from '../../lib/strict-json.js';

/** Claims of a token that nobody issued. */
export interface AssumedClaims {
  readonly claims: JsonObject;
  /** Names of the claims that were filled in. */
  readonly filledIn: readonly string[];
}

/** Life of an assumed token, seconds; less where the issuer's are shorter. */
const lifetimeS = 300;

/**
 * The issuer whose rules fill in what is not said: the one that the claims name, else the first that the route accepts.
 * `null` where the config has none.
 */
export function issuerMeant(config: CompiledConfig, given: JsonObject, route: Route | null): IssuerRules | null {
  const rules = config.issuers.map((issuer) => issuer.rules);
  const says = (name: string, value: string): boolean => given[name] === undefined || given[name] === value;
  const named = rules.filter(({ issuer, audience }) => says('iss', issuer) && says('aud', audience));
  return (
    (named.length === 0 ? rules : named).toSorted((a, b) => preference(b, route) - preference(a, route))[0] ?? null
  );
}

/** Fills in what a token of this issuer would say at that time. `null` stands for a claim that is absent. */
export function completeClaims(given: JsonObject, rules: IssuerRules, nowMs: number): AssumedClaims {
  const nowS = Math.floor(nowMs / 1_000);
  const issuedAtS = typeof given['iat'] === 'number' ? given['iat'] : nowS;
  const usual: Readonly<Record<string, JsonValue | undefined>> = {
    iss: rules.issuer,
    aud: rules.audience,
    source: [...rules.sources][0],
    token_type: [...rules.tokenTypes][0],
    permissions: [],
    iat: nowS,
    exp: issuedAtS + Math.min(lifetimeS, Math.floor(rules.maxLifetimeS)),
  };
  return fillIn(given, usual);
}

/** Fills in what the access token of a session would say at that time. */
export function completeSessionClaims(given: JsonObject, issuer: string, nowMs: number): AssumedClaims {
  const nowS = Math.floor(nowMs / 1_000);
  const issuedAtS = typeof given['iat'] === 'number' ? given['iat'] : nowS;
  return fillIn(given, {
    iss: issuer,
    sessionHandle: 'assumed',
    refreshTokenHash1: 'assumed',
    iat: nowS,
    exp: issuedAtS + lifetimeS,
  });
}

function fillIn(given: JsonObject, usual: Readonly<Record<string, JsonValue | undefined>>): AssumedClaims {
  const filledIn = Object.keys(usual).filter((name) => given[name] === undefined);
  const members = Object.entries({ ...usual, ...given }).filter(
    (entry): entry is [string, JsonValue] => entry[1] !== undefined && entry[1] !== null,
  );
  return { claims: Object.fromEntries(members), filledIn };
}

function preference({ name }: IssuerRules, route: Route | null): number {
  return route === null || route.issuers === null || route.issuers.has(name) ? 1 : 0;
}
