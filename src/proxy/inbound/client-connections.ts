import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import type { ListenSettings } from '../../config/types.js';
import {
  chooseToEnd,
  connectionEndings,
  noConnectionEndings,
  type ConnectionEnding,
  type IdleConnection,
} from '../../decision/limits/idle-connections.js';
import { clientNetworks, createAddressTest, type ClientNetworks } from '../../lib/ip-ranges.js';
import type { Clock, Log } from '../../ports/system.js';
import type { ConnectionsByProtocol, Metrics } from '../../ports/observability.js';
import type { Peer } from '../auth/authorize-request.js';
import { callerCertificateOf } from './tls/caller-certificate.js';
import { QueueBudget, type QueueLimits } from './queue-budget.js';
import { ClientConnection } from './client-connection.js';
import { awaitFirstRecord } from './tls/first-record.js';
import { KeyUpdates } from './tls/key-updates.js';
import { HandshakeTurns, type Handshake } from './tls/handshake-turns.js';
import type { Http2ClientConnection, Http2ClientConnectionOptions } from './http2/connection.js';
import { chooseProtocol } from './http2/first-bytes.js';
import { ReadTurns } from './http2/read-turns.js';
import type { Listener } from './listener.js';
import { countConnection } from '../exchange/event-loop-batch.js';
import { socketBelow, startReading, stopReading } from '../node-internals/socket.js';

/** What may wait behind requests that are being served, on all connections together. */
const queueLimits: QueueLimits = { requests: 1_024, bytes: 16 * 1024 * 1024 };

/** Connections for each request that may be under way: callers keep idle ones, but not without end. */
const connectionsPerSlot = 4;
const minConnections = 1_024;

/** Ended at once, where there are too many: to choose takes a look at all of them. */
const endedAtOnce = 32;

/** A flood is logged this often, with its counts; milliseconds. */
const warningIntervalMs = 10_000;

/** Every connection to a listener, from its first packet on. */
interface ClientConnections {
  /** The connection that serves requests of this socket. */
  readonly of: (socket: Socket) => ClientConnection | undefined;
  readonly count: () => number;
  readonly byProtocol: () => ConnectionsByProtocol;
  /** Those on which a head is larger than it may be, although it is not complete. */
  readonly withLargeHead: () => readonly Socket[];
  /**
   * A shutdown has begun: an idle connection is ended at `closeIdle`, or once it was idle for `unannouncedMs` after a
   * response that did not say that it was the last one.
   */
  readonly drain: (unannouncedMs: number) => void;
  /** A shutdown was announced: callers that can be told open nothing more on connections that are open. */
  readonly announceEnd: () => void;
  /** Ends what takes too long on a connection that keeps no time itself; to be called every second or so. */
  readonly look: () => void;
  /** Ends those on which no request has begun. */
  readonly closeIdle: () => void;
  /** Ends all, with a word to callers whose request was not sent on. */
  readonly cutOff: () => void;
  /** Resolves once none is open and each one's request has ended: a server says that it is closed before that. */
  readonly allClosed: () => Promise<void>;
}

interface HandshakeUnderWay {
  readonly handshake: Handshake;
  /** Ends it where it takes too long, from the first packet on. */
  readonly timer: NodeJS.Timeout;
}

/** What all kinds of connections are asked for. */
interface OpenConnection {
  /** How little would be lost with it; `null` while a response is still to be written. */
  readonly idleState: () => IdleConnection | null;
  readonly hasAuthenticated: () => boolean;
  readonly drain: (unannouncedMs: number) => void;
  readonly closeIdle: () => void;
  readonly cutOff: () => void;
}

/** Serves connections of HTTP/2. */
export type AcceptHttp2 = (
  socket: Socket,
  options: Pick<Http2ClientConnectionOptions, 'peer' | 'clock' | 'readTurns' | 'onAbuse'>,
) => Http2ClientConnection;

interface ClientConnectionsDeps {
  readonly log: Log;
  readonly clock: Pick<Clock, 'monotonic'>;
  readonly metrics: Pick<Metrics, 'connectionEnded'>;
}

/** Connections that a listener holds at most; a new one takes the place of one that rests. */
export function maxConnectionsOf({
  maxInFlight,
  maxWebSockets,
}: Pick<ListenSettings, 'maxInFlight' | 'maxWebSockets'>): number {
  return Math.max(minConnections, connectionsPerSlot * maxInFlight) + maxWebSockets;
}

