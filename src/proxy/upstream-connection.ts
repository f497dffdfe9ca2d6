import type { Socket } from 'node:net';
import { Client, type Dispatcher } from 'undici';
import type { Connector } from './connector.js';
import { InterimResponses } from './interim-responses.js';

/** Below the 5 s after which Node, gunicorn and kin close an idle connection, so that no request meets that close. */
const keepAliveMs = 4_000;

/** How far a receiver's own `Keep-Alive: timeout` is followed. */
const maxKeepAliveMs = 60_000;

/** Response heads of applications with many cookies fit; what is larger is a broken answer. */
const maxHeadBytes = 64 * 1024;

/** undici takes the option, but its types do not name it. */
interface DispatchOptions extends Dispatcher.DispatchOptions {
  readonly servername: string;
}

/** One connection to the upstream, opened at its first request and again where it was closed in between. */
export class UpstreamConnection {
  private readonly client: Client;
  private readonly interim = new InterimResponses();
  private readonly serverName: string;
  private hasFailed = false;

  constructor({ origin, serverName, connect }: Connector) {
    this.serverName = serverName;
    this.client = new Client(origin, {
      connect: (options, callback) => {
        connect(options, (...outcome) => {
          const [, socket] = outcome;
          if (socket) this.watch(socket);
          callback(...outcome);
        });
      },
      pipelining: 1,
      keepAliveTimeout: keepAliveMs,
      keepAliveMaxTimeout: maxKeepAliveMs,
      maxHeaderSize: maxHeadBytes,
      // The call keeps time itself: undici's timers are coarse, and stand still while a body is sent.
      headersTimeout: 0,
      bodyTimeout: 0,
    });
  }

  dispatch(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): void {
    const named: DispatchOptions = { ...options, servername: this.serverName };
    this.client.dispatch(named, handler);
  }

  /** A request is being written. */
  expectAnswer(): void {
    this.interim.expect();
  }

  /** Whether it broke. undici takes a reset for the clean end of an answer that ends with its connection. */
  isBroken(): boolean {
    return this.hasFailed;
  }

  /** Ends it at once. */
  async close(): Promise<void> {
    await this.client.destroy();
  }

  private watch(socket: Socket): void {
    this.hasFailed = false;
    this.interim.watch(socket);
    socket.once('error', () => {
      this.hasFailed = true;
    });
  }
}
