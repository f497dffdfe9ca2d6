/** Real `nghttp`, the client of nghttp2. */
import { runToEnd, type Ended } from './program.js';

/** Runs it with these arguments. HTTP/2 is spoken from the first byte on, or as TLS agrees on it. */
export async function runNghttp(...args: readonly string[]): Promise<Ended> {
  return runToEnd('nghttp', ['--no-push', '-t', '60s', ...args]);
}
