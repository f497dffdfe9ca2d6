import { startWorld } from '../support/world.js';
import { scoped } from './scoped.js';

/** Milliseconds from the start of `sallyport serve` until `/readyz` says 200, with the keys on loopback. */
export async function startToReady(): Promise<number> {
  return scoped(async (scope) => {
    // Making the key, the servers and the config costs a few milliseconds before the process is started.
    const startedMs = performance.now();
    await startWorld(scope);
    return performance.now() - startedMs;
  });
}
