import type { CommandConnection } from '../client/command-connection.js';
import { reasonOf, replyCode } from '../scripts/errors.js';

/**
 * Holds back writes on a server (`CLIENT PAUSE … WRITE`) for as long as it is renewed. It ends by itself soon after
 * whoever holds it is gone.
 */
export interface WriteHold {
  /**
   * @returns why it did not begin; where the server gave no reply, it may hold all the same. `null` where it has
   * begun.
   */
  readonly begin: () => Promise<HoldFailure | null>;
  /** Milliseconds for which writes were held, so far or in all. */
  readonly heldMs: () => number;
  /** Milliseconds after which it ends by itself, at the latest; 0 where it is over. */
  readonly leftMs: () => number;
  /** Milliseconds for which it may have been over before it was renewed. */
  readonly lapsedMs: () => number;
  /** Renews it no more, and lets it run out. */
  readonly leave: () => void;
  /** Lets go now. @returns why that is not known to have happened; `null` where it has. */
  readonly release: () => Promise<string | null>;
}

interface HoldFailure {
  readonly reason: string;
  readonly mayHold: boolean;
}

/** For how long writes are held with each command, and when it is sent again, milliseconds. */
const holdForMs = 10_000;
const renewEveryMs = 3_000;
/** How often letting go is tried, and the pause between: a server that is made a replica closes its connections. */
const releaseTries = 5;
const releasePauseMs = 300;

export function createWriteHold(server: CommandConnection): WriteHold {
  let startedMs: number | null = null;
  let endedMs: number | null = null;
  /** When it ends by itself: not before the first, not after the second. */
  let surelyUntilMs = 0;
  let atMostUntilMs = 0;
  let lapsedMs = 0;
  let timer: NodeJS.Timeout | null = null;
  let renewing: Promise<void> = Promise.resolve();

  return {
    begin: async () => {
      startedMs = performance.now();
      surelyUntilMs = startedMs;
      try {
        await hold();
      } catch (error) {
        return { reason: reasonOf(error), mayHold: replyCode(error) === null };
      }
      startedMs = performance.now();
      lapsedMs = 0;
      timer = setInterval(() => {
        // What fails is tried again; whether it lapsed meanwhile is known by then.
        renewing = renewing.then(hold).catch(() => undefined);
      }, renewEveryMs);
      return null;
    },
    heldMs: () => (startedMs === null ? 0 : (endedMs ?? performance.now()) - startedMs),
    leftMs: () => (endedMs === null ? Math.max(0, atMostUntilMs - performance.now()) : 0),
    lapsedMs: () =>
      lapsedMs + (endedMs === null && startedMs !== null ? Math.max(0, performance.now() - surelyUntilMs) : 0),
    leave: stop,
    release: async () => {
      stop();
      await renewing;
      let reason = '';
      for (let tried = 0; tried < releaseTries; tried += 1) {
        if (tried > 0) await new Promise((resolve) => setTimeout(resolve, releasePauseMs));
        try {
          await server.ask('client', 'unpause');
          lapsedMs += Math.max(0, performance.now() - surelyUntilMs);
          endedMs = performance.now();
          return null;
        } catch (error) {
          reason = reasonOf(error);
        }
      }
      return reason;
    },
  };

  async function hold(): Promise<void> {
    const sentMs = performance.now();
    // Sent and not answered, it may hold until then.
    atMostUntilMs = sentMs + holdForMs;
    try {
      await server.ask('client', 'pause', String(holdForMs), 'write');
    } finally {
      atMostUntilMs = performance.now() + holdForMs;
    }
    lapsedMs += Math.max(0, performance.now() - surelyUntilMs);
    surelyUntilMs = sentMs + holdForMs;
  }

  function stop(): void {
    if (timer !== null) clearInterval(timer);
    timer = null;
  }
}
