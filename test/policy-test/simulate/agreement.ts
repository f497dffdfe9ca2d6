/** Asks a real proxy, `sallyport test` and `sallyport explain` the same requests, and compares what they say. */
import { writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import fc from 'fast-check';
import { stringify } from 'yaml';
import { run } from '../../../src/cli/program.js';
import { captureIo } from '../../cli/captured-io.js';
import { rsaKey, withKeyId } from '../../support/keys.js';
import { connectRaw } from '../../support/raw-client.js';
import type { Scope } from '../../support/scope.js';
import { startSessionCore } from '../../support/session-core.js';
import { mintSession, sessionClaims } from '../../support/sessions.js';
import { mintToken, serviceClaims, type Claims } from '../../support/tokens.js';
import { until } from '../../support/until.js';
import { startProxyProcess, type ConfigTree, type ProxyProcess } from '../../support/proxy-process.js';

/** What all three have to say of a request. */
interface Verdict {
  readonly status: number;
  readonly reason: string | null;
  readonly route: string | null;
}

interface Generated {
  readonly method: string;
  readonly path: string;
  readonly headers: readonly (readonly [string, string])[];
  readonly body: string | null;
  /** `null` is none. */
  readonly claims: Claims | 'invalid' | null;
  /** Of a session in the place of a token; `null` is none. */
  readonly session: Claims | null;
}

export interface Disagreement {
  readonly request: Generated;
  readonly serve: Verdict;
  readonly test: Verdict;
  readonly explain: Verdict | null;
}

export const agreedConfig: ConfigTree = {
  store: { memory: {} },
  receiver: {
    case_sensitive: true,
    strict_slash: true,
    format_suffix: false,
    trailing_dots: false,
    head_as_get: false,
  },
  revoked: { subjects: ['mallory'], token_ids: ['stolen'] },
  listen: { max_target: '256B' },
  routes: [
    {
      name: 'list-orders',
      methods: ['GET'],
      path: '/orders',
      subjects: ['checkout', 'reporting'],
      permissions: ['orders:read'],
    },
    {
      name: 'read-order',
      methods: ['GET', 'HEAD'],
      path: '/orders/{id}',
      subjects: ['checkout'],
      permissions: ['orders:read'],
    },
    { name: 'export', methods: ['GET'], path: '/orders/export', subjects: ['reporting'], permissions: [] },
    {
      name: 'create-order',
      methods: ['POST'],
      path: '/orders',
      idempotency: 'required',
      max_body: '10B',
      any_of: [
        { subjects: ['checkout'], permissions: ['orders:read', 'orders:write'] },
        { subjects: ['migration'], permissions: ['orders:import'] },
      ],
    },
    {
      name: 'pay',
      methods: ['POST'],
      path: '/orders/{id}/pay',
      subjects: ['checkout'],
      permissions: ['orders:write'],
      idempotency: 'optional',
      single_use: true,
    },
    {
      name: 'files',
      methods: ['*'],
      path: '/files/**',
      subjects: ['checkout'],
      permissions: [],
      idempotency: 'none',
      encoded_slashes: 'allow',
      body: 'allow',
    },
    {
      name: 'tried',
      methods: ['GET', 'PUT'],
      path: '/tried/{id}',
      subjects: ['checkout'],
      permissions: ['orders:write'],
      mode: 'shadow',
    },
    {
      name: 'user',
      methods: ['GET', 'POST'],
      path: '/user',
      accept: ['session'],
      idempotency: 'none',
      session: { claims: { 'st-role.v': 'support' } },
    },
    {
      name: 'both',
      methods: ['GET'],
      path: '/both',
      accept: ['service', 'session'],
      subjects: ['checkout'],
      permissions: ['orders:read'],
      session: { claims: { 'st-role.v': 'admin' } },
      limits: { max_in_flight: 1_000, requests_per_second: 100_000 },
    },
    {
      name: 'live',
      methods: ['GET'],
      path: '/live',
      websocket: true,
      subjects: ['checkout'],
      permissions: ['orders:read'],
    },
    {
      name: 'page',
      methods: ['GET'],
      path: '/page',
      websocket: true,
      accept: ['session'],
      session: { claims: { 'st-role.v': 'support' } },
      origins: ['https://app.example.com'],
    },
    { name: 'health', methods: ['GET'], path: '/healthz', access: 'public' },
  ],
};

const paths = [
  '/orders',
  '/orders/7',
  '/orders/export',
  '/orders/',
  '/Orders',
  '/orders/7/pay',
  '/orders/7/pay/',
  '/files/a/b',
  '/files',
  '/files/',
  '/tried/1',
  '/tried/1/2',
  '/healthz',
  '/none',
  '/',
  '/files/a%2Fb',
  '/orders/a%2Fb',
  '/files/a;b',
  '//orders',
  '/orders/../x',
  '/orders/%2e',
  '/orders/%41',
  '/orders/a%20b',
  '/orders/%zz',
  '/user',
  '/user',
  '/both',
  '/both',
  '/live',
  '/live',
  '/page',
  '/page',
  '/healthz%2F',
  `/files/${'a'.repeat(300)}`,
];
const nowS = Math.floor(Date.now() / 1_000);
const wrongClaims: readonly Claims[] = [
  { aud: 'other' },
  { aud: ['orders'] },
  { iss: 'https://evil.example.com' },
  { source: undefined },
  { token_type: 'user' },
  { exp: nowS - 3_600, iat: nowS - 7_000 },
  { exp: nowS + 90_000 },
  { nbf: nowS + 7_000 },
  { permissions: 'orders:read' },
  { sessionHandle: 'h' },
  { jti: 7 },
  { sub: '' },
  { sub: 'a b' },
  { exp: 'soon' },
  { jti: 'stolen' },
];

const wrongSessions: readonly Claims[] = [
  { exp: nowS - 3_600, iat: nowS - 7_000 },
  { iss: 'https://evil.example.com/auth' },
  { sub: '' },
  { exp: 'soon' },
  { sessionHandle: undefined },
  { refreshTokenHash1: undefined },
  { iat: undefined },
  { source: 'microservice' },
];
const sessions = fc.record({
  sub: fc.constantFrom('user-1', 'user-1', 'user-1', 'mallory', 'user 2'),
  roles: fc.subarray(['support', 'admin']),
  wrong: fc.oneof(
    { arbitrary: fc.constant({}), weight: 8 },
    { arbitrary: fc.constantFrom(...wrongSessions), weight: 1 },
  ),
});

const upgrade: readonly (readonly [string, string])[] = [
  ['Connection', 'Upgrade'],
  ['Upgrade', 'websocket'],
  ['Sec-WebSocket-Version', '13'],
  ['Sec-WebSocket-Key', 'dGhlIHNhbXBsZSBub25jZQ=='],
];
/** Whole handshakes, with pages that may and may not, and such as lack something. */
const upgrades: readonly (readonly (readonly [string, string])[])[] = [
  upgrade,
  [...upgrade, ['Origin', 'https://app.example.com']],
  [...upgrade, ['Origin', 'https://evil.example.com']],
  upgrade.slice(0, 3),
  [...upgrade.slice(0, 2), ['Sec-WebSocket-Version', '8'], ...upgrade.slice(3)],
  [...upgrade.slice(0, 3), ['Sec-WebSocket-Key', 'short']],
];

const claims = fc.record({
  sub: fc.constantFrom('checkout', 'checkout', 'checkout', 'reporting', 'migration', 'eve', 'mallory'),
  permissions: fc.subarray(['orders:read', 'orders:write', 'orders:import']),
  wrong: fc.oneof({ arbitrary: fc.constant({}), weight: 8 }, { arbitrary: fc.constantFrom(...wrongClaims), weight: 1 }),
  hasId: fc.boolean(),
});
const fields: readonly (readonly [string, string])[] = [
  ['X-Auth-Subject', 'root'],
  ['X_Tag', '1'],
  ['X-Request-Url', '/x'],
  ['Connection', 'X-Auth-Subject'],
  ['Connection', 'X-Other'],
  ['Content-Type', 'text/plain'],
  ['Host', 'b.example'],
  ['Expect', 'more'],
  ['Idempotency-Key', 'no spaces or "'],
  ['X-Forwarded-For', '1.2.3.4'],
  ['Authorization', 'Basic eDp5'],
];
const generated = fc.record({
  method: fc.constantFrom(
    'GET',
    'GET',
    'GET',
    'POST',
    'POST',
    'HEAD',
    'PUT',
    'DELETE',
    'OPTIONS',
    'PROPFIND',
    'TRACE',
    'BREW',
  ),
  path: fc
    .tuple(fc.constantFrom(...paths), fc.constantFrom('', '', '?x=1', '?x=/../;', '#f'))
    .map(([path, end]) => `${path}${end}`),
  extra: fc.oneof(
    { arbitrary: fc.constant([]), weight: 3 },
    { arbitrary: fc.subarray([...fields], { maxLength: 2 }), weight: 1 },
  ),
  hasKey: fc.boolean(),
  body: fc.oneof(
    { arbitrary: fc.constant(null), weight: 3 },
    { arbitrary: fc.constantFrom('', 'ten bytes!', 'eleven byte'), weight: 1 },
  ),
  handshake: fc.oneof(
    { arbitrary: fc.constant([]), weight: 6 },
    { arbitrary: fc.constantFrom(...upgrades), weight: 1 },
  ),
  credential: fc.oneof(
    { arbitrary: claims, weight: 8 },
    { arbitrary: sessions, weight: 3 },
    { arbitrary: fc.constantFrom('none' as const, 'invalid' as const), weight: 1 },
  ),
});

/** Requests of one seed: the same each time but for the clock. */
export function generateRequests(count: number, seed: number): readonly Generated[] {
  return fc
    .sample(generated, { numRuns: count, seed })
    .map(({ method, path, extra, handshake, hasKey, body, credential }, index) => ({
      method,
      path,
      // A key and a token id of its own: what the store remembers is no part of the policy.
      headers: [...(hasKey ? [['Idempotency-Key', `k-${index}`] as const] : []), ...extra, ...handshake],
      body,
      session:
        typeof credential !== 'string' && 'roles' in credential
          ? {
              ...sessionClaims({}, nowS * 1_000),
              sub: credential.sub,
              rsub: credential.sub,
              'st-role': { v: credential.roles, t: nowS * 1_000 },
              ...credential.wrong,
            }
          : null,
      claims: claimsOf(credential, index),
    }));
}

type Drawn<T> = T extends fc.Arbitrary<infer Value> ? Value : never;

function claimsOf(
  credential: Drawn<typeof claims> | Drawn<typeof sessions> | 'none' | 'invalid',
  index: number,
): Generated['claims'] {
  if (typeof credential === 'string') return credential === 'none' ? null : credential;
  if ('roles' in credential) return null;
  return {
    ...serviceClaims({ nowMs: nowS * 1_000 }),
    exp: nowS + 3_600,
    sub: credential.sub,
    permissions: credential.permissions,
    ...(credential.hasId ? { jti: `j-${index}` } : {}),
    ...credential.wrong,
  };
}

export async function startAgreementProxy(t: Scope): Promise<ProxyProcess> {
  const key = rsaKey();
  const core = await startSessionCore(t, { keys: [key] });
  return startProxyProcess(t, {
    key,
    config: { ...agreedConfig, sessions: { core_url: core.url, api_domain: 'https://api.example.com' } },
  });
}

/**
 * Asks all three; `explainEvery` says how many requests there are for each that the `explain` command is asked, which
 * reads the config each time.
 */
export async function findDisagreements(
  proxy: ProxyProcess,
  requests: readonly Generated[],
  explainEvery: number,
): Promise<readonly Disagreement[]> {
  const tested = await askTest(proxy, requests);
  const found: Disagreement[] = [];
  for (let start = 0; start < requests.length; start += 8) {
    const served = await Promise.all(requests.slice(start, start + 8).map(async (request) => askServe(proxy, request)));
    for (const [offset, serve] of served.entries()) {
      const index = start + offset;
      const [request, test] = [requests[index], tested[index]];
      if (request === undefined || test === undefined) throw new Error('there are as many answers as requests');
      const explain =
        index % explainEvery === 0 && request.claims !== 'invalid' ? await askExplain(proxy, request) : null;
      if (!isSame(serve, test) || (explain !== null && !isSame(serve, explain))) {
        found.push({ request, serve, test, explain });
      }
    }
  }
  return found;
}

async function askServe(
  proxy: ProxyProcess,
  { method, path, headers, body, claims, session }: Generated,
): Promise<Verdict> {
  const forger = withKeyId(rsaKey('d-forger'), proxy.key.keyId);
  const service =
    claims === null ? null : mintToken(claims === 'invalid' ? { key: forger } : { key: proxy.key, claims });
  const token = session === null ? service : mintSession({ key: proxy.key, claims: session });
  const lines = [
    ...(headers.some(([name]) => name === 'Host') ? [] : ['Host: a.example']),
    ...headers.map(([name, value]) => `${name}: ${value}`),
    ...(body === null ? [] : [`Content-Length: ${body.length}`]),
    ...(token === null ? [] : [`Authorization: Bearer ${token}`]),
  ];
  const connection = await connectRaw(proxy.port);
  connection.write(`${method} ${path} HTTP/1.1\r\n${lines.map((line) => `${line}\r\n`).join('')}\r\n${body ?? ''}`);
  const response = await connection.readResponse({ bodyless: method === 'HEAD' });
  connection.end();
  const id = response?.fields.find(([name]) => name.toLowerCase() === 'x-request-id')?.[1];
  if (response === null || id === undefined) throw new Error(`no answer to ${method} ${path}`);
  const line = await until(`the log line of ${id}`, () =>
    proxy.logs().findLast((candidate) => candidate['request_id'] === id),
  );
  return {
    status: response.status,
    reason: textOrNull(line['reason']),
    route: line['route'] === 'none' ? null : textOrNull(line['route']),
  };
}

/** The requests as cases of a policy test, which expect what never comes. */
export function casesOf(requests: readonly Generated[], start = 0): readonly object[] {
  return requests.map(({ method, path, headers, body, claims, session }, offset) => ({
    name: `request ${start + offset}`,
    request: {
      method,
      path,
      headers: Object.fromEntries(
        headers.map(([name]) => [name, headers.filter(([other]) => other === name).map(([, value]) => value)]),
      ),
      body,
    },
    ...(session === null ? {} : { session: withNulls(session) }),
    ...(claims === null ? {} : claims === 'invalid' ? { credential: 'invalid' } : { claims: withNulls(claims) }),
    expect: { status: 599 },
  }));
}

async function askTest({ configFile }: ProxyProcess, requests: readonly Generated[]): Promise<readonly Verdict[]> {
  const files: string[] = [];
  for (let start = 0; start < requests.length; start += casesPerFile) {
    const file = join(dirname(configFile), `generated-${start}.yaml`);
    const cases = casesOf(requests.slice(start, start + casesPerFile), start);
    writeFileSync(file, stringify({ config: configFile, cases }, { aliasDuplicateObjects: false }));
    files.push(file);
  }
  const io = captureIo({ cwd: dirname(configFile) });
  await run(['test', '--json', ...files], io);
  const { cases, problems } = JSON.parse(io.out()) as {
    readonly cases: readonly { readonly explanation: Verdict }[];
    readonly problems: readonly string[];
  };
  if (problems.length > 0) throw new Error(problems.join('\n'));
  return cases.map(({ explanation: { status, reason, route } }) => ({ status, reason, route }));
}

const casesPerFile = 500;

async function askExplain(
  { configFile, key }: ProxyProcess,
  { method, path, headers, body, claims, session }: Generated,
): Promise<Verdict | null> {
  // A second Authorization is no argument of explain's.
  if (headers.some(([name]) => name === 'Authorization')) return null;
  const words = headers.flatMap(([name, value]) => ['--header', `${name}: ${value}`]);
  const length = body === null ? [] : ['--header', `Content-Length: ${body.length}`];
  const credential = claims === null && session === null ? [] : ['--token-stdin'];
  const token = claims === null || claims === 'invalid' ? '' : mintToken({ key, claims });
  const stdin = session === null ? token : mintSession({ key, claims: session });
  const io = captureIo({ stdin });
  await run(
    [
      'explain',
      '--config',
      configFile,
      '--method',
      method,
      '--path',
      path,
      '--json',
      ...words,
      ...length,
      ...credential,
    ],
    io,
  );
  const { status, reason, route } = JSON.parse(io.out()) as Verdict;
  return { status, reason, route };
}

/** What a token does not say is `null` in a case: else it would be filled in. */
function withNulls(claims: Claims): Claims {
  return Object.fromEntries(Object.entries(claims).map(([name, value]) => [name, value ?? null]));
}

function isSame(one: Verdict, other: Verdict): boolean {
  return one.status === other.status && one.reason === other.reason && one.route === other.route;
}

function textOrNull(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}
