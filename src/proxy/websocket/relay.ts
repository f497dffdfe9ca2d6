import { randomBytes } from 'node:crypto';
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { TLSSocket } from 'node:tls';
import { closeCauses, type CloseCause } from '../../decision/websocket/close-codes.js';
import { closeFrame, FrameReader } from '../../decision/websocket/frames.js';
import { Pieces, restingReads } from '../resting-reads.js';
import { RelayDirection } from './relay-direction.js';
import type { UpgradedSocket } from './upgrade-request.js';

/** How long an end may take to answer a Close of ours, and to close its connection after the last word. */
const closeTimeoutMs = 5_000;

const maskBytes = 4;

interface RelayOptions {
  readonly client: UpgradedSocket;
  readonly upstream: Duplex;
  /** Whether the ends agreed on an extension. */
  readonly hasExtension: boolean;
  readonly idleTimeoutMs: number;
  /** Both connections are closed. */
  readonly onClosed: (cause: CloseCause) => void;
}

/**
 * A WebSocket connection from its 101 to its end. Its bytes are passed on as they are; of the frames only so much is
 * known that one of ours can stand between them.
 */
export class Relay {
  private readonly options: RelayOptions;
  private readonly inbound: RelayDirection;
  private readonly outbound: RelayDirection;
  private readonly ends: ReadonlySet<Duplex>;
  private readonly ended = new Set<Duplex>();
  private readonly closed = new Set<Duplex>();
  private readonly idleTimer: NodeJS.Timeout;
  private closeTimer: NodeJS.Timeout | null = null;
  private cause: CloseCause | null = null;
  private isClosing = false;

  constructor(options: RelayOptions) {
    this.options = options;
    const {
      client: { socket },
      upstream,
      hasExtension: extended,
    } = options;
    this.ends = new Set([socket, upstream]);
    const direct = (source: Duplex, target: Duplex, masked: boolean): RelayDirection =>
      new RelayDirection(source, target, new FrameReader({ masked, extended }), () =>
        this.limitClosing(closeTimeoutMs),
      );
    this.inbound = direct(socket, upstream, true);
    this.outbound = direct(upstream, socket, false);
    this.idleTimer = setTimeout(() => this.close(closeCauses.idle), options.idleTimeoutMs);
  }

  start(): void {
    const {
      client: { socket, early },
      upstream,
    } = this.options;
    for (const end of this.ends) {
      end
        .on('error', () => undefined)
        .on('end', () => this.onEnd(end))
        .on('close', () => this.onClose(end));
      if (end.destroyed) this.onClose(end);
    }
    if (early.length > 0) this.onData(this.inbound, early);
    this.read(socket, this.inbound);
    this.read(upstream, this.outbound);
  }

  /** Ends it for a reason of ours, with a Close frame to both ends. Nothing more of the caller is passed on. */
  close(cause: CloseCause): void {
    this.cause ??= cause;
    if (this.isClosing) return;
    this.isClosing = true;
    this.limitClosing(closeTimeoutMs);
    const { code, text } = cause;
    this.inbound.finish(closeFrame(code, text, randomBytes(maskBytes)), false);
    this.outbound.finish(closeFrame(code, text, null), true);
    this.settle();
  }

  /** Ends it at once. */
  destroy(): void {
    for (const end of this.ends) end.destroy();
  }

  private read(source: Duplex, direction: RelayDirection): void {
    // Node reads on below the TLS of an upstream, and what it has read is lost when the connection is reset meanwhile.
    const mayRest = source instanceof Socket && !(direction === this.outbound && source instanceof TLSSocket);
    const pieces = mayRest ? new Pieces(restingReads, source, () => false) : null;
    source
      .on('data', (chunk: Buffer) => {
        pieces?.took(chunk.length, this.options.idleTimeoutMs);
        this.onData(direction, chunk);
      })
      .resume();
  }

  private onData(direction: RelayDirection, chunk: Buffer): void {
    this.idleTimer.refresh();
    const event = direction.take(chunk);
    if (event === null) return;
    const isCaller = direction === this.inbound;
    if (event === 'malformed') {
      this.close(isCaller ? closeCauses.malformedByCaller : closeCauses.malformedByUpstream);
      direction.drop();
    }
    if (event === 'close') this.cause ??= isCaller ? closeCauses.caller : closeCauses.upstream;
    this.settle();
  }

  /** Goes on with a closing of ours: a connection ends when nothing is left to say or hear. */
  private settle(): void {
    if (!this.isClosing || this.outbound.isFinishing()) return;
    this.inbound.end();
    if (this.inbound.isClosed()) this.outbound.end();
  }

  /** One end sends nothing more: without a Close before that it is lost. */
  private onEnd(end: Duplex): void {
    if (this.ended.has(end)) return;
    this.ended.add(end);
    const {
      client: { socket },
      upstream,
    } = this.options;
    const isSound = this.isClosing || this.inbound.isClosed() || this.outbound.isClosed();
    if (!isSound) this.cause ??= end === socket ? closeCauses.callerLost : closeCauses.upstreamLost;
    if (!isSound && end === upstream) {
      this.outbound.finish(closeFrame(closeCauses.upstreamLost.code, closeCauses.upstreamLost.text, null), false);
    }
    // A reader that is slow but still reads gets what was sent before, unless it floods.
    const isBehind = !this.isClosing && socket.writableLength + upstream.writableLength > 0;
    const hasStopped = this.inbound.hasStopped() || this.outbound.hasStopped();
    this.limitClosing(isBehind && !hasStopped ? this.options.idleTimeoutMs : closeTimeoutMs);
    this.directionFrom(end).end();
    if (isSound && !this.isClosing) return;
    this.directionTo(end).end();
    this.directionTo(end).drop();
  }

  private onClose(end: Duplex): void {
    if (this.closed.has(end)) return;
    this.closed.add(end);
    this.onEnd(end);
    // The caller may still be reading what came last of an upstream that is closed.
    if (end === this.options.upstream) this.inbound.drop();
    else this.outbound.abandon();
    this.directionFrom(end).end();
    if (this.closed.size < this.ends.size) return;
    clearTimeout(this.idleTimer);
    if (this.closeTimer !== null) clearTimeout(this.closeTimer);
    this.options.onClosed(this.cause ?? closeCauses.upstreamLost);
  }

  private directionFrom(end: Duplex): RelayDirection {
    return end === this.options.upstream ? this.outbound : this.inbound;
  }

  private directionTo(end: Duplex): RelayDirection {
    return end === this.options.upstream ? this.inbound : this.outbound;
  }

  private limitClosing(limitMs: number): void {
    if (this.closeTimer !== null) clearTimeout(this.closeTimer);
    this.closeTimer = setTimeout(() => this.destroy(), limitMs);
  }
}
