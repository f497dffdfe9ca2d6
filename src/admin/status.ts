import { timestamp } from '../lib/timestamp.js';
import type { HostPort, CompiledConfig, KeySourceSettings } from '../config/types.js';
import type { CertificateState } from '../lib/certificate-validity.js';
import type { IssuerRules, Mode } from '../decision/route/policy.js';
import type { Form } from '../decision/decide/forms.js';
import type { ConnectionEnding } from '../decision/limits/idle-connections.js';
import type {
  CertificateName,
  CertificateStatus,
  ConnectionsByProtocol,
  DecideState,
  EgressState,
  OpenConnections,
  Outcome,
  UpstreamConnections,
} from '../ports/observability.js';
import type { IntrospectionState, KeySourceState, MetadataState } from '../ports/auth.js';
import type { LimitsState } from '../ports/limits.js';
import type { StoreState } from '../ports/idempotency.js';
import type { SignalState, TelemetryState } from '../ports/tracing.js';
import type { TokenSourceStatus } from '../ports/tokens.js';
import type { RevocationsState } from '../ports/revocations.js';
import { sessionIssuerName } from '../decision/session/token.js';
import { readinessOf, type Phase, type Readiness } from './readiness.js';
import { revocationAsData, type RevocationData } from '../decision/revocation/record.js';

/** What `/status` answers; `docs/status.schema.json` describes it. Never a secret: URLs come without user and query. */
export interface Status {
  readonly version: string;
  readonly revision: string;
  readonly node: string;
  readonly pid: number;
  readonly started_at: string;
  readonly phase: Phase;
  readonly readiness: Readiness;
  readonly listeners: {
    readonly proxy: HostPort | null;
    readonly admin: HostPort | null;
    readonly probes: HostPort | null;
    readonly egress: HostPort | null;
    /** Where proxies ask for decisions, in the order of the config. */
    readonly decide: readonly HostPort[];
  };
  readonly config: {
    readonly file: string;
    readonly sha256: string;
    readonly loaded_at: string;
    readonly mode: Mode;
    readonly warnings: readonly string[];
    readonly last_reload_error: { readonly at: string; readonly problems: readonly string[] } | null;
  };
  /** Keys of the config whose new value counts from the next start on. */
  readonly restart_needed: readonly string[];
  readonly routes: readonly RouteStatus[];
  readonly issuers: readonly IssuerStatus[];
  /** `null` where nothing is forwarded to one. */
  readonly upstream: { readonly url: string } | null;
  readonly store: StoreStatus | null;
  readonly revocations: RevocationsStatus | null;
  readonly limits: LimitsStatus | null;
  readonly certificates: readonly CertificateEntry[];
  /** What is open. */
  readonly connections: ConnectionsStatus;
  /** The calling side; `null` where there is none. */
  readonly egress: EgressStatus | null;
  /** Listeners on which proxies ask for decisions, in the order of the config. */
  readonly decide: readonly DecideStatus[];
  /** What is sent to a collector; `null` where nothing is. */
  readonly telemetry: TelemetryStatus | null;
  readonly counts: Counts;
  /** Processes that serve callers; left out where there is one process for everything. */
  readonly workers?: WorkersStatus;
}

interface WorkersStatus {
  /** As many as there should be. */
  readonly count: number;
  /** How many ended that nobody had asked to, since the start. */
  readonly replaced: number;
  readonly serving: readonly { readonly number: number; readonly pid: number; readonly serving_s: number }[];
}

/** Connections, and the requests that are under way on them; of HTTP/2 each is a stream. */
interface ConnectionsStatus {
  /** Callers' of which it is known what they speak. */
  readonly http1: OpenConnections;
  readonly http2: OpenConnections;
  /** To the upstream of the config in force. */
  readonly upstream: OpenConnections & { readonly protocol: 'HTTP/1' | 'HTTP/2'; readonly waiting: number };
}

interface CertificateEntry {
  readonly certificate: CertificateName;
  readonly state: CertificateState;
  readonly valid_from: string;
  readonly valid_to: string;
  /** Below 0 once it has expired. */
  readonly days_left: number;
}

interface LimitsStatus {
  /** What is shared, where anything is; else each process counts. */
  readonly counted_by: 'process' | 'store';
  /** Why each process counts what should be shared. */
  readonly problem: string | null;
}

interface StoreStatus {
  readonly kind: StoreState['kind'];
  readonly up: boolean;
  /** Why it takes no reservations, and what to do about it. */
  readonly problem: string | null;
  readonly connected_replicas: number | null;
  readonly servers: StoreState['servers'];
  readonly failovers: number;
}

