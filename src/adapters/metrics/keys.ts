import { Counter, type Registry } from 'prom-client';
import type { DiscoveryRefreshResult, JwksRefreshResult } from '../../ports/observability.js';
import type { KeyLookup, KeySourceState } from '../../ports/auth.js';
import { issuerGauges } from './issuer-gauges.js';

/** Counts what becomes of the keys of issuers. */
interface KeySeries {
  readonly refresh: (issuer: string, result: JwksRefreshResult) => void;
  readonly discovery: (issuer: string, result: DiscoveryRefreshResult) => void;
  readonly wait: (issuer: string, result: KeyLookup['kind']) => void;
  /** Fixes the issuers: series of those that are gone are dropped, and new ones start at zero. */
  readonly setIssuers: (names: readonly string[]) => void;
}

const refreshResults = ['ok', 'empty', 'failed'] as const satisfies readonly JwksRefreshResult[];
const discoveryResults = ['ok', 'failed', 'refused'] as const satisfies readonly DiscoveryRefreshResult[];
const waitResults = ['found', 'unknown', 'unavailable', 'busy'] as const satisfies readonly KeyLookup['kind'][];

interface Counts {
  readonly refreshes: Record<JwksRefreshResult, number>;
  readonly discoveries: Record<DiscoveryRefreshResult, number>;
  readonly waits: Record<KeyLookup['kind'], number>;
}

/** @param states asked at each scrape. */
export function createKeySeries(registry: Registry, states: () => readonly KeySourceState[]): KeySeries {
  let issuers = new Map<string, Counts>();
  const newCounts = (): Counts => ({
    refreshes: { ok: 0, empty: 0, failed: 0 },
    discoveries: { ok: 0, failed: 0, refused: 0 },
    waits: { found: 0, unknown: 0, unavailable: 0, busy: 0 },
  });

  const counter = <Result extends string>(
    name: string,
    help: string,
    results: readonly Result[],
    countsOf: (counts: Counts) => Readonly<Record<Result, number>>,
  ): void => {
    new Counter({
      name,
      help,
      labelNames: ['issuer', 'result'],
      registers: [registry],
      collect() {
        this.reset();
        for (const [issuer, counts] of issuers) {
          for (const result of results) this.inc({ issuer, result }, countsOf(counts)[result]);
        }
      },
    });
  };
  counter(
    'sallyport_jwks_refreshes_total',
    'Attempts to get the keys of an issuer.',
    refreshResults,
    ({ refreshes }) => refreshes,
  );
  counter(
    'sallyport_discovery_refreshes_total',
    'Attempts to get the metadata of an issuer that names the place of its keys.',
    discoveryResults,
    ({ discoveries }) => discoveries,
  );
  counter(
    'sallyport_jwks_waits_total',
    'Requests that waited for a key that may be new, by what came of it.',
    waitResults,
    ({ waits }) => waits,
  );
  const gauge = issuerGauges(registry, states);
  gauge(
    'sallyport_jwks_age_seconds',
    'Age of the keys of an issuer, once there are any.',
    ({ ageMs }) => (ageMs === null ? null : ageMs / 1000),
    'max',
  );
  gauge(
    'sallyport_jwks_stale_ratio',
    'How much of max_stale is used up: 0 within the lifetime of the keys, 1 when they serve no more.',
    ({ stalePart }) => stalePart,
    'max',
  );
  gauge(
    'sallyport_jwks_keys',
    'Keys of an issuer that count, in the set that was fetched last; absent before the first.',
    ({ ageMs, keys }) => (ageMs === null ? null : keys.filter(({ accepted }) => accepted).length),
    'min',
  );
  gauge(
    'sallyport_discovery_age_seconds',
    'Age of the metadata of an issuer that names the place of its keys, once there is any.',
    ({ metadata }) => (metadata === null || metadata.ageMs === null ? null : metadata.ageMs / 1000),
    'max',
  );
  gauge('sallyport_jwks_waiting', 'Requests that wait for a key that may be new.', ({ waiting }) => waiting);

  return {
    refresh: (issuer, result) => {
      const counts = issuers.get(issuer);
      if (counts !== undefined) counts.refreshes[result] += 1;
    },
    discovery: (issuer, result) => {
      const counts = issuers.get(issuer);
      if (counts !== undefined) counts.discoveries[result] += 1;
    },
    wait: (issuer, result) => {
      const counts = issuers.get(issuer);
      if (counts !== undefined) counts.waits[result] += 1;
    },
    setIssuers: (names) => {
      const known = issuers;
      issuers = new Map(names.map((name) => [name, known.get(name) ?? newCounts()]));
    },
  };
}
