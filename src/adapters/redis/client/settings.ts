import type { RedisTopology } from '../../../config/types.js';

/** How to reach Redis, and what to ask of it. Durations in milliseconds. */
export interface RedisSettings {
  readonly topology: RedisTopology;
  readonly username: string | null;
  /** Read again at each connect, so that a rotated password needs no restart. */
  readonly passwordFile: string | null;
  readonly tls: RedisTls | null;
  /** First part of every key. */
  readonly prefix: string;
  /** Replicas that have to confirm a reservation before the write is dispatched. */
  readonly replicas: number;
  readonly reserveTimeoutMs: number;
  readonly settleTimeoutMs: number;
  /** Bytes of kept results of one caller; `null` is a part of what the server may hold. */
  readonly keptPerCaller: number | null;
  readonly durability: Durability;
}

export interface RedisAddress {
  readonly host: string;
  readonly port: number;
}

interface RedisTls {
  /** PEM, asked for at each connect, so that another CA needs no restart; `null` trusts the system's authorities. */
  readonly ca: () => string | null;
  readonly serverName: string | null;
}

/**
 * What is asked of the settings that can forget. `verified`: all are read and fit. `unverified`: what cannot be read is
 * taken to fit. `none`: reservations may be forgotten, and the operator has written that down.
 */
export type Durability = 'verified' | 'unverified' | 'none';
