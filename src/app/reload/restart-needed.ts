import type {
  CompiledConfig,
  HostPort,
  ListenSettings,
  ProbesSettings,
  RedisStoreSettings,
  SessionSettings,
  StoreSettings,
} from '../../config/types.js';

type Value = string | number | null;

/** Every key that counts at start only, as the config spells it. */
const startOnly: Readonly<Record<string, (config: CompiledConfig) => Value>> = {
  'listen.host': ({ listen }) => listen.host,
  'listen.port': ({ listen }) => listen.port,
  'listen.tls.cert_file': ({ listen }) => listen.tls?.certFile ?? null,
  'listen.tls.key_file': ({ listen }) => listen.tls?.keyFile ?? null,
  'listen.tls.client_ca_file': ({ listen }) => listen.tls?.clientCaFile ?? null,
  // Says nothing without the CA.
  'listen.tls.client_auth': ({ listen }) =>
    listen.tls === null || listen.tls.clientCaFile === null ? null : listen.tls.clientAuth,
  'listen.tls_terminated_by': ({ listen }) => listen.tlsTerminatedBy,
  'listen.trust_forwarded': ({ listen }) => listen.trustForwarded.join(' '),
  'listen.max_header_bytes': ({ listen }) => listen.maxHeaderBytes,
  'listen.max_target': ({ listen }) => listen.maxTargetBytes,
  'listen.header_timeout': ({ listen }) => listen.headerTimeoutMs,
  'listen.keep_alive_timeout': ({ listen }) => listen.keepAliveTimeoutMs,
  'listen.body_idle_timeout': ({ listen }) => listen.bodyIdleTimeoutMs,
  'listen.body_min_rate': ({ listen }) => listen.bodyMinRate,
  'listen.max_in_flight': ({ listen }) => listen.maxInFlight,
  'listen.max_websockets': ({ listen }) => listen.maxWebSockets,
  'listen.websocket_idle_timeout': ({ listen }) => listen.webSocketIdleTimeoutMs,
  'listen.underscore_fields': ({ listen }) => listen.underscoreFields,
  'listen.http_1_0': ({ listen }) => listen.http10,
  'admin.host': ({ admin }) => admin.host,
  'admin.port': ({ admin }) => admin.port,
  'probes.host': ({ probes }) => probes?.host ?? null,
  'probes.port': ({ probes }) => probes?.port ?? null,
  'probes.app': ({ probes }) =>
    Object.entries(probes?.app ?? {})
      .map(([name, path]) => `${name}=${path}`)
      .sort()
      .join(' '),
};

/** The same of sessions, where some route accepts them before and after. */
const sessionKeys: Readonly<Record<string, (sessions: SessionSettings) => Value>> = {
  'sessions.core_url': ({ coreUrl }) => coreUrl,
  'sessions.api_key': ({ apiKey }) => apiKey,
  'sessions.api_domain': ({ apiDomain }) => apiDomain,
  'sessions.api_base_path': ({ apiBasePath }) => apiBasePath,
  'sessions.check_database': ({ checkDatabase }) => String(checkDatabase),
  'sessions.cookie_domain': ({ cookie }) => cookie.domain,
  'sessions.cookie_same_site': ({ cookie }) => cookie.sameSite,
};

/** The same of a store that is Redis before and after. */
const storeKeys: Readonly<Record<string, (store: RedisStoreSettings) => Value>> = {
  'store.redis.url': ({ topology, tls }) =>
    topology.kind === 'single' ? JSON.stringify([topology, tls !== null]) : null,
  'store.redis.sentinel': ({ topology }) => (topology.kind === 'sentinel' ? JSON.stringify(topology) : null),
  'store.redis.cluster': ({ topology }) => (topology.kind === 'cluster' ? JSON.stringify(topology) : null),
  'store.redis.username': ({ username }) => username,
  'store.redis.password_file': ({ passwordFile }) => passwordFile,
  // By a URL, TLS is asked for there; the key says whom to trust.
  'store.redis.tls': ({ topology, tls }) =>
    tls === null || (topology.kind === 'single' && (tls.caFile ?? tls.serverName) === null)
      ? null
      : JSON.stringify(tls),
  'store.redis.prefix': ({ prefix }) => prefix,
  'store.redis.replicas': ({ replicas }) => replicas,
  'store.redis.reserve_timeout': ({ reserveTimeoutMs }) => reserveTimeoutMs,
  'store.redis.settle_timeout': ({ settleTimeoutMs }) => settleTimeoutMs,
  'store.redis.start_without_revocations': ({ startsWithoutRevocations }) => String(startsWithoutRevocations),
  'store.redis.kept_per_caller': ({ keptPerCaller }) => keptPerCaller,
  'store.redis.durability': ({ durability }) => durability,
};

