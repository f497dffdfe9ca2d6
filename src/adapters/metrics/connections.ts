import { Counter, Gauge, type Registry } from 'prom-client';
import type { ConnectionsByProtocol, UpstreamConnections } from '../../ports/observability.js';
import {
  connectionEndings,
  noConnectionEndings,
  type ConnectionEnding,
} from '../../decision/limits/idle-connections.js';

/** What is asked at each scrape. */
interface ConnectionReadings {
  readonly open: () => number;
  /** `null` while nothing serves. */
  readonly byProtocol: () => ConnectionsByProtocol | null;
  readonly upstream: () => UpstreamConnections | null;
}

/** A protocol, and what is open of it. */
type Row = readonly [protocol: string, connections: number, requests: number];

/** Shows client connections, and those to the upstream; returns what counts client connections that were ended. */
export function showConnections(registry: Registry, readings: ConnectionReadings): (ending: ConnectionEnding) => void {
  const { open, byProtocol, upstream } = readings;
  const counts = noConnectionEndings();
  const clientRows = (): readonly Row[] => {
    const state = byProtocol();
    if (state === null) return [];
    const { http1, http2 } = state;
    return [
      ['HTTP/1', http1.connections, http1.requests],
      ['HTTP/2', http2.connections, http2.requests],
    ];
  };
  const upstreamRows = (): readonly Row[] => {
    const state = upstream();
    return state === null ? [] : [[state.isHttp2 ? 'HTTP/2' : 'HTTP/1', state.connections, state.requests]];
  };
  new Gauge({
    name: 'sallyport_connections_open',
    help: 'Connections of callers that are open.',
    registers: [registry],
    collect() {
      this.set(open());
    },
  });
  showByProtocol(registry, 'client', 'of callers', clientRows);
  showByProtocol(registry, 'upstream', 'to the upstream', upstreamRows);
  new Gauge({
    name: 'sallyport_upstream_requests_waiting',
    help: 'Requests that wait for a connection to the upstream, or for a stream of one.',
    registers: [registry],
    collect() {
      this.set(upstream()?.waiting ?? 0);
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

/** `side` is part of the names. */
function showByProtocol(
  registry: Registry,
  side: 'client' | 'upstream',
  whose: string,
  rows: () => readonly Row[],
): void {
  new Gauge({
    name: `sallyport_${side}_connections_open`,
    help: `Connections ${whose} that are open, by protocol.`,
    labelNames: ['protocol'],
    registers: [registry],
    collect() {
      this.reset();
      for (const [protocol, connections] of rows()) this.set({ protocol }, connections);
    },
  });
  new Gauge({
    name: `sallyport_${side}_requests_open`,
    help: `Requests under way on connections ${whose}, by protocol; of HTTP/2 each is a stream.`,
    labelNames: ['protocol'],
    registers: [registry],
    collect() {
      this.reset();
      for (const [protocol, , requests] of rows()) this.set({ protocol }, requests);
    },
  });
}
