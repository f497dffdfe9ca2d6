import { ServerResponse, type IncomingMessage } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { ListenSettings, SocketPlace } from '../config/types.js';
import type { Form } from '../decision/decide/forms.js';
import { denial, type Denial } from '../decision/denial.js';
import { createFairQueue } from '../decision/limits/fair-queue.js';
import { onlyBearer, type Challenges } from '../decision/http/problem-details.js';
import { createClientFinder } from '../lib/ip-ranges.js';
import type { Clock, Log, Timers } from '../ports/system.js';
import type { Tracer } from '../ports/tracing.js';
import type { ConnectionsByProtocol, Metrics, RequestRecord } from '../ports/observability.js';
import type { ReservationParts } from '../ports/idempotency.js';
import type { CallerLimits } from './exchange/rate-limiter.js';
import { createClientConnections, maxConnectionsOf, type AcceptHttp2 } from './inbound/client-connections.js';
import { Http2ClientConnection } from './inbound/http2/connection.js';
import { createHeaderGarbage } from './inbound/http2/header-garbage.js';
import type { Http2Request } from './inbound/http2/request.js';
import { maxOpenRequests, StreamPlaces } from './inbound/http2/stream-places.js';
import { describeBug } from '../lib/errors.js';
import { ClientRequest, Http1Request, type RequestHandler } from './inbound/http1-request.js';
import type { ReceivedRequest } from './inbound/received-request.js';
import { createAdmissionControl } from './exchange/admission-control.js';
import { Exchange } from './exchange/exchange.js';
import type { ExchangeDeps, PlanAdmitted } from './exchange/exchange-deps.js';
import { HealthCheck, isHealthCheck } from './exchange/health-check.js';
import { createKnownAddresses } from './exchange/known-addresses.js';
import { createClientApp } from './client-app.js';
import type { ActiveConfig } from './auth/active-config.js';
import { bodyTimeoutsOf, type BodyTimeouts } from './inbound/request-body.js';
import { acceptQueue, createListener, type TlsMaterial } from './inbound/listener.js';
import { createParseErrorResponse, parseErrorDenial, type ParsedLine } from './inbound/parse-error.js';
import { createReservedWrites } from './idempotency/coordinator.js';
import { planRequest } from './idempotency/plan-reservation.js';
import { createSlots, type Slots } from './exchange/concurrency.js';
import { createGrpcCalls } from './exchange/grpc-calls.js';
import {
  acceptBeside,
  adoptConnection,
  listeningHandle,
  longestAcceptMs,
  stopAccepting,
} from './node-internals/server.js';
import { openUnixSocket } from './inbound/unix-socket.js';
import { UpgradeRequest } from './websocket/upgrade-request.js';
import { createWebSockets } from './websocket/connections.js';

/**
 * How long after the announcement of a shutdown a connection that a caller keeps is still served, milliseconds: whoever
 * uses it again within that time gets a response, which says that it is the last one, and not a closed connection.
 */
const announcedMs = 2_000;

/**
 * How long idle connections stay open once the port is closed, milliseconds: a request may be on its way on one that
 * came last.
 */
const lastArrivalsMs = 500;

/**
 * How long after the end of a drain the store is waited for where it has not answered a reservation, milliseconds. What
 * it answers later is not sent on, and what it was told by then is waited for all the same.
 */
const lastRepliesMs = 1_000;

/**
 * In a drain: the time for a head, milliseconds, and how slowly a body may come. A network that loses packets pauses
 * for some seconds.
 */
const drainHeadMs = 2_000;
const drainTimeouts: BodyTimeouts = { idleMs: 5_000, minRate: 500, minRateAfterMs: 2_000 };

/** How often heads are looked for that are too large and not complete. */
const checkingIntervalMs = 1_000;

