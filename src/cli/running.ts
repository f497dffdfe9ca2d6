import type { Io } from './io.js';

/** Settles at the first signal: Ctrl-C, SIGTERM, or the end of the terminal. */
export function ended(io: Io): Promise<void> {
  return new Promise((resolve) => {
    const stop = io.onSignal(() => {
      stop();
      resolve();
    });
  });
}

const listenFailures: Readonly<Record<string, string>> = {
  EADDRINUSE: 'is in use',
  EADDRNOTAVAIL: 'is no address of this machine',
  EACCES: 'may not be listened on by this user',
  ENOTFOUND: 'has no address',
  EAI_AGAIN: 'has no address for now',
};

/** Says why a server could not listen; throws what is no matter of host and port. */
export function listenFailure(error: unknown, host: string, port: number): string {
  const reason = error instanceof Error && 'code' in error ? listenFailures[String(error.code)] : undefined;
  if (reason === undefined) throw error;
  return `${host}:${port} ${reason}`;
}
