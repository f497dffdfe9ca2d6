import type { UpstreamSettings } from '../config/compiled.js';
import { denial } from '../decision/denial.js';
import { publicShareOf, type Access } from './slots.js';
import { Call, type AnswerSink, type CallHost, type CallInLine, type UpstreamRequest } from './upstream-call.js';
import { createConnector } from './upstream/connector.js';
import { HandshakeConnection } from './upstream/handshake-connection.js';
import { HttpConnection } from './upstream/http-connection.js';
import { upstreamHost } from './upstream/upstream-place.js';
import type { ConnectionHost, ConnectionRequest, UpstreamConnection } from './upstream/upstream-connection.js';

/** The receiving service, as one version of the config names it. */
export interface Upstream {
  /** Its own name, for the Host field. */
  readonly host: string;
  /**
   * Sends one request, once: whatever fails, nothing is sent again. Where every connection is busy, or as many as public
   * routes may have, it waits in line, no longer than connecting may take. Ends in exactly one `onEnd` or `onFailure`, unless it is cancelled.
   */
  readonly send: (request: UpstreamRequest, answer: AnswerSink) => UpstreamCall;
  /** Says that a reload replaced it: what is under way or in line goes on, and each connection closes when it is idle. */
  readonly retire: () => void;
  /** Breaks off whatever is still under way and closes every connection. */
  readonly close: () => Promise<void>;
  readonly counts: () => UpstreamCounts;
}

/** A request under way. */
export interface UpstreamCall {
  /** Lets the body go on after `AnswerSink.onBody` said `false`. */
  readonly resume: () => void;
  /** Takes it out of the line or breaks it off. The sink hears nothing more. */
  readonly cancel: () => void;
  /** Whether some of the request may have been written; a call that was cancelled before will not be. */
  readonly mayBeSent: () => boolean;
}

export interface UpstreamCounts {
  /** Requests that have a connection. */
  readonly active: number;
  /** Requests that wait for one. */
  readonly waiting: number;
}

/**
 * Opens no connection before the first request, and no more than `max_connections`. The one used last is used next, so
 * that those which a burst needed close when it is over.
 */
export function createUpstream(settings: UpstreamSettings, ca: string | null): Upstream {
  const connector = createConnector(settings, ca);
  const all = new Set<UpstreamConnection>();
  /** Those that carry nothing, the one used last at the end. A connection for a handshake never gets here. */
  const idle: HttpConnection[] = [];
  const line = new Set<CallInLine>();
  let isRetired = false;
  /** Whether those in line have their turn next: nobody gets ahead of them. */
  let startsSoon = false;

  /** Requests on public routes that have a connection: they must not shut out callers with a credential. */
  let publicCount = 0;
  const maxPublic = publicShareOf(settings.maxConnections);

  const discard = (connection: UpstreamConnection): void => {
    all.delete(connection);
    connection.close();
  };
  const discardIdle = (): void => {
    for (const connection of idle.splice(0)) discard(connection);
  };
  const connectionHost: ConnectionHost = {
    onGone: (connection) => {
      all.delete(connection);
      const at = idle.findIndex(other => other === connection);
      if (at >= 0) idle.splice(at, 1);
    },
  };
  const open = ({ upgrade }: ConnectionRequest): UpstreamConnection | null => {
    // One that is idle makes room where it cannot carry the request.
    const [longestIdle] = idle;
    if (all.size >= settings.maxConnections && upgrade !== undefined && longestIdle !== undefined) {
      idle.shift();
      discard(longestIdle);
    }
    if (all.size >= settings.maxConnections) return null;
    const opened = upgrade === undefined ? new HttpConnection(connector.connect, connectionHost) : new HandshakeConnection(connector);
    all.add(opened);
    return opened;
  };
  const reuse = (): UpstreamConnection | null => {
    for (let connection = idle.pop(); connection !== undefined; connection = idle.pop()) {
      if (connection.isIdle()) return connection;
      discard(connection);
    }
    return null;
  };
  const take = (access: Access, request: ConnectionRequest): UpstreamConnection | null => {
    if (access === 'public' && publicCount >= maxPublic) return null;
    const connection = (request.upgrade === undefined ? reuse() : null) ?? open(request);
    if (connection !== null && access === 'public') publicCount += 1;
    return connection;
  };
  const startAll = (): void => {
    startsSoon = false;
    for (const call of line) {
      if (idle.length === 0 && all.size >= settings.maxConnections) return;
      const connection = take(call.access, call.request);
      if (connection === null) continue;
      line.delete(call);
      call.start(connection);
    }
  };
  /** Not at once: what still comes of the read that ended an answer would be taken for the answer to the next request. */
  const startNext = (): void => {
    if (startsSoon || line.size === 0) return;
    startsSoon = true;
    setImmediate(startAll);
  };
  const host: CallHost = {
    idleTimeoutMs: settings.idleTimeoutMs,
    release: (connection, access, sound) => {
      if (!all.has(connection)) return;
      if (access === 'public') publicCount -= 1;
      if (sound && connection instanceof HttpConnection) idle.push(connection);
      else discard(connection);
      startNext();
      if (isRetired && line.size === 0) discardIdle();
    },
    leaveLine: (call) => line.delete(call),
  };
  return {
    host: upstreamHost(settings.url),
    send: (request, answer) => {
      const call = new Call(request, answer, host);
      const connection = startsSoon ? null : take(request.access, request);
      if (connection === null) {
        line.add(call);
        call.wait(settings.connectTimeoutMs);
      } else call.start(connection);
      return call;
    },
    retire: () => {
      isRetired = true;
      discardIdle();
    },
    close: () => {
      isRetired = true;
      for (const call of line) call.refuse(denial('shutting_down'));
      line.clear();
      idle.length = 0;
      for (const connection of [...all]) discard(connection);
      return Promise.resolve();
    },
    counts: () => ({ active: all.size - idle.length, waiting: line.size }),
  };
}
