import type { UpstreamSettings } from '../../../config/types.js';
import { denial } from '../../../decision/denial.js';
import type { Slot } from '../../exchange/concurrency.js';
import { beginSpan } from '../call-span.js';
import { Call, type ResponseSink, type CallHost, type UpstreamRequest } from '../call.js';
import { createConnector, type ClientCertificate, type Connector } from '../connector.js';
import { upstreamHost } from '../address.js';
import { ClosingConnections } from './closing-connections.js';
import { createHttp2Upstream } from '../http2/pool.js';
import { createStreamingSlots } from './streaming-slots.js';
import { Http1Connection, type ConnectionHost } from '../http1/connection.js';
import { IdleConnections } from './idle-connections.js';
import { RequestQueues } from './request-queues.js';
import type { UnreservedWrite } from './reservation-queue.js';
import { needsOwnConnection, restPeriodsOf, trustOf } from './reuse.js';

/** The upstream, as one version of the config names it. */
export interface Upstream {
  /** Its own name, for the Host header. */
  readonly host: string;
  /**
   * Sends one request, once: whatever fails, nothing is sent again. Where every connection is busy, or as many as its
   * holder may have, it waits in a queue, no longer than connecting may take, and in overload
   * hardly longer than the upstream takes for a request. Ends in exactly one `onEnd` or `onError`, unless it is
   * cancelled.
   */
  readonly send: (request: UpstreamRequest, sink: ResponseSink) => UpstreamCall;
  /**
   * A place for a request whose body is yet to come, which would hold a connection for as long as that takes; `null`
   * where there is none.
   */
  readonly takeStreamingSlot: () => Slot | null;
  /**
   * Has a write wait until it may be reserved, since its turn with a connection is near: no longer than connecting may
   * take, and in overload hardly at all. That may be before this returns. Call what it returns when the write will not
   * come any more.
   */
  readonly awaitTurn: (write: UnreservedWrite) => () => void;
  /**
   * Says that a reload replaced it: what is under way or waits goes on, and each connection closes when it is idle.
   */
  readonly retire: () => void;
  /** Breaks off whatever is still under way and closes every connection. */
  readonly close: () => Promise<void>;
  readonly counts: () => UpstreamCounts;
  /** Connections that are open, or being opened. */
  readonly connections: () => number;
}

/** A request under way. */
export interface UpstreamCall {
  /** Lets the body go on after `ResponseSink.onData` said `false`. */
  readonly resume: () => void;
  /** Takes it out of the queue or breaks it off. The sink hears nothing more. */
  readonly cancel: () => void;
  /** Whether some of the request may have been written; a call that was cancelled before will not be. */
  readonly mayBeSent: () => boolean;
}

/** What a request is doing upstream: a call, a reserved write or a WebSocket connection. */
export type UpstreamOperation = Pick<UpstreamCall, 'resume' | 'cancel'>;

interface UpstreamCounts {
  /** Requests that have a connection, or a stream of one. */
  readonly active: number;
  /** Requests that wait for one, reserved or not. */
  readonly waiting: number;
}

/**
 * The part of `maxConnections` that may rest while requests wait for one. Beyond it, one that rests gives way to a new
 * one, so that few connections serve nearly as many requests as if none rested.
 */
const restingShare = 1 / 4;

/** Opens no connection before the first request, and no more than `max_connections`. */
export function createUpstream(
  settings: UpstreamSettings,
  ca: string | null,
  certificate: ClientCertificate | null = null,
): Upstream {
  const connector = createConnector(settings, ca, certificate);
  return settings.http2 ? createHttp2Upstream(settings, connector) : createHttp1Upstream(settings, connector);
}

function createHttp1Upstream(settings: UpstreamSettings, connector: Connector): Upstream {
  const trust = trustOf(settings);
  const maxResting = Math.floor(settings.maxConnections * restingShare);
  const all = new Set<Http1Connection>();
  /** Those that were left to the upstream to end. */
  const closing = new ClosingConnections();
  let isRetired = false;

  const discard = (connection: Http1Connection): void => {
    all.delete(connection);
    connection.close();
  };
  const queues = new RequestQueues<Http1Connection>({
    capacity: settings.maxConnections,
    waitMs: settings.connectTimeoutMs,
    active: () => all.size - idle.count(),
    connect: ({ hasOwnConnection }) => (hasOwnConnection ? null : reuse()) ?? open(hasOwnConnection),
    isFull: () => idle.count() === 0 && all.size >= settings.maxConnections,
  });
  const idle: IdleConnections = new IdleConnections({
    rest: restPeriodsOf(settings),
    onRested: queues.startNext,
    onSpare: discard,
  });
  const discardIdle = (): void => {
    for (const connection of idle.takeAll()) discard(connection);
  };
  const connectionHost: ConnectionHost = {
    onGone: (connection) => {
      all.delete(connection);
      idle.remove(connection);
    },
    onClosing: (opened) => {
      closing.add(opened);
    },
  };
  /** Makes room where an idle connection cannot carry the request. */
  const makeRoom = (isAlone: boolean): void => {
    if (!isAlone && idle.count() <= maxResting) return;
    const oldest = idle.takeOldest();
    if (oldest === null) return;
    all.delete(oldest);
    oldest.closeIdle();
  };
  const open = (isAlone: boolean): Http1Connection | null => {
    if (!isAlone && idle.areMany()) return null;
    if (all.size >= settings.maxConnections) makeRoom(isAlone);
    if (all.size >= settings.maxConnections) return null;
    if (all.size + closing.count() >= settings.maxConnections) closing.cutShort();
    const opened = new Http1Connection(connector.connect, connectionHost, trust);
    all.add(opened);
    return opened;
  };
  const reuse = (): Http1Connection | null => {
    for (let connection = idle.take(); connection !== null; connection = idle.take()) {
      if (connection.isIdle()) return connection;
      discard(connection);
    }
    return null;
  };
  const host: CallHost<Http1Connection> = {
    idleTimeoutMs: settings.idleTimeoutMs,
    release: (connection, holderCount, sound) => {
      if (!all.has(connection)) return;
      queues.giveBack(holderCount);
      if (sound) idle.put(connection);
      else discard(connection);
      queues.startNext();
      if (isRetired && queues.length === 0) discardIdle();
    },
    leaveQueue: (call) => queues.leave(call),
  };
  return {
    host: upstreamHost(settings.url),
    send: (request, sink) => {
      const isAlone = request.upgrade !== undefined || needsOwnConnection(request, settings);
      const call = new Call(request, isAlone, sink, host, beginSpan(request, settings));
      if (!queues.tryToStartInTurn(call)) {
        call.wait(Math.max(0, settings.connectTimeoutMs - (request.waitedMs ?? 0)));
        queues.join(call);
      }
      return call;
    },
    takeStreamingSlot: createStreamingSlots(() => settings.maxConnections),
    awaitTurn: (write) => queues.awaitTurn(write),
    retire: () => {
      isRetired = true;
      discardIdle();
      // Those that waited for one of these need another.
      queues.startNext();
    },
    close: () => {
      isRetired = true;
      queues.refuseAll(denial('shutting_down'));
      idle.takeAll();
      for (const connection of [...all]) discard(connection);
      closing.endAll();
      return Promise.resolve();
    },
    connections: () => all.size,
    counts: () => ({
      active: all.size - idle.count(),
      waiting: queues.length,
    }),
  };
}
