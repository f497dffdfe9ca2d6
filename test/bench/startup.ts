import { startWorld } from '../support/world.js';

/** Milliseconds from the start of `sallyport serve` until `/readyz` says 200, with the keys on loopback. */
export async function startToReady(): Promise<number> {
  const closers: (() => unknown)[] = [];
  try {
    const scope = { teardown: (close: () => unknown): unknown => closers.unshift(close) };
    // Making the key, the servers and the config costs a few milliseconds before the process is started.
    const startedMs = performance.now();
    await startWorld(scope);
    return performance.now() - startedMs;
  } finally {
    for (const close of closers) await close();
  }
}
