/** Real `curl`: for tests whose shell runs it by its name, and for those that run it themselves. */
import { runToEnd, type Ended } from './program.js';

export const curl = 'curl';

/** Runs it with these arguments, without a progress meter and without what a user's own file says. */
export async function runCurl(...args: readonly string[]): Promise<Ended> {
  return runToEnd(curl, ['-q', '--silent', '--show-error', '--max-time', '60', ...args]);
}
