/**
 * The data path alone, in this process: a proxy server with a compiled config, keys at hand and a receiver behind it.
 */
import { validateConfig } from '../../src/config/load/validate-config.js';
import { formatProblem } from '../../src/config/load/report.js';
import type { CompiledConfig } from '../../src/config/types.js';
import { systemClock, systemTimers } from '../../src/adapters/system/clock.js';
import { createInFlightCounter } from '../../src/adapters/memory/in-flight-counter.js';
import { createRateCounter } from '../../src/adapters/memory/rate-counter.js';
import { challengesOf } from '../../src/decision/binding/challenges.js';
import type { FailureReason, Reason } from '../../src/decision/denial.js';
import type { ConnectionEnding } from '../../src/decision/limits/idle-connections.js';
import { createHeaderRules } from '../../src/decision/http/header-rules.js';
import type { Revocations } from '../../src/decision/route/policy.js';
import { totalStripped } from '../../src/decision/http/stripped-headers.js';
import type { CloseCauseLabel } from '../../src/decision/websocket/close-codes.js';
import type { Clock, Log, LogFields } from '../../src/ports/system.js';
import type { KeyLookup, KeySource, ProofKeeper } from '../../src/ports/auth.js';
import type { Metrics, Outcome, RequestRecord } from '../../src/ports/observability.js';
import type { ReservationParts } from '../../src/ports/idempotency.js';
import type { SharedRateCounter } from '../../src/ports/limits.js';
import { createCallerLimits } from '../../src/proxy/exchange/rate-limiter.js';
import type { ActiveConfig } from '../../src/proxy/auth/active-config.js';
import type { TlsMaterial } from '../../src/proxy/inbound/listener.js';
import { createProxyServer, type ProxyServer } from '../../src/proxy/server.js';
import type { ActiveSessions } from '../../src/proxy/auth/credentials/session.js';
import { createUpstream } from '../../src/proxy/upstream/pool/pool.js';
import { createVerifiedTokens } from '../../src/proxy/auth/verified-token-cache.js';
import { rsaKey, type RsaKey } from '../support/keys.js';
import { startUpstreamServer, type UpstreamServer } from '../support/upstream-server.js';
import type { Scope } from '../support/scope.js';
import { mintToken, type Claims } from '../support/tokens.js';
import { until } from '../support/until.js';
import { baseConfig, merge, type ConfigTree } from '../support/proxy-process.js';

export interface HarnessOptions {
  /** Laid over `baseConfig` and the receiver's URL. */
  readonly config?: ConfigTree;
  /** Changes what YAML cannot say. */
  readonly adapt?: (config: CompiledConfig) => CompiledConfig;
  readonly receiver?: UpstreamServer;
  /** Where to send requests, where that is not a `Receiver`. */
  readonly upstreamUrl?: string;
  readonly tls?: TlsMaterial;
  readonly upstreamCa?: string;
  /** Stands in for the keys that the tokens are signed with. */
  readonly find?: (keyId: string) => KeyLookup | Promise<KeyLookup>;
  readonly clock?: Clock;
  /** What verifies sessions, for the config that there is. */
  readonly sessions?: (config: CompiledConfig) => ActiveSessions | null;
  /** The store that reserving routes use; none unless given. */
  readonly reservations?: ReservationParts;
  /** What knows of proofs of possession; none are taken unless given. */
  readonly proofs?: ProofKeeper;
  /** What proofs have to repeat; nothing unless given. */
  readonly proofNonce?: () => string;
  /** What probes of gRPC are told; ready unless given. */
  readonly isReady?: () => boolean;
  /** Counts what limits share; nothing does unless given. */
  readonly rates?: SharedRateCounter;
  /** What is revoked through the store. */
  readonly listed?: () => readonly Revocations[];
}

export interface Harness {
  readonly port: number;
  readonly server: ProxyServer;
  readonly receiver: UpstreamServer;
  readonly key: RsaKey;
  readonly authorization: (claims?: Claims) => { readonly Authorization: string };
  /** `Authorization: Bearer …` as a line of a request, with its line end. */
  readonly bearer: (claims?: Claims) => string;
  /** One for each request that ended. */
  readonly records: RequestRecord[];
  /** The record of the request with this id, once it ended. */
  readonly recordOf: (requestId: string) => Promise<RequestRecord>;
  readonly counted: Counted;
  readonly logged: { readonly level: string; readonly message: string; readonly fields: LogFields }[];
  /** Puts another config in force. */
  readonly reload: (config: ConfigTree) => ActiveConfig;
  readonly activeConfig: () => ActiveConfig;
}

export interface Counted {
  readonly requests: {
    readonly route: string;
    readonly outcome: Outcome;
    readonly status: number;
    readonly durationMs: number;
    readonly overheadMs: number;
  }[];
  readonly denials: Reason[];
  readonly grpcCalls: { readonly route: string; readonly status: number }[];
  readonly shadowDenials: { readonly route: string; readonly reason: Reason }[];
  readonly webSocketCloses: CloseCauseLabel[];
  readonly connectionEndings: ConnectionEnding[];
  readonly failures: FailureReason[];
  stripped: number;
}

