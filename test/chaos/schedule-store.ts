import { isDeepStrictEqual } from 'node:util';
import { refuse, type Result } from '../../src/lib/result.js';
import type { ReservationStore, StoreFailure } from '../../src/ports/idempotency.js';

/** How the way between one proxy and the store is. */
export type Link = 'up' | 'down' | 'answers-lost' | 'commands-late';

export const links: readonly Link[] = ['up', 'down', 'answers-lost', 'commands-late'];

/** One proxy's way to the store that all share. */
export interface StoreLink {
  readonly store: ReservationStore;
  link: Link;
  /** Stops answers on their way back until it is thawed. */
  isFrozen: boolean;
  /** The proxy is gone: nothing of it reaches the store any more, and nothing reaches it. */
  isCut: boolean;
  readonly thaw: () => void;
  /** Commands that were late arrive now. */
  readonly deliver: () => void;
}

const lost = refuse<StoreFailure>({ kind: 'timeout', reason: 'no answer in time', mayHaveRun: true });
const down = refuse<StoreFailure>({ kind: 'unreachable', reason: 'out of reach', mayHaveRun: false });

/** `onViolation` hears of a mismatch that changed something (docs/guarantees.md "Promises"). */
export function createStoreLink(inner: ReservationStore, onViolation: (what: string) => void): StoreLink {
  let late: (() => void)[] = [];
  let waiting: (() => void)[] = [];
  const through = async <T>(run: () => Promise<Result<T, StoreFailure>>): Promise<Result<T, StoreFailure>> => {
    if (link.isCut) return new Promise(() => undefined);
    const answer = await pass(run);
    while (link.isFrozen) await new Promise<void>((resolve) => waiting.push(resolve));
    return isCut() ? new Promise(() => undefined) : answer;
  };
  // It may have been cut in the meantime.
  const isCut = (): boolean => link.isCut;
  const pass = async <T>(run: () => Promise<Result<T, StoreFailure>>): Promise<Result<T, StoreFailure>> => {
    switch (link.link) {
      case 'up':
        return run();
      case 'down':
        return down;
      case 'answers-lost':
        await run();
        return lost;
      case 'commands-late':
        late.push(() => void run());
        return lost;
    }
  };
  const link: StoreLink = {
    store: {
      ...inner,
      reserve: (scope, command) =>
        through(async () => {
          // The memory store does what it is asked to at once: nothing comes between these three.
          const before = inner.show(scope);
          const answered = inner.reserve(scope, command);
          const after = inner.show(scope);
          const answer = await answered;
          const isMismatch = answer.ok && answer.value.reserved.kind === 'mismatch';
          if (isMismatch && !isDeepStrictEqual(await before, await after)) {
            onViolation('6: a mismatch changed something');
          }
          return answer;
        }),
      complete: (scope, command) => through(() => inner.complete(scope, command)),
      release: (scope, command) => through(() => inner.release(scope, command)),
      mark: (scope, command) => through(() => inner.mark(scope, command)),
    },
    link: 'up',
    isFrozen: false,
    isCut: false,
    thaw: () => {
      link.isFrozen = false;
      for (const resolve of waiting.splice(0)) resolve();
      waiting = [];
    },
    deliver: () => {
      for (const run of late.splice(0)) run();
      late = [];
    },
  };
  return link;
}
