/** What a reload would break: half of an edit takes effect, and what it leans on is opened at start only. */
import { isDeepStrictEqual } from 'node:util';
import { asksForCertificates, verifiesCertificates } from '../../config/sections/listeners/listen.js';
import { canTakeOneToken } from '../../config/sections/issuers/overlaps.js';
import type { ApplicationRoutes } from '../../config/checks/application-routes.js';
import type { CompiledConfig, DecideSettings } from '../../config/types.js';
import type { Binding } from '../../decision/binding/confirmation.js';
import { limitsOf, type Acceptance } from '../../decision/decide/limits.js';
import type { IssuerRules, Route } from '../../decision/route/policy.js';
import { createTakenOver } from './taken-over.js';

/**
 * @param inForce what counts now, with `listen`, `decide` and the store as they were opened.
 * @param takenOver the routes in force whose requests one of `wanted` takes.
 */
type Finding = (
  inForce: CompiledConfig,
  wanted: CompiledConfig,
  takenOver: (route: Route) => readonly Route[],
) => string | null;

/**
 * Why a reload cannot take a config: with the listeners and the store that are open, it would refuse callers that the
 * config in force lets through, and that it would let through itself after a restart. `null` where it can. What the
 * config in force refuses already is no reason, and neither is a route in shadow mode.
 *
 * @param application Where it decides, nothing of `listen.tls` and `decide` is ever opened.
 */
export function halfInForce(
  inForce: CompiledConfig,
  wanted: CompiledConfig,
  application: ApplicationRoutes | null,
): string | null {
  const [now, later] =
    application === null
      ? [inForce, wanted]
      : [inApplication(inForce, application), inApplication(wanted, application)];
  // Few edits need it, and all paths are looked at for it.
  let compared: ReturnType<typeof createTakenOver> | null = null;
  const takenOver = (route: Route): readonly Route[] => (compared ??= createTakenOver(now, later))(route);
  for (const find of [unproved, uncertified, unsupported, unsettled]) {
    const found = find(now, later, takenOver);
    if (found !== null) return `${found}: restart to put this config in force`;
  }
  return null;
}

function inApplication(config: CompiledConfig, { verifiesCertificates: verifies }: ApplicationRoutes): CompiledConfig {
  const { listen } = config;
  const readsClientCert = listen.readsClientCert || verifies;
  return { ...config, decide: [], listen: { ...listen, tls: null, readsClientCert } };
}

/** Tokens that have to be bound from now on, while nothing that is open takes the proofs that will be taken. */
const unproved: Finding = (inForce, wanted, takenOver) => {
  if (!takesOtherProofs(inForce, wanted)) return null;
  const [before, after] = [rulesOf(inForce), rulesOf(wanted)];
  for (const rules of after) {
    const found = unprovedOf(rules);
    if (found !== null) return `${found}, and what takes proofs in listen is opened at start only`;
  }
  return null;

  /** Where tokens of an issuer are let through, and would be refused as they are not bound, or not proved. */
  function unprovedOf(issuer: IssuerRules): string | null {
    const { name, binding } = issuer;
    // Whatever their names are, they took tokens that this one takes.
    const looser = before.filter((entry) => isLess(entry.binding, binding) && canTakeOneToken(entry, issuer));
    for (const route of wanted.routes) {
      if (route.mode !== 'enforce' || !takesTokensOf(route, name)) continue;
      const lost = looser.filter((entry) => !goesOn(entry, issuer, route));
      const earlier = takenOver(route);
      const took = (each: Route): boolean =>
        letsEverybodyThrough(each) || lost.some((entry) => takesTokensOf(each, entry.name));
      if (lost.length > 0 && earlier.some(took)) return `issuers.${name}.binding is ${binding}`;
      // With `accept` nobody can tell whether anybody has a token that is bound.
      if (binding === 'require' && earlier.some(letsEverybodyThrough)) {
        return `${nameOf(route)} asks for bound tokens of issuers.${name}`;
      }
    }
    return null;
  }

  /** Whether an entry goes on taking its tokens on a route, and another one takes none of them that it did not take. */
  function goesOn(entry: IssuerRules, other: IssuerRules, route: Route): boolean {
    const same = after.find(({ name }) => name === entry.name);
    if (same === undefined || same === other || !isLike(same, entry) || !takesTokensOf(route, same.name)) return false;
    const first = before.slice(0, before.indexOf(entry)).find(({ name }) => name === other.name);
    return after.indexOf(same) < after.indexOf(other) || (first !== undefined && isLike(first, other));
  }
};

