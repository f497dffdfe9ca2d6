import { Counter, Gauge, type Registry } from 'prom-client';

/** How it stands with the processes that serve callers. */
export interface WorkersState {
  readonly serving: number;
  /** How many ended that nobody had asked to. */
  readonly deaths: number;
}

/** Shows the workers; no series where one process does everything. */
export function showWorkers(registry: Registry, state: () => WorkersState | null): void {
  const registers = [registry];
  new Gauge({
    name: 'sallyport_workers_serving',
    help: 'Workers that serve callers; absent where one process does everything.',
    registers,
    collect() {
      const now = state();
      if (now === null) this.remove();
      else this.set(now.serving);
    },
  });
  new Counter({
    name: 'sallyport_worker_deaths_total',
    help: 'Workers that ended although nobody had asked them to, and were replaced.',
    registers,
    collect() {
      this.reset();
      const now = state();
      if (now === null) this.remove();
      else this.inc(now.deaths);
    },
  });
}
