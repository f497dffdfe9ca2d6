/** A signal that ends one call, and what made it end. */
export interface CallLimits {
  readonly signal: AbortSignal;
  readonly isLate: () => boolean;
  readonly isCalledOff: () => boolean;
  /** Lets go of the timer and of the callers' signals, which may live much longer than the call. */
  readonly release: () => void;
}

/** Bounds a call by a time in milliseconds and by the signals of those who may call it off. */
export function limitCall(timeoutMs: number, callers: readonly AbortSignal[]): CallLimits {
  const controller = new AbortController();
  let isLate = false;
  const abort = (): void => controller.abort();
  const timer = setTimeout(() => {
    isLate = true;
    abort();
  }, timeoutMs);
  for (const caller of callers) caller.addEventListener('abort', abort, { once: true });
  if (callers.some(({ aborted }) => aborted)) abort();
  return {
    signal: controller.signal,
    isLate: () => isLate,
    isCalledOff: () => callers.some(({ aborted }) => aborted),
    release: () => {
      clearTimeout(timer);
      for (const caller of callers) caller.removeEventListener('abort', abort);
    },
  };
}