function rulesOf({ issuers }: CompiledConfig): readonly IssuerRules[] {
  return issuers.map(({ rules }) => rules);
}

/** Whether two entries are the same but for what becomes of bound tokens, which is looked at of each by itself. */
function isLike(one: IssuerRules, other: IssuerRules): boolean {
  return isDeepStrictEqual({ ...one, binding: other.binding }, other);
}

/** Whether an issuer asks for a proof where it did not: of each token, or of those that are bound. */
function isLess(before: Binding, after: Binding): boolean {
  return after === 'require' ? before !== 'require' : after === 'accept' && before === 'none';
}

/** Whether a listener takes proofs, and none of the kinds that the one that is open takes. */
function takesOtherProofs(inForce: CompiledConfig, wanted: CompiledConfig): boolean {
  const { dpop } = wanted.listen;
  if (dpop !== null && [...dpop.origins].every((origin) => inForce.listen.dpop?.origins.has(origin) === true)) {
    return false;
  }
  // No certificate is ever shown where a proxy asks.
  if (dpop !== null && decideListeners(inForce, wanted).length > 0) return true;
  const asks = asksForCertificates(wanted.listen);
  return (dpop !== null || asks) && !(asks && asksForCertificates(inForce.listen));
}

/** Routes that ask for certificates from now on, while no listener that is open verifies any. */
const uncertified: Finding = (inForce, wanted, takenOver) => {
  if (verifiesCertificates(inForce.listen) || !verifiesCertificates(wanted.listen)) return null;
  // A route in force that asks for any refuses everybody already.
  const route = wanted.routes.find(
    (each) => refusesUncertified(each) && takenOver(each).some((earlier) => !refusesUncertified(earlier)),
  );
  if (route === undefined) return null;
  return `${nameOf(route)} asks for certificates, and what verifies them in listen is opened at start only`;
};

/** Routes whose requests a decide listener would refuse from now on, and not any more after a restart. */
const unsupported: Finding = (inForce, wanted, takenOver) => {
  for (const [opened, later] of decideListeners(inForce, wanted)) {
    for (const route of wanted.routes) {
      const earlier = takenOver(route).map(acceptancesFor);
      const missing = acceptancesFor(route).find(
        (word) =>
          later.accepts.has(word) && !opened.accepts.has(word) && earlier.some((words) => !words.includes(word)),
      );
      if (missing !== undefined) {
        return `${nameOf(route)} needs ${missing} in decide.accept, which is opened at start only`;
      }
    }
  }
  return null;
};

/** The same as `check` says of a config in which both stand. */
const unsettled: Finding = ({ store }, { shutdown }) => {
  if (store?.kind !== 'redis' || store.settleTimeoutMs <= shutdown.graceMs / 2) return null;
  return `store.redis.settle_timeout, which is opened at start only, stays ${String(store.settleTimeoutMs)}ms, more than half of shutdown.grace`;
};

/** The decide listeners that are open, each with what it becomes: at the same place, or else the one that moves. */
function decideListeners(
  { decide: opened }: CompiledConfig,
  { decide: wanted }: CompiledConfig,
): readonly (readonly [DecideSettings, DecideSettings])[] {
  return opened.flatMap((listener, index) => {
    const moved = wanted[index];
    const later =
      wanted.find((each) => isSamePlace(each, listener)) ??
      (opened.some((each) => moved !== undefined && isSamePlace(each, moved)) ? undefined : moved);
    return later === undefined ? [] : [[listener, later] as const];
  });
}

function isSamePlace({ listen: a }: DecideSettings, { listen: b }: DecideSettings): boolean {
  return a.port !== 0 && a.port === b.port && a.host === b.host;
}

/** What a decide listener has to accept, or it refuses what the route lets through. WebSockets it refuses anyway. */
function acceptancesFor({ mode, reservation, isGrpc }: Route): readonly Acceptance[] {
  if (mode !== 'enforce') return [];
  return limitsOf({ reservation, opensConnections: isGrpc }).map(({ acceptance }) => acceptance);
}

/** Whether a route refuses callers without one of its certificates. Shadow mode refuses nobody. */
function refusesUncertified({ mode, clientCertificates }: Route): boolean {
  return mode === 'enforce' && clientCertificates !== null;
}

function takesTokensOf({ acceptsService, issuers }: Route, issuer: string): boolean {
  return acceptsService && issuers?.has(issuer) !== false;
}

function letsEverybodyThrough({ access, mode }: Route): boolean {
  return access === 'public' || mode === 'shadow';
}

function nameOf({ name }: Pick<Route, 'name'>): string {
  return `route ${JSON.stringify(name)}`;
}
