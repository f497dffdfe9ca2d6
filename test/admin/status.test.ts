import t from 'tap';
import type { CompiledConfig } from '../../src/config/types.js';
import { createRouteTable } from '../../src/decision/route/route-table.js';
import type { Route } from '../../src/decision/route/policy.js';
import { statusOf, type Snapshot } from '../../src/admin/status.js';
import { statusProblems } from './status-schema.js';
import { coreKeyRules } from '../../src/decision/token/profiles.js';
import { issuerRules } from '../decision/samples.js';

const route: Route = {
  name: 'list-orders',
  methods: new Set(['GET', 'HEAD']),
  access: 'protected',
  mode: 'shadow',
  acceptsService: true,
  session: null,
  issuers: null,
  isGrpc: false,
  allowsWebSocket: false,
  origins: null,
  allowsBody: false,
  encodedSlashes: false,
  paths: [{ text: '/orders', segments: [{ kind: 'literal', text: 'orders' }] }],
  approvals: [{ subjects: new Set(['checkout']), prefixes: [], permissions: [] }],
  pathParameters: false,
  forwardsAuthorization: false,
  maxBodyBytes: 1,
  responseTimeoutMs: 1,
  reservation: null,
  clientCertificates: null,
  unreservedBecause: null,
  limits: null,
};
const open: Route = {
  ...route,
  name: 'open',
  methods: null,
  access: 'public',
  mode: 'enforce',
  approvals: [],
  paths: [{ text: '/x/**', segments: [] }],
};

const config: CompiledConfig = {
  sha256: 'ab'.repeat(32),
  listen: {
    host: '127.0.0.1',
    port: 0,
    tls: null,
    tlsTerminatedBy: null,
    trustForwarded: [],
    dpop: null,
    readsClientCert: false,
    answersGrpcHealth: false,
    maxHeaderBytes: 1,
    maxTargetBytes: 1,
    headerTimeoutMs: 1,
    keepAliveTimeoutMs: 1,
    bodyIdleTimeoutMs: 1,
    bodyMinRate: 0,
    maxInFlight: 1,
    maxWebSockets: 1,
    webSocketIdleTimeoutMs: 1,
    underscoreFields: 'drop',
    http10: 'refuse',
    http2: false,
    maxStreams: 100,
  },
  tokenCacheBytes: null,
  workers: 1,
  admin: { host: '127.0.0.1', port: 0, console: true },
  probes: null,
  egress: null,
  telemetry: { otlp: null, ratio: null, followedPerSecond: 100, metrics: false, logs: false },
  upstream: {
    url: 'http://user:hunter2@127.0.0.1:3000',
    caFile: null,
    serverName: null,
    host: 'upstream',
    beginsTrace: true,
    stripFields: [],
    passFields: [],
    connectTimeoutMs: 1,
    responseTimeoutMs: 1,
    idleTimeoutMs: 1,
    maxConnections: 1,
    http2: false,
    maxStreams: 100,
    sensitiveHeaders: ['authorization'],
    reuse: 'safe',
    readsBodies: false,
  },
  sessions: null,
  issuers: [
    {
      rules: issuerRules({
        sources: new Set(),
        tokenTypes: new Set(),
        maxLifetimeS: 1,
      }),
      introspection: null,
      allowsHttp: false,
      keys: {
        source: { kind: 'url', url: 'https://user:hunter2@api.example.com/jwks.json?key=hunter2' },
        rules: coreKeyRules,
        caFile: null,
        tokenFile: null,
        minAgeMs: 1,
        maxAgeMs: 1,
        maxStaleMs: 1,
        cooldownMs: 1,
        timeoutMs: 1,
        maxBytes: 1,
      },
    },
  ],
  identity: { subject: null, issuer: null, permissions: null, tokenId: null, kind: null },
  assertion: null,
  revoked: {
    issuer: null,
    keyIds: new Set(),
    subjects: new Set(),
    tokenIds: new Set(),
    tokenDigests: new Set(),
    issuedBeforeS: null,
  },
  store: null,
  shutdown: { delayMs: 0, graceMs: 0 },
  log: { level: 'info', clientAddress: true, userAgent: true, refusalsPerSecond: 100 },
  reload: { endMarker: false, leastAgeMs: 2_000 },
  routes: [route, open],
  table: createRouteTable([route, open]),
  unmatched: null,
  servesCallers: true,
  decide: [],
  settings: new Map(),
  warnings: ['a warning'],
};

