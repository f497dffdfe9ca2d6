/**
 * Runs a task one at a time. Calls that come while it runs share one run after it: that one starts later than every
 * one of them, so it sees what each wanted seen.
 */
export function coalesce(task: () => Promise<void>): () => Promise<void> {
  let last: Promise<void> = Promise.resolve();
  let waiting: Promise<void> | null = null;
  return () => {
    if (waiting !== null) return waiting;
    waiting = last
      .catch(() => undefined)
      .then(() => {
        waiting = null;
        return task();
      });
    last = waiting;
    return waiting;
  };
}
