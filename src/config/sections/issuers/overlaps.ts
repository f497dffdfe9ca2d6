import type { Entry } from '../../load/parse-sections.js';
import { nameOf, type Report } from '../../load/report.js';
import type { IssuerFile } from '../issuers.js';

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
