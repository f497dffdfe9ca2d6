import type { Socket } from 'node:net';

/** What a server of Node keeps on its connections and its types do not tell of. */
interface ServerSocket {
  /** Gone when the connection is closed, or when another protocol is spoken on it. */
  readonly parser?: { onIncoming: ((req: unknown, keepAlive: boolean) => number) | null } | null;
  /** Whether Node has stopped reading because answers are not taken. Its listener for bytes may not be called then. */
  readonly _paused?: boolean;
}

/** What llhttp takes for "another protocol follows": it parses no further in this read. */
const anotherProtocol = 2;

/**
 * Has the parser stop at the next head. By itself it makes a request and a response of each of the thousands of
 * requests that one read may bring, also when the connection was destroyed at the first of them. Replaces
 * `socket.parser.onIncoming`.
 */
export function stopParser(socket: Socket): void {
  const { parser } = internals(socket);
  if (parser !== undefined && parser !== null) parser.onIncoming = () => anotherProtocol;
}

/** Returns whether Node's parser may be given bytes now. Reads `socket._paused`. */
export function mayParse(socket: Socket): boolean {
  return internals(socket)._paused !== true;
}

function internals(socket: Socket): ServerSocket {
  return socket as object;
}