interface RouteStatus {
  readonly name: string;
  readonly methods: readonly string[];
  readonly paths: readonly string[];
  readonly access: 'public' | 'protected';
  readonly mode: Mode;
}

interface IssuerStatus {
  readonly name: string;
  readonly issuer: string;
  readonly source: string;
  readonly usable: boolean;
  readonly stale: boolean;
  readonly age_s: number | null;
  readonly last_error: string | null;
  /** Seconds for which the keys serve if their source stays away. */
  readonly serves_for_s: number | null;
  /** Seconds until the source is asked again; `null` while it is being asked. */
  readonly next_fetch_s: number | null;
  readonly keys: readonly { readonly key_id: string; readonly age_s: number; readonly accepted: boolean }[];
  readonly withdrawn_keys: readonly { readonly key_id: string; readonly withdrawn_s: number }[];
  /** Whether the issuer says that no key counts. */
  readonly empty_set: 'unconfirmed' | 'confirmed' | null;
  /** Requests that wait for a key that may be new. */
  readonly waiting: number;
  /** The document that names the place of the keys; `null` where the config does. */
  readonly metadata: {
    readonly age_s: number | null;
    readonly keys_from: string | null;
    readonly last_error: string | null;
  } | null;
  /** How it stands with what asks the issuer about opaque tokens. */
  readonly introspection: IntrospectionStatus | null;
}

interface IntrospectionStatus {
  /** Whether the last question was answered. */
  readonly up: boolean;
  /** Why it was not. */
  readonly problem: string | null;
  /** Tokens whose response is remembered. */
  readonly active: number;
  readonly inactive: number;
  readonly in_flight: number;
}

interface ListedIssuer {
  readonly rules: Pick<IssuerRules, 'name' | 'issuer'>;
  readonly keys: KeySourceSettings;
}

/** Since the start. */
export interface Counts {
  readonly requests: Readonly<Record<Outcome, number>>;
  /** Requests that were refused, by reason; reasons that did not occur are left out. */
  readonly denials: Readonly<Record<string, number>>;
  /** Requests that something broke, likewise. */
  readonly failures: Readonly<Record<string, number>>;
  /** Requests that shadow mode let pass, by why they would have been refused. */
  readonly shadow_denials: Readonly<Record<string, number>>;
  /** gRPC calls by the `grpc-status` that their callers were sent, 0 to 16; those that did not occur are left out. */
  readonly grpc_calls: Readonly<Record<string, number>>;
  /** Client connections that were ended since there was too much. */
  readonly connections_ended: Readonly<Record<ConnectionEnding, number>>;
  readonly stripped_fields: number;
  readonly config_reloads: { readonly ok: number; readonly failed: number };
}

/** What the process knows of itself at one moment. */
export interface Snapshot {
  readonly version: string;
  readonly revision: string;
  readonly node: string;
  readonly pid: number;
  readonly startedAtMs: number;
  readonly phase: Phase;
  readonly listeners: Status['listeners'];
  readonly configName: string;
  readonly config: CompiledConfig;
  readonly loadedAtMs: number;
  readonly lastError: { readonly atMs: number; readonly problems: readonly string[] } | null;
  readonly restartNeeded: readonly string[];
  readonly keys: readonly KeySourceState[];
  readonly introspections: readonly IntrospectionState[];
  /** `null` where no store is configured. */
  readonly store: StoreState | null;
  /** `null` where no store tells of any. */
  readonly revocations: RevocationsState | null;
  /** `null` where no route has limits. */
  readonly limits: LimitsState | null;
  readonly certificates: readonly CertificateStatus[];
  readonly connections: ConnectionsByProtocol;
  readonly upstreamConnections: UpstreamConnections;
  /** `null` where there is no calling side. */
  readonly egress: EgressState | null;
  readonly decide: readonly DecideState[];
  readonly telemetry: TelemetryState | null;
  readonly counts: Counts;
}

