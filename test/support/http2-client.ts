/** Requests of HTTP/2 by Node's own client. */
import { connect, type ClientHttp2Session, type IncomingHttpHeaders, type OutgoingHttpHeaders } from 'node:http2';
import { once } from 'node:events';
import type { SecureClientSessionOptions } from 'node:http2';
import type { Scope } from './scope.js';

export interface Http2Response {
  /** 0 where the stream ended without a head. */
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly trailers: IncomingHttpHeaders | null;
  readonly body: Buffer;
  /** The code that the stream was reset with; 0 where it ended well. */
  readonly code: number;
}

/** Opens a connection that ends with the test. */
export async function connectHttp2(
  scope: Scope,
  origin: string,
  options: SecureClientSessionOptions = {},
): Promise<ClientHttp2Session> {
  const session = connect(origin, options);
  scope.teardown(() => session.destroy());
  session.on('error', () => undefined);
  await once(session, 'connect');
  return session;
}

/** Asks once and waits for the end, however it ends. */
export function ask(
  session: ClientHttp2Session,
  headers: OutgoingHttpHeaders,
  body: Buffer | string | null = null,
): Promise<Http2Response> {
  const stream = session.request(headers, { endStream: body === null });
  let response: IncomingHttpHeaders = {};
  let trailers: IncomingHttpHeaders | null = null;
  const pieces: Buffer[] = [];
  stream.on('response', (fields) => {
    response = fields;
  });
  stream.on('trailers', (fields: IncomingHttpHeaders) => {
    trailers = fields;
  });
  stream.on('data', (piece: Buffer) => pieces.push(piece));
  stream.on('error', () => undefined);
  if (body !== null) stream.end(body);
  return new Promise((resolve) => {
    stream.on('close', () => {
      resolve({
        status: Number(response[':status'] ?? 0),
        headers: response,
        trailers,
        body: Buffer.concat(pieces),
        code: stream.rstCode,
      });
    });
  });
}