/** Keeps the connections of a listener, and ends them where there is too much to do. */
export function createClientConnections(
  { server, isTls, serveTls, serveHttp1 }: Listener,
  settings: ListenSettings & { readonly maxConnections: number },
  acceptHttp2: AcceptHttp2,
  { log, clock, metrics }: ClientConnectionsDeps,
): ClientConnections {
  /** All sockets, with when and from where they came. Over TLS, those whose handshake is not complete are only here. */
  const sockets = new Map<Socket, Pick<IdleConnection, 'sinceMs' | 'networks'>>();
  const http1 = new Map<Socket, ClientConnection>();
  const http2 = new Map<Socket, Http2ClientConnection>();
  const connections = new Map<Socket, OpenConnection>();
  let onEmpty = (): void => undefined;
  const limit = settings.maxConnections;
  const queueBudget = new QueueBudget(queueLimits);
  const readTurns = new ReadTurns();
  const handshakeTurns = new HandshakeTurns();
  /** Those that are not complete, by their connection of TCP. */
  const handshakes = new Map<Socket, HandshakeUnderWay>();
  const tell = createFloodLog(log, clock);
  const ended = (ending: ConnectionEnding): void => {
    metrics.connectionEnded(ending);
    tell(ending, sockets.size);
  };
  const keyUpdates = new KeyUpdates({
    clock,
    onAbuse: () => ended('key_updates'),
  });
  const isTrusted = createAddressTest(settings.trustForwarded);

  server.on('drop', () => ended('refused'));
  server.on('connection', (socket: Socket) => {
    countConnection();
    if (sockets.size >= limit && !makeRoom()) {
      ended('refused');
      socket.destroy();
      return;
    }
    const networks = clientNetworks(socket.remoteAddress ?? '');
    sockets.set(socket, { sinceMs: clock.monotonic(), networks });
    socket.once('close', () => {
      sockets.delete(socket);
      endHandshake(socket);
      if (sockets.size === 0) onEmpty();
    });
    if (serveTls !== null) beginHandshake(socket, networks, serveTls);
  });
  server.on(isTls ? 'secureConnection' : 'connection', (socket: Socket) => {
    endHandshake(tcpOf(socket));
    // One that was refused.
    if (socket.destroyed) return;
    if (socket instanceof TLSSocket) {
      const hasAuthenticated = (): boolean => connections.get(socket)?.hasAuthenticated() ?? false;
      keyUpdates.add(socket, clientNetworks(socket.remoteAddress ?? ''), hasAuthenticated);
    }
    if (!settings.http2) acceptHttp1(socket);
    else if (socket instanceof TLSSocket) {
      if (socket.alpnProtocol === 'h2') beginHttp2(socket);
      else acceptHttp1(socket);
    } else {
      chooseProtocol(socket, {
        withinMs: settings.headerTimeoutMs,
        onHttp1: (first) => acceptHttp1(socket, first),
        onHttp2: () => beginHttp2(socket),
      });
    }
  });
  return {
    of: (socket) => http1.get(socket),
    count: () => sockets.size,
    byProtocol: () => ({
      http1: { connections: http1.size, requests: sumOf(http1, (connection) => (connection.isServing() ? 1 : 0)) },
      http2: { connections: http2.size, requests: sumOf(http2, (connection) => connection.streams()) },
    }),
    withLargeHead: () => {
      const found: Socket[] = [];
      for (const [socket, connection] of http1) if (connection.hasLargeHead()) found.push(socket);
      return found;
    },
    announceEnd: () => {
      for (const connection of http2.values()) connection.announceEnd();
    },
    look: () => {
      for (const connection of http2.values()) connection.look();
    },
    drain: (unannouncedMs) => {
      for (const connection of connections.values()) connection.drain(unannouncedMs);
    },
    closeIdle: () => {
      for (const connection of connections.values()) connection.closeIdle();
      for (const [socket] of handshaking()) socket.destroy();
    },
    cutOff: () => {
      for (const connection of connections.values()) connection.cutOff();
      for (const socket of sockets.keys()) socket.destroy();
    },
    allClosed: () =>
      new Promise((resolve) => {
        onEmpty = resolve;
        if (sockets.size === 0) resolve();
      }),
  };

  function peerOf(socket: Socket): Peer {
    const remoteAddress = socket.remoteAddress ?? '';
    const encrypted = socket instanceof TLSSocket || settings.tlsTerminatedBy !== null;
    const certificate = callerCertificateOf(socket, (settings.tls?.clientCaFile ?? null) !== null);
    return { remoteAddress, encrypted, trusted: isTrusted(remoteAddress), certificate };
  }

  /** Has TLS begin and go on in its turn: where handshakes are many, once its client has said hello. */
  function beginHandshake(socket: Socket, networks: ClientNetworks, serve: (socket: Socket) => void): void {
    let isBegun = false;
    const handshake: Handshake = {
      networks,
      isGone: () => socket.destroyed || !handshakes.has(socket),
      bytesRead: () => socket.bytesRead,
      bytesWritten: () => socket.bytesWritten,
      pauseReading: () => stopReading(socket),
      resumeReading: () => {
        if (!isBegun) serve(socket);
        isBegun = true;
        startReading(socket);
      },
    };
    handshakes.set(socket, { handshake, timer: setTimeout(() => socket.destroy(), settings.headerTimeoutMs) });
    // To read the hello here costs a tenth of a handshake: where they are few, TLS does it.
    if (handshakeTurns.hasRoom()) handshakeTurns.begin(handshake);
    else awaitFirstRecord(socket, () => handshakeTurns.begin(handshake));
  }

  /** It is complete, or its connection is closed. */
  function endHandshake(socket: Socket): void {
    const underWay = handshakes.get(socket);
    if (underWay === undefined) return;
    clearTimeout(underWay.timer);
    handshakes.delete(socket);
    handshakeTurns.end(underWay.handshake);
  }

  /** `first` is what was read of it. */
  function acceptHttp1(socket: Socket, first: Buffer | null = null): void {
    // Where somebody looks at first bytes, Node's parser has not taken the connection by itself.
    serveHttp1?.(socket);
    const connection = new ClientConnection(socket, {
      peer: peerOf(socket),
      maxHeadBytes: settings.maxHeaderBytes,
      queueBudget,
      clock,
      bytesReadBefore: socket.bytesRead - (first?.length ?? 0),
      onQueueOverflow: () => ended('too_much_waiting'),
    });
    http1.set(socket, connection);
    connections.set(socket, connection);
    socket.once('close', () => {
      http1.delete(socket);
      connections.delete(socket);
    });
    if (first !== null) socket.emit('data', first);
  }

  function beginHttp2(socket: Socket): void {
    // A reset would end the process: while it waits to begin, and from then on.
    socket.on('error', () => undefined);
    readTurns.begin({
      networks: clientNetworks(socket.remoteAddress ?? ''),
      isGone: () => socket.destroyed,
      take: () => serveHttp2(socket),
    });
  }

  function serveHttp2(socket: Socket): Http2ClientConnection {
    const options = { peer: peerOf(socket), clock, readTurns, onAbuse: () => ended('http2_abuse') };
    const connection = acceptHttp2(socket, options);
    http2.set(socket, connection);
    connections.set(socket, connection);
    socket.once('close', () => {
      http2.delete(socket);
      connections.delete(socket);
    });
    return connection;
  }

  /** Those whose handshake is not complete, or whose protocol is not known, with when and where from they came. */
  function handshaking(): readonly (readonly [Socket, Pick<IdleConnection, 'sinceMs' | 'networks'>])[] {
    if (!isTls && !settings.http2) return [];
    const serving = new Set([...connections.keys()].map(tcpOf));
    return [...sockets].filter(([socket]) => !serving.has(socket));
  }

  /** Ends some that rest; `false` where none does. */
  function makeRoom(): boolean {
    const resting: { readonly socket: Socket; readonly rest: IdleConnection }[] = [];
    for (const [socket, connection] of connections) {
      const rest = connection.idleState();
      if (rest !== null && !socket.destroyed) resting.push({ socket, rest });
    }
    for (const [socket, came] of handshaking()) {
      if (!socket.destroyed) resting.push({ socket, rest: { ...came, hasAuthenticated: false } });
    }
    const chosen = chooseToEnd(
      resting.map(({ rest }) => rest),
      { count: endedAtOnce, limit, nowMs: clock.monotonic() },
    );
    for (const position of chosen) {
      resting[position]?.socket.destroy();
      ended('gave_way');
    }
    return chosen.length > 0;
  }
}

function sumOf<T>(connections: ReadonlyMap<Socket, T>, valueOf: (connection: T) => number): number {
  let sum = 0;
  for (const connection of connections.values()) sum += valueOf(connection);
  return sum;
}

/** Says that connections are ended, and how many since the line before. */
export function createFloodLog(
  log: Log,
  clock: Pick<Clock, 'monotonic'>,
): (ending: ConnectionEnding, open: number) => void {
  const counts = noConnectionEndings();
  let toldMs = -Infinity;
  return (ending, open) => {
    counts[ending] += 1;
    const nowMs = clock.monotonic();
    if (nowMs - toldMs < warningIntervalMs) return;
    toldMs = nowMs;
    log.warn('connections were ended: there were too many, or too much waited on them', { open, ...counts });
    for (const each of connectionEndings) counts[each] = 0;
  };
}

/** The connection of TCP below one of TLS; any other is one itself. */
function tcpOf(socket: Socket): Socket {
  return socket instanceof TLSSocket ? socketBelow(socket) : socket;
}
