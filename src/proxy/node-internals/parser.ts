import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';

/** What a server of Node keeps on its connections and its types do not tell of. */
interface ServerSocket {
  /** Gone when the connection is closed, or when another protocol is spoken on it. */
  readonly parser?: { onIncoming: ((req: unknown, keepAlive: boolean) => number) | null } | null;
  /**
   * Whether Node has stopped reading because responses are not taken. Its listener for bytes may not be called then.
   */
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

/**
 * Has the parser stop behind the first head that has a body, once its request was emitted: one read may bring 10,000
 * pieces of a body, and each takes the time of a call. Replaces `socket.parser.onIncoming`.
 */
export function stopParserAtBody(socket: Socket): void {
  const { parser } = internals(socket);
  const onIncoming = parser?.onIncoming;
  if (parser === undefined || parser === null || onIncoming === undefined || onIncoming === null) return;
  parser.onIncoming = function (req, keepAlive) {
    const next = onIncoming.call(this, req, keepAlive);
    return hasBody(req as IncomingMessage) ? anotherProtocol : next;
  };
}

/** Whether a head says that something follows it. */
export function hasBody({ headers }: Pick<IncomingMessage, 'headers'>): boolean {
  return headers['content-length'] !== undefined || headers['transfer-encoding'] !== undefined;
}

/** Returns whether Node's parser may be given bytes now. Reads `socket._paused`. */
export function mayParse(socket: Socket): boolean {
  return internals(socket)._paused !== true;
}

function internals(socket: Socket): ServerSocket {
  return socket as object;
}
