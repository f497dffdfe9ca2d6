import t from 'tap';
import { createMetrics, type ProcessMetrics } from '../../../src/adapters/metrics/metrics.js';
import { denialReasons, failureReasons } from '../../../src/decision/denial.js';
import { strippedKinds } from '../../../src/decision/http/stripped-headers.js';
import type { KeySourceState } from '../../../src/ports/auth.js';
import type { CertificateStatus } from '../../../src/ports/observability.js';
import { keyState } from '../../support/key-state.js';

/** The value of each series, by its name and labels as they are written. */
async function read(metrics: ProcessMetrics): Promise<ReadonlyMap<string, number>> {
  const lines = (await metrics.expose()).split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return new Map(
    lines.map((line) => {
      const end = line.lastIndexOf(' ');
      return [line.slice(0, end), Number(line.slice(end + 1))];
    }),
  );
}

function names(series: ReadonlyMap<string, number>, start: string): string[] {
  return [...series.keys()].filter((name) => name.startsWith(start));
}

const labels = { routes: ['list-orders', 'create-order'], issuers: ['core', 'partner'], configSha256: 'abc' };

const certificate: CertificateStatus = {
  certificate: 'listener',
  validFrom: '',
  validTo: '',
  notBeforeS: 1_700_000_000,
  notAfterS: 1_800_000_000,
  daysLeft: 1,
  state: 'expiring',
};

function keys(issuer: string, ageMs: number | null): KeySourceState {
  return keyState({ issuer, ageMs });
}

t.test('every series of the config is there from the start, at zero', async (t) => {
  const metrics = createMetrics();
  metrics.setLabels(labels);
  const series = await read(metrics);
  const ends = [
    ['forwarded', '2xx'],
    ['forwarded', '4xx'],
    ['forwarded', '5xx'],
    ['replayed', '2xx'],
    ['denied', '4xx'],
    ['failed', '5xx'],
    ['shadow', '2xx'],
  ];
  for (const route of ['none', ...labels.routes]) {
    for (const [outcome, code] of ends) {
      t.equal(series.get(`sallyport_requests_total{route="${route}",outcome="${outcome}",code="${code}"}`), 0);
    }
    for (const reason of failureReasons) {
      t.equal(series.get(`sallyport_failures_total{route="${route}",reason="${reason}"}`), 0);
    }
    for (const name of ['sallyport_request_duration_seconds', 'sallyport_overhead_seconds']) {
      t.equal(series.get(`${name}_bucket{route="${route}",le="+Inf"}`), 0);
      t.equal(series.get(`${name}_sum{route="${route}"}`), 0);
      t.equal(series.get(`${name}_count{route="${route}"}`), 0);
    }
  }
  for (const reason of denialReasons) {
    t.equal(series.get(`sallyport_denials_total{route="none",reason="${reason}"}`), 0);
  }
  t.equal(
    names(series, 'sallyport_denials_total').length,
    denialReasons.length,
    'and of no other route before its first',
  );
  for (const kind of strippedKinds) t.equal(series.get(`sallyport_stripped_fields_total{kind="${kind}"}`), 0);
  t.equal(series.get('sallyport_requests_in_flight'), 0);
  for (const issuer of labels.issuers) {
    for (const result of ['ok', 'failed']) {
      t.equal(series.get(`sallyport_jwks_refreshes_total{issuer="${issuer}",result="${result}"}`), 0);
    }
  }
  for (const result of ['ok', 'failed']) t.equal(series.get(`sallyport_config_reloads_total{result="${result}"}`), 0);
  t.equal(series.get('sallyport_config_info{sha256="abc"}'), 1);
  t.ok((series.get('process_resident_memory_bytes') ?? 0) > 0, 'process metrics');
  t.match(metrics.contentType, /^text\/plain; version=0\.0\.4/);
});

