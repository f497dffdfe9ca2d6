/** Stands in for `node:os` in a page, which has one thread. */
export function availableParallelism(): number {
  return 1;
}