interface ProxyServerDeps {
  /** What is in force now; asked once for each request, when it is decided. */
  readonly activeConfig: () => ActiveConfig;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly metrics: Metrics;
  readonly log: Log;
  /** `null`, or left out, where nothing is traced. */
  readonly tracer?: Tracer | null;
  /** Takes one line for each request, at its end. */
  readonly requestLog: (record: RequestRecord) => void;
  readonly listen: ListenSettings;
  /** Where it listens instead of a port. */
  readonly socket?: SocketPlace;
  /** PEM texts; exactly where `listen.tls` is set. */
  readonly tls: TlsMaterial | null;
  readonly limits: CallerLimits;
  /** What every 401 asks for; left out where no proof of a key is taken. */
  readonly challenges?: Challenges;
  /** `null` where there is no store: routes that reserve answer 503 then. */
  readonly reservations: ReservationParts | null;
  /** How its requests are served where they only ask about others; left out where they are forwarded. */
  readonly decide?: DecideHandler;
  /** Whether requests should be sent here, as `/readyz` says; asked where `listen.grpc_health` is `answer`. */
  readonly isReady: () => boolean;
  /** At once, all of it. */
  readonly collectGarbage: () => void;
  /** Left out where this process serves alone. */
  readonly places?: SharedListener;
}

/** What a listener has that several processes serve. */
export interface SharedListener {
  /** Those of all of them. */
  readonly inFlight: Slots;
  readonly webSockets: Slots;
  /** What this process may have of them. */
  readonly maxConnections: number;
}

/** How a decide listener plans and serves the requests that it gets. */
export interface DecideHandler {
  /** As the log names it. */
  readonly name: Form;
  readonly plan: PlanAdmitted;
  readonly serve: (deps: ExchangeDeps, request: ReceivedRequest) => RequestHandler;
}

export interface ProxyServer {
  /** Resolves when connections are accepted; rejects when the address cannot be had. */
  readonly listen: () => Promise<AddressInfo>;
  /** The handle by which it listens; `null` where it does not. */
  readonly listeningHandle: () => object | null;
  /** Accepts by one more handle of the same socket, until it drains; see `acceptBeside`. */
  readonly acceptBeside: (handle: unknown) => void;
  /** In the place of `listen`: serves connections that another process accepted, each as its handle. */
  readonly adopt: () => Promise<(handle: unknown) => void>;
  /**
   * Takes other certificates for connections to come; throws, and keeps the old ones, where they do not fit together.
   */
  readonly setTls: (material: TlsMaterial) => void;
  /** From now on every response closes its connection, so that callers move on before `drain` ends what is idle. */
  readonly announceShutdown: () => void;
  /**
   * Accepts nothing more, lets what is under way finish and resolves when all is closed, by `graceMs` at the latest.
   */
  readonly drain: (graceMs: number) => Promise<void>;
  readonly openWebSockets: () => number;
  /** What is in force has changed: WebSocket connections and gRPC calls that it does not allow are ended. */
  readonly reauthorizeConnections: () => Promise<void>;
  /** `streams` are those of HTTP/2 that hold a place. */
  readonly counts: () => { readonly connections: number; readonly inFlight: number; readonly streams: number };
  readonly connectionsByProtocol: () => ConnectionsByProtocol;
}

