import type { ProcessMetrics } from '../adapters/metrics/metrics.js';
import type { CompiledConfig, ProbesSettings } from '../config/types.js';
import { prefersOpenMetrics } from '../decision/telemetry/metrics-format.js';
import { coalesce } from '../lib/promises.js';
import type { Log } from '../ports/system.js';
import { createAppProbe, type ProbedUpstream } from '../admin/upstream-probe.js';
import type { Readiness } from '../admin/readiness.js';
import { createPageServer, type CreatePage, type Page, type PageServer } from '../admin/server.js';
import type { Status } from '../admin/status.js';

/** What the pages show, read anew for each request. */
export interface PageSources {
  readonly readiness: () => Readiness | Promise<Readiness>;
  /** `null` where nobody can tell. */
  readonly status: () => Status | Promise<Status | null>;
  readonly metrics: Pick<ProcessMetrics, 'expose' | 'contentType' | 'exposeOpenMetrics' | 'openMetricsType'>;
  /** A JWKS; `null` where nothing is signed. */
  readonly assertionKeys: () => string | null | Promise<string | null>;
  readonly upstream: () => ProbedUpstream;
  /** What a browser is shown; `null` where there is no console. */
  readonly console: Readonly<Record<string, CreatePage>> | null;
}

/** Monitors come one at a time; what holds more connections than this is none. */
const maxConnections = 64;

const json = 'application/json';

/**
 * After an expensive page was collected, the next time waits 49 times as long as that took, but no longer than this.
 * Those who ask meanwhile share what is collected then, so that nobody is told what was before they asked.
 */
const restShare = 49;
const mostRestMs = 200;

/** Collects one at a time, and seldom enough. */
export function collectSparingly<Result>(collect: () => Promise<Result>): () => Promise<Result> {
  return coalesce(collect, (tookMs) => Math.min(mostRestMs, restShare * tookMs));
}

/**
 * What the pages of the console are asked with: a header that a page of another origin may not send without asking
 * first, which it is refused.
 */
const consoleHeader = 'sallyport-console';

/** The listeners of operators and of monitors. */
export function createAdminServers(
  { admin, probes }: CompiledConfig,
  sources: PageSources,
  log: Log,
): { readonly admin: PageServer; readonly probes: PageServer | null } {
  const { metrics } = sources;
  const exposeMetrics = collectSparingly(metrics.expose);
  const exposeOpenMetrics = collectSparingly(metrics.exposeOpenMetrics);
  const collectStatus = collectSparingly(async () => sources.status());
  const probePages: Readonly<Record<string, CreatePage>> = {
    '/livez': () => ({ status: 200, type: json, body: JSON.stringify({ status: 'alive' }) }),
    '/readyz': async () => {
      const readiness = await sources.readiness();
      return { status: readiness.status === 'unavailable' ? 503 : 200, type: json, body: JSON.stringify(readiness) };
    },
    '/.well-known/jwks.json': async () => {
      const keys = await sources.assertionKeys();
      return keys === null
        ? { status: 404, type: json, body: '{"keys":[]}' }
        : { status: 200, type: 'application/jwk-set+json', body: keys };
    },
    '/metrics': async (_query, accept) =>
      prefersOpenMetrics(accept)
        ? { status: 200, type: metrics.openMetricsType, body: await exposeOpenMetrics() }
        : { status: 200, type: metrics.contentType, body: await exposeMetrics() },
  };
  const statusPage = async (): Promise<Page> => {
    const status = await collectStatus();
    return { status: status === null ? 503 : 200, type: json, body: JSON.stringify(status, null, 2) };
  };
  return {
    admin: createPageServer({
      listen: admin,
      checksHost: true,
      maxConnections,
      pages: { ...probePages, '/status': statusPage, ...sources.console },
      own: { header: consoleHeader, isMeant: (path) => path.startsWith('/console/') },
      log,
    }),
    // Kubelets and Prometheus come under whatever name the cluster gives; the pages tell no more than counts and names.
    probes:
      probes === null
        ? null
        : createPageServer({
            listen: probes,
            checksHost: false,
            maxConnections,
            pages: probePages,
            probes: appProbePages(probes, sources, log),
            log,
          }),
  };
}

/** Probes of the upstream, which listens where kubelet cannot reach it. */
function appProbePages(
  { app }: ProbesSettings,
  { upstream }: PageSources,
  log: Log,
): Readonly<Record<string, () => Promise<Page>>> {
  return Object.fromEntries(
    Object.entries(app).map(([name, path]) => [`/app-probe/${name}`, createAppProbe(name, path, { upstream, log })]),
  );
}
