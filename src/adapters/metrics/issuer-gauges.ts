import { Gauge, type Registry } from 'prom-client';

/** Adds a gauge with a series for each issuer; none for one whose value is `null`. */
type AddIssuerGauge<State> = (
  name: string,
  help: string,
  valueOf: (state: State) => number | null,
  /** What it is of several workers; the sum unless given. */
  aggregator?: 'min' | 'max',
) => void;

/** @param states asked at each scrape. */
export function issuerGauges<State extends { readonly issuer: string }>(
  registry: Registry,
  states: () => readonly State[],
): AddIssuerGauge<State> {
  return (name, help, valueOf, aggregator) => {
    new Gauge({
      name,
      help,
      aggregator: aggregator ?? 'sum',
      labelNames: ['issuer'],
      registers: [registry],
      collect() {
        this.reset();
        for (const state of states()) {
          const value = valueOf(state);
          if (value !== null) this.set({ issuer: state.issuer }, value);
        }
      },
    });
  };
}
