import { setFlagsFromString } from 'node:v8';
import { putServingFirstWhenWarm } from './v8-threads.js';

/**
 * Options of V8, as `node --v8-options` lists them, for a process that does one thing on one thread. A request goes
 * through many small functions, which V8 by default joins into one only up to 920 bytes of bytecode; and threads that
 * help to collect what little a request leaves cost more than they spare. ADR 26 has what that is worth. And V8 by
 * default lets old objects grow by as little as a tenth before it looks through them again, however busy the process
 * is; ADR 28.
 */
export const servingOptions: readonly string[] = [
  '--max-inlined-bytecode-size=1000',
  '--max-inlined-bytecode-size-cumulative=3000',
  '--no-parallel-scavenge',
  '--heap-growing-percent=50',
];

/**
 * Sets them for what is compiled and collected from now on, and puts V8's threads behind the one that serves
 * once it is warm; both stay until the process ends.
 */
export function tuneForServing(): void {
  for (const option of servingOptions) setFlagsFromString(option);
  putServingFirstWhenWarm();
}