t.test('counts', async (t) => {
  const metrics = createMetrics();
  metrics.setLabels(labels);
  metrics.request('list-orders', 'forwarded', 200, 12, 0.2);
  metrics.request('list-orders', 'forwarded', 204, 5, 0.05);
  metrics.request('list-orders', 'denied', 401, 60_000, 60_000);
  metrics.request('create-order', 'failed', 502, 1, 1);
  metrics.request('create-order', 'forwarded', 0, 1, 1);
  metrics.denial('list-orders', 'token_expired');
  metrics.denial('list-orders', 'token_expired');
  metrics.failure('create-order', 'upstream_failed');
  metrics.strippedHeaders({ identity: 3 });
  metrics.strippedHeaders({});
  metrics.strippedHeaders({ identity: 1, forwarded: 2 });
  metrics.jwksRefresh('core', 'ok');
  metrics.jwksRefresh('core', 'failed');
  metrics.jwksRefresh('core', 'failed');
  metrics.configReload('failed');
  metrics.setReadings({
    keys: () => [keys('core', 1500), keys('partner', null)],
    introspections: () => [{ issuer: 'partner', up: false, problem: 'away', active: 2, inactive: 3, inFlight: 1 }],
    limits: () => null,
    inFlight: () => 7,
    connections: () => 9,
    connectionsByProtocol: () => ({
      http1: { connections: 5, requests: 2 },
      http2: { connections: 3, requests: 40 },
    }),
    upstreamConnections: () => ({ isHttp2: true, connections: 2, requests: 41, waiting: 6 }),
    webSockets: () => 3,
    revocations: () => null,
    tokenCache: () => ({ hits: 5, misses: 2, bytes: 1_400 }),
    certificates: () => [certificate],
    build: () => ({ version: '1.2.3', revision: 'abc', node: '24.1.0' }),
    telemetry: () => null,
    egress: () => ({
      heldBytes: 12,
      targets: [],
      tokens: [
        { name: 'own', kind: 'core', kept: true, endsAtMs: null, lastError: null, fetches: 3, waiting: 0 },
        { name: 'other', kind: 'file', kept: false, endsAtMs: null, lastError: 'unreadable', fetches: 1, waiting: 0 },
      ],
    }),
  });
  metrics.egress.setTargets(['gone']);
  metrics.egress.attempt('gone', false);
  metrics.egress.setTargets(['orders']);
  metrics.egress.attempt('orders', false);
  metrics.egress.attempt('orders', true);
  metrics.egress.notRetried('orders', 'budget');
  metrics.grpcCall('list-orders', 0);
  metrics.grpcCall('list-orders', 16);
  metrics.grpcCall('list-orders', 16);
  metrics.grpcCall('gone', 14);
  metrics.connectionEnded('http2_abuse');
  metrics.webSocketClosed('expired');
  metrics.webSocketClosed('expired');
  metrics.introspection('partner', 'inactive');
  metrics.introspectionLookup('partner', 'joined');
  metrics.introspectionLookup('partner', 'joined');
  const expected: Record<string, number | undefined> = {
    'sallyport_introspections_total{issuer="partner",result="inactive"}': 1,
    'sallyport_introspections_total{issuer="partner",result="failed"}': 0,
    'sallyport_introspection_lookups_total{issuer="partner",result="joined"}': 2,
    'sallyport_introspection_up{issuer="partner"}': 0,
    'sallyport_introspection_in_flight{issuer="partner"}': 1,
    'sallyport_introspection_remembered{issuer="partner"}': 5,
    sallyport_websockets_open: 3,
    'sallyport_client_connections_open{protocol="HTTP/1"}': 5,
    'sallyport_client_connections_open{protocol="HTTP/2"}': 3,
    'sallyport_client_requests_open{protocol="HTTP/1"}': 2,
    'sallyport_client_requests_open{protocol="HTTP/2"}': 40,
    'sallyport_upstream_connections_open{protocol="HTTP/2"}': 2,
    'sallyport_upstream_connections_open{protocol="HTTP/1"}': undefined,
    'sallyport_upstream_requests_open{protocol="HTTP/2"}': 41,
    sallyport_upstream_requests_waiting: 6,
    'sallyport_connections_ended_total{reason="http2_abuse"}': 1,
    'sallyport_grpc_calls_total{route="list-orders",grpc_status="0"}': 1,
    'sallyport_grpc_calls_total{route="list-orders",grpc_status="16"}': 2,
    'sallyport_grpc_calls_total{route="list-orders",grpc_status="14"}': undefined,
    'sallyport_grpc_calls_total{route="none",grpc_status="14"}': 1,
    'sallyport_token_cache_lookups_total{result="hit"}': 5,
    'sallyport_token_cache_lookups_total{result="miss"}': 2,
    sallyport_token_cache_bytes: 1_400,
    'sallyport_egress_attempts_total{target="orders",attempt="first"}': 1,
    'sallyport_egress_attempts_total{target="orders",attempt="retry"}': 1,
    'sallyport_egress_attempts_total{target="gone",attempt="first"}': undefined,
    'sallyport_egress_not_retried_total{target="orders",reason="budget"}': 1,
    'sallyport_egress_not_retried_total{target="orders",reason="in_doubt"}': 0,
    sallyport_egress_held_bytes: 12,
    'sallyport_egress_token_fetches_total{token="own"}': 3,
    'sallyport_egress_token_up{token="own"}': 1,
    'sallyport_egress_token_up{token="other"}': 0,
    'sallyport_websocket_closes_total{reason="expired"}': 2,
    'sallyport_websocket_closes_total{reason="shutdown"}': 0,
    'sallyport_requests_total{route="list-orders",outcome="forwarded",code="2xx"}': 2,
    'sallyport_requests_total{route="list-orders",outcome="denied",code="4xx"}': 1,
    'sallyport_requests_total{route="create-order",outcome="failed",code="5xx"}': 1,
    'sallyport_requests_total{route="create-order",outcome="forwarded",code="none"}': 1,
    'sallyport_requests_total{route="create-order",outcome="forwarded",code="2xx"}': 0,
    'sallyport_requests_total{route="create-order",outcome="forwarded",code="3xx"}': undefined,
    'sallyport_request_duration_seconds_bucket{route="list-orders",le="0.0025"}': 0,
    'sallyport_request_duration_seconds_bucket{route="list-orders",le="0.005"}': 1,
    'sallyport_request_duration_seconds_bucket{route="list-orders",le="0.01"}': 1,
    'sallyport_request_duration_seconds_bucket{route="list-orders",le="0.025"}': 2,
    'sallyport_request_duration_seconds_bucket{route="list-orders",le="30"}': 2,
    'sallyport_request_duration_seconds_bucket{route="list-orders",le="+Inf"}': 3,
    'sallyport_request_duration_seconds_sum{route="list-orders"}': 60.017,
    'sallyport_request_duration_seconds_count{route="list-orders"}': 3,
    'sallyport_overhead_seconds_bucket{route="list-orders",le="0.00005"}': 1,
    'sallyport_overhead_seconds_bucket{route="list-orders",le="0.0001"}': 1,
    'sallyport_overhead_seconds_bucket{route="list-orders",le="0.00025"}': 2,
    'sallyport_overhead_seconds_count{route="list-orders"}': 3,
    'sallyport_denials_total{route="list-orders",reason="token_expired"}': 2,
    'sallyport_denials_total{route="none",reason="token_expired"}': 0,
    'sallyport_denials_total{route="create-order",reason="token_expired"}': undefined,
    'sallyport_failures_total{route="create-order",reason="upstream_failed"}': 1,
    'sallyport_failures_total{route="list-orders",reason="internal"}': 0,
    'sallyport_stripped_fields_total{kind="identity"}': 4,
    'sallyport_stripped_fields_total{kind="forwarded"}': 2,
    'sallyport_stripped_fields_total{kind="hop"}': 0,
    'sallyport_build_info{version="1.2.3",revision="abc",node="24.1.0"}': 1,
    'sallyport_certificate_not_after_seconds{certificate="listener"}': 1_800_000_000,
    'sallyport_certificate_not_before_seconds{certificate="listener"}': 1_700_000_000,
    sallyport_requests_in_flight: 7,
    'sallyport_jwks_refreshes_total{issuer="core",result="ok"}': 1,
    'sallyport_jwks_refreshes_total{issuer="core",result="failed"}': 2,
    'sallyport_jwks_age_seconds{issuer="core"}': 1.5,
    'sallyport_jwks_age_seconds{issuer="partner"}': undefined,
    'sallyport_config_reloads_total{result="failed"}': 1,
    'sallyport_config_reloads_total{result="ok"}': 0,
  };
  for (let scrape = 0; scrape < 2; scrape += 1) {
    const series = await read(metrics);
    for (const [name, value] of Object.entries(expected)) {
      t.equal(series.get(name), value, `${name}, scrape ${String(scrape)}`);
    }
  }
});

