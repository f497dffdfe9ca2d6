/** One worker as the primary sees it: a process, the channel to it, and the lines that it writes. */
import { fork, type ChildProcess } from 'node:child_process';
import { onHandleLost } from '../../proxy/node-internals/child-process.js';
import { connectionHandle } from '../../proxy/node-internals/server.js';
import type { AcceptedConnection, ConnectionTaker } from './handover.js';
import type { createSharedCounts } from './limit-counts.js';
import type { PlaceMember, SharedPlaces } from './shared-places.js';
import type { CallName, Numbers, ToPrimary, ToWorker, WorkerCalls } from './messages.js';

interface WorkerEnd {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  /** Why there never was a process; `null` where there was one. */
  readonly problem: Error | null;
}

export interface WorkerProcess extends ConnectionTaker {
  /** From 1; that of the worker whose place it took. */
  readonly number: number;
  readonly pid: number;
  /** Milliseconds since it began to serve; 0 before that. */
  readonly servingMs: () => number;
  /** Rejects where the worker fails at it, ends, or does not answer in time. */
  readonly call: <Name extends CallName>(
    name: Name,
    given: WorkerCalls[Name]['given'],
    withinMs?: number,
  ) => Promise<WorkerCalls[Name]['answer']>;
  /** From now on it serves, and has its part of what all share; to be called before it is given anything. */
  readonly serves: () => void;
  /** What it counted when it was asked last; `null` before that. */
  readonly lastNumbers: () => Numbers | null;
  /** Milliseconds since its last answer, where one is owed. */
  readonly silentMs: () => number;
  /** Whether anything came from it: before its program is loaded it can answer nothing. */
  readonly hasSpoken: () => boolean;
  /** Whether its channel is closed: it takes nothing any more. */
  readonly isGone: () => boolean;
  readonly kill: () => void;
  /** After its last line. */
  readonly ended: Promise<WorkerEnd>;
}

interface WorkerProcessDeps {
  /** The program's own file, which is started once more. */
  readonly program: string;
  readonly nowMs: () => number;
  readonly counts: ReturnType<ReturnType<typeof createSharedCounts>['ofWorker']>;
  readonly places: SharedPlaces;
  /** Takes whole lines of its log. */
  readonly onLines: (lines: string) => void;
  /** It took a connection, and can be given another. */
  readonly onFree: () => void;
  /** It is gone. */
  readonly onGone: () => void;
  /** It did not take these, which others may. */
  readonly onLeft: (left: readonly AcceptedConnection[]) => void;
}

interface PendingCall {
  readonly resolve: (answer: unknown) => void;
  readonly reject: (error: Error) => void;
}

/**
 * Connections that wait for this worker and no other, so that bursts are shared out evenly. Node.js hands a process one
 * at a time.
 */
const mostAhead = 16;

/** Milliseconds in which a worker takes a connection. One that stood still for longer may have it all the same. */
const takenWithinMs = 2_000;

/** The first argument of a worker's process, which nobody types. */
const workerArgument = 'worker';

