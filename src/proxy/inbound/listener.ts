import { constants } from 'node:crypto';
import { createServer, type Server, type ServerOptions } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { Socket } from 'node:net';
import type { SecureContextOptions, TLSSocket } from 'node:tls';
import type { ListenSettings } from '../../config/types.js';
import { maxConnectionsOf } from './client-connections.js';
import { ClientRequest } from './http1-request.js';
import { takeConnectionListener } from '../node-internals/server.js';

/** Certificates of the listener, as PEM texts. */
export interface TlsMaterial {
  readonly cert: string;
  readonly key: string;
  /** The CA of client certificates, or `null` where none vouches for them. */
  readonly clientCa: string | null;
  /**
   * A certificate that does not verify is refused under `require` and `optional`, which say nothing without a CA. Under
   * `request` every caller is asked for one, whoever signed it.
   */
  readonly clientAuth: 'require' | 'optional' | 'request';
}

export interface Listener {
  readonly server: Server;
  readonly isTls: boolean;
  /** Has Node begin TLS on a connection, on which something may have been read; `null` where there is none. */
  readonly serveTls: ((socket: Socket) => void) | null;
  /** Has Node's parser of HTTP/1 read a connection, where it does not take each by itself: beside HTTP/2. */
  readonly serveHttp1: ((socket: Socket) => void) | null;
  /**
   * Takes other certificates for connections to come; throws, and keeps the old ones, where they do not fit together.
   */
  readonly setTls: (material: TlsMaterial) => void;
}

/**
 * Connections that the system may take before we do: while this process is busy a burst waits here, and beyond it a
 * caller tries again after a second. Linux takes `net.core.somaxconn` where that is less.
 */
export const acceptQueue = 4_096;

/** How often header time-outs are looked for. */
const checkingIntervalMs = 1_000;

/**
 * Connections that gave way close only a moment later: open ones and these together may be this many times the limit.
 */
const maxClosingShare = 2;

/** Makes the server with every limit set here: the defaults of Node, and flags it was started with, decide nothing. */
export function createListener(
  settings: ListenSettings,
  tls: TlsMaterial | null,
  maxConnections = maxConnectionsOf(settings),
): Listener {
  const options: ServerOptions<typeof ClientRequest> = {
    IncomingMessage: ClientRequest,
    // Node counts less than a head has: one that is just too large still reaches us, and a larger one never does.
    maxHeaderSize: settings.maxHeaderBytes,
    insecureHTTPParser: false,
    // Node's own response to a missing Host would be neither a problem document nor logged.
    requireHostHeader: false,
    headersTimeout: settings.headerTimeoutMs,
    // A body may take its time as long as it moves.
    requestTimeout: 0,
    keepAliveTimeout: settings.keepAliveTimeoutMs,
    connectionsCheckingInterval: Math.min(checkingIntervalMs, Math.ceil(settings.headerTimeoutMs / 2)),
    noDelay: true,
    keepAlive: true,
  };
  const server = tls === null ? createServer(options) : createTlsServer({ ...options, ...tlsOptions(settings, tls) });
  server.timeout = 0;
  server.maxConnections = maxClosingShare * maxConnections;
  const listener: Listener = {
    server,
    isTls: tls !== null,
    serveTls: tls === null ? null : takeConnectionListener(server, 'connection'),
    serveHttp1: settings.http2
      ? takeConnectionListener(server, tls === null ? 'connection' : 'secureConnection')
      : null,
    setTls: (material) => {
      if ('setSecureContext' in server && typeof server.setSecureContext === 'function') {
        server.setSecureContext(contextOptions(material));
      }
    },
  };
  if (tls !== null && tls.clientAuth !== 'request') server.on('secureConnection', refuseUnverified);
  return listener;
}

function tlsOptions(settings: ListenSettings, tls: TlsMaterial): object {
  return {
    ...contextOptions(tls),
    requestCert: tls.clientCa !== null || tls.clientAuth === 'request',
    rejectUnauthorized: tls.clientCa !== null && tls.clientAuth === 'require',
    handshakeTimeout: settings.headerTimeoutMs,
    ALPNProtocols: settings.http2 ? ['h2', 'http/1.1'] : ['http/1.1'],
  };
}

function contextOptions({ cert, key, clientCa }: TlsMaterial): SecureContextOptions {
  // A handshake on an open connection (RFC 5246 §7.4.1.1) costs as much as a new one, and no caller of ours needs it.
  const secureOptions = constants.SSL_OP_NO_RENEGOTIATION;
  return { cert, key, minVersion: 'TLSv1.2', secureOptions, ...(clientCa === null ? {} : { ca: clientCa }) };
}

/** Where certificates are optional, Node allows whoever shows one that does not verify. */
function refuseUnverified(socket: TLSSocket): void {
  if (!socket.authorized && socket.getPeerX509Certificate() !== undefined) socket.destroy();
}
