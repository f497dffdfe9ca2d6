import type { UpstreamSettings } from '../../../config/types.js';
import { denial } from '../../../decision/denial.js';
import { FairShareLimiter } from '../../exchange/concurrency.js';
import { beginSpan } from '../call-span.js';
import { Call, type CallHost, type QueuedCall } from '../call.js';
import type { Connector } from '../connector.js';
import { upstreamHost } from '../address.js';
import { ConnectionQueue } from '../pool/connection-queue.js';
import { createStreamingSlots } from '../pool/streaming-slots.js';
import type { Upstream } from '../pool/pool.js';
import { ReservationQueue } from '../pool/reservation-queue.js';
import { Http2Connection, usualTimes, type Http2ConnectionHost } from './connection.js';
import { RequestStream } from './request-stream.js';

/**
 * Sends requests over HTTP/2, many at once over few connections. A request goes to the connection that was opened first
 * of those with room, so that those that are not needed any more fall idle and are closed, and what goes out for many
 * requests goes out in one piece. A new one is opened only when each is full.
 */
export function createHttp2Upstream(settings: UpstreamSettings, connector: Connector, times = usualTimes): Upstream {
  const headRules = {
    scheme: connector.origin.startsWith('https:') ? 'https' : 'http',
    sensitiveNames: settings.sensitiveHeaders,
  } as const;
  /** In the order in which they were opened. */
  const usable = new Set<Http2Connection>();
  /**
   * Connections that take no more streams. They do not count towards `max_connections` until both kinds together are
   * twice as many: one long response on a connection that the upstream ends would otherwise keep everybody from a new
   * one.
   */
  const draining = new Set<Http2Connection>();
  /** What the upstream allowed last. */
  let streamsEach = settings.maxStreams;
  const capacity = (): number => settings.maxConnections * streamsEach;
  let active = 0;
  let isRetired = false;
  let isClosed = false;
  /** Whether those in line have their turn next: nobody gets ahead of them. */
  let startsSoon = false;

  const line = new ConnectionQueue<QueuedCall<RequestStream>>(capacity(), (call) => call.refuse(denial('overloaded')));
  /** Who has how many streams: nobody is to shut the others out. */
  const fairShares = new FairShareLimiter(capacity());
  const startNext = (): void => {
    if (startsSoon || line.length + unreserved.length === 0) return;
    startsSoon = true;
    setImmediate(startAll);
  };
  const unreserved = new ReservationQueue({
    maxConnections: capacity(),
    waitMs: settings.connectTimeoutMs,
    active: () => active,
    activeOf: (holder) => fairShares.countOf(holder),
    onFreed: startNext,
    startsSoon: () => startsSoon,
  });
  /** Follows what the upstream allows, so that nobody's share counts streams that there are not. */
  const allow = (peerMax: number): void => {
    const allowed = Math.max(1, Math.min(settings.maxStreams, peerMax));
    if (allowed === streamsEach) return;
    streamsEach = allowed;
    fairShares.resize(capacity());
    line.resize(capacity());
    unreserved.resize(capacity());
  };
  const connectionHost: Http2ConnectionHost = {
    onRoom: (peerMax) => {
      allow(peerMax);
      startNext();
    },
    onDraining: (connection) => {
      usable.delete(connection);
      draining.add(connection);
      startNext();
    },
    onGone: (connection) => {
      usable.delete(connection);
      draining.delete(connection);
      startNext();
    },
  };
  const mayOpen = (): boolean =>
    usable.size < settings.maxConnections && usable.size + draining.size < 2 * settings.maxConnections;
  const open = (): Http2Connection => {
    const opened = new Http2Connection(
      {
        connector,
        headRules,
        maxStreams: settings.maxStreams,
        expectedStreams: streamsEach,
        settingsTimeoutMs: settings.connectTimeoutMs,
        times,
      },
      connectionHost,
    );
    usable.add(opened);
    return opened;
  };
  /** @param avoided gets it only where no other can. */
  const choose = (avoided: Http2Connection | null): Http2Connection | null => {
    for (const connection of usable) {
      if (connection === avoided || !connection.hasRoom()) continue;
      if (!connection.isWornOut() || !mayOpen()) return connection;
      connection.drain();
    }
    if (mayOpen()) return open();
    return avoided?.hasRoom() === true ? avoided : null;
  };
  /** Starts it, where its holder may have a stream and there is one. */
  const tryToStart = (call: QueuedCall<RequestStream>, avoided: Http2Connection | null = null): boolean => {
    const holderCount = fairShares.take(call.holder);
    if (holderCount === null) return false;
    const connection = choose(avoided);
    if (connection === null) {
      fairShares.giveBack(holderCount);
      return false;
    }
    if (line.length > 0) line.leave(call);
    const stream = new RequestStream(connection);
    active += 1;
    connection.add(stream);
    call.start(stream, holderCount);
    return true;
  };
  const isFull = (): boolean => !mayOpen() && ![...usable].some((connection) => connection.hasRoom());
  const startAll = (): void => {
    startsSoon = false;
    line.startInTurn(tryToStart, isFull);
    unreserved.startInTurn();
  };
  const drainIdle = (): void => {
    for (const connection of [...usable]) {
      if (connection.count === 0) connection.drain();
    }
  };
  const host: CallHost<RequestStream> = {
    idleTimeoutMs: settings.idleTimeoutMs,
    release: (stream, holderCount) => {
      active -= 1;
      fairShares.giveBack(holderCount);
      stream.connection.remove(stream);
      startNext();
      if (isRetired && line.length + unreserved.length === 0) drainIdle();
    },
    leaveQueue: (call) => line.leave(call),
    repeat: (call, { connection }) => {
      if (isClosed) call.refuse(denial('shutting_down'));
      else if (!tryToStart(call, connection)) joinLine(call, settings.connectTimeoutMs);
    },
  };
  const joinLine = (call: Call<RequestStream>, limitMs: number): void => {
    call.wait(limitMs);
    line.join(call);
  };
  return {
    host: upstreamHost(settings.url),
    send: (request, sink) => {
      const call = new Call(request, false, sink, host, beginSpan(request, settings));
      if (startsSoon || !tryToStart(call)) {
        joinLine(call, Math.max(0, settings.connectTimeoutMs - (request.waitedMs ?? 0)));
      }
      return call;
    },
    takeStreamingSlot: createStreamingSlots(capacity),
    awaitTurn: (write) => unreserved.enter(write),
    retire: () => {
      isRetired = true;
      drainIdle();
    },
    close: () => {
      isRetired = true;
      isClosed = true;
      unreserved.refuseAll(denial('shutting_down'));
      for (const call of line.takeAll()) call.refuse(denial('shutting_down'));
      for (const connection of [...usable, ...draining]) connection.close();
      return Promise.resolve();
    },
    connections: () => usable.size + draining.size,
    counts: () => ({ active, waiting: line.length + unreserved.length }),
  };
}
