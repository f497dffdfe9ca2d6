import { startJwksServer } from '../support/jwks-server.js';
import { rsaKey } from '../support/keys.js';
import type { Scope } from '../support/scope.js';
import { mintToken } from '../support/tokens.js';
import type { ConfigTree } from '../support/proxy-process.js';
import { placeLoad } from './affinity.js';
import { measuredAlgorithms, startAlgorithmIssuer, type MeasuredAlgorithm } from './algorithms.js';
import { startServer, versionOf, type Child } from './child.js';
import { startHaproxy } from './haproxy.js';
import { planOf, type RequestPlan } from './request-plan.js';
import { startSallyport, type Proxy } from './sallyport.js';
import { mintTokens, tokensOfUnknownKeys, withWrongSignatures } from './token-supply.js';

/** A proxy under a load, or what it is compared with. */
export interface Entrant {
  readonly name: string;
  readonly plan: RequestPlan;
  readonly start: (t: Scope) => Promise<Child | Proxy>;
  /** Connections that are open and say nothing meanwhile. */
  readonly idle?: number;
  /** Sent before it is measured, each token once. */
  readonly primed?: RequestPlan;
}

export interface Workload {
  /** What the command calls it by. */
  readonly name: string;
  readonly title: string;
  /** Whether every request is to be refused, or to be answered with success. */
  readonly answer: 'success' | 'refusal';
  /** The first is Sallyport. */
  readonly entrants: readonly Entrant[];
  /** Name of the entrant that counts as 1. */
  readonly against: string;
  /** Body of one request or answer, where it is so long that the bytes are what costs. */
  readonly bodyBytes?: number;
}

const mib = 1024 ** 2;
const tokenCount = 20_000;
const haproxyName = 'HAProxy, jwt_verify';
const httpProxyName = '@fastify/http-proxy';

/** What one can ask for. */
export const workloadNames = [
  'hot',
  'tokens',
  'new',
  'up-1k',
  'up-1m',
  'down-1k',
  'down-1m',
  'no-credential',
  'bad-signature',
  'unknown-key',
  'routes',
  'idle',
  'oauth-RS256',
  'oauth-ES256',
  'oauth-PS256',
  'oauth-EdDSA',
] as const;

export type WorkloadName = (typeof workloadNames)[number];

