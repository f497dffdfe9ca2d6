import { Counter, Gauge, type Registry } from 'prom-client';
import type { TelemetryState } from '../../ports/tracing.js';

/** Shows what is sent to a collector, and what is not; nothing where telemetry is off. */
export function showTelemetry(registry: Registry, read: () => TelemetryState | null): void {
  const registers = [registry];
  new Counter({
    name: 'sallyport_telemetry_items_total',
    help: 'Spans, metrics and log records for the collector, by what became of them.',
    labelNames: ['signal', 'result'],
    registers,
    collect() {
      this.reset();
      for (const { signal, exported, dropped, failed, rejected } of read()?.signals ?? []) {
        for (const [result, count] of Object.entries({ exported, dropped, failed, rejected })) {
          this.inc({ signal, result }, count);
        }
      }
    },
  });
  new Gauge({
    name: 'sallyport_telemetry_waiting_items',
    help: 'Spans and log records that wait to be sent.',
    labelNames: ['signal'],
    registers,
    collect() {
      this.reset();
      for (const { signal, waiting } of read()?.signals ?? []) this.set({ signal }, waiting);
    },
  });
  new Counter({
    name: 'sallyport_telemetry_not_followed_total',
    help: 'Requests that their callers trace and that were not traced here: there were too many.',
    registers,
    collect() {
      this.reset();
      const state = read();
      if (state !== null) this.inc(state.notFollowed);
    },
  });
}
