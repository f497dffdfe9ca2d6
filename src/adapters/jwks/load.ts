import type { KeepingRules } from '../../decision/http/http-freshness.js';
import { accept, refuse, type Result } from '../../lib/result.js';
import type { Timers } from '../../ports/system.js';
import type { KeyOrigin, LoadLimits } from './key-origin.js';
import { readKeySet, type KeySet } from './key-set.js';

/** A key set that may replace the one in hand. */
export interface LoadedKeys extends KeySet, KeepingRules {}

/** An attempt under way. */
export interface KeyLoad {
  /** Settles within the time limit, whatever the origin does; never rejects. */
  readonly result: Promise<Result<LoadedKeys, string>>;
  readonly callOff: () => void;
}

/** Gets and checks a key set. What is none is refused; one without a key that can be used is not. */
export function startLoad(origin: KeyOrigin, limits: LoadLimits, timers: Timers): KeyLoad {
  const controller = new AbortController();
  let stop = (why: string): void => {
    controller.abort(why);
  };
  const result = new Promise<Result<LoadedKeys, string>>((resolve) => {
    const callOffDeadline = timers.after(limits.timeoutMs, () => {
      stop(`no complete answer within ${String(limits.timeoutMs)} ms`);
    });
    const end = (outcome: Result<LoadedKeys, string>): void => {
      callOffDeadline();
      resolve(outcome);
    };
    stop = (why) => {
      controller.abort();
      end(refuse(why));
    };
    load(origin, limits, controller.signal).then(end, (error: unknown) => {
      // What a source sends must not end the process, even where it meets a mistake of ours.
      end(refuse(`unexpected ${error instanceof Error ? error.name : 'error'}`));
    });
  });
  return {
    result,
    callOff: () => {
      stop('the attempt was called off');
    },
  };
}

async function load(origin: KeyOrigin, limits: LoadLimits, signal: AbortSignal): Promise<Result<LoadedKeys, string>> {
  const loaded = await origin.load(limits, signal);
  if (!loaded.ok) return loaded;
  const { bytes, freshnessMs, mustRevalidate } = loaded.value;
  const set = await readKeySet(bytes);
  if (!set.ok) return set;
  const { keys, skipped } = set.value;
  return accept({ keys, skipped, freshnessMs, mustRevalidate });
}
