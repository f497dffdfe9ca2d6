import type { ReceivedRequest, RequestConnection, ResponseWriterHost } from '../inbound/received-request.js';

/** How long who asks may leave an answer unread, which is shorter than a packet or two; milliseconds. */
const writeTimeoutMs = 10_000;

/** The connection of a request that was asked about: that of who asks, but for what only its own client can show. */
export function describedConnection(
  { connection }: ReceivedRequest,
  encrypted: boolean,
  finish: (nowMs: number) => void,
): RequestConnection {
  return {
    peer: { ...connection.peer, encrypted, certificate: null },
    markAuthenticated: () => connection.markAuthenticated(),
    hasAuthenticated: () => connection.hasAuthenticated(),
    finish: (_request, nowMs) => finish(nowMs),
  };
}

/**
 * The host of the writer that answers the asking proxy. Its write timeout is fixed, since a malformed description is
 * answered without a config.
 */
export function answeringHost(host: ResponseWriterHost): ResponseWriterHost {
  return {
    isShuttingDown: () => host.isShuttingDown(),
    challenges: () => host.challenges(),
    writeTimeoutMs: () => writeTimeoutMs,
    onWriteTimeout: () => host.onWriteTimeout(),
    onWritable: () => host.onWritable(),
  };
}
