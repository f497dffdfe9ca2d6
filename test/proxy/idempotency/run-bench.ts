/** One reserved run between a receiver, a caller and a store that say what a test lets them say. */
import { Readable } from 'node:stream';
import { createHeaderRules } from '../../../src/decision/http/header-rules.js';
import { clientHeaders } from '../../../src/decision/http/response-headers.js';
import type { Reserved } from '../../../src/decision/idempotency/record.js';
import { accept, refuse, type Result } from '../../../src/lib/result.js';
import type { ReserveReply, StoreFailure } from '../../../src/ports/idempotency.js';
import {
  ReservedWrite,
  type ReservedRequest,
  type ReservedWriteDeps,
  type WriteClient,
} from '../../../src/proxy/idempotency/reserved-write.js';
import type { Settling } from '../../../src/proxy/idempotency/settlement-queue.js';
import type { ResponseSink, UpstreamRequest } from '../../../src/proxy/upstream/call.js';
import type { UnreservedWrite } from '../../../src/proxy/upstream/pool/reservation-queue.js';
import { createBufferBudget } from '../../../src/proxy/idempotency/body-buffer.js';
import { slotOf } from '../../../src/proxy/exchange/concurrency.js';
import { manualTime, type ManualTime } from '../../adapters/manual-time.js';

export interface RunOptions {
  readonly method?: string;
  readonly body?: string;
  readonly contentLength?: string | null;
  readonly chunked?: boolean;
  readonly forwarded?: readonly string[];
  readonly recordId?: string | null;
  /** What the store says of the reserve; `null` where it does not answer. */
  readonly reserved?: Reserved | null;
  /** Called when the store is asked to reserve. */
  readonly onReserve?: (bench: RunBench) => void;
  readonly mayBeSent?: boolean;
  readonly maxStored?: number;
  readonly replicas?: number;
  readonly sentKey?: string | null;
  readonly caller?: Partial<WriteClient>;
  /** Settling waits until `settle` of the bench is called. */
  readonly holdsSettling?: boolean;
  /** Its turn comes when `turn` of the bench is called. */
  readonly waits?: boolean;
}

export interface RunBench {
  readonly run: ReservedWrite;
  readonly time: ManualTime;
  /** What was said to the caller, to the receiver and to the store, in order. */
  readonly events: string[];
  readonly sent: UpstreamRequest[];
  readonly settled: Settling[];
  readonly settle: () => Promise<void>;
  readonly sink: () => ResponseSink;
  /** Begins, and waits until the store has answered. */
  readonly begin: () => Promise<void>;
  /** What was asked of the store. */
  reserves: number;
  /** What waits for its turn. */
  inLine: UnreservedWrite | null;
  /** Gives it its turn, and waits until the store has answered. */
  turn: () => Promise<void>;
  /** Taken, and not given back. */
  places: number;
  isGone: boolean;
  /** Whether the caller keeps up. */
  flows: boolean;
}

export const connectMs = 100;
export const responseMs = 1_000;
/** Two connects and the answer. */
export const upstreamMs = 1_200;

/** Lets everything happen that waits for nothing. */
export async function tick(): Promise<void> {
  await new Promise<void>((resolve) => void setImmediate(resolve));
}

