import type { AddressInfo } from 'node:net';
import type { ListenSettings } from '../config/compiled.js';
import type { Clock, Log, Metrics, RequestRecord } from '../ports.js';
import type { InForce } from './in-force.js';
import type { TlsMaterial } from './listener.js';

export interface ProxyServerDeps {
  /** What is in force now; asked once for each request. */
  readonly inForce: () => InForce;
  readonly clock: Clock;
  readonly metrics: Metrics;
  readonly log: Log;
  /** Takes one line for each request, at its end. */
  readonly requestLog: (record: RequestRecord) => void;
  readonly listen: ListenSettings;
  /** PEM texts; exactly where `listen.tls` is set. */
  readonly tls: TlsMaterial | null;
}

export interface ProxyServer {
  /** Resolves when connections are accepted; rejects when the address cannot be had. */
  readonly listen: () => Promise<AddressInfo>;
  /** Takes other certificates for connections to come; throws, and keeps the old ones, where they do not fit together. */
  readonly setTls: (material: TlsMaterial) => void;
  /** From now on every answer closes its connection, so that callers move on before `drain` ends what is idle. */
  readonly announceShutdown: () => void;
  /** Accepts nothing more, lets what is under way finish and resolves when all is closed, by `graceMs` at the latest. */
  readonly drain: (graceMs: number) => Promise<void>;
  readonly counts: () => { readonly connections: number; readonly inFlight: number };
}
