import type { Clock } from '../../../src/ports/system.js';

/** The machine's clock, which a test may move on. */
export interface SteppingClock extends Clock {
  /** Moves both clocks on, as for a process that was stopped. */
  readonly step: (ms: number) => void;
  /** Moves the wall clock only, as for a machine that was suspended, or whose clock was set. */
  readonly stepWall: (ms: number) => void;
}

export function createSteppingClock(): SteppingClock {
  let monotonicMs = 0;
  let wallMs = 0;
  return {
    now: () => Date.now() + wallMs,
    monotonic: () => performance.now() + monotonicMs,
    step: (ms) => {
      monotonicMs += ms;
      wallMs += ms;
    },
    stepWall: (ms) => {
      wallMs += ms;
    },
  };
}
