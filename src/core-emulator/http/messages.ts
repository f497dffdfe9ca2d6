import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** What a server of the emulator answers. */
export interface Message {
  readonly status: number;
  readonly type: string;
  readonly body: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A running server. */
export interface RunningServer {
  /** Origin, with the port that it really got. */
  readonly url: string;
  readonly close: () => Promise<void>;
}

/** Larger than any call of the Core's API that is meant well. */
const maxBodyBytes = 1024 * 1024;

/** An answer in JSON. */
export function json(status: number, value: unknown, headers: Readonly<Record<string, string>> = {}): Message {
  return { status, type: 'application/json; charset=UTF-8', body: JSON.stringify(value), headers };
}

/** An answer in plain text, which the Core declares as HTML. */
export function text(status: number, body: string): Message {
  return { status, type: 'text/html; charset=UTF-8', body };
}

/** Reads the body; `null` when it is larger than 1 MiB. Throws where the caller breaks off. */
export async function readBody(request: IncomingMessage): Promise<Buffer | null> {
  const chunks: Buffer[] = [];
  let size = 0;
  // Leaving the loop early may not destroy the connection: the refusal has to reach the caller.
  for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > maxBodyBytes) return null;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks, size);
}

/** Sends an answer; where the body was not read to its end, the connection ends with it. */
export function send(request: IncomingMessage, response: ServerResponse, message: Message): void {
  response.writeHead(message.status, {
    ...message.headers,
    'content-type': message.type,
    'content-length': Buffer.byteLength(message.body),
    ...(request.complete ? {} : { connection: 'close' }),
  });
  response.end(message.body);
}

/** Starts to listen. Rejects with the system's error, `EADDRINUSE` for one. */
export async function listen(server: Server, host: string, port: number): Promise<RunningServer> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => {
      server.off('error', reject);
      resolve();
    });
  });
  return {
    url: originOf(server.address()),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function originOf(address: AddressInfo | string | null): string {
  if (address === null || typeof address === 'string') throw new Error('The server has no port');
  return `http://${address.family === 'IPv6' ? `[${address.address}]` : address.address}:${address.port}`;
}
