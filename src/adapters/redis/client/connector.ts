import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { AbstractConnector, type RedisOptions } from 'ioredis';

/**
 * Opens the connection of a client. The connectors of ioredis listen for one error, and Node may tell of two: of bytes
 * that break TLS, which leaves the connection open, and then of a reset. The second one would end the process. So here
 * every error is heard, and ends the connection.
 */
export class Connector extends AbstractConnector {
  private readonly options: Pick<RedisOptions, 'host' | 'port' | 'tls'>;

  /** @param options those of the client, as they are whenever it connects. */
  constructor(options: unknown) {
    // The type of the client knows of no other than `unknown`.
    const given = options as RedisOptions;
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
    this.stream = stream;
    return Promise.resolve(stream);
  }
}
