/** Whether a request costs more as tokens and routes grow in number, and where memory ends. */
import { startJwksServer } from '../support/jwks-server.js';
import type { Scope } from '../support/scope.js';
import type { ConfigTree } from '../support/proxy-process.js';
import { startServer } from './child.js';
import { markdown } from './markdown.js';
import { measureWorkload, type LoadRounds, type MeasuredWorkload } from './measure-workloads.js';
import type { RequestPlan } from './request-plan.js';
import { startSallyport } from './sallyport.js';
import { scoped } from './scoped.js';
import { mintTokenFile, openTokens, type TokenFile } from './token-file.js';
import { countText, manyRoutes, routePaths, type Entrant, type Workload } from './workloads.js';

export interface GrowthSettings extends LoadRounds {
  /** Where tokens are kept for the next run. */
  readonly dir: string;
  /** Numbers of distinct tokens, for the default cache. */
  readonly tokens: readonly number[];
  /** Numbers of distinct tokens that the largest cache holds. */
  readonly heldTokens: readonly number[];
  readonly routes: readonly number[];
}

export const growthCounts: Pick<GrowthSettings, 'tokens' | 'heldTokens' | 'routes'> = {
  tokens: [1, 1_000, 20_000, 100_000, 1_000_000],
  heldTokens: [1, 1_000, 20_000, 100_000, 500_000],
  routes: [10, 100, 1_000, 5_000],
};

/** More than the default cache holds: it is full before the first round. */
const fillingCount = 30_000;

/**
 * Measures each number beside the others of its kind, in turn, round by round. Processes of one kind run side by side.
 */
export async function measureGrowth(t: Scope, settings: GrowthSettings): Promise<readonly MeasuredWorkload[]> {
  const { dir, onRun } = settings;
  const most = Math.max(...settings.tokens, ...settings.heldTokens);
  const { key, tokens } = await mintTokenFile({
    dir,
    count: most,
    nowS: Math.floor(Date.now() / 1000),
    onProgress: (made, count) =>
      made % 20_000 === 0 ? onRun?.(`${countText(made)} of ${countText(count)} tokens are signed`) : undefined,
  });
  const receiver = (await startServer(t, 'receiver')).port;
  const jwksUrl = (await startJwksServer(t, { keys: [key] })).url;
  const opened = openTokens(tokens);
  const hot = opened.at(0);
  opened.close();

  const entrant = (name: string, plan: RequestPlan, config: ConfigTree, primed?: RequestPlan): Entrant => ({
    name,
    plan,
    ...(primed === undefined ? {} : { primed }),
    start: async (scope) =>
      startSallyport(
        scope,
        {
          upstream: { url: `http://127.0.0.1:${String(receiver)}` },
          issuers: { core: { jwks_url: jwksUrl, max_lifetime: '24h' } },
          ...config,
        },
        { path: '/orders', headers: { Authorization: `Bearer ${hot}` } },
      ),
  });
  const reads = { method: 'GET', paths: ['/orders'], tokens: [], bodyBytes: 0 } as const;
  const first = (count: number): RequestPlan & { readonly tokenFile: TokenFile } => ({
    ...reads,
    tokenFile: { ...tokens, count },
  });
  const kind = (name: string, title: string, entrants: readonly Entrant[]): Workload => ({
    name,
    title,
    answer: 'success',
    entrants,
    against: entrants[0]?.name ?? '',
  });
  const kinds = [
    kind(
      'tokens',
      'distinct tokens, `token_cache: 32MiB`',
      settings.tokens.map((count) => entrant(countText(count), first(count), {}, first(Math.min(count, fillingCount)))),
    ),
    kind(
      'held tokens',
      'distinct tokens, `token_cache: 1GiB`',
      settings.heldTokens.map((count) =>
        entrant(countText(count), first(count), { token_cache: '1GiB' }, first(count)),
      ),
    ),
    kind(
      'routes',
      'routes, asked for in turn',
      settings.routes.map((count) =>
        entrant(countText(count), { ...reads, paths: routePaths(count), tokens: [hot] }, { routes: manyRoutes(count) }),
      ),
    ),
  ];
  const measured: MeasuredWorkload[] = [];
  for (const one of kinds.filter(({ entrants }) => entrants.length > 0)) {
    measured.push(await scoped(async (scope) => measureWorkload(scope, one, settings)));
  }
  return measured;
}

/** A row for each number. */
export function growthTable(measured: readonly MeasuredWorkload[]): string {
  const head = [
    'growing',
    'number',
    'remembered',
    'CPU of a request, µs',
    'times',
    'requests/s',
    '99 %, ms',
    'memory, MiB',
  ];
  const rows = measured.flatMap(({ title, entrants }) =>
    entrants.map(({ name, hitShare, cpuUs, ratio, requestsPerS, slowMs, memoryMib }, index) => [
      index === 0 ? title : '',
      name,
      hitShare === null ? '' : `${(hitShare * 100).toFixed(0)} %`,
      cpuUs.toFixed(1),
      ratio?.toFixed(2) ?? '',
      requestsPerS.toFixed(0),
      slowMs.toFixed(2),
      memoryMib.toFixed(0),
    ]),
  );
  return markdown(head, rows, 1);
}
