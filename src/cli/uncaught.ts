import { describeBug } from '../lib/errors.js';

/** Has an error that nobody takes, which is a bug, end the process: nothing else would tell what it was and where. */
export function endAtUncaught(): void {
  process.on('uncaughtException', (error: unknown) => {
    const { error: kind, at } = describeBug(error);
    const message = error instanceof Error && error.message !== '' ? error.message : kind;
    process.stderr.write(`error: ${message}${at === '' ? '' : ` (${kind} ${at})`}\n`);
    process.exit(1);
  });
}
