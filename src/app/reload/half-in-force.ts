/** What a reload would break: half of an edit takes effect, and what it leans on is opened at start only. */
import { asksForCertificates, verifiesCertificates } from '../../config/sections/listeners/listen.js';
import type { CompiledConfig, DecideSettings, IssuerSettings, ListenSettings } from '../../config/types.js';
import { limitsOf, type Acceptance } from '../../decision/decide/limits.js';
import type { Route } from '../../decision/route/policy.js';

/** @param inForce what counts now, with `listen`, `decide` and the store as they were opened. */
type Finding = (inForce: CompiledConfig, wanted: CompiledConfig) => string | null;

/**
 * Why a reload cannot take a config: with the listeners and the store that are open, it would refuse callers that the
 * config in force lets through, and that it would let through itself after a restart. `null` where it can. What the
 * config in force refuses already is no reason, and neither is a route in shadow mode.
 */
export function halfInForce(inForce: CompiledConfig, wanted: CompiledConfig): string | null {
  for (const find of [unproved, uncertified, unsupported, unsettled]) {
    const found = find(inForce, wanted);
    if (found !== null) return `${found}: restart to put this config in force`;
  }
  return null;
}

/** Tokens that have to be bound from now on, while nothing that is open takes the proofs that will be taken. */
const unproved: Finding = (inForce, wanted) => {
  if (!takesOtherProofs(inForce.listen, wanted.listen)) return null;
  for (const { rules } of inForce.issuers) {
    const next = wanted.issuers.find((issuer) => issuer.rules.name === rules.name);
    if (next !== undefined && wanted.routes.some((route) => bindsMore(inForce, route, [rules, next.rules]))) {
      return `issuers.${rules.name}.binding is ${next.rules.binding}, and what takes proofs in listen is opened at start only`;
    }
  }
  return null;
};

type Rules = IssuerSettings['rules'];

/** Whether a route refuses tokens of an issuer that are not bound, or not proved, and did not. */
function bindsMore(inForce: CompiledConfig, route: Route, [before, after]: readonly [Rules, Rules]): boolean {
  if (!asksForTokens(route) || route.issuers?.has(after.name) === false) return false;
  const known = routeOf(inForce, route.name);
  const binding = known === null || asksForTokens(known) ? before.binding : 'none';
  return after.binding === 'require' ? binding !== 'require' : after.binding === 'accept' && binding === 'none';
}

/** Whether a listener takes proofs, and none of the kinds that another one takes. */
function takesOtherProofs(opened: ListenSettings, wanted: ListenSettings): boolean {
  const { dpop } = wanted;
  if (dpop !== null && [...dpop.origins].every((origin) => opened.dpop?.origins.has(origin) === true)) return false;
  const asks = asksForCertificates(wanted);
  return (dpop !== null || asks) && !(asks && asksForCertificates(opened));
}

/** Routes that ask for certificates from now on, while no listener that is open verifies any. */
const uncertified: Finding = (inForce, wanted) => {
  if (verifiesCertificates(inForce.listen) || !verifiesCertificates(wanted.listen)) return null;
  const route = wanted.routes.find(({ name, mode, clientCertificates }) => {
    const before = enforcedRoute(inForce, name)?.clientCertificates;
    return mode === 'enforce' && [...(clientCertificates ?? [])].some((each) => before?.has(each) !== true);
  });
  if (route === undefined) return null;
  return `${nameOf(route)} asks for certificates, and what verifies them in listen is opened at start only`;
};

/** Routes whose requests a decide listener would refuse from now on, and not any more after a restart. */
const unsupported: Finding = (inForce, wanted) => {
  for (const [opened, later] of decideListeners(inForce, wanted)) {
    for (const route of wanted.routes) {
      const before = acceptancesFor(enforcedRoute(inForce, route.name));
      const missing = acceptancesFor(route).find(
        (word) => !before.includes(word) && later.accepts.has(word) && !opened.accepts.has(word),
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
function acceptancesFor(route: Route | null): readonly Acceptance[] {
  if (route?.mode !== 'enforce') return [];
  return limitsOf({ reservation: route.reservation, opensConnections: route.isGrpc }).map(
    ({ acceptance }) => acceptance,
  );
}

function asksForTokens({ mode, acceptsService }: Route): boolean {
  return mode === 'enforce' && acceptsService;
}

/** `null` where shadow mode refuses nobody, too. */
function enforcedRoute(config: CompiledConfig, name: string): Route | null {
  const route = routeOf(config, name);
  return route?.mode === 'enforce' ? route : null;
}

function routeOf({ routes }: CompiledConfig, name: string): Route | null {
  return routes.find((route) => route.name === name) ?? null;
}

function nameOf({ name }: Pick<Route, 'name'>): string {
  return `route ${JSON.stringify(name)}`;
}