export async function startProxy(t: Scope, options: HarnessOptions = {}): Promise<Harness> {
  const receiver = options.receiver ?? (await startUpstreamServer(t));
  const key = rsaKey();
  const keys: KeySource = {
    find: options.find ?? ((keyId) => lookUp(key, keyId)),
    state: () => {
      throw new Error('not asked here');
    },
  };
  // A busy machine may take long to connect: only tests of that have a short time for it.
  const usual = { upstream: { url: options.upstreamUrl ?? receiver.url, connect_timeout: '20s' } };
  const compile = (overrides: ConfigTree): ActiveConfig => {
    const read = compiled(merge(usual, overrides));
    const config = options.adapt === undefined ? read : options.adapt(read);
    const { underscoreFields, http10, readsClientCert } = config.listen;
    const { stripFields, passFields } = config.upstream;
    const identityNames = Object.values(config.identity).filter((name): name is string => typeof name === 'string');
    const upstream = createUpstream(config.upstream, options.upstreamCa ?? null);
    t.teardown(async () => upstream.close());
    return {
      config,
      assertion: null,
      headerRules: createHeaderRules({
        identityNames,
        underscoreFields,
        http10,
        readsClientCert,
        stripFields,
        passFields,
      }),
      issuers: config.issuers.map(({ rules }) => ({ rules, keys })),
      sessions: options.sessions?.(config) ?? null,
      proofs: options.proofs ?? null,
      upstream,
      revocations: () => [config.revoked, ...(options.listed?.() ?? [])],
      knowsRevocations: () => true,
      verified: config.tokenCacheBytes === null ? null : createVerifiedTokens(config.tokenCacheBytes),
    };
  };
  let activeConfig = compile(options.config ?? {});
  const records: RequestRecord[] = [];
  const logged: { level: string; message: string; fields: LogFields }[] = [];
  const counted: Counted = {
    requests: [],
    denials: [],
    failures: [],
    grpcCalls: [],
    shadowDenials: [],
    webSocketCloses: [],
    connectionEndings: [],
    stripped: 0,
  };
  const write =
    (level: string) =>
    (message: string, fields: LogFields = {}): void => {
      logged.push({ level, message, fields });
    };
  const log: Log = { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') };
  const server = createProxyServer({
    activeConfig: () => activeConfig,
    clock: options.clock ?? systemClock,
    timers: systemTimers,
    metrics: countInto(counted),
    log,
    requestLog: (record) => records.push(record),
    listen: activeConfig.config.listen,
    tls: options.tls ?? null,
    limits: createCallerLimits({
      local: createRateCounter(options.clock ?? systemClock),
      inFlight: createInFlightCounter(),
      shared: options.rates ?? null,
      clock: options.clock ?? systemClock,
      log,
    }),
    challenges: challengesOf(activeConfig.config.listen.dpop !== null, options.proofNonce ?? null),
    reservations: options.reservations ?? null,
    isReady: options.isReady ?? (() => true),
    collectGarbage: () => undefined,
  });
  const { port } = await server.listen();
  t.teardown(async () => server.drain(0));
  const bearer = (claims?: Claims): string => `Bearer ${mintToken({ key, claims })}`;
  return {
    port,
    server,
    receiver,
    key,
    authorization: (claims) => ({ Authorization: bearer(claims) }),
    bearer: (claims) => `Authorization: ${bearer(claims)}\r\n`,
    records,
    recordOf: async (requestId) =>
      until(`the record of ${requestId}`, () => records.find((record) => record.request_id === requestId)),
    counted,
    logged,
    reload: (config) => {
      activeConfig = compile(config);
      return activeConfig;
    },
    activeConfig: () => activeConfig,
  };
}

/** A config of these pieces, as `serve` would compile it. */
export function compiled(overrides: ConfigTree): CompiledConfig {
  return compiledText(baseConfig(overrides));
}

/** The same of a text. */
export function compiledText(text: string): CompiledConfig {
  const { config, problems } = validateConfig(text, {
    file: 'test.yaml',
    folder: '/',
    env: {},
    readFile: () => ({ ok: false, error: 'there are no files here' }),
  });
  if (config === null) throw new Error(problems.map(formatProblem).join('\n'));
  return config;
}

function lookUp(key: RsaKey, keyId: string): KeyLookup {
  return keyId === key.keyId
    ? { kind: 'found', key: { keyId, algorithm: 'RS256', key: key.publicKey } }
    : { kind: 'unknown' };
}

function countInto(counted: Counted): Metrics {
  return {
    request: (route, outcome, status, durationMs, overheadMs) =>
      counted.requests.push({ route, outcome, status, durationMs, overheadMs }),
    decided: () => undefined,
    denial: (_route, reason) => counted.denials.push(reason),
    failure: (_route, reason) => counted.failures.push(reason),
    grpcCall: (route, status) => counted.grpcCalls.push({ route, status }),
    shadowDenial: (route, reason) => counted.shadowDenials.push({ route, reason }),
    strippedHeaders: (fields) => {
      counted.stripped += totalStripped(fields);
    },
    jwksRefresh: () => undefined,
    discoveryRefresh: () => undefined,
    jwksWait: () => undefined,
    introspection: () => undefined,
    introspectionLookup: () => undefined,
    configReload: () => undefined,
    webSocketClosed: (ending) => counted.webSocketCloses.push(ending),
    connectionEnded: (ending) => counted.connectionEndings.push(ending),
  };
}