const snapshot: Snapshot = {
  version: '1.2.3',
  revision: 'unknown',
  node: '24.0.0',
  pid: 7,
  startedAtMs: 0,
  phase: 'serving',
  listeners: {
    proxy: { host: '127.0.0.1', port: 8443 },
    admin: { host: '127.0.0.1', port: 9901 },
    probes: null,
    egress: null,
    decide: [],
  },
  decide: [{ form: 'nginx', trust: ['127.0.0.1'], connections: 2, inFlight: 1 }],
  configName: 'sallyport.yaml',
  config,
  loadedAtMs: 1_000,
  lastError: { atMs: 2_000, problems: ['sallyport.yaml:1:1: error: …'] },
  restartNeeded: ['listen.port'],
  introspections: [],
  keys: [
    {
      issuer: 'core',
      usable: true,
      stale: false,
      ageMs: 1_499,
      servesForMs: 299_600,
      nextFetchMs: 240_400,
      stalePart: 0,
      lastError: null,
      emptySet: 'unconfirmed',
      waiting: 2,
      metadata: {
        introspection: { url: null, mtlsUrl: null },
        ageMs: 5_400,
        keysUrl: 'https://keys.example.com/jwks',
        lastError: 'away',
        lastProblem: 'not_fetched',
      },
      keys: [{ keyId: 'd-1', ageMs: 61_000, accepted: true }],
      withdrawn: [{ keyId: 'd-0', ageMs: 2_000 }],
    },
  ],
  store: {
    kind: 'redis',
    up: false,
    problem: 'maxmemory-policy is volatile-lru',
    connectedReplicas: 1,
    servers: [{ address: '127.0.0.1:6379', role: 'master', replicas: 1 }],
    failovers: 2,
  },
  revocations: {
    isLoaded: true,
    areRequired: true,
    isStale: false,
    ageMs: 1_400,
    problem: 'ECONNREFUSED',
    hasNews: true,
    notInForce: 1,
    lost: ['B'.repeat(22)],
    held: ['A', 'B'].map((letter) => ({
      id: letter.repeat(22),
      kind: 'subject',
      value: letter,
      issuer: null,
      reason: 'a leak',
      author: 'ann',
      createdAtMs: 0,
      endsAtMs: 1_000,
    })),
  },
  limits: { shared: true, isShared: false, problem: 'not connected yet' },
  certificates: [
    {
      certificate: 'listener',
      validFrom: '2026-01-01T00:00:00.000Z',
      validTo: '2026-02-01T00:00:00.000Z',
      notBeforeS: 0,
      notAfterS: 1,
      daysLeft: -3,
      state: 'expired',
    },
  ],
  connections: { http1: { connections: 2, requests: 1 }, http2: { connections: 1, requests: 30 } },
  upstreamConnections: { isHttp2: true, connections: 2, requests: 31, waiting: 4 },
  telemetry: {
    endpoint: 'http://127.0.0.1:4318',
    protocol: 'http/protobuf',
    notFollowed: 2,
    signals: [{ signal: 'traces', waiting: 1, exported: 2, dropped: 0, failed: 0, rejected: 0, lastError: 'away' }],
  },
  egress: {
    heldBytes: 7,
    targets: [
      {
        name: 'orders',
        prefix: '/orders',
        url: 'https://user:hunter2@orders.example',
        token: 'own',
        connections: 2,
        active: 1,
        waiting: 0,
      },
    ],
    tokens: [
      { name: 'own', kind: 'oauth', kept: true, endsAtMs: 1_000, lastError: 'away', fetches: 3, waiting: 0 },
      { name: 'file', kind: 'file', kept: false, endsAtMs: null, lastError: null, fetches: 0, waiting: 0 },
    ],
  },
  counts: {
    requests: { forwarded: 1, replayed: 0, denied: 2, failed: 0, shadow: 0 },
    denials: { token_expired: 2 },
    failures: { internal: 1 },
    shadow_denials: { credential_missing: 1 },
    grpc_calls: { 0: 5, 16: 1 },
    connections_ended: { gave_way: 0, refused: 1, too_much_waiting: 0, http2_abuse: 2, key_updates: 0 },
    stripped_fields: 3,
    config_reloads: { ok: 1, failed: 1 },
  },
};

