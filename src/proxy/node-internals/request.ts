import { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';

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

/**
 * Reads a body before anybody else does, and gives it back as if it had not been read: what parses it reads it from the
 * request, as ever. Node hands its pieces and its end over by `req.push`.
 */
export class HeldBody extends Readable {
  private readonly req: IncomingMessage;
  /** Whether all of it had come before, and waits in the request. */
  private readonly isThere: boolean;

  constructor(req: IncomingMessage) {
    super();
    this.req = req;
    this.isThere = req.complete;
    const early: unknown = req.readableLength > 0 ? req.read() : null;
    if (early !== null) this.push(early);
    if (this.isThere) {
      // In the same turn, before its end can be told.
      if (early !== null) req.unshift(early);
      this.push(null);
      return;
    }
    req.push = (chunk: unknown, encoding?: BufferEncoding) => {
      this.push(chunk, encoding);
      return true;
    };
    req.once('close', () => this.destroy());
  }

  /** Whether it will not go on, or need not. */
  isComplete(): boolean {
    return this.req.complete || this.readableEnded;
  }

  giveBack(whole: Buffer): void {
    if (this.isThere) return;
    Reflect.deleteProperty(this.req, 'push');
    this.req.push(whole);
    this.req.push(null);
  }

  override _read(): void {
    // Node reads on from the connection.
    if (!this.isThere) this.req._read(0);
  }
}