const reservationResults = [
  'acquired',
  'replayed',
  'in_progress',
  'mismatch',
  'unknown',
  'token_replayed',
  'unavailable',
  'released',
  'completed',
  'tombstone',
  'repaired',
  'fenced',
] as const;

t.test('every series of reservations is there from the start, at zero', async (t) => {
  const series = await read(createMetrics());
  for (const result of reservationResults) t.equal(series.get(`sallyport_reservations_total{result="${result}"}`), 0);
  for (const operation of ['reserve', 'complete', 'release', 'mark']) {
    t.equal(series.get(`sallyport_store_duration_seconds_count{operation="${operation}"}`), 0);
  }
  for (const name of [
    'duplicate_dispatches_total',
    'lost_reservations_total',
    'unknown_outcomes_total',
    'replica_shortfalls_total',
    'store_failovers_total',
    'store_share_exceeded_total',
    'unknown_outcome_oldest_age_seconds',
  ]) {
    t.equal(series.get(`sallyport_${name}`), 0, name);
  }
  t.equal(series.get('sallyport_store_up'), undefined, 'without a store, an alarm on 0 stays silent');
});

t.test('reservations are counted', async (t) => {
  const metrics = createMetrics();
  const { reservations } = metrics;
  for (const [index, result] of reservationResults.entries()) {
    for (let count = 0; count <= index; count += 1) reservations.reservation(result);
  }
  reservations.storeCall('reserve', 0.3);
  reservations.storeCall('reserve', 30);
  reservations.storeCall('mark', 1);
  reservations.unknownOutcome('id');
  reservations.unknownOutcome('id');
  reservations.replicaShortfall();
  reservations.shareExceeded();
  const state = { kind: 'redis', up: true, problem: null, connectedReplicas: 1, servers: [], failovers: 3 } as const;
  reservations.setReadings({ store: () => state, oldestUnknownMs: () => 1_500 });
  const expected: Record<string, number> = {
    sallyport_duplicate_dispatches_total: 12,
    sallyport_lost_reservations_total: 11,
    sallyport_unknown_outcomes_total: 2,
    sallyport_unknown_outcome_oldest_age_seconds: 1.5,
    sallyport_replica_shortfalls_total: 1,
    sallyport_store_share_exceeded_total: 1,
    sallyport_store_failovers_total: 3,
    sallyport_store_up: 1,
    'sallyport_store_duration_seconds_bucket{operation="reserve",le="0.00025"}': 0,
    'sallyport_store_duration_seconds_bucket{operation="reserve",le="0.0005"}': 1,
    'sallyport_store_duration_seconds_bucket{operation="reserve",le="0.05"}': 2,
    'sallyport_store_duration_seconds_count{operation="mark"}': 1,
    'sallyport_store_duration_seconds_count{operation="complete"}': 0,
  };
  for (const [index, result] of reservationResults.entries()) {
    expected[`sallyport_reservations_total{result="${result}"}`] = index + 1;
  }
  for (let scrape = 0; scrape < 2; scrape += 1) {
    const series = await read(metrics);
    for (const [name, value] of Object.entries(expected)) {
      t.equal(series.get(name), value, `${name}, scrape ${String(scrape)}`);
    }
  }
  reservations.setReadings({ store: () => ({ ...state, up: false }), oldestUnknownMs: () => null });
  const away = await read(metrics);
  t.equal(away.get('sallyport_store_up'), 0);
  t.equal(away.get('sallyport_unknown_outcome_oldest_age_seconds'), 0);
});

