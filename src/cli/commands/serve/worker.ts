import { runWorker } from '../../../app/workers/worker.js';

/** Serves callers for the process that started this one, and ends with it. */
export function serveAsWorker(): void {
  const send = process.send?.bind(process);
  if (send === undefined) return;
  let isAsked = false;
  // Without it nobody counts, reloads or ends what this process does.
  process.once('disconnect', () => {
    process.exit(isAsked ? 0 : 1);
  });
  runWorker(
    {
      send: (message, onSent) => {
        if (process.connected) send(message, undefined, undefined, () => onSent?.());
      },
      onMessage: (listener) => {
        process.on('message', listener);
      },
      end: () => {
        isAsked = true;
        process.disconnect();
      },
    },
    process.env,
  );
}