/** What was opened at start and stays as it is until the end. */
interface Opened {
  readonly listen: ListenSettings;
  readonly admin: HostPort;
  readonly probes: ProbesSettings | null;
  readonly store: StoreSettings | null;
  readonly sessions: SessionSettings | null;
}

/**
 * The keys in which a config asks for something else than what is open. Compared with the start, not with the last
 * reload.
 */
export function restartNeeded(opened: CompiledConfig, wanted: CompiledConfig): readonly string[] {
  const sessions =
    opened.sessions === null || wanted.sessions === null
      ? []
      : changedKeys(sessionKeys, opened.sessions, wanted.sessions);
  return [...changedKeys(startOnly, opened, wanted), ...sessions, ...storeRestartNeeded(opened.store, wanted.store)];
}

function storeRestartNeeded(opened: StoreSettings | null, wanted: StoreSettings | null): readonly string[] {
  if (opened?.kind === 'redis' && wanted?.kind === 'redis') return changedKeys(storeKeys, opened, wanted);
  return opened?.kind === wanted?.kind ? [] : ['store'];
}

function changedKeys<T>(keys: Readonly<Record<string, (from: T) => Value>>, opened: T, wanted: T): readonly string[] {
  return Object.entries(keys)
    .filter(([, valueOf]) => valueOf(opened) !== valueOf(wanted))
    .map(([key]) => key);
}

/**
 * A new config with what is open in the place of what it asks for, so that no half of `listen`, `store` or `sessions`
 * takes effect.
 */
export function withOpened(wanted: CompiledConfig, { listen, admin, probes, store, sessions }: Opened): CompiledConfig {
  return { ...wanted, listen, admin, probes, store, sessions };
}

type Routes = Pick<CompiledConfig, 'routes'>;

/** Whether any route needs a store. */
export function reserves({ routes }: Routes): boolean {
  return routes.some(({ reservation }) => reservation !== null);
}

/**
 * Operations that keys were reserved under and no longer are: a retry of what was sent under one of them is a new
 * request.
 */
export function droppedOperations(before: Routes, after: Routes): readonly string[] {
  const kept = operationsOf(after);
  return [...operationsOf(before)].filter((operation) => !kept.has(operation));
}

function operationsOf({ routes }: Routes): ReadonlySet<string> {
  return new Set(
    routes.flatMap(({ reservation }) =>
      reservation === null || reservation.key === null ? [] : [reservation.operation],
    ),
  );
}

type Scoped = Pick<CompiledConfig, 'routes' | 'issuers'>;

/**
 * Whose keys count no more, since what they are counted by has changed: an issuer's `iss` or `audience`, or, for users,
 * the audience of the first issuer. A retry of what they sent before is a new request.
 */
export function movedScopes(before: Scoped, after: Scoped): readonly string[] {
  const moved = before.issuers.filter(
    ({ rules: { name, issuer, audience } }) =>
      keepsKeys(before, (route) => countsAt(route, name)) &&
      !after.issuers.some(({ rules }) => rules.issuer === issuer && rules.audience === audience),
  );
  const users =
    keepsKeys(before, ({ session }) => session !== null) &&
    before.issuers[0]?.rules.audience !== after.issuers[0]?.rules.audience;
  return [...moved.map(({ rules: { name } }) => `callers of issuers.${name}`), ...(users ? ['users'] : [])];
}

type RouteInForce = CompiledConfig['routes'][number];

function keepsKeys({ routes }: Routes, counts: (route: RouteInForce) => boolean): boolean {
  return routes.some((route) => route.reservation !== null && route.reservation.key !== null && counts(route));
}

function countsAt({ acceptsService, issuers }: RouteInForce, issuerName: string): boolean {
  return acceptsService && (issuers === null || issuers.has(issuerName));
}