t.test('a reload drops what is gone and keeps what stays', async (t) => {
  const metrics = createMetrics();
  metrics.setLabels(labels);
  metrics.request('list-orders', 'forwarded', 200, 1, 1);
  metrics.request('create-order', 'forwarded', 200, 1, 1);
  metrics.jwksRefresh('core', 'ok');
  metrics.jwksRefresh('partner', 'ok');
  metrics.setLabels({ routes: ['list-orders', 'new'], issuers: ['core'], configSha256: 'def' });
  // Of a route and an issuer that went while the request was under way.
  metrics.request('create-order', 'denied', 403, 1, 1);
  metrics.denial('create-order', 'permission_missing');
  metrics.failure('create-order', 'internal');
  metrics.jwksRefresh('partner', 'ok');
  const series = await read(metrics);
  t.same(names(series, 'sallyport_requests_total{route="create-order"'), []);
  t.equal(series.get('sallyport_denials_total{route="none",reason="permission_missing"}'), 1);
  t.equal(series.get('sallyport_failures_total{route="none",reason="internal"}'), 1);
  t.same(
    [...series.keys()].filter((name) => name.includes('create-order') || name.includes('partner')),
    [],
  );
  t.equal(series.get('sallyport_requests_total{route="list-orders",outcome="forwarded",code="2xx"}'), 1);
  t.equal(series.get('sallyport_requests_total{route="new",outcome="forwarded",code="2xx"}'), 0);
  t.equal(series.get('sallyport_requests_total{route="none",outcome="denied",code="4xx"}'), 1);
  t.equal(series.get('sallyport_jwks_refreshes_total{issuer="core",result="ok"}'), 1);
  t.same(names(series, 'sallyport_config_info'), ['sallyport_config_info{sha256="def"}']);
});

