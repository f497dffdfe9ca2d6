/** What two configs say differently besides who may do what. */
import type { CompiledConfig, IssuerSettings } from '../../config/types.js';
import { staleAllowanceMs } from '../../decision/http/http-freshness.js';
import type { ReservationRules, Route } from '../../decision/route/policy.js';

/** One setting that is another now. */
export interface SettingChange {
  /** As the config names it. */
  readonly setting: string;
  readonly from: string;
  readonly to: string;
  /** Whether more is let through, or less is guarded, than before. */
  readonly widens: boolean;
}

/** Whether the second value lets through more than the first. What is not known to be harmless is taken for that. */
type Widens = (from: unknown, to: unknown) => boolean;

const always: Widens = () => true;
const never: Widens = () => false;
const whenMore: Widens = (from, to) => Number(to) > Number(from);
const whenLess: Widens = (from, to) => Number(to) < Number(from);
const whenAdded: Widens = (from, to) => listOf(to).some((item) => !listOf(from).includes(item));
const whenRemoved: Widens = (from, to) => whenAdded(to, from);
/** None is no limit at all. */
const whenLimitRises: Widens = (from, to) => to === null || (from !== null && Number(to) > Number(from));
const whenOn: Widens = (_from, to) => to === true;
const whenOff: Widens = (from) => from === true;

/** Milliseconds for which keys serve on where `max_stale` is left out, by what the issuer says. */
const [leastStaleMs, mostStaleMs] = [staleAllowanceMs(null, true), staleAllowanceMs(null, false)];

/** Later words let through more. */
const towards =
  (...words: readonly unknown[]): Widens =>
  (from, to) =>
    words.indexOf(to) > words.indexOf(from);

interface Setting<T> {
  readonly name: string;
  readonly of: (from: T) => unknown;
  readonly widens: Widens;
}

const routeSettings: Readonly<Partial<Record<string, { readonly name: string; readonly widens: Widens }>>> = {
  access: { name: 'access', widens: towards('protected', 'public') },
  mode: { name: 'mode', widens: towards('enforce', 'shadow') },
  allowsBody: { name: 'body', widens: whenOn },
  encodedSlashes: { name: 'encoded_slashes', widens: whenOn },
  pathParameters: { name: 'path_parameters', widens: whenOn },
  forwardsAuthorization: { name: 'forward_authorization', widens: whenOn },
  allowsWebSocket: { name: 'websocket', widens: whenOn },
  // None says that any origin will do.
  origins: { name: 'origins', widens: (from, to) => to === null || (from !== null && whenAdded(from, to)) },
  maxBodyBytes: { name: 'max_body', widens: whenMore },
  responseTimeoutMs: { name: 'response_timeout', widens: never },
};

/** These are compared by who gets through, or piece by piece. */
const comparedElsewhere: ReadonlySet<string> = new Set([
  'name',
  'methods',
  'paths',
  'approvals',
  'issuers',
  'acceptsService',
  'session',
  'reservation',
  'unreservedBecause',
  'limits',
]);

const reservationSettings: readonly Setting<ReservationRules | null>[] = [
  { name: 'idempotency', of: (rules) => rules?.key ?? 'none', widens: towards('required', 'optional', 'none') },
  { name: 'single_use', of: (rules) => rules?.singleUse ?? false, widens: whenOff },
];

/** Of routes that reserve before and after. */
const keptReservationSettings: readonly Setting<ReservationRules>[] = [
  { name: 'idempotency.operation', of: (rules) => rules.operation, widens: always },
  { name: 'idempotency.retention', of: (rules) => rules.retentionMs, widens: whenLess },
  { name: 'idempotency.fields', of: (rules) => rules.fields, widens: whenRemoved },
  { name: 'idempotency.release_on', of: (rules) => [...rules.releaseOn], widens: whenAdded },
  { name: 'idempotency.store_headers', of: (rules) => [...rules.storeHeaders], widens: never },
  { name: 'idempotency.receiver', of: (rules) => rules.receiver, widens: towards('plain', 'reports', 'deduplicates') },
  { name: 'idempotency.max_body', of: (rules) => rules.maxBodyBytes, widens: whenMore },
  { name: 'idempotency.max_stored_response', of: (rules) => rules.maxStoredResponseBytes, widens: never },
];

const otherRouteSettings: readonly Setting<Route>[] = [
  { name: 'idempotency.because', of: ({ unreservedBecause }) => unreservedBecause, widens: never },
  { name: 'session.forward_tokens', of: ({ session }) => session?.forwardsTokens ?? false, widens: whenOn },
  { name: 'limits.requests_per_second', of: ({ limits }) => limits?.rate?.perSecond ?? null, widens: whenLimitRises },
  { name: 'limits.burst', of: ({ limits }) => limits?.rate?.burst ?? null, widens: whenLimitRises },
  { name: 'limits.shared', of: ({ limits }) => limits?.rate?.shared ?? null, widens: whenOff },
  { name: 'limits.max_in_flight', of: ({ limits }) => limits?.maxInFlight ?? null, widens: whenLimitRises },
  // What was counted together with other routes is counted for itself, or the other way round.
  { name: 'limits of its own', of: ({ limits }) => limits !== null && limits.route !== null, widens: always },
];