/** Builds the callers' server. Nothing listens yet. */
export function createProxyServer(deps: ProxyServerDeps): ProxyServer {
  const { listen } = deps;
  const slots = deps.places?.inFlight ?? createSlots(listen.maxInFlight);
  const maxConnections = deps.places?.maxConnections ?? maxConnectionsOf(listen);
  // As many as there may be connections, each of which may have a request.
  const streamPlaces = new StreamPlaces(maxConnections, deps);
  const openHeads = createFairQueue<Http2Request>(maxOpenRequests(maxConnections));
  const onHeaders = createHeaderGarbage(deps.collectGarbage);
  const reserving = deps.reservations === null ? null : createReservedWrites(deps.reservations, deps);
  let isShuttingDown = false;
  let announcedAtMs = Infinity;
  const bodyTimeouts = bodyTimeoutsOf(listen);
  const announce = (): void => {
    isShuttingDown = true;
    announcedAtMs = Math.min(announcedAtMs, deps.clock.monotonic());
  };
  const webSockets = createWebSockets({
    ...deps,
    slots: deps.places?.webSockets ?? createSlots(listen.maxWebSockets),
    idleTimeoutMs: listen.webSocketIdleTimeoutMs,
  });
  const grpcCalls = createGrpcCalls(deps);
  const exchangeDeps: ExchangeDeps = {
    ...deps,
    tracer: deps.tracer ?? null,
    findClient: createClientFinder(listen.trustForwarded),
    acquire: createAdmissionControl(slots, deps.limits),
    knownAddresses: createKnownAddresses(deps.clock),
    plan:
      deps.decide?.plan ??
      ((admission, activeConfig) =>
        planRequest(admission, activeConfig, reserving, admission.headers.contentLength ?? 0)),
    ...(deps.decide === undefined ? {} : { asksAs: deps.decide.name }),
    reserving,
    webSockets,
    grpcCalls,
    bodyTimeouts,
    challenges: deps.challenges ?? onlyBearer,
    onHeaders,
    isShuttingDown: () => isShuttingDown,
  };

  const serve = (request: ReceivedRequest): RequestHandler =>
    deps.decide === undefined ? new Exchange(exchangeDeps, request) : deps.decide.serve(exchangeDeps, request);
  const reportBug = (error: unknown): void => deps.log.error('bug', describeBug(error));
  const { clock, isReady } = deps;
  const healthDeps = {
    ...{ clock, isReady, bodyTimeouts, isShuttingDown: () => isShuttingDown, onBug: reportBug },
    open: createFairQueue<HealthCheck>(maxOpenRequests(maxConnections)),
  };

  const listener = createListener(listen, deps.tls, maxConnections);
  const { server, setTls } = listener;
  const connections = createClientConnections(listener, { ...listen, maxConnections }, acceptHttp2, deps);
  const onRequest = (req: IncomingMessage, res: ServerResponse): void => {
    const connection = connections.of(req.socket);
    if (connection === undefined || !(req instanceof ClientRequest)) {
      req.socket.destroy();
      return;
    }
    if (!connection.accepts()) return;
    const upgrade = req.afterHead === null ? null : new UpgradeRequest(res, req.socket, connection, req.afterHead);
    req.exchange = serve(new Http1Request(req, res, connection, upgrade));
    connection.enqueue(req.exchange);
  };
  const refuse = (socket: Socket, reason: Denial, asked?: ParsedLine): void => {
    const connection = connections.of(socket);
    if (connection === undefined) socket.destroy();
    else connection.stopReading(reason, createParseErrorResponse(connection, reason, exchangeDeps, asked));
  };
  const onClientError = (error: Error, socket: Socket): void => {
    const reason = parseErrorDenial(error);
    // Where nothing came at all it was a port check, or a connection opened ahead of need.
    const isSilent = reason?.reason === 'header_timeout' && socket.bytesRead === 0;
    const connection = connections.of(socket);
    if (reason === null || isSilent || connection === undefined) socket.destroy();
    else if (reason.reason === 'header_timeout') {
      connection.expireHead(listen.headerTimeoutMs, () => refuse(socket, reason));
    } else if (reason.reason !== 'body_broken' || !connection.endBehindRequest()) refuse(socket, reason);
  };
  const checking = setInterval(() => {
    connections.look();
    for (const socket of connections.withLargeHead()) refuse(socket, denial('header_too_large'));
  }, checkingIntervalMs);
  checking.unref();
  const app = createClientApp({ server, onRequest, onClientError });
  // Without these Node would say Continue before the request is judged, 417 in words of its own, and nothing to
  // CONNECT.
  server.on('checkContinue', app.route);
  server.on('checkExpectation', app.route);
  server.on('upgrade', (req: IncomingMessage, _socket: unknown, first: Buffer) => {
    if (req instanceof ClientRequest) req.afterHead = first;
    app.route(req, new ServerResponse(req));
  });
  server.on('connect', (req: IncomingMessage, socket: Socket) => {
    refuse(socket, denial('method_not_allowed'), { method: 'CONNECT', target: req.url ?? '' });
  });
  return {
    listen: () => {
      const { host, port } = listen;
      if (deps.socket === undefined) return app.listen({ host, port, backlog: acceptQueue });
      const { path } = deps.socket;
      return openUnixSocket(deps.socket, () => app.listen({ path, backlog: acceptQueue }));
    },
    listeningHandle: () => listeningHandle(server),
    acceptBeside: (handle) => {
      acceptBeside(server, handle, acceptQueue);
    },
    adopt: async () => {
      await app.adopt();
      return (handle) => {
        adoptConnection(server, handle);
      };
    },
    setTls,
    announceShutdown: () => {
      announce();
      connections.announceEnd();
    },
    drain: async (graceMs) => {
      announce();
      server.headersTimeout = Math.min(listen.headerTimeoutMs, drainHeadMs);
      bodyTimeouts.idleMs = Math.min(listen.bodyIdleTimeoutMs, drainTimeouts.idleMs);
      bodyTimeouts.minRateAfterMs = Math.min(bodyTimeouts.minRateAfterMs, drainTimeouts.minRateAfterMs);
      bodyTimeouts.minRate = Math.max(listen.bodyMinRate, drainTimeouts.minRate);
      const startedMs = deps.clock.monotonic();
      const idleUntilMs = startedMs + graceMs / 2;
      let idleDeadline: NodeJS.Timeout | undefined;
      const closed = new Promise<void>((resolve) => {
        const onStopped = (): void => {
          const nowMs = deps.clock.monotonic();
          const leftMs = Math.max(lastArrivalsMs, announcedAtMs + announcedMs - nowMs);
          // What has arrived by then is read first, so that no request is cut off that a caller had sent.
          const closeIdle = (): NodeJS.Immediate => setImmediate(connections.closeIdle);
          idleDeadline = setTimeout(closeIdle, Math.min(leftMs, idleUntilMs - nowMs));
        };
        stopAccepting(server, longestAcceptMs(graceMs), { onStopped, onClosed: resolve });
      });
      const deadline = setTimeout(() => {
        connections.cutOff();
        reserving?.cutOff();
      }, graceMs);
      const lastSettling = setTimeout(() => reserving?.abortAll(), reserving?.lastSettlingMs(graceMs));
      connections.drain(announcedMs);
      webSockets.drain();
      await closed;
      // Writes whose caller left are completed all the same.
      await reserving?.idle(Math.max(0, startedMs + graceMs + lastRepliesMs - deps.clock.monotonic()));
      clearTimeout(deadline);
      clearTimeout(idleDeadline);
      clearTimeout(lastSettling);
      await reserving?.close();
      await connections.allClosed();
      clearInterval(checking);
      await app.close();
    },
    openWebSockets: webSockets.count,
    reauthorizeConnections: async () => {
      await Promise.all([webSockets.reauthorize(), grpcCalls.reauthorize()]);
    },
    counts: () => ({ connections: connections.count(), inFlight: slots.taken(), streams: streamPlaces.taken() }),
    connectionsByProtocol: connections.byProtocol,
  };

  function acceptHttp2(socket: Socket, options: Parameters<AcceptHttp2>[1]): Http2ClientConnection {
    return new Http2ClientConnection(socket, {
      ...options,
      maxStreams: listen.maxStreams,
      maxHeaderBytes: listen.maxHeaderBytes,
      keepAliveMs: listen.keepAliveTimeoutMs,
      serve: (request) =>
        listen.answersGrpcHealth && isHealthCheck(request.head) ? new HealthCheck(request, healthDeps) : serve(request),
      streamPlaces,
      openHeads,
      onHeaders,
      fail: reportBug,
    });
  }
}