/** Starts what all share, and says how each of them is run. `tokens` is how many are minted where many are needed. */
export async function prepareWorkloads(
  t: Scope,
  names: readonly WorkloadName[],
  tokens = tokenCount,
): Promise<readonly Workload[]> {
  const key = rsaKey();
  const token = mintToken({ key, claims: { exp: Math.floor(Date.now() / 1000) + 7000 } });
  const { pid, port: receiver } = await startServer(t, 'receiver');
  placeLoad(pid);
  const jwksUrl = (await startJwksServer(t, { keys: [key] })).url;
  const needsMany = names.some((name) => ['tokens', 'new', 'bad-signature'].includes(name));
  const many = needsMany ? await mintTokens(key, tokens) : [];
  const hasHaproxy = versionOf('haproxy', '-v') !== null;

  const hot = planOf(token);
  const ready = { path: '/orders', headers: { Authorization: `Bearer ${token}` } };
  const sallyport = (plan: RequestPlan, config: ConfigTree = {}, name = 'Sallyport'): Entrant => ({
    name,
    plan,
    start: async (scope) => {
      const places = {
        upstream: { url: `http://127.0.0.1:${String(receiver)}` },
        issuers: { core: { jwks_url: jwksUrl } },
      };
      return startSallyport(scope, { ...places, ...config }, ready);
    },
  });
  const haproxy = (plan: RequestPlan): readonly Entrant[] =>
    hasHaproxy
      ? [{ name: haproxyName, plan, start: async (scope) => startHaproxy(scope, receiver, key.publicKey, token) }]
      : [];
  const httpProxy = (plan: RequestPlan): Entrant => ({
    name: httpProxyName,
    plan,
    start: async (scope) => startServer(scope, 'http-proxy', `http://127.0.0.1:${String(receiver)}`),
  });
  const bodies = (name: WorkloadName, title: string, plan: RequestPlan): Workload => ({
    name,
    title,
    answer: 'success',
    against: httpProxyName,
    entrants: [sallyport(plan, { routes: bodyRoutes }), httpProxy(plan)],
  });
  const up = (bodyBytes: number): RequestPlan => ({ ...hot, method: 'POST', paths: ['/upload'], bodyBytes });
  const down = (bodyBytes: number): RequestPlan => ({ ...hot, paths: [`/bytes/${String(bodyBytes)}`] });
  const withTokens = (used: readonly string[]): RequestPlan => ({ ...hot, tokens: used });
  const flood = (name: WorkloadName, title: string, plan: RequestPlan, others: readonly Entrant[]): Workload => ({
    name,
    title,
    answer: 'refusal',
    against: haproxyName,
    entrants: [sallyport(plan), ...others],
  });
  const reads = (name: WorkloadName, title: string, entrants: readonly Entrant[], against: string): Workload => ({
    name,
    title,
    answer: 'success',
    entrants,
    against,
  });

  const algorithm = async (name: MeasuredAlgorithm): Promise<Workload> => {
    const issuer = await startAlgorithmIssuer(t, name, tokens);
    const [first = ''] = issuer.tokens;
    const readyWithIt = { path: '/orders', headers: { Authorization: `Bearer ${first}` } };
    const entrant = (title: string, plan: RequestPlan, config: ConfigTree): Entrant => ({
      name: `Sallyport, ${title}`,
      plan,
      start: async (scope) =>
        startSallyport(
          scope,
          { upstream: { url: `http://127.0.0.1:${String(receiver)}` }, ...issuer.config, ...config },
          readyWithIt,
        ),
    });
    const each = withTokens(issuer.tokens);
    const beside: readonly Entrant[] =
      hasHaproxy && haproxyAlgorithms.has(name)
        ? [
            {
              name: haproxyName,
              plan: each,
              start: async (scope) =>
                startHaproxy(scope, receiver, issuer.key.publicKey, first, { kind: 'oauth', algorithm: name }),
            },
          ]
        : [];
    return reads(
      `oauth-${name}`,
      `${name}, a profile’s token`,
      [
        entrant('one token, again and again', withTokens([first]), {}),
        entrant('every token new', each, { token_cache: '64KiB' }),
        ...beside,
      ],
      haproxyName,
    );
  };
  const algorithms = new Map<string, Workload>();
  for (const name of measuredAlgorithms) {
    if (names.includes(`oauth-${name}`)) algorithms.set(name, await algorithm(name));
  }
  const prepared = (name: MeasuredAlgorithm) => (): Workload => {
    const found = algorithms.get(name);
    if (found === undefined) throw new Error(`${name} was not prepared`);
    return found;
  };

  const known: Readonly<Record<WorkloadName, () => Workload>> = {
    'oauth-RS256': prepared('RS256'),
    'oauth-ES256': prepared('ES256'),
    'oauth-PS256': prepared('PS256'),
    'oauth-EdDSA': prepared('EdDSA'),
    hot: () =>
      reads(
        'hot',
        'one token, again and again',
        [sallyport(hot), sallyport(hot, { token_cache: null }, 'Sallyport, token_cache: null'), ...haproxy(hot)],
        haproxyName,
      ),
    tokens: () =>
      reads(
        'tokens',
        `${countText(tokens)} tokens in turn`,
        [{ ...sallyport(withTokens(many)), primed: withTokens(many) }, ...haproxy(withTokens(many))],
        haproxyName,
      ),
    // A cache that holds a few dozen has forgotten each token when it comes again.
    new: () =>
      reads(
        'new',
        'every token new',
        [sallyport(withTokens(many), { token_cache: '64KiB' }), ...haproxy(withTokens(many))],
        haproxyName,
      ),
    'up-1k': () => bodies('up-1k', '1 KiB up', up(1024)),
    'up-1m': () => ({ ...bodies('up-1m', '1 MiB up', up(mib)), bodyBytes: mib }),
    'down-1k': () => bodies('down-1k', '1 KiB down', down(1024)),
    'down-1m': () => ({ ...bodies('down-1m', '1 MiB down', down(mib)), bodyBytes: mib }),
    'no-credential': () =>
      flood('no-credential', 'flood without a credential: 401', withTokens([]), haproxy(withTokens([]))),
    'bad-signature': () => {
      const plan = withTokens(withWrongSignatures(many));
      return flood('bad-signature', 'flood of wrong signatures: 401', plan, haproxy(plan));
    },
    'unknown-key': () =>
      flood('unknown-key', 'flood of unknown `kid`s: 401', withTokens(tokensOfUnknownKeys(tokens)), []),
    routes: () =>
      reads(
        'routes',
        'number of routes',
        [5_000, 10].map((count) =>
          sallyport({ ...hot, paths: routePaths(count) }, { routes: manyRoutes(count) }, routesName(count)),
        ),
        routesName(10),
      ),
    idle: () =>
      reads(
        'idle',
        'connections that say nothing',
        [{ ...sallyport(hot, {}, 'Sallyport, 1,000 idle'), idle: 1_000 }, sallyport(hot, {}, 'Sallyport, none idle')],
        'Sallyport, none idle',
      ),
  };
  return names.map((name) => known[name]());
}

/** `jwt_verify` of HAProxy 2.6 knows no PS256 and no EdDSA. */
const haproxyAlgorithms: ReadonlySet<string> = new Set(['RS256', 'ES256']);

const reader = { subjects: ['checkout'], permissions: ['orders:read'] };
const listOrders = { name: 'list-orders', methods: ['GET'], path: '/orders', ...reader };
const bodyRoutes = [
  listOrders,
  { name: 'download', methods: ['GET'], path: '/bytes/{count}', ...reader },
  { name: 'upload', methods: ['POST'], path: '/upload', ...reader, idempotency: 'none', max_body: '2MiB' },
];

function routesName(count: number): string {
  return `Sallyport, ${countText(count)} routes`;
}

export function countText(count: number): string {
  return count.toLocaleString('en-US');
}

/** `list-orders` and others, all of them asked for but that one. */
export function manyRoutes(count: number): readonly ConfigTree[] {
  const others = Array.from({ length: count - 1 }, (_, index) => ({
    name: `route-${String(index)}`,
    methods: ['GET'],
    path: `/service-${String(index)}/orders/{id}`,
    ...reader,
  }));
  return [listOrders, ...others];
}

export function routePaths(count: number): readonly string[] {
  return Array.from({ length: count - 1 }, (_, index) => `/service-${String(index)}/orders/${String(index)}`);
}
