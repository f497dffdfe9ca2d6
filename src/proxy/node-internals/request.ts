import { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';

/** What Node's types do not tell of. */
interface Internals {
  readonly _dump: () => void;
  readonly _readableState: { endEmitted: boolean };
}

function internals(req: IncomingMessage): Internals {
  return req as unknown as Internals;
}

const dump = internals(IncomingMessage.prototype)._dump;

/** A request as Node's server makes it, but one without a body costs nothing after its head. */
export class LeanRequest extends IncomingMessage {
  private asksForUpgrade: unknown = null;
  /** `null` before anybody asked. */
  private bodyFollows: boolean | null = null;

  /**
   * Node sets it where Connection and Upgrade ask for another protocol, and asks it whether to give the connection up.
   * An offer of HTTP/2 may be ignored: such a request is one like any other, with its body.
   */
  get upgrade(): boolean {
    return this.asksForUpgrade === true && (this.method === 'CONNECT' || /websocket/i.test(this.headers.upgrade ?? ''));
  }

  set upgrade(asked: unknown) {
    this.asksForUpgrade = asked;
  }

  comesWithBody(): boolean {
    this.bodyFollows ??=
      this.headers['transfer-encoding'] !== undefined || Number(this.headers['content-length'] ?? 0) !== 0;
    return this.bodyFollows;
  }

  /**
   * Node ends the stream of a body that does not come, by `push(null)`, and has it flow to its end and close, turn by
   * turn of its queue, for nobody. So does its own option `optimizeEmptyRequests`, which came with Node 24.
   */
  override push(chunk: unknown, encoding?: BufferEncoding): boolean {
    return chunk === null && this.bodyFollows === false ? false : super.push(chunk, encoding);
  }

  /** Called by Node after the response, to have what nobody read of a body flow away. */
  _dump(): void {
    // Its parser lets go of a request that has ended.
    if (this.bodyFollows === false) internals(this)._readableState.endEmitted = true;
    else dump.call(this);
  }
}

/**
 * Counts a body as it comes, whoever reads it: Node hands its pieces and its end over by `req.push`. Of one that is
 * larger nothing more is handed over, and no end.
 *
 * @param onTooLarge called once, where it is; that may be before this returns.
 */
export function limitBody(req: Readable, maxBytes: number, onTooLarge: () => void): void {
  const push = req.push.bind(req);
  // What came while it was decided on.
  let bytes = req.readableLength;
  let isTooLarge = false;
  const isWithin = (): boolean => {
    if (bytes > maxBytes && !isTooLarge) {
      isTooLarge = true;
      onTooLarge();
    }
    return !isTooLarge;
  };
  req.push = (chunk: string | Buffer | null, encoding?: BufferEncoding) => {
    if (chunk !== null) bytes += Buffer.byteLength(chunk, encoding);
    return isWithin() ? push(chunk, encoding) : true;
  };
  isWithin();
}
