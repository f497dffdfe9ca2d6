import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { AbstractConnector, type RedisOptions } from 'ioredis';
import { guardReplies } from './reply-guard.js';

/** Those of the client that count here. */
interface ConnectorOptions extends Pick<
  RedisOptions,
  'host' | 'port' | 'tls' | 'connectTimeout' | 'disconnectTimeout'
> {
  /** Bytes in which each reply comes whole, where that is fewer than for any other connection. */
  readonly maxReplyBytes?: number;
}

/**
 * Opens the connection of a client. The connectors of ioredis listen for one error, and Node may tell of two: of bytes
 * that break TLS, which leaves the connection open, and then of a reset. The second one would end the process. So here
 * every error is heard, and ends the connection.
 */
export class Connector extends AbstractConnector {
  private readonly options: ConnectorOptions;

  /** @param options those of the client, as they are whenever it connects. */
  constructor(options: unknown) {
    // The type of the client knows of no other than `unknown`.
    const given = options as ConnectorOptions;
    super(given.disconnectTimeout ?? 0);
    this.options = given;
  }

  override connect(): Promise<Socket> {
    this.connecting = true;
    const { host, port, tls } = this.options;
    const address = { host, port: port ?? 0 };
    const stream = tls === undefined ? connect(address) : connectTls({ ...address, ...tls });
    stream.on('error', (error) => {
      this.firstError ??= error;
      stream.destroy();
    });
    guardReplies(stream, this.options.maxReplyBytes);
    if (tls !== undefined) this.expectHandshake(stream);
    this.stream = stream;
    return Promise.resolve(stream);
  }

  /** A server without TLS waits for more of what it takes for a command; ioredis would say `connect ETIMEDOUT`. */
  private expectHandshake(stream: Socket): void {
    const { connectTimeout } = this.options;
    if (connectTimeout === undefined) return;
    const timer = setTimeout(() => {
      if (!stream.connecting) stream.destroy(new Error('no TLS handshake: it may be a server without TLS'));
    }, 0.9 * connectTimeout);
    stream.once('secureConnect', () => clearTimeout(timer)).once('close', () => clearTimeout(timer));
  }
}
