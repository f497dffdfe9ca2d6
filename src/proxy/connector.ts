import { isIP } from 'node:net';
import { checkServerIdentity } from 'node:tls';
import { buildConnector } from 'undici';
import type { UpstreamSettings } from '../config/compiled.js';

/** Where connections go, in the terms of undici. */
export interface Connector {
  /** What requests are addressed to, in the form of a URL's origin. */
  readonly origin: string;
  /** The name that the upstream's certificate has to bear; the origin's host where it is an address. */
  readonly serverName: string;
  readonly connect: buildConnector.connector;
}

/** Opens connections to the upstream. Over TLS its certificate is always verified, against `ca` where one is given. */
export function createConnector(settings: UpstreamSettings, ca: string | null): Connector {
  const { origin, socketPath } = placeOf(settings.url);
  const host = new URL(origin).hostname.replace(/^\[|\]$/g, '');
  const serverName = settings.serverName ?? host;
  const open = buildConnector({
    timeout: settings.connectTimeoutMs,
    rejectUnauthorized: true,
    checkServerIdentity: (_host, certificate) => checkServerIdentity(serverName, certificate),
    ...(ca === null ? {} : { ca }),
    ...(socketPath === null ? {} : { socketPath }),
  });
  // TLS names no addresses (RFC 6066 §3).
  const servername = isIP(serverName) === 0 ? serverName : '';
  return {
    origin,
    serverName,
    // undici would take the name from the Host field, which is the caller's where `host: preserve` is set.
    connect: (options, callback) => {
      open({ ...options, servername }, callback);
    },
  };
}

function placeOf(url: string): { readonly origin: string; readonly socketPath: string | null } {
  if (url.startsWith('unix:')) return { origin: 'http://localhost', socketPath: url.slice('unix:'.length) };
  return { origin: new URL(url).origin, socketPath: null };
}
