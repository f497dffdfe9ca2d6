import { fork, type ChildProcess, type SendHandle } from 'node:child_process';
import { messageOf } from '../../lib/errors.js';

/** What the helper is asked, beside a handle. */
export interface Asked {
  /** Which of the handles it is. */
  readonly index: number;
  readonly count: number;
}

/** What comes with each handle that it sends back. */
export interface Returned {
  readonly index: number;
}

/** Handles as they came, and why some are missing; `null` where none is. */
interface Duplicates {
  readonly handles: readonly { readonly index: number; readonly handle: unknown }[];
  readonly problem: string | null;
}

/** The first argument of the process, which nobody types. */
const helperArgument = 'handles';

/**
 * Makes further handles of the same sockets, each with a file descriptor of its own. Node.js has no dup(2); but a
 * handle that another process sends is a new one, also where it was ours before (SCM_RIGHTS, unix(7)). So a process is
 * started for that, which takes some 60 ms, is given nothing of the environment, and is gone when this resolves.
 *
 * @param count of further handles for each.
 * @param until the process is killed then, and what has come by then is all.
 * @param program the program's own file, which is started once more.
 */
export async function duplicateHandles(
  handles: readonly object[],
  count: number,
  until: AbortSignal,
  program: string,
): Promise<Duplicates> {
  let child: ChildProcess;
  try {
    child = fork(program, [helperArgument], { execArgv: [], env: {}, stdio: ['ignore', 'ignore', 'ignore', 'ipc'] });
  } catch (error) {
    // Node.js was started with `--permission`.
    return { handles: [], problem: messageOf(error) };
  }
  const came: { index: number; handle: unknown }[] = [];
  const wanted = handles.length * count;
  const kill = (): boolean => child.kill('SIGKILL');
  until.addEventListener('abort', kill);
  if (until.aborted) kill();
  let isOver = false;
  child.on('message', ({ index }: Returned, handle: unknown) => {
    // One that nobody closes would keep the port open.
    if (isOver) closeHandle(handle);
    else if (handle !== undefined) came.push({ index, handle });
    if (came.length === wanted) child.disconnect();
  });
  const ended = new Promise<string>((resolve) => {
    child.on('error', (error) => resolve(messageOf(error)));
    child.once('exit', (code, signal) => {
      const how = `the helper process ended with ${String(code ?? signal)}`;
      // Node.js tells the end of the channel only where no handle is on its way (24.21).
      child.once('disconnect', () => resolve(how)).once('close', () => resolve(how));
      if (!child.connected) resolve(how);
    });
  });
  for (const [index, handle] of handles.entries()) {
    const asked: Asked = { index, count };
    // Without a file descriptor left there is no channel either.
    if (child.connected) child.send(asked, handle as SendHandle, { keepOpen: true }, () => undefined);
  }
  const how = await ended;
  isOver = true;
  until.removeEventListener('abort', kill);
  return { handles: came, problem: came.length === wanted ? null : how };
}

function closeHandle(handle: unknown): void {
  (handle as { readonly close?: () => void } | undefined)?.close?.();
}