/** Starts the process of a worker. It does nothing before its `start`. */
export function startWorkerProcess(number: number, deps: WorkerProcessDeps): WorkerProcess {
  const child = fork(deps.program, [workerArgument], {
    // Lines come through us: what several processes write to one pipe at a time may be torn.
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
    serialization: 'advanced',
  });
  const calls = new Map<number, PendingCall>();
  const queue: AcceptedConnection[] = [];
  let handing: { readonly id: number; readonly accepted: AcceptedConnection; readonly timer: NodeJS.Timeout } | null =
    null;
  /** Whether it did not take the last one: it gets them one by one until it does. */
  let isShort = false;
  let last = 0;
  let numbers: Numbers | null = null;
  let heardAtMs = deps.nowMs();
  let hasSpoken = false;
  let isGone = false;
  let servingSinceMs: number | null = null;
  let member: PlaceMember | null = null;

  const send = (message: ToWorker, handle?: object): void => {
    if (isGone || !child.connected) return;
    // The types know the documented kinds of handles; what is under each of them is sent as it is, and stays ours too.
    child.send(message, handle as undefined, { keepOpen: true }, () => undefined);
  };

  function handNext(): void {
    while (handing === null && !isGone) {
      const accepted = queue.shift();
      if (accepted === undefined) return;
      const handle = connectionHandle(accepted.socket);
      if (handle === null) continue;
      last += 1;
      handing = { id: last, accepted, timer: setTimeout(giveUp, takenWithinMs) };
      send({ kind: 'connection', id: last, listener: accepted.listener }, handle);
    }
  }

  /** Waits for it no longer; `null` where none was on its way. */
  function endHanding(): AcceptedConnection | null {
    if (handing === null) return null;
    const { accepted, timer } = handing;
    clearTimeout(timer);
    handing = null;
    return accepted;
  }

  /** It has no file descriptor left, or stands still. */
  function giveUp(): void {
    endHanding()?.socket.destroy();
    isShort = true;
    deps.onLeft(queue.splice(0));
    deps.onFree();
  }

  child.on('message', (message: ToPrimary) => {
    heardAtMs = deps.nowMs();
    hasSpoken = true;
    switch (message.kind) {
      case 'answer':
        calls.get(message.id)?.resolve(message.answer);
        calls.delete(message.id);
        return;
      case 'failed':
        calls.get(message.id)?.reject(new Error(message.reason));
        calls.delete(message.id);
        return;
      case 'took':
        isShort = false;
        // It is late, and no more waited for.
        if (handing?.id !== message.id) return;
        // Ours is a second reference to it.
        endHanding()?.socket.destroy();
        handNext();
        deps.onFree();
        return;
      case 'count':
        send(deps.counts.count(message));
        return;
      case 'places':
        member?.take(message);
    }
  });
  onHandleLost(child, giveUp);
  let problem: Error | null = null;
  child.on('error', (error) => {
    // What cannot be sent to a process that ends is told by its end.
    if (child.pid === undefined) problem = error;
  });
  relayLines(child, deps.onLines);

  function leave(): void {
    if (isGone) return;
    isGone = true;
    deps.counts.forget();
    member?.leave();
    for (const { reject } of calls.values()) reject(new Error(`worker ${String(number)} ended`));
    calls.clear();
    const onItsWay = endHanding();
    deps.onLeft([...(onItsWay === null ? [] : [onItsWay]), ...queue.splice(0)]);
    deps.onGone();
  }
  child.once('disconnect', leave);
  const ended = new Promise<WorkerEnd>((resolve) => {
    child.once('close', (code, signal) => {
      leave();
      resolve({ code, signal, problem });
    });
  });

  return {
    number,
    pid: child.pid ?? 0,
    servingMs: () => (servingSinceMs === null ? 0 : deps.nowMs() - servingSinceMs),
    call: async <Name extends CallName>(
      name: Name,
      given: WorkerCalls[Name]['given'],
      withinMs?: number,
    ): Promise<WorkerCalls[Name]['answer']> => {
      if (isGone) throw new Error(`worker ${String(number)} ended`);
      if (calls.size === 0) heardAtMs = deps.nowMs();
      last += 1;
      const id = last;
      const answered = new Promise<unknown>((resolve, reject) => {
        calls.set(id, { resolve, reject });
      });
      send({ kind: 'call', id, name, given });
      const answer = (await within(answered, withinMs)) as WorkerCalls[Name]['answer'];
      if (name === 'numbers' || name === 'close') numbers = answer as Numbers;
      return answer;
    },
    serves: () => {
      servingSinceMs = deps.nowMs();
      if (!isGone) member = deps.places.join(number, send);
    },
    isFree: () => !isGone && (isShort ? handing === null : queue.length < mostAhead),
    give: (accepted) => {
      queue.push(accepted);
      handNext();
    },
    lastNumbers: () => numbers,
    silentMs: () => (calls.size === 0 ? 0 : deps.nowMs() - heardAtMs),
    hasSpoken: () => hasSpoken,
    isGone: () => isGone,
    kill: () => {
      child.kill('SIGKILL');
    },
    ended,
  };
}

async function within(answered: Promise<unknown>, ms: number | undefined): Promise<unknown> {
  if (ms === undefined) return answered;
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      reject(new Error('it does not answer'));
    }, ms);
  });
  // Whoever waits is told once.
  answered.catch(() => undefined);
  try {
    return await Promise.race([answered, late]);
  } finally {
    clearTimeout(timer);
  }
}

const lineEnd = 0x0a;

/** Passes whole lines on. One that its writer did not end, as it was killed, is dropped. */
function relayLines({ stdout }: ChildProcess, onLines: (lines: string) => void): void {
  let rest: Buffer[] = [];
  stdout?.on('data', (chunk: Buffer) => {
    const end = chunk.lastIndexOf(lineEnd) + 1;
    if (end > 0) {
      onLines(Buffer.concat([...rest, chunk.subarray(0, end)]).toString());
      rest = [];
    }
    if (end < chunk.length) rest.push(chunk.subarray(end));
  });
}
