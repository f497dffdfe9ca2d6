import { isIP, type Socket } from 'node:net';
import { performance } from 'node:perf_hooks';
import { checkServerIdentity, TLSSocket, type ConnectionOptions } from 'node:tls';
import type { UpstreamSettings } from '../../config/types.js';
import { ConnectTimeout } from './errors.js';
import { openSocket, openTlsSocket, type OpenSocket, type OnRead } from './socket.js';
import { upstreamAddress } from './address.js';

/**
 * Opens a connection, and calls once: when it may be written to, or with why there is none. Where the socket is
 * destroyed before, it calls no more.
 */
export type Connect = (callback: (outcome: OpenSocket | Error) => void, onRead?: OnRead) => Socket;

/** What this side shows in TLS, as PEM texts. */
export interface ClientCertificate {
  /** With those that lead up to its authority. */
  readonly cert: string;
  readonly key: string;
}

/** Where connections go. */
export interface Connector {
  /** What requests are addressed to, in the form of a URL's origin. */
  readonly origin: string;
  readonly connect: Connect;
}

/** How long a session may stand in for the certificate: one that expired or was replaced has to be seen. */
const maxSessionMs = 10 * 60_000;

/** Opens connections to the upstream. Over TLS its certificate is always verified, against `ca` where one is given. */
export function createConnector(
  settings: UpstreamSettings,
  ca: string | null,
  certificate: ClientCertificate | null = null,
): Connector {
  const { origin, socketPath } = upstreamAddress(settings.url);
  const url = new URL(origin);
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const isTls = url.protocol === 'https:';
  const place = socketPath === null ? { host, port: Number(url.port || (isTls ? '443' : '80')) } : { path: socketPath };
  const protocol = settings.http2 ? 'h2' : 'http/1.1';
  const tls: ConnectionOptions = { ...tlsOptions(settings.serverName ?? host, ca, protocol), ...certificate };
  /** Lets the connections to come skip half of the handshake. */
  let session: Buffer | null = null;
  /** When the certificate was last seen. */
  let verifiedMs = 0;
  const openTls = (onRead: OnRead | undefined): OpenSocket => {
    const offered = session !== null && performance.now() - verifiedMs < maxSessionMs ? { session } : {};
    const opened = openTlsSocket(place, { ...tls, ...offered }, onRead);
    const { socket } = opened;
    // Node tells of a session only where the certificate was accepted.
    socket
      .on('session', (next: Buffer) => {
        session = next;
      })
      .once('secureConnect', () => {
        if (!socket.isSessionReused()) verifiedMs = performance.now();
      });
    return opened;
  };
  return {
    origin,
    connect: (callback, onRead) => {
      const opened = isTls ? openTls(onRead) : openSocket(place, onRead);
      const { socket } = opened;
      const timer = setTimeout(() => {
        socket.destroy(new ConnectTimeout());
      }, settings.connectTimeoutMs);
      const onClose = (): void => {
        clearTimeout(timer);
      };
      let isTold = false;
      socket
        // TLS may say two errors, its own and that of TCP below, and one that nobody listens for ends the process.
        .on('error', (error) => {
          if (isTold) return;
          isTold = true;
          session = null;
          callback(error);
        })
        .once('close', onClose)
        .once(isTls ? 'secureConnect' : 'connect', () => {
          clearTimeout(timer);
          socket.off('close', onClose);
          if (isTold) return;
          isTold = true;
          // A server that leaves the choice open means HTTP/1.1 (RFC 9113 §3.3).
          if (settings.http2 && socket instanceof TLSSocket && socket.alpnProtocol !== protocol) {
            socket.destroy();
            callback(new NoHttp2Agreed());
            return;
          }
          callback(opened);
        });
      return socket;
    },
  };
}

class NoHttp2Agreed extends Error {
  readonly code = 'ERR_TLS_NO_HTTP2';
}

function tlsOptions(serverName: string, ca: string | null, protocol: string): ConnectionOptions {
  return {
    rejectUnauthorized: true,
    checkServerIdentity: (_host, certificate) => checkServerIdentity(serverName, certificate),
    // TLS names no addresses (RFC 6066 §3).
    servername: isIP(serverName) === 0 ? serverName : '',
    ALPNProtocols: [protocol],
    ...(ca === null ? {} : { ca }),
  };
}
