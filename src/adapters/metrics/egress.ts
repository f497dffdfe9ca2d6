import { Counter, Gauge, type Registry } from 'prom-client';
import type { NoRetryReason } from '../../decision/egress/retry.js';
import type { EgressState } from '../../ports/observability.js';

/** Counts what the calling side does. */
export interface EgressSeries {
  /** Fixes the label values: names of targets. Those that are gone are dropped; new ones start at zero. */
  readonly setTargets: (targets: readonly string[]) => void;
  /** A request was sent to its target, or tried to be, for the first time or again. */
  readonly attempt: (target: string, isRetry: boolean) => void;
  /** One that failed was not sent again. */
  readonly notRetried: (target: string, reason: Exclude<NoRetryReason, 'final'>) => void;
}

const attempts = ['first', 'retry'] as const;
const reasons = ['in_doubt', 'body_not_held', 'attempts', 'time', 'budget'] as const satisfies readonly NoRetryReason[];

/** @param state asked at each scrape; `null` where there is no calling side. */
export function createEgressSeries(registry: Registry, state: () => EgressState | null): EgressSeries {
  const registers = [registry];
  let targets: readonly string[] = [];
  const counts = new Map<string, number>();
  const increment = (target: string, what: string): void => {
    const key = `${target} ${what}`;
    counts.set(key, (counts.get(key) ?? 0) + 1);
  };
  const counter = (name: string, help: string, label: string, values: readonly string[]): void => {
    new Counter({
      name,
      help,
      labelNames: ['target', label],
      registers,
      collect() {
        this.reset();
        for (const target of targets) {
          for (const value of values) this.inc({ target, [label]: value }, counts.get(`${target} ${value}`) ?? 0);
        }
      },
    });
  };
  counter(
    'sallyport_egress_attempts_total',
    'Requests of the calling side that were sent to a target, the first time or again.',
    'attempt',
    attempts,
  );
  counter(
    'sallyport_egress_not_retried_total',
    'Requests of the calling side that failed and were not sent again, by why.',
    'reason',
    reasons,
  );
  new Gauge({
    name: 'sallyport_egress_held_bytes',
    help: 'Bytes of bodies that are held to be sent again; absent without a calling side.',
    registers,
    collect() {
      const current = state();
      if (current === null) this.remove();
      else this.set(current.heldBytes);
    },
  });
  new Counter({
    name: 'sallyport_egress_token_fetches_total',
    help: 'Fetches of a token of the calling side, whatever came of them.',
    labelNames: ['token'],
    registers,
    collect() {
      this.reset();
      for (const { name, fetches } of state()?.tokens ?? []) this.inc({ token: name }, fetches);
    },
  });
  new Gauge({
    name: 'sallyport_egress_token_up',
    help: 'Whether the last fetch of a token of the calling side brought one.',
    aggregator: 'min',
    labelNames: ['token'],
    registers,
    collect() {
      this.reset();
      for (const { name, lastError } of state()?.tokens ?? []) this.set({ token: name }, lastError === null ? 1 : 0);
    },
  });
  return {
    setTargets: (names) => {
      targets = names;
      for (const key of counts.keys()) {
        if (!names.includes(key.split(' ')[0] ?? '')) counts.delete(key);
      }
    },
    attempt: (target, isRetry) => increment(target, isRetry ? 'retry' : 'first'),
    notRetried: increment,
  };
}
