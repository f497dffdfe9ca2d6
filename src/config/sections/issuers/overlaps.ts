import type { Entry } from '../../load/parse-sections.js';
import { nameOf, type Report } from '../../load/report.js';
import type { IssuerFile } from './issuers.js';

/** Where two issuers take the same claims, nothing in a token says which one's keys have to vouch for it. */
export function checkOverlaps(entries: readonly Entry<IssuerFile>[], report: Report): void {
  const whole = entries.flatMap(({ path, parsed }) => (parsed === null ? [] : [{ path, ...parsed.value }]));
  for (const [index, one] of whole.entries()) {
    const same = whole.slice(0, index).find((earlier) => takesSameTokens(one, earlier));
    if (same === undefined) continue;
    report.warning(
      [...one.path, one.issuer === undefined ? 'trust_domain' : 'issuer'],
      `${nameOf(one.path)} takes the same tokens as ${nameOf(same.path)}: keys of either vouch for them`,
      one.profile === 'core' ? 'another issuer, audience, source or token_type' : 'another issuer or audience',
    );
  }
}

/**
 * A caller is known by `iss` and subject, whatever the entry is called that let it in: its limits, its share and its
 * idempotency keys are those of both.
 */
export function checkSameCallers(entries: readonly Entry<IssuerFile>[], report: Report): void {
  const whole = entries.flatMap(({ path, parsed }) => (parsed === null ? [] : [{ path, ...parsed.value }]));
  for (const [index, one] of whole.entries()) {
    const named = callersIssuer(one);
    const earlier = whole.slice(0, index).filter((other) => callersIssuer(other) === named);
    const [same] = earlier;
    // Those of which `checkOverlaps` tells have more in common than this.
    if (same === undefined || earlier.some((other) => takesSameTokens(one, other))) continue;
    report.warning(
      [...one.path, one.issuer === undefined ? 'trust_domain' : 'issuer'],
      `${nameOf(one.path)} has the issuer of ${nameOf(same.path)}: a subject that both let in is one caller, with one set of limits and idempotency keys`,
      'one entry for both; or two, where it is meant that they share these',
    );
  }
}

/** What stands for the issuer in the name of a caller. */
function callersIssuer({ issuer, trust_domain: trustDomain }: IssuerFile): string {
  return issuer ?? `spiffe://${trustDomain ?? ''}`;
}

/** Whether a token can meet the rules of both for what it is, by whom and for whom. */
function takesSameTokens(one: IssuerFile, other: IssuerFile): boolean {
  if (one.issuer !== other.issuer || one.trust_domain !== other.trust_domain) return false;
  if (!haveCommon(one.audience, other.audience)) return false;
  if (one.profile !== 'core' || other.profile !== 'core') return true;
  return haveCommon(one.source, other.source) && haveCommon(one.token_type, other.token_type);
}

function haveCommon(some: readonly string[] = [], others: readonly string[] = []): boolean {
  return some.some((value) => others.includes(value));
}