const configSettings: readonly Setting<CompiledConfig>[] = [
  { name: 'listen.tls', of: ({ listen }) => listen.tls !== null, widens: whenOff },
  { name: 'listen.tls.client_ca_file', of: ({ listen }) => listen.tls?.clientCaFile ?? null, widens: always },
  {
    name: 'listen.tls.client_auth',
    of: ({ listen }) => listen.tls?.clientAuth ?? null,
    widens: towards('require', 'optional'),
  },
  { name: 'listen.tls_terminated_by', of: ({ listen }) => listen.tlsTerminatedBy, widens: never },
  { name: 'listen.trust_forwarded', of: ({ listen }) => listen.trustForwarded, widens: whenAdded },
  {
    name: 'listen.underscore_fields',
    of: ({ listen }) => listen.underscoreFields,
    widens: towards('refuse', 'drop', 'allow'),
  },
  { name: 'listen.http_1_0', of: ({ listen }) => listen.http10, widens: towards('refuse', 'allow') },
  { name: 'listen.max_header_bytes', of: ({ listen }) => listen.maxHeaderBytes, widens: whenMore },
  { name: 'listen.max_target', of: ({ listen }) => listen.maxTargetBytes, widens: whenMore },
  { name: 'listen.body_min_rate', of: ({ listen }) => listen.bodyMinRate, widens: whenLess },
  { name: 'listen.max_in_flight', of: ({ listen }) => listen.maxInFlight, widens: whenMore },
  { name: 'upstream.url', of: ({ upstream }) => place(upstream.url), widens: never },
  { name: 'upstream.host', of: ({ upstream }) => upstream.host, widens: towards('upstream', 'preserve') },
  { name: 'upstream.strip_fields', of: ({ upstream }) => upstream.stripFields, widens: whenRemoved },
  { name: 'upstream.pass_fields', of: ({ upstream }) => upstream.passFields, widens: whenAdded },
  { name: 'upstream.ca_file', of: ({ upstream }) => upstream.caFile, widens: never },
  // What is left on a connection may be taken for another caller's.
  { name: 'upstream.reuse', of: ({ upstream }) => upstream.reuse, widens: towards('never', 'safe', 'always') },
  { name: 'receiver.reads_bodies', of: ({ upstream }) => upstream.readsBodies, widens: whenOn },
  { name: 'upstream.server_name', of: ({ upstream }) => upstream.serverName, widens: never },
  // Under its old name a field is the caller's to send from now on.
  { name: 'identity', of: ({ identity }) => identity, widens: always },
  { name: 'identity.assertion', of: ({ assertion }) => assertion, widens: (from) => from !== null },
  {
    name: 'sessions.core_url',
    of: ({ sessions }) => (sessions === null ? null : place(sessions.coreUrl)),
    widens: always,
  },
  { name: 'sessions.api_domain', of: ({ sessions }) => sessions?.apiDomain ?? null, widens: always },
  { name: 'sessions.api_base_path', of: ({ sessions }) => sessions?.apiBasePath ?? null, widens: always },
  { name: 'sessions.check_database', of: ({ sessions }) => sessions?.checkDatabase ?? null, widens: whenOff },
  { name: 'revoked.key_ids', of: ({ revoked }) => [...revoked.keyIds], widens: whenRemoved },
  { name: 'revoked.subjects', of: ({ revoked }) => [...revoked.subjects], widens: whenRemoved },
  { name: 'revoked.token_ids', of: ({ revoked }) => [...revoked.tokenIds], widens: whenRemoved },
  {
    name: 'revoked.issued_before',
    of: ({ revoked }) => revoked.issuedBeforeS,
    widens: (from, to) => to === null || Number(to) < Number(from ?? 0),
  },
  { name: 'reload.least_age', of: ({ reload }) => reload.leastAgeMs, widens: whenLess },
  {
    name: 'reload.end_marker',
    of: ({ reload }) => (reload.endMarker ? 'required' : 'optional'),
    widens: towards('required', 'optional'),
  },
  { name: 'store', of: ({ store }) => store?.kind ?? null, widens: towards('redis', 'memory') },
  {
    name: 'store.redis.durability',
    of: ({ store }) => (store?.kind === 'redis' ? store.durability : null),
    widens: towards('verified', 'unverified', 'none'),
  },
  {
    name: 'store.redis.start_without_revocations',
    of: ({ store }) => store?.kind === 'redis' && store.startsWithoutRevocations,
    widens: whenOn,
  },
  {
    name: 'store.redis.kept_per_caller',
    of: ({ store }) => (store?.kind === 'redis' ? store.keptPerCaller : null),
    widens: whenLimitRises,
  },
  {
    name: 'store.redis.replicas',
    of: ({ store }) => (store?.kind === 'redis' ? store.replicas : null),
    widens: whenLess,
  },
];

