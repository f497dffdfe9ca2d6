/** The thread that attacks run in, so that they take no time of whoever measures. */
import { workerData } from 'node:worker_threads';
import type { Target } from './attacks.js';
import { attacks } from './strangers.js';

const { target, ms, names } = workerData as {
  readonly target: Target;
  readonly ms: number;
  readonly names: readonly string[];
};
const endsAt = performance.now() + ms;
await Promise.all(
  attacks
    .filter(({ name }) => names.includes(name))
    .map(async ({ run }) => run(target, () => performance.now() >= endsAt)),
);