t.test('a name from a request makes no series', async (t) => {
  const metrics = createMetrics();
  metrics.setLabels(labels);
  const before = [...(await read(metrics)).keys()].filter((name) => name.startsWith('sallyport_'));
  for (const name of ['/orders/1', '__proto__', 'constructor', 'a"b\n']) {
    metrics.request(name, 'denied', 401, 1, 1);
    metrics.denial(name, 'token_expired');
    metrics.failure(name, 'internal');
    metrics.jwksRefresh(name, 'ok');
  }
  const after = [...(await read(metrics)).keys()].filter((name) => name.startsWith('sallyport_'));
  t.same(after, before);
});

t.test('a duration that is no number, or negative, spoils no sum', async (t) => {
  const metrics = createMetrics();
  metrics.setLabels(labels);
  for (const ms of [NaN, -5, 1000]) metrics.request('list-orders', 'forwarded', 200, ms, ms);
  const series = await read(metrics);
  t.equal(series.get('sallyport_request_duration_seconds_sum{route="list-orders"}'), 1);
  t.equal(series.get('sallyport_request_duration_seconds_count{route="list-orders"}'), 3);
});

t.test('names are written so that they read back', async (t) => {
  const metrics = createMetrics();
  metrics.setLabels({ ...labels, routes: ['a"b\\c'] });
  const series = await read(metrics);
  t.ok(series.has('sallyport_requests_total{route="a\\"b\\\\c",outcome="denied",code="4xx"}'));
  t.ok(series.has('sallyport_overhead_seconds_count{route="a\\"b\\\\c"}'));
});