const issuerSettings: readonly Setting<IssuerSettings>[] = [
  { name: 'issuer', of: ({ rules }) => rules.issuer, widens: always },
  { name: 'audience', of: ({ rules }) => rules.audience, widens: always },
  { name: 'source', of: ({ rules }) => [...rules.sources], widens: whenAdded },
  { name: 'token_type', of: ({ rules }) => [...rules.tokenTypes], widens: whenAdded },
  { name: 'clock_skew', of: ({ rules }) => rules.clockSkewS, widens: whenMore },
  { name: 'max_lifetime', of: ({ rules }) => rules.maxLifetimeS, widens: whenMore },
  { name: 'key_ids.accept', of: ({ rules }) => rules.keyIds.accept, widens: whenAdded },
  { name: 'key_ids.reject', of: ({ rules }) => rules.keyIds.reject, widens: whenRemoved },
  {
    name: 'keys',
    of: ({ keys }) => (keys.source.kind === 'file' ? keys.source.path : place(keys.source.url)),
    widens: always,
  },
  { name: 'ca_file', of: ({ keys }) => keys.caFile, widens: always },
  { name: 'jwks.max_age', of: ({ keys }) => keys.maxAgeMs, widens: whenMore },
  // Left out it is an hour at most: what the issuer says may make it less.
  {
    name: 'jwks.max_stale',
    of: ({ keys }) => keys.maxStaleMs,
    widens: (from, to) => whenMore(from ?? leastStaleMs, to ?? mostStaleMs),
  },
];

/** What is different for those whom both routes let through. A setting that this does not know counts as wider. */
export function routeChanges(from: Route, to: Route): readonly SettingChange[] {
  const [before, after] = [new Map(Object.entries(from)), new Map(Object.entries(to))];
  const names = [...new Set([...before.keys(), ...after.keys()])].filter((name) => !comparedElsewhere.has(name));
  const own = names.map((name): Setting<Map<string, unknown>> => ({
    name: routeSettings[name]?.name ?? name,
    of: (entries) => entries.get(name),
    widens: routeSettings[name]?.widens ?? always,
  }));
  const [one, other] = [from.reservation, to.reservation];
  return [
    ...changesOf(own, before, after),
    ...changesOf(reservationSettings, one, other),
    ...(one === null || other === null ? [] : changesOf(keptReservationSettings, one, other)),
    ...changesOf(otherRouteSettings, from, to),
  ];
}

/** What is different for every request. */
export function settingsChanges(from: CompiledConfig, to: CompiledConfig): readonly SettingChange[] {
  const names = new Set([...from.issuers, ...to.issuers].map(({ rules }) => rules.name));
  return [...changesOf(configSettings, from, to), ...[...names].flatMap((name) => issuerChanges(name, from, to))];
}

function issuerChanges(name: string, from: CompiledConfig, to: CompiledConfig): readonly SettingChange[] {
  const [before, after] = [from, to].map(({ issuers }) => issuers.find(({ rules }) => rules.name === name));
  const setting = `issuers.${name}`;
  if (before === undefined) return [{ setting, from: 'none', to: after?.rules.issuer ?? 'none', widens: true }];
  if (after === undefined) return [{ setting, from: before.rules.issuer, to: 'none', widens: false }];
  return changesOf(
    issuerSettings.map((each) => ({ ...each, name: `${setting}.${each.name}` })),
    before,
    after,
  );
}

function changesOf<T>(settings: readonly Setting<T>[], from: T, to: T): readonly SettingChange[] {
  return settings.flatMap(({ name, of, widens }) => {
    const [before, after] = [plain(of(from)), plain(of(to))];
    return shown(before) === shown(after)
      ? []
      : [{ setting: name, from: shown(before), to: shown(after), widens: widens(before, after) }];
  });
}

/** Without user and query, which may be secret. */
function place(url: string): string {
  const { protocol, host, pathname } = new URL(url);
  return `${protocol}//${host}${pathname}`;
}

/** Sets as lists, so that they can be compared and shown. */
function plain(value: unknown): unknown {
  return value instanceof Set ? [...(value as ReadonlySet<unknown>)] : value;
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function shown(value: unknown): string {
  if (Array.isArray(value)) return value.length === 0 ? 'none' : value.map(String).toSorted().join(' ');
  if (value === null || value === undefined) return 'none';
  return typeof value === 'string' ? value : JSON.stringify(value, (_name, inner: unknown) => plain(inner));
}
