import { Counter, type Registry } from 'prom-client';
import type { Metrics } from '../../ports/observability.js';

/** Counts what proxies that ask were answered: a series begins with its first decision. */
export function createDecisionSeries(registry: Registry): Metrics['decided'] {
  const counter = new Counter({
    name: 'sallyport_decisions_total',
    help: 'Requests that a proxy in front asked about, by its form and how they ended.',
    labelNames: ['form', 'outcome'],
    registers: [registry],
  });
  return (form, outcome) => counter.inc({ form, outcome });
}