/** Writes a snapshot as operators read it. */
export function statusOf(snapshot: Snapshot): Status {
  const { config, lastError } = snapshot;
  return {
    version: snapshot.version,
    revision: snapshot.revision,
    node: snapshot.node,
    pid: snapshot.pid,
    started_at: timestamp(snapshot.startedAtMs),
    phase: snapshot.phase,
    readiness: readinessOf(snapshot.phase, snapshot.keys, snapshot.store, snapshot.revocations),
    listeners: snapshot.listeners,
    config: {
      file: snapshot.configName,
      sha256: config.sha256,
      loaded_at: timestamp(snapshot.loadedAtMs),
      mode: config.unmatched === null ? 'enforce' : 'shadow',
      warnings: config.warnings,
      last_reload_error: lastError === null ? null : { at: timestamp(lastError.atMs), problems: lastError.problems },
    },
    restart_needed: snapshot.restartNeeded,
    routes: config.routes.map((route) => ({
      name: route.name,
      methods: route.methods === null ? ['*'] : [...route.methods],
      paths: route.paths.map((path) => path.text),
      access: route.access,
      mode: route.mode,
    })),
    issuers: [...config.issuers, ...sessionIssuer(config)].map((issuer) => issuerStatus(issuer, snapshot)),
    upstream: config.servesCallers ? { url: withoutSecrets(config.upstream.url) } : null,
    store: storeStatus(snapshot.store),
    revocations: revocationsStatus(snapshot.revocations),
    limits: limitsStatus(snapshot.limits),
    certificates: snapshot.certificates.map(({ certificate, state, validFrom, validTo, daysLeft }) => ({
      certificate,
      state,
      valid_from: validFrom,
      valid_to: validTo,
      days_left: daysLeft,
    })),
    connections: connectionsStatus(snapshot),
    egress: egressStatus(snapshot.egress),
    decide: snapshot.decide.map(({ form, trust, connections, inFlight }) => ({
      form,
      trust,
      connections,
      in_flight: inFlight,
    })),
    telemetry: telemetryStatus(snapshot.telemetry),
    counts: snapshot.counts,
  };
}

function connectionsStatus({
  connections: { http1, http2 },
  upstreamConnections: { isHttp2, connections, requests, waiting },
}: Pick<Snapshot, 'connections' | 'upstreamConnections'>): ConnectionsStatus {
  return {
    http1,
    http2,
    upstream: { protocol: isHttp2 ? 'HTTP/2' : 'HTTP/1', connections, requests, waiting },
  };
}

interface DecideStatus {
  readonly form: Form;
  /** Who may ask. */
  readonly trust: readonly string[];
  readonly connections: number;
  /** Requests that are being decided. */
  readonly in_flight: number;
}

interface TelemetryStatus {
  /** Scheme, host and port. */
  readonly endpoint: string;
  readonly protocol: string;
  readonly not_followed: number;
  readonly signals: readonly (Omit<SignalState, 'lastError'> & { readonly last_error: string | null })[];
}

interface EgressStatus {
  readonly held_bytes: number;
  readonly targets: readonly {
    readonly name: string;
    readonly prefix: string;
    readonly url: string;
    readonly token: string | null;
    readonly connections: number;
    readonly requests: number;
    readonly waiting: number;
  }[];
  readonly tokens: readonly {
    readonly name: string;
    readonly kind: TokenSourceStatus['kind'];
    /** Whether one is kept that requests get at once. */
    readonly kept: boolean;
    readonly ends_at: string | null;
    readonly last_error: string | null;
    readonly fetches: number;
    readonly waiting: number;
  }[];
}

function telemetryStatus(state: TelemetryState | null): TelemetryStatus | null {
  if (state === null) return null;
  const { endpoint, protocol, notFollowed, signals } = state;
  return {
    endpoint,
    protocol,
    not_followed: notFollowed,
    signals: signals.map(({ lastError, ...rest }) => ({ ...rest, last_error: lastError })),
  };
}

function egressStatus(state: EgressState | null): EgressStatus | null {
  if (state === null) return null;
  return {
    held_bytes: state.heldBytes,
    targets: state.targets.map(({ name, prefix, url, token, connections, active, waiting }) => ({
      name,
      prefix,
      url: withoutSecrets(url),
      token,
      connections,
      requests: active,
      waiting,
    })),
    tokens: state.tokens.map(({ name, kind, kept, endsAtMs, lastError, fetches, waiting }) => ({
      name,
      kind,
      kept,
      ends_at: endsAtMs === null ? null : timestamp(endsAtMs),
      last_error: lastError,
      fetches,
      waiting,
    })),
  };
}

/** Sessions come from an issuer of their own. */
function sessionIssuer({ sessions }: CompiledConfig): readonly ListedIssuer[] {
  return sessions === null
    ? []
    : [{ rules: { name: sessionIssuerName, issuer: sessions.issuer }, keys: sessions.keys }];
}