export function runBench(options: RunOptions = {}): RunBench {
  const time = manualTime();
  const events: string[] = [];
  const sent: UpstreamRequest[] = [];
  const settled: Settling[] = [];
  const sinks: ResponseSink[] = [];
  let release: () => void = () => undefined;
  const say = (what: string) => () => void events.push(what);
  const answer = (): Result<ReserveReply, StoreFailure> => {
    const reserved: Reserved | null =
      options.reserved === undefined ? { kind: 'acquired', fence: 7, takenOver: false } : options.reserved;
    return reserved === null
      ? refuse({ kind: 'unreachable', reason: 'gone', mayHaveRun: false })
      : accept({ reserved, confirmedReplicas: null });
  };
  const nothing = (): void => undefined;
  const deps = {
    store: {
      reserve: async () => {
        self.reserves += 1;
        options.onReserve?.(self);
        return answer();
      },
      issuedBeforeFloorS: () => null,
    },
    settlements: {
      settle: async (settling: Settling) => {
        settled.push(settling);
        const { write } = settling;
        events.push(
          `settle ${write.kind === 'complete' ? `${write.command.state} ${write.command.response.status}` : write.kind}`,
        );
        if (options.holdsSettling === true) await new Promise<void>((resolve) => (release = resolve));
      },
    },
    metrics: {
      reservation: nothing,
      storeCall: nothing,
      replicaShortfall: nothing,
      shareExceeded: nothing,
      unknownOutcome: nothing,
    },
    share: null,
    clock: time.clock,
    timers: time.timers,
    replicas: options.replicas ?? 0,
    settleTimeoutMs: 500,
    budget: createBufferBudget(1_000_000),
  };
  const body = Readable.from([Buffer.from(options.body ?? 'body')]);
  const write = {
    admission: {
      target: { raw: '/orders?a=1', path: '/orders', query: 'a=1' },
      route: { responseTimeoutMs: responseMs, access: 'protected' },
      requestId: 'r',
      principal: null,
      forwarded: options.forwarded ?? ['Host', 'h'],
      revoked: () => null,
      headers: { passed: [], contentLength: options.contentLength ?? null, chunked: options.chunked ?? false },
    },
    preparation: {
      rules: {
        singleUse: false,
        operation: 'o',
        fields: [],
        receiver: 'plain',
        retentionMs: 60_000,
        maxStoredResponseBytes: options.maxStored ?? 10,
        storeHeaders: new Set(),
        releaseOn: new Set([429]),
      },
      principal: { expiresAtS: time.clock.now() / 1000 + 600, issuedAtS: null },
      issuer: { clockSkewS: 0 },
      scope: { principal: 'p', operation: 'o', token: null },
      recordId: options.recordId === undefined ? 'p.o' : options.recordId,
      reservationId: options.recordId === null ? 'p.t' : 'p.o',
      sentKey: options.sentKey === undefined ? '"k"' : options.sentKey,
    },
    method: options.method ?? 'POST',
    body,
    trace: null,
    activeConfig: {
      config: { upstream: { connectTimeoutMs: connectMs } },
      assertion: null,
      headerRules: createHeaderRules({ identityNames: [], underscoreFields: 'drop', http10: 'refuse' }),
      upstream: {
        awaitTurn: (unreserved: UnreservedWrite) => {
          const begin = (): void => {
            self.places += 1;
            unreserved.onTurn(
              slotOf(() => {
                self.places -= 1;
              }),
            );
          };
          self.inLine = unreserved;
          self.turn = async () => {
            begin();
            await tick();
          };
          if (options.waits !== true) begin();
          return say('leave the line');
        },
        send: (request: UpstreamRequest, sink: ResponseSink) => {
          sent.push(request);
          sinks.push(sink);
          return { cancel: say('cancel'), resume: say('resume'), mayBeSent: () => options.mayBeSent ?? true };
        },
      },
    },
  };
  const caller: WriteClient = {
    isGone: () => self.isGone,
    refuse: (reason) => void events.push(`refuse ${JSON.stringify(reason)}`),
    refuseUnreserved: ({ reason }) => void events.push(`refuse unreserved ${reason}`),
    refuseUnsent: ({ reason }, unsent) => void events.push(`refuse unsent ${reason} ${unsent.toString()}`),
    respond: ({ status, headers: fields, body: given, isReplayed }) =>
      void events.push(`give ${status} ${fields.join(' ')} ${given.toString()} ${String(isReplayed)}`),
    onHead: (status, rawHeaders) =>
      void events.push(
        `begin ${status} ${clientHeaders(status, rawHeaders, write.activeConfig.headerRules, 'r').join(' ')}`,
      ),
    onData: (chunk) => {
      events.push(`write ${chunk.toString()}`);
      return self.flows;
    },
    onEnd: say('end'),
    upstreamAsked: say('asked'),
    upstreamResponded: say('answered'),
    fail: (error) => void events.push(`fail ${String(error)}`),
    ...options.caller,
  };
  const self: RunBench = {
    run: new ReservedWrite(
      deps as unknown as ReservedWriteDeps,
      { ...write, client: caller } as unknown as ReservedRequest,
      say('over'),
    ),
    time,
    events,
    sent,
    settled,
    settle: async () => {
      release();
      await tick();
    },
    sink: () => {
      const [sink] = sinks;
      if (sink === undefined) throw new Error('nothing was sent');
      return sink;
    },
    begin: async () => {
      self.run.start();
      await tick();
    },
    reserves: 0,
    inLine: null,
    turn: tick,
    places: 0,
    isGone: false,
    flows: true,
  };
  return self;
}