t.test('/status is as docs/status.schema.json says', (t) => {
  t.same(statusProblems(statusOf(snapshot)), []);
  const bare = statusOf({
    ...snapshot,
    lastError: null,
    keys: [],
    store: null,
    revocations: null,
    limits: null,
    certificates: [],
    egress: null,
    telemetry: null,
    listeners: { proxy: null, admin: null, probes: null, egress: null, decide: [] },
  });
  t.same(statusProblems(bare), []);
  t.not(statusProblems({ ...bare, more: 1 }).length, 0, 'the schema names every member');
  t.end();
});

t.test('/status shows what is open, by protocol', (t) => {
  t.same(statusOf(snapshot).connections, {
    http1: { connections: 2, requests: 1 },
    http2: { connections: 1, requests: 30 },
    upstream: { protocol: 'HTTP/2', connections: 2, requests: 31, waiting: 4 },
  });
  t.end();
});

t.test('/status shows routes, keys with ages and the last reload error', (t) => {
  const status = statusOf(snapshot);
  t.same(status.routes, [
    { name: 'list-orders', methods: ['GET', 'HEAD'], paths: ['/orders'], access: 'protected', mode: 'shadow' },
    { name: 'open', methods: ['*'], paths: ['/x/**'], access: 'public', mode: 'enforce' },
  ]);
  t.match(status.issuers, [{ name: 'core', age_s: 1, keys: [{ key_id: 'd-1', age_s: 61, accepted: true }] }]);
  t.same(status.config.last_reload_error, {
    at: '1970-01-01T00:00:02.000Z',
    problems: ['sallyport.yaml:1:1: error: …'],
  });
  t.same(status.restart_needed, ['listen.port']);
  t.same(status.store, {
    kind: 'redis',
    up: false,
    problem: 'maxmemory-policy is volatile-lru',
    connected_replicas: 1,
    servers: [{ address: '127.0.0.1:6379', role: 'master', replicas: 1 }],
    failovers: 2,
  });
  t.same(status.certificates, [
    {
      certificate: 'listener',
      state: 'expired',
      valid_from: '2026-01-01T00:00:00.000Z',
      valid_to: '2026-02-01T00:00:00.000Z',
      days_left: -3,
    },
  ]);
  t.match(
    status.revocations,
    {
      loaded: true,
      stale: false,
      age_s: 1,
      problem: 'ECONNREFUSED',
      news: true,
      held: 2,
      lost: 1,
      not_in_force: 1,
      entries: [
        { id: 'B'.repeat(22), lost: true, author: 'ann', ends_at: '1970-01-01T00:00:01.000Z' },
        { id: 'A'.repeat(22), lost: false },
      ],
    },
    'what the store has lost comes first',
  );
  t.end();
});

t.test('/status shows the calling side', (t) => {
  t.same(statusOf(snapshot).egress, {
    held_bytes: 7,
    targets: [
      {
        name: 'orders',
        prefix: '/orders',
        url: 'https://orders.example',
        token: 'own',
        connections: 2,
        requests: 1,
        waiting: 0,
      },
    ],
    tokens: [
      {
        name: 'own',
        kind: 'oauth',
        kept: true,
        ends_at: '1970-01-01T00:00:01.000Z',
        last_error: 'away',
        fetches: 3,
        waiting: 0,
      },
      { name: 'file', kind: 'file', kept: false, ends_at: null, last_error: null, fetches: 0, waiting: 0 },
    ],
  });
  t.end();
});

t.test('no secret of a URL is shown', (t) => {
  const status = statusOf(snapshot);
  t.notMatch(JSON.stringify(status), /hunter2/);
  t.equal(status.upstream?.url, 'http://127.0.0.1:3000');
  t.equal(status.issuers[0]?.source, 'https://api.example.com/jwks.json');
  const unix = statusOf({
    ...snapshot,
    config: { ...config, upstream: { ...config.upstream, url: 'unix:/run/app.sock' } },
  });
  t.equal(unix.upstream?.url, 'unix:/run/app.sock');
  t.end();
});
