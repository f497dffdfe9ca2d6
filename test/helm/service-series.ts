/** Twenty services as their Prometheus sees them, made of what a real one exposes. */
import { request } from '../support/raw-client.js';
import { startInProcessProxy } from '../app/in-process-proxy.js';
import { redisStore } from '../app/store/store-config.js';
import { certificates } from '../support/certificates.js';
import type { RuleTest } from '../support/prometheus.js';
import { startRedis } from '../support/redis-server.js';
import type { Scope } from '../support/scope.js';

/** `/metrics` of a proxy with everything on that has series of its own, after a request of each kind. */
export async function scrape(t: Scope): Promise<string> {
  const c = certificates(t);
  const tls = { cert_file: c.server.certFile, key_file: c.server.keyFile };
  const proxy = await startInProcessProxy(t, {
    config: { listen: { tls }, mode: 'shadow', ...redisStore(await startRedis(t)) },
  });
  const ask = async (headers: Readonly<Record<string, string>>): Promise<number> =>
    (await request(proxy.port, { path: '/orders', headers }, { tls: { ca: c.ca.cert } })).status;
  const statuses = [
    await ask({ Authorization: `Bearer ${proxy.token()}` }),
    await ask({ Authorization: `Bearer ${proxy.token({ permissions: [] })}`, 'X-Auth_Subject': 'x' }),
  ];
  if (statuses.some((status) => status !== 200)) throw new Error(statuses.join());
  return (await proxy.admin('/metrics')).text;
}

/** One series of a scrape. */
export interface Series {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
}

export function seriesOf(text: string): readonly Series[] {
  return text
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => {
      const [, name = '', labels = ''] = /^([a-z_]\w*)(?:\{(.*)\})? /i.exec(line) ?? [];
      return {
        name,
        labels: Object.fromEntries(
          [...labels.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, label = '', value = '']) => [label, value]),
        ),
      };
    });
}

/** Minutes that the twenty services are looked at for. */
export const minutes = 30;

/** What is scraped minute by minute, in the notation of promtool. */
export type Values = (series: Series, service: Service) => string;

export interface Service {
  readonly namespace: string;
  readonly job: string;
  readonly instance: string;
}

/** Twenty services, two to a namespace; this one has two replicas. */
export const replicated = { namespace: 'team-3', job: 'service-7' };

export const services: readonly Service[] = Array.from(
  { length: 20 },
  (_, index) => `service-${String(index)}`,
).flatMap((job, index) =>
  (job === replicated.job ? ['a', 'b'] : ['a']).map((replica) => ({
    namespace: `team-${String(Math.floor(index / 2))}`,
    job,
    instance: `10.0.${String(index)}.1:${replica}`,
  })),
);

/**
 * A service to which nothing happens but traffic: each in its own number of requests a minute, and with its own config.
 * Seconds count from the start, where Prometheus' tool has its clock begin.
 */
export const healthy: Values = ({ name, labels: { outcome, code, route } }, { job }) => {
  const constant = (value: number): string => `${String(value)}x${String(minutes)}`;
  const rising = (perMinute: number): string => `0+${String(perMinute)}x${String(minutes)}`;
  const index = Number(job.slice('service-'.length));
  switch (name) {
    case 'sallyport_requests_total':
      if (route !== 'list-orders') return constant(0);
      if (outcome === 'forwarded' && code === '5xx') return rising(0);
      return rising(outcome === 'forwarded' ? 600 + index : index);
    case 'sallyport_stripped_fields_total':
      return constant(0);
    case 'sallyport_certificate_not_before_seconds':
      return constant(-30 * 86_400);
    case 'sallyport_certificate_not_after_seconds':
      return constant(60 * 86_400);
    case 'sallyport_config_info':
    case 'sallyport_build_info':
    case 'sallyport_store_up':
      return constant(1);
    case 'sallyport_revocations_age_seconds':
      return constant(1);
    case 'sallyport_jwks_age_seconds':
      return constant(300 + index);
    case 'sallyport_jwks_keys':
      return constant(1);
    default:
      return constant(0);
  }
};

/** What is different: of a series of a service `null` where it is as ever. */
export interface Difference {
  readonly values?: (series: Series, service: Service) => string | null;
  readonly sha256?: (service: Service) => string | null;
}

/** The series of all services. */
export function inputSeries(scraped: readonly Series[], difference: Difference): RuleTest['input_series'] {
  return services.flatMap((service) =>
    scraped.map((series) => {
      const sha256 = difference.sha256?.(service) ?? service.job.slice('service-'.length).padStart(64, '0');
      const labels = { ...series.labels, ...(series.name === 'sallyport_config_info' ? { sha256 } : {}), ...service };
      const text = Object.entries(labels)
        .map(([label, value]) => `${label}="${value}"`)
        .join(',');
      return {
        series: `${series.name}{${text}}`,
        values: difference.values?.(series, service) ?? healthy(series, service),
      };
    }),
  );
}
