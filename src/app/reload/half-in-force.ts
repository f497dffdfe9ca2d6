/** What of a new config leans on a part that it asks for in vain: such a part is opened at start only. */
import type { CompiledConfig, DecideSettings, ListenSettings } from '../../config/types.js';
import { asksForCertificates } from '../../config/sections/listeners/listen.js';
import { ownJobAt } from '../../config/sections/listeners/ports.js';
import { limitsOf, type Acceptance } from '../../decision/decide/limits.js';
import type { Route } from '../../decision/route/policy.js';
import { placeOf } from '../../decision/route/route-table.js';

type Finding = (opened: CompiledConfig, wanted: CompiledConfig) => string | null;

/**
 * Says what a config would do to callers that neither the config of the start nor this one does, were it put in force
 * beside what is open; `null` where it is nothing. What was so from the start on is no reason to refuse an edit.
 */
export function halfInForce(opened: CompiledConfig, wanted: CompiledConfig): string | null {
  for (const find of [unproved, uncertified, unguarded, unsupported, unasserted, unprobed, unsettled, calledByItself]) {
    const found = find(opened, wanted);
    if (found !== null) return `${found}: restart to put this config in force`;
  }
  return null;
}

/** Tokens that have to be bound, where nothing that is open takes the proofs. */
const unproved: Finding = (opened, wanted) => {
  const issuer = wanted.issuers.find(({ rules: { name, binding } }) => {
    const before = opened.issuers.find(({ rules }) => rules.name === name)?.rules.binding;
    return binding === 'require' ? before !== 'require' : binding === 'accept' && before === 'none';
  });
  if (issuer === undefined) return null;
  const { name, binding } = issuer.rules;
  const says = `issuers.${name}.binding is ${binding}`;
  if (opened.listen.dpop === null && wanted.listen.dpop !== null) {
    return `${says}, and listen.dpop, which says what proofs are taken, is opened at start only`;
  }
  const asksAnew = wanted.listen.tls?.clientAuth === 'request' && opened.listen.tls?.clientAuth !== 'request';
  if (asksForCertificates(wanted.listen) && (asksAnew || verifiesOthers(opened.listen, wanted.listen))) {
    return `${says}, and what asks callers for certificates in listen is opened at start only`;
  }
  return null;
};

/** Routes that ask for certificates, where nothing that is open verifies them. */
const uncertified: Finding = (opened, wanted) => {
  if (!verifiesOthers(opened.listen, wanted.listen)) return null;
  const route = wanted.routes.find(
    ({ name, clientCertificates }) =>
      clientCertificates !== null && !isSameSet(clientCertificates, routeOf(opened, name)?.clientCertificates ?? null),
  );
  if (route === undefined) return null;
  return `${nameOf(route)} asks for certificates, and what verifies them in listen is opened at start only`;
};

/** Routes that ask for certificates no more since the listener will, where the one that is open does not. */
const unguarded: Finding = (opened, wanted) => {
  if (!refusesWithout(wanted.listen) || refusesWithout(opened.listen)) return null;
  const route = wanted.routes.find(
    ({ name, clientCertificates }) =>
      clientCertificates === null && (routeOf(opened, name)?.clientCertificates ?? null) !== null,
  );
  if (route === undefined) return null;
  return `${nameOf(route)} asks for certificates no more, and listen.tls, which asks every caller, is opened at start only`;
};

/** Routes whose requests a decide listener refuses, which would let them through after a restart. */
const unsupported: Finding = (opened, wanted) => {
  for (const [listener, later] of laterListeners(opened, wanted)) {
    for (const route of wanted.routes) {
      const known = routeOf(opened, route.name);
      const before = new Set(known === null ? [] : acceptancesFor(known));
      const missing = acceptancesFor(route).find(
        (acceptance) => !before.has(acceptance) && isGained(acceptance, listener, later),
      );
      if (missing !== undefined) {
        return `${nameOf(route)} needs ${missing} in decide.accept, which is opened at start only`;
      }
    }
  }
  return null;
};

