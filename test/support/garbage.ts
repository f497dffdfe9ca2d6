/** What the garbage collector would take, taken now. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { until } from './until.js';

setFlagsFromString('--expose-gc');

/** Collects all that nobody holds. */
export const collectGarbage = runInNewContext('gc') as () => void;

/** Waits until nothing holds an object any more. */
export async function untilForgotten(title: string, held: WeakRef<object>): Promise<void> {
  await until(title, () => {
    collectGarbage();
    return held.deref() === undefined;
  });
}
