import type { ProxyServer } from '../../proxy/server.js';
import type { Log } from '../../ports/system.js';
import { duplicateHandles } from './socket-duplicates.js';

/**
 * Connections that a listener may accept in one turn of the event loop. A turn in which hundreds of connections bring
 * something takes tens of milliseconds on a busy CPU; with one in each turn, which is what libuv does, twenty new
 * connections in a second would be all, and everybody else waits in the queue of the system.
 */
export const acceptsPerTurn = 8;

/** Milliseconds for a process that starts, and is asked once, also where the CPU has run out. */
const helperMs = 10_000;

interface AcceptMoreDeps {
  /** The program's own file, which is started once more to make the handles. */
  readonly program: string;
  readonly log: Log;
  /** The process is killed then, if it is still there. */
  readonly shutdown: AbortSignal;
  readonly duplicate?: typeof duplicateHandles;
  readonly limitMs?: number;
}

/**
 * Has listeners accept several connections in each turn of the event loop; each goes on with one where that cannot be
 * had. Resolves when the process that makes the handles is gone.
 */
export async function acceptMore(
  servers: readonly Pick<ProxyServer, 'listeningHandle' | 'acceptBeside'>[],
  { program, log, shutdown, duplicate = duplicateHandles, limitMs = helperMs }: AcceptMoreDeps,
): Promise<void> {
  const listening = servers.flatMap((server) => {
    const handle = server.listeningHandle();
    return handle === null ? [] : [{ server, handle }];
  });
  if (listening.length === 0) return;
  const until = new AbortController();
  const end = (): void => until.abort();
  // A timer of its own: nothing holds that of `AbortSignal.timeout` within `AbortSignal.any` (Node.js 20).
  const late = setTimeout(end, limitMs).unref();
  shutdown.addEventListener('abort', end);
  if (shutdown.aborted) end();
  const { handles, problem } = await duplicate(
    listening.map(({ handle }) => handle),
    acceptsPerTurn - 1,
    until.signal,
    program,
  );
  clearTimeout(late);
  shutdown.removeEventListener('abort', end);
  for (const { index, handle } of handles) listening[index]?.server.acceptBeside(handle);
  if (problem !== null && !shutdown.aborted) {
    log.warn('new connections may wait where the CPU is busy: their listener has fewer handles', { problem });
  }
}
