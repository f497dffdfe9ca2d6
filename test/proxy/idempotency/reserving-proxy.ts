/** A proxy whose routes reserve, a store in memory that misbehaves on command, and a receiver behind it. */
import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import { randomUUID } from 'node:crypto';
import {
  createMemoryStore,
  memoryStoreLimits,
  type MemoryStoreLimits,
} from '../../../src/adapters/memory/reservation-store.js';
import { parseRecordId } from '../../../src/decision/idempotency/scope.js';
import type { ReservationRecord } from '../../../src/decision/idempotency/record.js';
import type { ReservationResult, ReservationStore } from '../../../src/ports/idempotency.js';
import { request, type RawResponse, type RequestInput } from '../../support/raw-client.js';
import type { ReceivedRequest } from '../../support/upstream-server.js';
import type { Scope } from '../../support/scope.js';
import type { Claims } from '../../support/tokens.js';
import type { ConfigTree } from '../../support/proxy-process.js';
import { startProxy, type Harness, type HarnessOptions } from '../harness.js';
import { createFaultyStore, type FaultyStore } from './faulty-store.js';
import { createSteppingClock, type SteppingClock } from './stepping-clock.js';

export interface ReservingProxyOptions extends Pick<
  HarnessOptions,
  'adapt' | 'receiver' | 'listed' | 'upstreamUrl' | 'upstreamCa'
> {
  readonly config?: ConfigTree;
  readonly replicas?: number;
  readonly settleTimeoutMs?: number;
  readonly limits?: MemoryStoreLimits;
  /** Stands between the proxy and the store. */
  readonly watch?: (store: ReservationStore) => ReservationStore;
  /** The proxy knows of no store at all. */
  readonly withoutStore?: boolean;
}

export interface ReservingProxy extends Harness {
  readonly clock: SteppingClock;
  readonly store: FaultyStore;
  /** What became of reservations, in order. */
  readonly results: ReservationResult[];
  /** Records that were marked as in doubt. */
  readonly unknowns: string[];
  readonly shortfalls: () => number;
  /** One write over a connection of its own. */
  readonly write: (input?: WriteInput) => Promise<RawResponse>;
  /** Requests that reached the receiver whole. */
  readonly executions: () => ReceivedRequest[];
  /** The record with this id as the store has it. */
  readonly record: (id: string) => Promise<ReservationRecord | null>;
  /** Nothing is under way, neither with nor without a caller. */
  readonly isIdle: () => boolean;
}

export interface WriteInput {
  readonly method?: string;
  readonly path?: string;
  /** A new one unless given; `null` sends none. */
  readonly key?: string | null;
  readonly body?: string | Buffer;
  readonly claims?: Claims;
  readonly headers?: Readonly<Record<string, string>>;
}

const approved: ConfigTree = { subjects: ['checkout', 'migration'], permissions: ['orders:write'] };

/** A route for each way to reserve. */
const routes: readonly ConfigTree[] = [
  {
    name: 'create-order',
    methods: ['POST', 'PUT', 'DELETE', 'HEAD'],
    path: '/orders',
    ...approved,
    idempotency: 'required',
  },
  { name: 'optional', methods: ['POST'], path: '/optional', ...approved, idempotency: 'optional' },
  { name: 'plain', methods: ['POST'], path: '/plain', ...approved, idempotency: 'none' },
  { name: 'single', methods: ['POST'], path: '/single', ...approved, idempotency: 'none', single_use: true },
  { name: 'both', methods: ['POST'], path: '/both', ...approved, idempotency: 'required', single_use: true },
  {
    name: 'fields',
    methods: ['POST'],
    path: '/fields',
    ...approved,
    idempotency: { mode: 'required', fields: ['If-Match', 'Prefer'] },
  },
  {
    name: 'small',
    methods: ['POST'],
    path: '/small',
    ...approved,
    idempotency: { mode: 'required', max_body: '1KiB', max_stored_response: '1KiB' },
  },
  {
    name: 'headers',
    methods: ['POST'],
    path: '/headers',
    ...approved,
    idempotency: { mode: 'required', store_headers: ['X-Total-Count', 'X-Auth-Subject'] },
  },
  {
    name: 'reports',
    methods: ['POST'],
    path: '/reports',
    ...approved,
    idempotency: { mode: 'required', receiver: 'reports' },
  },
  {
    name: 'deduplicates',
    methods: ['POST'],
    path: '/deduplicates',
    ...approved,
    idempotency: { mode: 'required', receiver: 'deduplicates' },
  },
];

export async function startReservingProxy(t: Scope, options: ReservingProxyOptions = {}): Promise<ReservingProxy> {
  const clock = createSteppingClock();
  const memory = createMemoryStore(clock, options.limits ?? memoryStoreLimits);
  t.teardown(memory.close);
  const store = createFaultyStore(memory);
  const results: ReservationResult[] = [];
  const unknowns: string[] = [];
  let shortfalls = 0;
  const harness = await startProxy(t, {
    ...options,
    config: { store: { memory: {} }, routes, ...options.config },
    clock,
    ...(options.withoutStore === true
      ? {}
      : {
          reservations: {
            store: options.watch?.(store.store) ?? store.store,
            share: null,
            replicas: options.replicas ?? 0,
            settleTimeoutMs: options.settleTimeoutMs ?? 1_000,
            metrics: {
              reservation: (result) => results.push(result),
              storeCall: () => undefined,
              unknownOutcome: (id) => unknowns.push(id),
              replicaShortfall: () => {
                shortfalls += 1;
              },
              shareExceeded: () => undefined,
              offeredAgain: () => undefined,
            },
          },
        }),
  });
  return {
    ...harness,
    clock,
    store,
    results,
    unknowns,
    shortfalls: () => shortfalls,
    write: async (input = {}) => request(harness.port, writeOf(harness, input)),
    executions: () => harness.receiver.requests.filter(({ complete }) => complete),
    record: async (id) => {
      const scope = parseRecordId(id);
      const shown = scope === null ? null : await memory.show({ ...scope, token: null });
      return shown?.ok === true ? (shown.value?.record ?? null) : null;
    },
    isIdle: () => harness.server.counts().inFlight === 0,
  };
}

/** A write as `request` of the raw client takes it. */
export function writeOf(
  { authorization }: Pick<Harness, 'authorization'>,
  input: WriteInput = {},
): RequestInput & { readonly body: string | Buffer } {
  const key = input.key === undefined ? randomUUID() : input.key;
  const keyField = key === null ? {} : { 'Idempotency-Key': key };
  return {
    method: input.method ?? 'POST',
    path: input.path ?? '/orders',
    headers: { ...authorization(input.claims), 'Content-Type': 'application/json', ...keyField, ...input.headers },
    body: input.body ?? '{"item":1}',
  };
}

/** A receiver's behaviour that answers when the request is whole. */
export function answering(
  status: number,
  headers: OutgoingHttpHeaders,
  body: string | Buffer,
): (req: IncomingMessage, res: ServerResponse) => void {
  return (req, res) => {
    req.on('end', () => {
      res.writeHead(status, headers);
      res.end(body);
    });
  };
}

/** The member `record` of a problem document. */
export function recordOf({ text }: RawResponse): string {
  const { record } = JSON.parse(text) as { record?: string };
  return record ?? '';
}
