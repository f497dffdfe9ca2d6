import { describeChecked, isCheck } from '../../decision/decide/envoy-check.js';
import type { DescribedRequest } from '../../decision/decide/forms.js';
import { denial, type Denial } from '../../decision/denial.js';
import { readOneMessage } from '../../decision/grpc/messages.js';
import { grpcCodeOf } from '../../decision/grpc/refusal.js';
import type { GrpcCode } from '../../decision/grpc/status.js';
import { readGrpcTimeout } from '../../decision/grpc/timeout.js';
import { valuesOf } from '../../decision/http/header-values.js';
import { describeBug } from '../../lib/errors.js';
import type { CheckMessages } from '../../ports/envoy.js';
import { Exchange } from '../exchange/exchange.js';
import type { ExchangeDeps } from '../exchange/exchange-deps.js';
import { ByteBuffer } from '../inbound/byte-buffer.js';
import type { RequestHandler } from '../inbound/http1-request.js';
import type { ReceivedRequest } from '../inbound/received-request.js';
import { openBody, type RequestBody } from '../inbound/request-body.js';
import { answeringHost, describedConnection } from './asking-proxy.js';
import { EnvoyCheckWriter } from './envoy-check-writer.js';

/** What a call may be like, and what reads it. */
interface CheckSettings {
  readonly messages: CheckMessages;
  /** Of the message, with its prefix. */
  readonly maxBytes: number;
  /** Of the head that it describes. */
  readonly maxHeaderBytes: number;
}

/** What was read of a call. */
interface Asked {
  readonly described: DescribedRequest | null;
  /** Why it goes no further. */
  readonly denial: Denial | null;
  /** How the call itself ends; `null` where a message answers it. */
  readonly failsAs: GrpcCode | null;
}

/**
 * A call of `Check`: its message is read, and the request that it describes becomes an exchange like any other. A call
 * that fails before that, or of a method that nobody has here, becomes one too, so that it is logged and counted.
 */
export class EnvoyCheck implements RequestHandler {
  private readonly deps: ExchangeDeps;
  private readonly asking: ReceivedRequest;
  private readonly settings: CheckSettings;
  private body: RequestBody | null = null;
  private brokenBy: Denial | null = null;
  private exchange: Exchange | null = null;
  private writer: EnvoyCheckWriter | null = null;
  private deadline: NodeJS.Timeout | null = null;
  private isOver = false;
  private onOver: (() => void) | null = null;

  constructor(deps: ExchangeDeps, asking: ReceivedRequest, settings: CheckSettings) {
    this.deps = deps;
    this.asking = asking;
    this.settings = settings;
  }

  start(): void {
    if (!this.asking.begin(() => this.finish(), this.fail)) return;
    this.attempt(() => {
      const { asking, brokenBy } = this;
      const timeout = readGrpcTimeout(valuesOf(asking.head.rawHeaders, 'grpc-timeout'));
      if (brokenBy !== null) this.endCall(brokenBy);
      // Only a trusted proxy may ask: nothing is read of anybody else's call.
      else if (!asking.connection.peer.trusted) this.endCall(denial('asking_refused'));
      else if (!isCheck(asking.head)) this.endCall(denial('description_malformed'), 'UNIMPLEMENTED');
      else if (!timeout.ok) this.endCall(timeout.error);
      else {
        if (timeout.value !== null) this.deadline = setTimeout(() => this.attempt(this.expire), timeout.value);
        this.read();
      }
    });
  }

  private read(): void {
    const { asking, deps, settings } = this;
    const body = openBody(
      asking,
      { hasBody: asking.head.endsStream !== true, expectsContinue: false },
      {
        maxBytes: settings.maxBytes,
        timeouts: deps.bodyTimeouts,
        upstreamTimeoutMs: deps.bodyTimeouts.idleMs,
        onBroken: (reason) => this.attempt(() => this.endCall(reason)),
        passedTrailers: () => null,
      },
    );
    this.body = body;
    if (body === null) this.take(Buffer.alloc(0));
    else {
      const take = (whole: Buffer): void => this.attempt(() => this.take(whole));
      body.gather((whole) => {
        if (whole === null) readOn(body, take);
        else take(whole);
      });
    }
  }

  private take(bytes: Buffer): void {
    if (this.exchange !== null) return;
    const message = readOneMessage(bytes);
    const checked = message.ok ? this.settings.messages.read(message.value) : null;
    if (checked === null) this.endCall(denial('description_malformed'), message.ok ? 'INTERNAL' : message.error);
    else {
      const described = describeChecked(checked, this.settings.maxHeaderBytes);
      this.serve(
        described.ok
          ? { described: described.value, denial: null, failsAs: null }
          : { described: null, denial: described.error, failsAs: null },
      );
    }
  }

  /** It described nothing that could be judged. */
  private endCall(reason: Denial, failsAs: GrpcCode = grpcCodeOf(reason.reason)): void {
    if (this.exchange === null) this.serve({ described: null, denial: reason, failsAs });
  }

  private serve({ described, denial: reason, failsAs }: Asked): void {
    const { asking, deps } = this;
    this.body?.destroy();
    const head = described?.head ?? asking.head;
    this.exchange = new Exchange(deps, {
      head,
      connection: describedConnection(asking, described?.encrypted ?? false, (nowMs) => {
        asking.connection.finish(this, nowMs);
      }),
      upgrade: null,
      begin: (onOver) => {
        this.onOver = onOver;
        return !this.isOver;
      },
      body: () => asking.body(),
      createWriter: (host) => {
        this.writer = new EnvoyCheckWriter({
          messages: this.settings.messages,
          rawHeaders: described === null ? [] : head.rawHeaders,
          failsAs,
          inner: asking.createWriter(answeringHost(host)),
          host,
        });
        return this.writer;
      },
    });
    if (reason !== null) this.exchange.failBody(reason);
    this.exchange.start();
  }

  /** Who asked waits no longer (https://grpc.io/docs/guides/deadlines/). */
  private readonly expire = (): void => {
    const late = denial('caller_gone');
    if (this.exchange === null) this.endCall(late, 'DEADLINE_EXCEEDED');
    else {
      this.writer?.expire();
      this.exchange.refuse(late);
    }
  };

  private finish(): void {
    this.isOver = true;
    if (this.deadline !== null) clearTimeout(this.deadline);
    this.body?.destroy();
    if (this.onOver !== null) this.onOver();
    else this.asking.connection.finish(this, this.deps.clock.monotonic());
  }

  /** A bug. */
  readonly fail = (error: unknown): void => {
    if (this.exchange !== null) this.exchange.fail(error);
    else {
      this.deps.log.error('bug', describeBug(error));
      this.endCall(denial('internal'));
    }
  };

  private attempt(step: () => void): void {
    try {
      step();
    } catch (error) {
      this.fail(error);
    }
  }

  isReceived(): boolean {
    return this.exchange?.isReceived() ?? false;
  }

  failBody(reason: Denial): void {
    this.brokenBy = reason;
    if (this.body !== null) this.attempt(() => this.endCall(reason));
  }

  shortenBodyTimeouts(): void {
    this.body?.restartTimeout();
  }

  cutOff(): void {
    if (this.exchange === null) this.attempt(() => this.endCall(denial('shutting_down')));
    else this.exchange.cutOff();
  }

  onDrain(): void {
    this.exchange?.onDrain();
  }
}

/** Reads what is longer than it takes to gather it. */
function readOn(body: RequestBody, onWhole: (whole: Buffer) => void): void {
  const whole = new ByteBuffer();
  body.on('data', (chunk: Buffer) => whole.append(chunk)).on('end', () => onWhole(whole.take()));
}
