import { Counter, Gauge, type Registry } from 'prom-client';
import { connectionEndings, type ConnectionEnding } from '../../decision/limits/idle-connections.js';

/** Shows callers' connections; returns what counts those that were ended. `open` is asked at each scrape. */
export function showConnections(registry: Registry, open: () => number): (ending: ConnectionEnding) => void {
  const counts: Record<ConnectionEnding, number> = { gave_way: 0, refused: 0, too_much_waiting: 0 };
  new Gauge({
    name: 'sallyport_connections_open',
    help: 'Connections of callers that are open.',
    registers: [registry],
    collect() {
      this.set(open());
    },
  });
  new Counter({
    name: 'sallyport_connections_ended_total',
    help: 'Connections of callers that were ended since there was too much, by reason.',
    labelNames: ['reason'],
    registers: [registry],
    collect() {
      this.reset();
      for (const reason of connectionEndings) this.inc({ reason }, counts[reason]);
    },
  });
  return (ending) => {
    counts[ending] += 1;
  };
}