/** An assertion that the upstream would be without. */
const unasserted: Finding = (opened, wanted) => {
  if (opened.assertion !== null || wanted.assertion === null) return null;
  const isMissing = laterListeners(opened, wanted).some(([listener, later]) => isGained('assertion', listener, later));
  return isMissing ? 'identity.assertion needs assertion in decide.accept, which is opened at start only' : null;
};

/** Probes over gRPC that a route let through, and Sallyport does not answer yet. */
const unprobed: Finding = (opened, wanted) => {
  if (opened.listen.answersGrpcHealth || !wanted.listen.answersGrpcHealth) return null;
  const hasRoute = ({ table }: CompiledConfig): boolean =>
    placeOf(table, 'POST', ['grpc.health.v1.Health', 'Check']) !== null;
  if (!hasRoute(opened) || hasRoute(wanted)) return null;
  return 'no route takes grpc.health.v1.Health any more, and listen.grpc_health is opened at start only';
};

/** The same as `check` says of a config in which both stand. */
const unsettled: Finding = ({ store }, { shutdown }) => {
  if (store?.kind !== 'redis' || store.settleTimeoutMs <= shutdown.graceMs / 2) return null;
  return `store.redis.settle_timeout, which is opened at start only, stays ${String(store.settleTimeoutMs)}ms, more than half of shutdown.grace`;
};

/** Requests that would come back, until there are as many as may be under way. */
const calledByItself: Finding = ({ servesCallers, listen, admin, probes, egress, decide }, { upstream }) => {
  const job = ownJobAt(upstream.url, {
    listen: servesCallers ? listen : null,
    admin,
    probes,
    egress: egress === null || egress.socket !== null ? null : egress.listen,
    decide: decide.map((each) => each.listen),
  });
  return job === null ? null : `upstream.url is where Sallyport ${job}, and its listeners are opened at start only`;
};

/** Whether certificates count with a listener that do not with another one, of another authority or from a proxy. */
function verifiesOthers(opened: ListenSettings, wanted: ListenSettings): boolean {
  const authorities = wanted.tls?.clientCaFile ?? null;
  if (authorities !== null && authorities !== (opened.tls?.clientCaFile ?? null)) return true;
  if (!wanted.readsClientCert) return false;
  return !opened.readsClientCert || wanted.trustForwarded.some((block) => !opened.trustForwarded.includes(block));
}

/** Whether nobody connects without a certificate that verifies. */
function refusesWithout({ tls }: ListenSettings): boolean {
  return tls !== null && tls.clientCaFile !== null && tls.clientAuth === 'require';
}

/** The decide listeners that are open, each with what it becomes: where it is the same, or else stands in its place. */
function laterListeners(
  opened: CompiledConfig,
  wanted: CompiledConfig,
): readonly (readonly [DecideSettings, DecideSettings])[] {
  return opened.decide.flatMap((listener, index) => {
    const { host, port } = listener.listen;
    const same = wanted.decide.find(({ listen }) => port !== 0 && listen.port === port && listen.host === host);
    const later = same ?? wanted.decide[index];
    return later === undefined ? [] : [[listener, later] as const];
  });
}

function isGained(acceptance: Acceptance, listener: DecideSettings, later: DecideSettings): boolean {
  return later.accepts.has(acceptance) && !listener.accepts.has(acceptance);
}

/** What a decide listener has to accept, or it refuses requests of the route. Shadow mode refuses none. */
function acceptancesFor({ mode, reservation, allowsWebSocket, isGrpc }: Route): readonly Acceptance[] {
  if (mode === 'shadow') return [];
  return limitsOf({ reservation, opensConnections: allowsWebSocket || isGrpc }).map(({ acceptance }) => acceptance);
}

function routeOf({ routes }: Pick<CompiledConfig, 'routes'>, name: string): Route | null {
  return routes.find((route) => route.name === name) ?? null;
}

function nameOf({ name }: Pick<Route, 'name'>): string {
  return `route ${JSON.stringify(name)}`;
}

function isSameSet(one: ReadonlySet<string>, other: ReadonlySet<string> | null): boolean {
  return other !== null && one.size === other.size && [...one].every((item) => other.has(item));
}
