import type { UpstreamSettings } from '../../../config/types.js';
import { denial } from '../../../decision/denial.js';
import { beginSpan } from '../call-span.js';
import { Call, type CallHost } from '../call.js';
import type { Connector } from '../connector.js';
import { upstreamHost } from '../address.js';
import { createStreamingSlots } from '../pool/streaming-slots.js';
import type { Upstream } from '../pool/pool.js';
import { RequestQueues } from '../pool/request-queues.js';
import { Http2Connection, usualTimes, type Http2ConnectionHost } from './connection.js';
import { RequestStream } from './request-stream.js';

const soundFirst = [true, false];

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

  const queues = new RequestQueues<RequestStream>({
    capacity: capacity(),
    waitMs: settings.connectTimeoutMs,
    active: () => active,
    connect: (_call, avoided) => openStream(avoided?.connection ?? null),
    isFull: () => !mayOpen() && ![...usable].some((connection) => connection.hasRoom()),
  });
  /** Follows what the upstream allows, so that nobody's share counts streams that there are not. */
  const allow = (peerMax: number): void => {
    const allowed = Math.max(1, Math.min(settings.maxStreams, peerMax));
    if (allowed === streamsEach) return;
    streamsEach = allowed;
    queues.resize(capacity());
  };
  const connectionHost: Http2ConnectionHost = {
    onRoom: (peerMax) => {
      allow(peerMax);
      queues.startNext();
    },
    onDraining: (connection) => {
      usable.delete(connection);
      draining.add(connection);
      queues.startNext();
    },
    onGone: (connection) => {
      usable.delete(connection);
      draining.delete(connection);
      queues.startNext();
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
    // One that is being asked whether it is still there comes last.
    for (const isSound of soundFirst) {
      for (const connection of usable) {
        if (connection === avoided || connection.isSound() !== isSound || !connection.hasRoom()) continue;
        if (!connection.isWornOut() || !mayOpen()) return connection;
        connection.drain();
      }
    }
    if (mayOpen()) return open();
    return avoided?.hasRoom() === true ? avoided : null;
  };
  const openStream = (avoided: Http2Connection | null): RequestStream | null => {
    const connection = choose(avoided);
    if (connection === null) return null;
    const stream = new RequestStream(connection);
    active += 1;
    connection.add(stream);
    return stream;
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
      queues.giveBack(holderCount);
      stream.connection.remove(stream);
      queues.startNext();
      if (isRetired && queues.length === 0) drainIdle();
    },
    leaveQueue: (call) => queues.leave(call),
    repeat: (call, avoided) => {
      if (isClosed) call.refuse(denial('shutting_down'));
      else if (!queues.tryToStart(call, avoided)) joinQueue(call, settings.connectTimeoutMs);
    },
  };
  const joinQueue = (call: Call<RequestStream>, limitMs: number): void => {
    call.wait(limitMs);
    queues.join(call);
  };
  return {
    host: upstreamHost(settings.url),
    send: (request, sink) => {
      const call = new Call(request, false, sink, host, beginSpan(request, settings));
      if (!queues.tryToStartInTurn(call)) {
        joinQueue(call, Math.max(0, settings.connectTimeoutMs - (request.waitedMs ?? 0)));
      }
      return call;
    },
    takeStreamingSlot: createStreamingSlots(capacity),
    awaitTurn: (write) => queues.awaitTurn(write),
    retire: () => {
      isRetired = true;
      drainIdle();
    },
    close: () => {
      isRetired = true;
      isClosed = true;
      queues.refuseAll(denial('shutting_down'));
      for (const connection of [...usable, ...draining]) connection.close();
      return Promise.resolve();
    },
    connections: () => usable.size + draining.size,
    counts: () => ({ active, waiting: queues.length }),
  };
}
