import { denial, type Denial } from '../../decision/denial.js';
import { isGrpc } from '../../decision/grpc/content-type.js';
import { healthResponse, isHealthPath, maxHealthBodyBytes } from '../../decision/grpc/health.js';
import { headerValue, type RequestHead } from '../../decision/http/request-head.js';
import { http2Version } from '../../decision/http2/request-head.js';
import type { FairQueue, Waiting } from '../../decision/limits/fair-queue.js';
import { clientNetworks, type ClientNetworks } from '../../lib/ip-ranges.js';
import type { PipelinedRequest } from '../inbound/client-connection.js';
import type { ReceivedRequest, ResponseWriter, ResponseWriterHost } from '../inbound/received-request.js';
import { openBody, type BodyTimeouts, type RequestBody } from '../inbound/request-body.js';
import { newRequestId } from './ids.js';

/** A probe sends a few bytes at once; who takes longer for all of them is none. */
const longestBodyMs = 5_000;

/** How long a response, which is shorter than a packet, may be left unread. */
const writeTimeoutMs = 10_000;

interface HealthCheckDeps {
  readonly isReady: () => boolean;
  readonly clock: { readonly monotonic: () => number };
  readonly bodyTimeouts: BodyTimeouts;
  readonly isShuttingDown: () => boolean;
  /** Those of all callers whose message has yet to come. */
  readonly open: FairQueue<HealthCheck>;
  /** A bug. */
  readonly onBug: (error: unknown) => void;
}

/** Tells whether a request is a call of `grpc.health.v1.Health`. */
export function isHealthCheck(head: RequestHead): boolean {
  const { httpVersion, method, target } = head;
  return (
    httpVersion === http2Version &&
    method === 'POST' &&
    isHealthPath(target) &&
    isGrpc(headerValue(head, 'content-type'))
  );
}

/**
 * A call of the health service that is answered here. It shows no credential, takes no place among the requests in
 * flight, so that a busy server is not taken for a broken one, and is neither logged nor counted, as `/readyz` is not.
 */
export class HealthCheck implements PipelinedRequest, ResponseWriterHost, Waiting {
  readonly networks: ClientNetworks;
  private readonly received: ReceivedRequest;
  private readonly deps: HealthCheckDeps;
  private readonly writer: ResponseWriter;
  private body: RequestBody | null = null;
  private brokenBy: Denial | null = null;
  private hasResponded = false;
  private deadline: NodeJS.Timeout | null = null;

  constructor(received: ReceivedRequest, deps: HealthCheckDeps) {
    this.networks = clientNetworks(received.connection.peer.remoteAddress);
    this.received = received;
    this.deps = deps;
    this.writer = received.createWriter(this);
  }

  start(): void {
    if (!this.received.begin(() => this.finish(), this.fail)) return;
    this.attempt(() => {
      const { received, deps } = this;
      if (this.brokenBy !== null) {
        this.refuse(this.brokenBy);
        return;
      }
      this.body = openBody(
        received,
        { hasBody: received.head.endsStream !== true, expectsContinue: false },
        {
          maxBytes: maxHealthBodyBytes,
          timeouts: deps.bodyTimeouts,
          upstreamTimeoutMs: longestBodyMs,
          onBroken: (reason) => this.attempt(() => this.refuse(reason)),
          passedTrailers: () => null,
        },
      );
      if (this.body === null) this.respond(Buffer.alloc(0));
      else this.awaitMessage(this.body);
    });
  }

  /** One of the network that has most of them may lose its place for it. */
  private awaitMessage(body: RequestBody): void {
    const { entered, ousted } = this.deps.open.enter(this);
    // Not in the midst of reading a connection.
    if (ousted !== null) setImmediate(() => ousted.attempt(() => ousted.refuse(denial('overloaded'))));
    if (!entered) {
      this.refuse(denial('overloaded'));
      return;
    }
    this.deadline = setTimeout(() => this.attempt(() => this.refuse(denial('body_timeout'))), longestBodyMs);
    body.gather((whole) => this.attempt(() => this.respond(whole ?? Buffer.alloc(0))));
  }

  isGone(): boolean {
    return this.hasResponded;
  }

  private respond(message: Buffer): void {
    if (this.hasResponded) return;
    this.stopWaiting();
    const { headers, body, trailers } = healthResponse(this.received.head.target, message, this.deps.isReady());
    if (this.writer.begin(200, [...headers, 'x-request-id', newRequestId()])) return;
    this.writer.write(Buffer.from(body));
    this.writer.end(trailers);
  }

  private refuse(reason: Denial): void {
    if (this.hasResponded) return;
    this.stopWaiting();
    this.body?.destroy();
    if (reason.reason === 'caller_gone') this.writer.abort();
    else this.writer.refuse(reason, newRequestId(), this.body !== null);
  }

  private stopWaiting(): void {
    this.hasResponded = true;
    this.deps.open.leave(this);
    if (this.deadline !== null) clearTimeout(this.deadline);
  }

  private finish(): void {
    this.stopWaiting();
    this.body?.destroy();
    this.received.connection.finish(this, this.deps.clock.monotonic());
  }

  private readonly fail = (error: unknown): void => {
    this.deps.onBug(error);
    this.writer.abort();
  };

  private attempt(step: () => void): void {
    try {
      step();
    } catch (error) {
      this.fail(error);
    }
  }

  isReceived(): boolean {
    return this.writer.isReceived();
  }

  failBody(reason: Denial): void {
    this.brokenBy = reason;
    if (this.body !== null) this.attempt(() => this.refuse(reason));
  }

  shortenBodyTimeouts(): void {
    this.body?.restartTimeout();
  }

  cutOff(): void {
    this.attempt(() => this.refuse(denial('shutting_down')));
  }

  onDrain(): void {
    this.attempt(() => this.writer.onDrain());
  }

  /** Nobody is asked for a credential. */
  challenges(): readonly string[] {
    return [];
  }

  isShuttingDown(): boolean {
    return this.deps.isShuttingDown();
  }

  writeTimeoutMs(): number {
    return writeTimeoutMs;
  }

  onWriteTimeout(): void {
    this.writer.abort();
  }

  /** All of the response was written at once. */
  onWritable(): void {
    return undefined;
  }
}
