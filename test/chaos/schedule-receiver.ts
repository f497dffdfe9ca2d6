/** A receiver that acts and answers when a schedule says so, and remembers everything: the oracle of the schedules. */
import type { ResponseSink, UpstreamRequest } from '../../src/proxy/upstream/call.js';
import type { Upstream } from '../../src/proxy/upstream/pool/pool.js';
import { fieldValues } from '../support/upstream-server.js';

/** What becomes of a request that was sent. */
export type Ending =
  /** Acts and answers 201, or 500. */
  | 'created'
  | 'failed'
  /** Does nothing and says so by its status. */
  | 'limited'
  /** Certainly not reached. */
  | 'refused'
  /** Acts, then breaks off before, or within, its answer. */
  | 'reset'
  | 'cut'
  /** The same, but it never acted. */
  | 'lost'
  /** Acts and answers more than is kept. */
  | 'large';

export const endings: readonly Ending[] = ['created', 'failed', 'limited', 'refused', 'reset', 'cut', 'lost', 'large'];

/** More than `max_stored_response` of the schedules' routes. */
const largeBody = 'x'.repeat(2_000);

/** One request on its way to the receiver. */
export interface Dispatch {
  readonly requestId: string;
  /** `Idempotency-Record` and `Idempotency-Fence`; empty and 0 where there is none. */
  readonly record: string;
  readonly fence: number;
  readonly sink: ResponseSink;
  isCancelled: boolean;
  isEnded: boolean;
  /** Its proxy heard that nothing was done. */
  wasSurelyNothing: boolean;
  /** The answer that it has, once it was acted on. */
  answer: Result | null;
}

/** What acting led to; who deduplicates says it again. */
export interface Result {
  readonly status: number;
  readonly text: string;
}

export interface ScheduleReceiver {
  readonly dispatches: Dispatch[];
  readonly upstreamOf: (isReachable: () => boolean, onDispatch: (dispatch: Dispatch) => void) => Upstream;
  /** Acts on it, if it has not. */
  readonly execute: (dispatch: Dispatch, status?: number) => void;
  /** Ends it; what it says is lost where the proxy is not there any more. */
  readonly end: (dispatch: Dispatch, ending: Ending, isHeard: boolean) => void;
  /** How often the effect of a record happened. */
  readonly effects: (record: string) => number;
}

/** `onExecute` hears of each request that is acted on, first. */
export function createScheduleReceiver(
  onExecute: (dispatch: Dispatch) => void,
  deduplicates: (dispatch: Dispatch) => boolean,
): ScheduleReceiver {
  const dispatches: Dispatch[] = [];
  const results = new Map<string, Result>();
  const effects = new Map<string, number>();

  return { dispatches, upstreamOf, execute, end, effects: (record) => effects.get(record) ?? 0 };

  function upstreamOf(isReachable: () => boolean, onDispatch: (dispatch: Dispatch) => void): Upstream {
    return {
      host: 'receiver',
      takeStreamingSlot: () => null,
      awaitTurn: ({ onTurn }) => {
        onTurn(() => undefined);
        return () => undefined;
      },
      send: (request, sink) => {
        const dispatch = dispatchOf(request, sink);
        dispatches.push(dispatch);
        onDispatch(dispatch);
        return {
          resume: () => undefined,
          cancel: () => {
            dispatch.isCancelled = true;
          },
          mayBeSent: isReachable,
        };
      },
      retire: () => undefined,
      close: async () => undefined,
      connections: () => 0,
      counts: () => ({ active: 0, waiting: 0 }),
    };
  }

  function execute(dispatch: Dispatch, status = 201): void {
    if (dispatch.answer !== null) return;
    const known = deduplicates(dispatch) ? results.get(dispatch.record) : undefined;
    if (known === undefined) {
      effects.set(dispatch.record, (effects.get(dispatch.record) ?? 0) + 1);
      onExecute(dispatch);
    }
    // A canary of its own: a replay tells whose it is.
    dispatch.answer = known ?? { status, text: `${dispatch.requestId} ran it` };
    results.set(dispatch.record, dispatch.answer);
  }

  function end(dispatch: Dispatch, ending: Ending, isHeard: boolean): void {
    if (dispatch.isEnded) return;
    dispatch.isEnded = true;
    const acts = ending !== 'limited' && ending !== 'refused' && ending !== 'lost';
    if (acts) execute(dispatch, ending === 'failed' ? 500 : 201);
    if (!isHeard || dispatch.isCancelled) return;
    dispatch.wasSurelyNothing = dispatch.answer === null && ending !== 'lost';
    // What it acted on already it cannot have refused.
    answer(dispatch, dispatch.answer !== null && !acts ? 'reset' : ending);
  }

  function answer({ sink, answer: result }: Dispatch, ending: Ending): void {
    const fields = ['Content-Type', 'text/plain', 'Idempotency-Outcome', result === null ? 'not-applied' : 'committed'];
    const { status, text } = result ?? { status: 429, text: 'later' };
    switch (ending) {
      case 'created':
      case 'failed':
      case 'limited':
        sink.onHead(status, fields);
        sink.onData(Buffer.from(text));
        sink.onEnd(null);
        return;
      case 'large':
        sink.onHead(status, fields);
        sink.onData(Buffer.from(text));
        sink.onData(Buffer.from(largeBody));
        sink.onEnd(null);
        return;
      case 'cut':
        sink.onHead(status, fields);
        sink.onData(Buffer.from(text));
        sink.onError({ reason: 'upstream_failed' });
        return;
      case 'refused':
        sink.onError({ reason: 'upstream_unreachable' });
        return;
      case 'reset':
      case 'lost':
        sink.onError({ reason: 'upstream_failed' });
    }
  }
}

function dispatchOf({ headers: fields }: UpstreamRequest, sink: ResponseSink): Dispatch {
  const value = (name: string): string => fieldValues(fields, name)[0] ?? '';
  return {
    requestId: value('X-Request-Id'),
    record: value('Idempotency-Record'),
    fence: Number(value('Idempotency-Fence')),
    sink,
    isCancelled: false,
    isEnded: false,
    wasSurelyNothing: false,
    answer: null,
  };
}