function issuerStatus(
  { rules, keys }: ListedIssuer,
  snapshot: Pick<Snapshot, 'keys' | 'introspections'>,
): IssuerStatus {
  const state = snapshot.keys.find((candidate) => candidate.issuer === rules.name);
  const introspection = snapshot.introspections.find((candidate) => candidate.issuer === rules.name);
  return {
    name: rules.name,
    issuer: rules.issuer,
    source: keys.source.kind === 'file' ? keys.source.path : withoutSecrets(keys.source.url),
    usable: state?.usable ?? false,
    stale: state?.stale ?? false,
    age_s: seconds(state?.ageMs ?? null),
    last_error: state?.lastError ?? null,
    serves_for_s: seconds(state?.servesForMs ?? null),
    next_fetch_s: seconds(state?.nextFetchMs ?? null),
    keys: (state?.keys ?? []).map((key) => ({
      key_id: key.keyId,
      age_s: seconds(key.ageMs) ?? 0,
      accepted: key.accepted,
    })),
    withdrawn_keys: (state?.withdrawn ?? []).map(({ keyId, ageMs }) => ({
      key_id: keyId,
      withdrawn_s: seconds(ageMs) ?? 0,
    })),
    empty_set: state?.emptySet ?? null,
    waiting: state?.waiting ?? 0,
    metadata: metadataStatus(state?.metadata ?? null),
    introspection: introspection === undefined ? null : introspectionStatus(introspection),
  };
}

function metadataStatus(state: MetadataState | null): IssuerStatus['metadata'] {
  if (state === null) return null;
  return { age_s: seconds(state.ageMs), keys_from: state.keysUrl, last_error: state.lastError };
}

function introspectionStatus({ up, problem, active, inactive, inFlight }: IntrospectionState): IntrospectionStatus {
  return { up, problem, active, inactive, in_flight: inFlight };
}

function storeStatus(state: StoreState | null): StoreStatus | null {
  if (state === null) return null;
  const { kind, up, problem, connectedReplicas, servers, failovers } = state;
  return { kind, up, problem, connected_replicas: connectedReplicas, servers, failovers };
}

function limitsStatus(state: LimitsState | null): LimitsStatus | null {
  return state === null ? null : { counted_by: state.isShared ? 'store' : 'process', problem: state.problem };
}

/** Drops what an URL may carry of passwords and keys. */
function withoutSecrets(text: string): string {
  if (!URL.canParse(text)) return '';
  const url = new URL(text);
  return url.protocol === 'unix:'
    ? `unix:${url.pathname}`
    : `${url.protocol}//${url.host}${url.pathname === '/' ? '' : url.pathname}`;
}

function seconds(durationMs: number | null): number | null {
  return durationMs === null ? null : Math.max(0, Math.round(durationMs / 1000));
}

/** Revocations through the store, as `/status` shows them. */
interface RevocationsStatus {
  /** Whether the store was ever read. */
  readonly loaded: boolean;
  /** Whether the last successful look is too long ago. */
  readonly stale: boolean;
  /** Since that look, or since the start. */
  readonly age_s: number;
  /** Why the last look failed. */
  readonly problem: string | null;
  /** Whether a change would be told of at once, and not only found by looking. */
  readonly news: boolean;
  /** How many hold here. */
  readonly held: number;
  /** Some of them, those that the store has lost first. */
  readonly entries: readonly RevocationEntry[];
  /** How many the store has lost. */
  readonly lost: number;
  /** Records of the store that are not in force here. */
  readonly not_in_force: number;
}

/** Of a token by its digest, the value is the digest. */
interface RevocationEntry extends RevocationData {
  /** Whether the store has it no more. */
  readonly lost: boolean;
}

/** As many as a page can show. */
const mostShown = 100;

function revocationsStatus(state: RevocationsState | null): RevocationsStatus | null {
  if (state === null) return null;
  const { isLoaded, isStale, ageMs, problem, hasNews, held, lost, notInForce } = state;
  const missing = new Set(lost);
  const sorted = [...held].sort((a, b) => Number(missing.has(b.id)) - Number(missing.has(a.id)));
  return {
    loaded: isLoaded,
    stale: isStale,
    age_s: Math.round(ageMs / 1000),
    problem,
    news: hasNews,
    held: held.length,
    entries: sorted
      .slice(0, mostShown)
      .map((revocation) => ({ ...revocationAsData(revocation), lost: missing.has(revocation.id) })),
    lost: lost.length,
    not_in_force: notInForce,
  };
}
