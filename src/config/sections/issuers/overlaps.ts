/** What several issuers of one config have in common: tokens, callers, and what these reserve. */
import type { Entry, ParsedConfig } from '../../load/parse-sections.js';
import { nameOf, type Report } from '../../load/report.js';
import { holderClaim } from '../../../decision/token/profile-claims.js';
import type { KeyIdRules } from '../../../decision/route/policy.js';
import { takesKeys } from '../routes/idempotency.js';
import { compileProfile, type ProfileRules } from './issuer-profiles.js';
import type { IssuerFile } from './issuers.js';

interface WholeIssuer extends IssuerFile, Pick<Entry<IssuerFile>, 'path'> {
  readonly rules: ProfileRules;
}

/** Checks what issuers say beside each other. */
export function checkOverlaps({ issuers, routes }: ParsedConfig, report: Report): void {
  const whole = [...issuers.values()].flatMap(({ path, parsed }) =>
    parsed === null ? [] : [{ path, ...parsed.value, rules: compileProfile(parsed.value) }],
  );
  for (const [index, one] of whole.entries()) {
    const earlier = whole.slice(0, index);
    checkSameTokens(one, earlier, report);
    checkSameCallers(one, earlier, report);
    checkHolders(one, earlier, routes, report);
  }
}

/** Where two issuers take the same claims, nothing in a token says which one's keys have to vouch for it. */
function checkSameTokens(one: WholeIssuer, earlier: readonly WholeIssuer[], report: Report): void {
  const same = earlier.find((other) => takesSameTokens(one.rules, other.rules));
  if (same === undefined) return;
  report.warning(
    placeOf(one),
    `${nameOf(one.path)} takes the same tokens as ${nameOf(same.path)}: keys of either vouch for them`,
    one.profile === 'core' ? 'another issuer, audience, source or token_type' : 'another issuer or audience',
  );
}

/**
 * A caller is known by `iss` and subject, whatever the entry is called that takes its tokens: its limits, its share and
 * its idempotency keys are those of both.
 */
function checkSameCallers(one: WholeIssuer, earlier: readonly WholeIssuer[], report: Report): void {
  const others = earlier.filter(({ rules }) => rules.issuer === one.rules.issuer);
  const [same] = others;
  // Those of which `checkSameTokens` tells have more in common than this.
  if (same === undefined || others.some((other) => takesSameTokens(one.rules, other.rules))) return;
  report.warning(
    placeOf(one),
    `${nameOf(one.path)} has the issuer of ${nameOf(same.path)}: a subject that both take is one caller, with one set of limits and idempotency keys`,
    'one entry for both; or two, where it is meant that they share these',
  );
}

/**
 * A token or a key that was used is remembered by the name of its caller. Where two entries can accept one token and
 * give its caller different names, what was used by one name can be used again by the other.
 */
function checkHolders(
  one: WholeIssuer,
  earlier: readonly WholeIssuer[],
  routes: ParsedConfig['routes'],
  report: Report,
): void {
  const reserved = reservedBy(one, routes);
  const { rules } = one;
  const other = earlier.find(
    (candidate) =>
      canTakeOneToken(rules, candidate.rules) &&
      (rules.issuer !== candidate.rules.issuer || holderClaim(rules) !== holderClaim(candidate.rules)) &&
      haveCommon(reserved, reservedBy(candidate, routes)),
  );
  if (other === undefined) return;
  report.error(
    placeOf(one),
    `${nameOf(one.path)} can accept a token of ${nameOf(other.path)} and names its caller differently: a single-use token or an idempotency key ` +
      'that was used by one name counts as new by the other',
    'in both the same issuer, profile and claims.subject; or something that no token meets in both, such as another audience, or another value of one claim in claims.require',
  );
}

function placeOf({ path, issuer }: WholeIssuer): Entry<IssuerFile>['path'] {
  return [...path, issuer === undefined ? 'trust_domain' : 'issuer'];
}

/** Names what may be reserved for the issuer's tokens: keys by their operation, and the tokens themselves. */
function reservedBy({ path }: WholeIssuer, routes: ParsedConfig['routes']): readonly string[] {
  const name = String(path.at(-1));
  return routes.flatMap(({ parsed }) => {
    if (parsed === null || !parsed.value.accept.includes('service')) return [];
    const { issuers, single_use: isSingleUse, idempotency, name: route } = parsed.value;
    if (issuers?.includes(name) === false) return [];
    return [
      ...(isSingleUse ? ['token'] : []),
      ...(takesKeys(idempotency?.mode) ? [`key ${idempotency?.operation ?? route}`] : []),
    ];
  });
}

/** Whether a token can meet the rules of both for what it is, by whom and for whom. */
function takesSameTokens(one: ProfileRules, other: ProfileRules): boolean {
  if (one.trustDomain !== other.trustDomain) return false;
  // An entry without `issuer` takes any of its trust domain.
  if (one.expectedIssuer !== null && other.expectedIssuer !== null && one.expectedIssuer !== other.expectedIssuer) {
    return false;
  }
  if (!haveCommon(one.audiences, other.audiences)) return false;
  if (one.profile !== 'core' || other.profile !== 'core') return true;
  return haveCommon(one.sources, other.sources) && haveCommon(one.tokenTypes, other.tokenTypes);
}

/** Whether a token can meet the rules of both, for its header and for further claims as well. */
export function canTakeOneToken(one: ProfileRules, other: ProfileRules): boolean {
  return (
    takesSameTokens(one, other) &&
    haveCommon(one.algorithms, other.algorithms) &&
    haveCommon(one.headerTypes, other.headerTypes) &&
    haveCommonKeyId(one.keyIds, other.keyIds) &&
    !one.claims.require.some(({ path, values }) =>
      other.claims.require.some((also) =>
        path.length === also.path.length
          ? isBelow(path, also.path) && !haveCommon(values, also.values)
          : // What has to be a value has no members.
            isBelow(path, also.path) || isBelow(also.path, path),
      ),
    )
  );
}

function haveCommonKeyId({ accept: some }: KeyIdRules, { accept: others }: KeyIdRules): boolean {
  return some.some((one) => others.some((other) => isWithin(one, other) || isWithin(other, one)));
}

/** Whether all key ids of a pattern, up to where it is open, begin as another one has it. */
function isWithin(pattern: string, other: string): boolean {
  return other.endsWith('*') ? pattern.startsWith(other.slice(0, -1)) : pattern === other;
}

/** Whether a path is the other one, or goes on from there. */
function isBelow(path: readonly string[], other: readonly string[]): boolean {
  return other.every((name, index) => name === path[index]);
}

function haveCommon<T>(some: Iterable<T>, others: Iterable<T>): boolean {
  const among = new Set(others);
  return [...some].some((value) => among.has(value));
}
