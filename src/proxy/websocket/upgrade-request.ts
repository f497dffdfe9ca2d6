import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { ByteBuffer } from '../inbound/byte-buffer.js';
import type { ClientConnection } from '../inbound/client-connection.js';

/** A connection that speaks another protocol from now on. */
export interface UpgradedSocket {
  readonly socket: Socket;
  /** What came before the switch. */
  readonly early: Buffer;
}

/** A response that may be a switch. */
export interface UpgradableResponse {
  /**
   * Answers 101 with these headers, names and values in turn, and gives the connection away; `null` where it cannot.
   */
  readonly switchProtocols: (headers: string[]) => UpgradedSocket | null;
  /** The connection that was given away is closed. */
  readonly endUpgraded: () => void;
}

/** What a caller sends before it is answered is kept up to here; the rest waits in its connection. */
const maxEarlyBytes = 64 * 1024;

/**
 * How long more than that waits for the response: meanwhile nobody sees that the caller has hung up, and it may not
 * send any of it before the response (RFC 6455 §4.1).
 */
const earlyMs = 5_000;

/**
 * A request to switch protocols. Node takes its parser away from the connection then: what follows the head is no
 * request, and nobody reads it as one. It is kept until the upstream has switched, and forgotten where it does not.
 */
export class UpgradeRequest {
  /** The response, as long as it is one of HTTP. */
  readonly res: ServerResponse;
  private readonly socket: Socket;
  private readonly connection: ClientConnection;
  private readonly early = new ByteBuffer();
  private earlyTimer: NodeJS.Timeout | null = null;

  /** `first` came in one packet with the head. */
  constructor(res: ServerResponse, socket: Socket, connection: ClientConnection, first: Buffer) {
    this.socket = socket;
    this.connection = connection;
    this.early.append(first);
    this.res = res;
    this.res.shouldKeepAlive = false;
    // Node has taken its own listeners off, also where requests before this one are still being answered.
    socket.on('end', this.onEnd).on('drain', this.onDrain);
  }

  /** Its turn on the connection has come, and is the last. */
  begin(): void {
    const { res, socket } = this;
    if (socket.destroyed) return;
    res.assignSocket(socket);
    res.on('finish', this.onFinish);
    socket.on('data', this.onData);
    this.connection.switchProtocols();
    socket.resume();
  }

  /** Hands the connection over. The head of the 101 has been written. */
  handOver(): UpgradedSocket {
    const { res, socket } = this;
    socket.pause();
    this.release();
    res.detachSocket(socket);
    return { socket, early: this.early.take() };
  }

  private readonly onData = (chunk: Buffer): void => {
    this.early.append(chunk);
    if (this.early.length < maxEarlyBytes) return;
    this.socket.pause();
    this.earlyTimer ??= setTimeout(() => {
      if (!this.socket.destroyed) this.connection.endOverflowing();
    }, earlyMs).unref();
  };

  /** A caller that is not there any more. */
  private readonly onEnd = (): void => {
    this.socket.destroy();
  };

  private readonly onDrain = (): void => {
    this.connection.onDrain();
  };

  /** Does what Node does at the end of a response. */
  private readonly onFinish = (): void => {
    const { res, socket } = this;
    this.release();
    this.early.take();
    res.detachSocket(socket);
    socket.destroySoon();
    process.nextTick(() => res.emit('close'));
  };

  private release(): void {
    if (this.earlyTimer !== null) clearTimeout(this.earlyTimer);
    this.socket.off('data', this.onData).off('end', this.onEnd).off('drain', this.onDrain);
  }
}
