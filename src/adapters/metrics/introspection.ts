import { Counter, type Registry } from 'prom-client';
import type { IntrospectionState } from '../../ports/auth.js';
import type { IntrospectionLookup, IntrospectionResult } from '../../ports/observability.js';
import { issuerGauges } from './issuer-gauges.js';

/** Counts what becomes of questions about opaque tokens. */
interface IntrospectionSeries {
  readonly asked: (issuer: string, result: IntrospectionResult) => void;
  readonly lookedUp: (issuer: string, result: IntrospectionLookup) => void;
}

const results = ['active', 'inactive', 'refused', 'failed'] as const satisfies readonly IntrospectionResult[];
const lookups = ['remembered', 'asked', 'joined', 'limited', 'open'] as const satisfies readonly IntrospectionLookup[];

/** @param states asked at each scrape: one for each issuer that is asked about tokens. */
export function createIntrospectionSeries(
  registry: Registry,
  states: () => readonly IntrospectionState[],
): IntrospectionSeries {
  const registers = [registry];
  /** By issuer and result; those of issuers that are gone are kept, and not shown. */
  const counts = { asked: new Map<string, number>(), lookedUp: new Map<string, number>() };
  const counter = (
    name: string,
    help: string,
    named: readonly string[],
    counted: ReadonlyMap<string, number>,
  ): void => {
    new Counter({
      name,
      help,
      labelNames: ['issuer', 'result'],
      registers,
      collect() {
        this.reset();
        for (const { issuer } of states()) {
          for (const result of named) this.inc({ issuer, result }, counted.get(`${issuer} ${result}`) ?? 0);
        }
      },
    });
  };
  counter(
    'sallyport_introspections_total',
    'Questions to an issuer about opaque tokens, by what came of them.',
    results,
    counts.asked,
  );
  counter(
    'sallyport_introspection_lookups_total',
    'Opaque tokens of callers, by how their worth was found out.',
    lookups,
    counts.lookedUp,
  );
  const gauge = issuerGauges(registry, states);
  gauge(
    'sallyport_introspection_up',
    'Whether an issuer answered the last question about a token.',
    ({ up }) => (up ? 1 : 0),
    'min',
  );
  gauge(
    'sallyport_introspection_in_flight',
    'Questions about tokens that wait for their response.',
    ({ inFlight }) => inFlight,
  );
  gauge(
    'sallyport_introspection_remembered',
    'Opaque tokens whose response is remembered.',
    ({ active, inactive }) => active + inactive,
  );
  const increment = (counted: Map<string, number>, issuer: string, result: string): void => {
    const key = `${issuer} ${result}`;
    counted.set(key, (counted.get(key) ?? 0) + 1);
  };
  return {
    asked: (issuer, result) => {
      increment(counts.asked, issuer, result);
    },
    lookedUp: (issuer, result) => {
      increment(counts.lookedUp, issuer, result);
    },
  };
}
