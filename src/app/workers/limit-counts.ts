/** Requests of callers, counted by the primary for all workers. */
import { systemClock } from '../../adapters/system/clock.js';
import { createInFlightCounter } from '../../adapters/memory/in-flight-counter.js';
import { createRateCounter } from '../../adapters/memory/rate-counter.js';
import type { LimitCounters } from '../store/store.js';
import type { CountAsk, ToPrimary, ToWorker } from './messages.js';

type CountMessage = Extract<ToPrimary, { kind: 'count' }>;
type CountedMessage = Extract<ToWorker, { kind: 'counted' }>;

/** A worker's side: what is asked in one turn of its event loop goes in one message. */
export interface AskedCounters extends LimitCounters {
  readonly onAnswers: (message: CountedMessage) => void;
}

type Unnumbered<Ask> = Ask extends unknown ? Omit<Ask, 'id'> : never;

/** @param send called at most once in a turn. */
export function createAskedCounters(send: (message: CountMessage) => void): AskedCounters {
  const waiting = new Map<number, (answer: number) => void>();
  let asks: CountAsk[] = [];
  let left: string[] = [];
  let last = 0;
  let isSending = false;

  function sendSoon(): void {
    if (isSending) return;
    isSending = true;
    setImmediate(() => {
      isSending = false;
      const message: CountMessage = { kind: 'count', asks, left };
      asks = [];
      left = [];
      send(message);
    });
  }

  function ask(what: Unnumbered<CountAsk>): Promise<number> {
    last += 1;
    const id = last;
    asks.push({ ...what, id });
    sendSoon();
    return new Promise((resolve) => {
      waiting.set(id, resolve);
    });
  }

  return {
    local: { take: async ({ principal, scope }, { perSecond, burst }) => ask({ principal, scope, perSecond, burst }) },
    inFlight: {
      enter: async (name, max) => {
        if ((await ask({ name, max })) !== 0) return null;
        let isIn = true;
        return () => {
          if (!isIn) return;
          isIn = false;
          left.push(name);
          sendSoon();
        };
      },
    },
    onAnswers: ({ answers }) => {
      for (const [id, answer] of answers) {
        waiting.get(id)?.(answer);
        waiting.delete(id);
      }
    },
  };
}

/** The primary's side of one worker. */
interface WorkerCounts {
  readonly count: (message: CountMessage) => CountedMessage;
  /** The worker is gone, and with it what it had under way. */
  readonly forget: () => void;
}

/** Counts exactly: whatever worker a request came to, it is one more of its caller's. */
export function createSharedCounts(): { readonly ofWorker: () => WorkerCounts } {
  const rates = createRateCounter(systemClock);
  const inFlight = createInFlightCounter();
  return {
    ofWorker: () => {
      const places = new Map<string, (() => void)[]>();
      const leave = (name: string): void => {
        places.get(name)?.pop()?.();
        if (places.get(name)?.length === 0) places.delete(name);
      };
      const enter = (name: string, max: number): number => {
        const place = inFlight.enter(name, max);
        if (place === null) return 1;
        const held = places.get(name);
        if (held === undefined) places.set(name, [place]);
        else held.push(place);
        return 0;
      };
      return {
        count: ({ asks, left }) => {
          for (const name of left) leave(name);
          const answers = asks.map((ask): readonly [number, number] => [
            ask.id,
            'max' in ask
              ? enter(ask.name, ask.max)
              : rates.take(
                  { principal: ask.principal, scope: ask.scope },
                  { perSecond: ask.perSecond, burst: ask.burst, shared: false },
                ),
          ]);
          return { kind: 'counted', answers };
        },
        forget: () => {
          for (const held of places.values()) for (const leavePlace of held) leavePlace();
          places.clear();
        },
      };
    },
  };
}
