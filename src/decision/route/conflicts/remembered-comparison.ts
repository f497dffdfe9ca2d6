import type { Route } from '../policy.js';
import { isLessRestrictive } from './compare-access.js';

/** Compares routes by what they ask for, once for each pair of different ones: thousands of routes share a few. */
export function rememberedComparison(issuerNames: readonly string[]): (route: Route, than: Route) => boolean {
  const classes = new Map<string, number>();
  const classOf = new Map<Route, number>();
  const verdicts = new Map<number, boolean>();
  const numberOf = (route: Route): number => {
    const known = classOf.get(route);
    if (known !== undefined) return known;
    const text = restrictionText(route);
    const number = classes.get(text) ?? classes.size;
    classes.set(text, number);
    classOf.set(route, number);
    return number;
  };
  return (route, than) => {
    const [a, b] = [numberOf(route), numberOf(than)];
    if (a === b) return false;
    // Routes are counted in thousands, so that the pair fits one number.
    const pair = a * 2 ** 26 + b;
    const known = verdicts.get(pair);
    if (known !== undefined) return known;
    const verdict = isLessRestrictive(route, than, issuerNames);
    verdicts.set(pair, verdict);
    return verdict;
  };
}

/** All that the comparison looks at: routes of one text are the same to it. */
function restrictionText(route: Route): string {
  const approvals = route.approvals.map(({ subjects, prefixes, permissions }) => [
    [...subjects].sort(),
    [...prefixes].sort(),
    [...permissions].sort(),
  ]);
  const { key, singleUse } = route.reservation ?? { key: null, singleUse: false };
  const session = route.session === null ? null : route.session.claims.map(({ path, value }) => [path, value]);
  return JSON.stringify([
    [route.access, route.mode, route.acceptsService, approvals, sorted(route.issuers), session],
    [key, singleUse, sorted(route.clientCertificates)],
    [route.allowsWebSocket, sorted(route.origins)],
  ]);
}

function sorted(names: ReadonlySet<string> | null): readonly string[] | null {
  return names === null ? null : [...names].sort();
}
