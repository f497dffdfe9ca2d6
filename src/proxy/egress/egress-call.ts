import { Readable } from 'node:stream';
import { denial, type Denial, type Reason } from '../../decision/denial.js';
import { nonceIn } from '../../decision/egress/attempt-outcome.js';
import { withAttempts, type AttemptsMade } from '../../decision/egress/attempts.js';
import { nameInHeaders, nameInJson, planKey } from '../../decision/egress/key.js';
import {
  asksForNonce,
  judgeAttempt,
  leavesDoubt,
  settlesDoubt,
  type AttemptOutcome,
  type NoRetryReason,
} from '../../decision/egress/retry.js';
import { subjectIn } from '../../decision/egress/token-response.js';
import { outgoingTarget } from '../../decision/egress/target.js';
import { isGrpc } from '../../decision/grpc/content-type.js';
import { readBearer } from '../../decision/token/credential.js';
import type { Clock } from '../../ports/system.js';
import type { TokenOutcome } from '../../ports/tokens.js';
import type { ResponseSink, UpstreamRequest } from '../upstream/call.js';
import type { UpstreamCall } from '../upstream/pool/pool.js';
import { EgressAttempt, type EgressAttemptHost, type HeldResponse } from './attempt.js';
import { RetryBuffer, type RetryBufferBudget } from './retry-buffer.js';
import { derivedKey, newKey } from './keys.js';
import type { EgressTarget } from './target.js';

export interface EgressCallDeps {
  readonly bufferBudget: RetryBufferBudget;
  readonly clock: Clock;
  /** At least 0 and less than 1. */
  readonly random: () => number;
  /** A bug. */
  readonly onBug: (error: unknown) => void;
  readonly onAttempt: (target: string, isRetry: boolean) => void;
  readonly onNotRetried: (target: string, reason: NonNullable<AttemptsMade['notRetried']>) => void;
}

/** Headers that each attempt writes itself, and those that tell of the way within this pod. */
const notPassed: ReadonlySet<string> = new Set([
  'authorization',
  'dpop',
  'host',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-proto',
]);

/** The lengths of the header names that are read here: names of other lengths need not be compared. */
const readLengths: ReadonlySet<number> = new Set(
  ['idempotency-key', 'content-type', ...notPassed].map(({ length }) => length),
);

/** What a failure says of its attempt. Any other reason is a failure of our own, and final. */
const failures: ReadonlyMap<Reason, AttemptOutcome> = new Map<Reason, AttemptOutcome>([
  ['upstream_unreachable', { kind: 'not_sent' }],
  ['upstream_failed', { kind: 'no_response' }],
  ['upstream_timeout', { kind: 'no_response' }],
]);

const late: TokenOutcome = { kind: 'unavailable', problem: 'away', reason: 'it came too late', retryAfterS: 1 };

/** A key by the token itself would be another one with the next token: the same write would run twice. */
const nameless: Denial = {
  ...denial('idempotency_key_missing'),
  detail: 'a key is made for a caller whose own token is a JWT with iss and sub, which this one is not',
};

/**
 * One request of the calling side: a key, a token, and as many attempts as are safe. Its sink hears of the last one
 * alone.
 */
export class EgressCall implements UpstreamCall, EgressAttemptHost {
  private readonly request: UpstreamRequest;
  private readonly sink: ResponseSink;
  private readonly target: EgressTarget;
  private readonly deps: EgressCallDeps;
  /** What every attempt is sent with. */
  private readonly headers: string[] = [];
  private body: RetryBuffer | Buffer | null = null;
  /** Bytes of a body that came in one piece and counts among what is held; `null` where there was no room for it. */
  private heldBytes: number | null = 0;
  private subjectToken: string | null = null;
  private token: string | null = null;
  private hasNewToken = false;
  /**
   * Nonce of the last proof, `null` where it had none; left out where there was no proof, or a nonce was taken up
   * already.
   */
  private provedNonce: string | null | undefined;
  private hasNewNonce = false;
  private hasKey = false;
  /** Where it was made here. */
  private key: string | null = null;
  private attempt: EgressAttempt | null = null;
  private attempts = 0;
  /** Those that count towards the limit. */
  private counted = 0;
  private notRetried: AttemptsMade['notRetried'] = null;
  /**
   * The denial to answer with where an earlier attempt may have been carried out, and no later one says whether it was.
   */
  private doubt: Denial | null = null;
  private startedMs = 0;
  private waiting: NodeJS.Timeout | null = null;
  private isOver = false;

  constructor(request: UpstreamRequest, sink: ResponseSink, target: EgressTarget, deps: EgressCallDeps) {
    this.request = request;
    this.sink = sink;
    this.target = target;
    this.deps = deps;
  }

  /** Not at once: who asks has to know this call before its sink hears of it. */
  start(): void {
    queueMicrotask(() => this.guard(() => this.begin()));
  }

  resume(): void {
    this.attempt?.resume();
  }

  cancel(): void {
    this.end();
    this.attempt?.cancel();
  }

  now(): number {
    return this.deps.clock.now();
  }

  mayBeSent(): boolean {
    return this.attempts > 1 || this.attempt?.mayBeSent() === true;
  }

  private begin(): void {
    if (this.isOver) return;
    this.startedMs = this.deps.clock.monotonic();
    this.target.budget.onRequest();
    const { authorization, idempotencyKey, contentType } = this.readHeaders();
    const refused = this.readSubject(authorization);
    if (refused !== null) {
      this.fail(refused);
      return;
    }
    const { method } = this.request;
    this.holdBody();
    const { missingKey, keyFrom } = this.target;
    // Streams are never reserved, and which gRPC calls are streams is not known here.
    const isCall = isGrpc(contentType);
    const plan = planKey({ method, idempotencyKey }, isCall ? 'pass' : missingKey, isCall ? null : keyFrom);
    if (!plan.ok) {
      this.fail(plan.error);
      return;
    }
    switch (plan.value.kind) {
      case 'kept':
        this.hasKey = plan.value.hasKey && !isCall;
        break;
      case 'generate':
        this.useKey(newKey());
        break;
      case 'derive':
        this.deriveKey();
        return;
    }
    this.next();
  }

  private holdBody(): void {
    const {
      request: { body },
      deps: { bufferBudget },
      target: { retryBufferBytes },
    } = this;
    this.body = body instanceof Readable ? new RetryBuffer(body, bufferBudget, retryBufferBytes) : body;
    if (!Buffer.isBuffer(body)) return;
    this.heldBytes = body.length <= retryBufferBytes && bufferBudget.take(body.length) ? body.length : null;
  }

  private isRepeatable(): boolean {
    return this.body instanceof RetryBuffer ? this.body.isWhole() : this.heldBytes !== null;
  }

  private releaseBody(): void {
    if (this.body instanceof RetryBuffer) this.body.release();
    else if (this.heldBytes !== null) {
      this.deps.bufferBudget.giveBack(this.heldBytes);
      this.heldBytes = null;
    }
  }

  private readHeaders(): Record<'authorization' | 'idempotencyKey' | 'contentType', string | null> {
    const found: Record<'authorization' | 'idempotencyKey' | 'contentType', string | null> = {
      authorization: null,
      idempotencyKey: null,
      contentType: null,
    };
    this.headers.push('Host', this.target.upstream.host);
    const { headers } = this.request;
    for (let i = 0; i < headers.length; i += 2) {
      const name = headers[i] ?? '';
      const value = headers[i + 1] ?? '';
      const lowerCase = readLengths.has(name.length) ? name.toLowerCase() : '';
      if (lowerCase === 'authorization') found.authorization = value;
      else if (lowerCase === 'idempotency-key') found.idempotencyKey = value;
      else if (lowerCase === 'content-type') found.contentType = value;
      if (!notPassed.has(lowerCase)) this.headers.push(name, value);
    }
    return found;
  }

  /** The caller's own token is what an exchange begins with; elsewhere there must be none. */
  private readSubject(authorization: string | null): Denial | null {
    if (!this.target.takesSubject) return authorization === null ? null : denial('authorization_refused');
    const bearer = readBearer(authorization);
    if (!bearer.ok) return bearer.error;
    this.subjectToken = bearer.value;
    return null;
  }

  private deriveKey(): void {
    const { body, subjectToken } = this;
    const { keyFrom } = this.target;
    if (keyFrom === null) return;
    const caller = subjectToken === null ? null : subjectIn(subjectToken);
    if (subjectToken !== null && caller === null) {
      this.fail(nameless);
      return;
    }
    if (keyFrom.kind === 'header') this.useDerived(nameInHeaders(this.headers, keyFrom.name), caller);
    else if (!(body instanceof RetryBuffer)) {
      this.useDerived(nameInJson(body ?? Buffer.alloc(0), keyFrom.path), caller);
    } else {
      body.readWhole((whole) =>
        this.guard(() => {
          if (whole === null) this.fail(denial(body.isTooLarge() ? 'body_too_large' : 'overloaded'));
          else this.useDerived(nameInJson(whole, keyFrom.path), caller);
        }),
      );
    }
  }

  /** Two callers that name alike what they do mean two writes. */
  private useDerived(name: string | null, caller: string | null): void {
    if (name === null) {
      this.fail(denial('idempotency_key_missing'));
      return;
    }
    const { target, request } = this;
    this.useKey(derivedKey({ target: target.name, method: request.method, path: request.target, caller, name }));
    this.next();
  }

  private useKey(key: string): void {
    this.hasKey = true;
    this.key = key;
    this.headers.push('Idempotency-Key', key);
  }

  /**
   * Begins an attempt, once there is a token for it.
   *
   * @param refused the response that asks for another token; it is passed on where there is none.
   */
  private next(refused: HeldResponse | null = null): void {
    if (this.isOver) return;
    const { tokens } = this.target;
    if (tokens === null) {
      this.send();
      return;
    }
    const outcome = tokens.get(this.subjectToken);
    if (outcome instanceof Promise) this.awaitToken(outcome, refused);
    else this.onToken(outcome, refused);
  }

  /** A retry whose token comes too late does not begin. The first attempt waits as long as the token's source does. */
  private awaitToken(outcome: Promise<TokenOutcome>, refused: HeldResponse | null): void {
    const take = (settled: TokenOutcome): void => this.guard(() => this.onToken(settled, refused));
    void outcome.then(take);
    const leftMs = this.startedMs + this.target.retries.withinMs - this.deps.clock.monotonic();
    if (this.attempts > 0) this.waiting = setTimeout(() => take(late), leftMs);
  }

  private onToken(outcome: TokenOutcome, refused: HeldResponse | null): void {
    if (this.isOver) return;
    if (this.waiting !== null) clearTimeout(this.waiting);
    if (outcome === late) this.stop('time');
    const isAnother = outcome.kind === 'token' && outcome.token !== this.token;
    if (refused !== null && !isAnother) this.passHeld(refused);
    else if (outcome.kind === 'token') {
      this.token = outcome.token;
      this.send();
    } else if (outcome.problem === 'subject') this.fail(denial('exchange_refused'));
    else this.fail({ reason: 'token_unavailable', retryAfterS: outcome.retryAfterS });
  }

  private send(): void {
    const { request, target, body, token, deps } = this;
    deps.onAttempt(target.name, this.attempts > 0);
    this.attempts += 1;
    this.counted = Math.max(1, this.counted);
    const headers = this.headers.slice();
    const sentTo = outgoingTarget(target, request.target);
    if (token !== null) this.pushToken(headers, token, sentTo);
    const { holder, method, responseTimeoutMs, upgrade, onUpgrade } = request;
    const attempt = new EgressAttempt(this);
    // Its response had its time to end.
    this.attempt?.cancel();
    this.attempt = attempt;
    attempt.begin(target.upstream, {
      holder,
      method,
      target: sentTo,
      headers,
      body: body instanceof RetryBuffer ? body.open() : body,
      responseTimeoutMs,
      trace: request.trace === undefined ? undefined : traceThere(request.trace, target),
      ...(upgrade === undefined || onUpgrade === undefined
        ? {}
        : {
            upgrade,
            onUpgrade: (rawHeaders, socket) => {
              this.end();
              this.takeNonce(rawHeaders);
              onUpgrade(withAttempts(rawHeaders, this.made()), socket);
            },
          }),
    });
  }

  private pushToken(headers: string[], token: string, sentTo: string): void {
    const { proofs } = this.target;
    if (proofs === null) {
      headers.push('Authorization', `Bearer ${token}`);
      return;
    }
    const { signer, origin, nonce } = proofs;
    const proved = { method: this.request.method, url: origin + sentTo, token, nonce, nowMs: this.deps.clock.now() };
    headers.push('Authorization', `DPoP ${token}`, 'DPoP', signer.prove(proved));
    this.provedNonce = this.hasNewNonce ? undefined : nonce;
  }

  /** Passes the response on, or has another attempt on its way. */
  onOutcome(outcome: AttemptOutcome, held: HeldResponse | null): boolean {
    if (this.isOver) return false;
    const { target, request, deps, provedNonce } = this;
    const proof = provedNonce === undefined ? {} : { provedNonce };
    if (target.proofs !== null && outcome.kind === 'response') {
      target.proofs.nonce = outcome.nonce ?? target.proofs.nonce;
    }
    if (!asksForNonce(outcome, proof)) this.dropRefusedToken(outcome);
    const verdict = judgeAttempt(
      outcome,
      {
        method: request.method,
        hasKey: this.hasKey,
        isRepeatable: this.isRepeatable(),
        isHandshake: request.upgrade !== undefined,
        attempts: this.counted,
        elapsedMs: deps.clock.monotonic() - this.startedMs,
        hasNewToken: this.hasNewToken,
        ...proof,
      },
      target.retries,
      { random: deps.random(), isInBudget: target.budget.hasRoom() },
    );
    if (verdict.kind === 'pass') {
      this.stop(verdict.reason);
      return this.mayPass(outcome);
    }
    if (leavesDoubt(outcome, request.method)) this.doubt = doubtOf(outcome);
    if (verdict.needsNewToken) {
      // A request that went out without a token of ours gets no other.
      if (this.token === null || target.tokens === null) {
        this.stop('final');
        return this.mayPass(outcome);
      }
      this.hasNewToken = true;
    }
    this.hasNewNonce ||= verdict.needsNonce;
    // Reading on for an attempt that is over might make the body too large to be held.
    if (this.body instanceof RetryBuffer) this.body.stop();
    if (verdict.counts) {
      this.counted += 1;
      target.budget.take();
    }
    const again = (): void => this.guard(() => this.next(verdict.needsNewToken ? held : null));
    if (verdict.afterMs === 0) again();
    else this.waiting = setTimeout(again, verdict.afterMs);
    return false;
  }

  /** Whether the last attempt's outcome is the request's; else the doubt that it leaves is told in its place. */
  private mayPass(outcome: AttemptOutcome): boolean {
    if (this.doubt === null || settlesDoubt(outcome) || leavesDoubt(outcome, this.request.method)) return true;
    this.fail(this.doubt);
    return false;
  }

  /** Drops the token even where this request cannot be sent again: later ones would be sent with it. */
  private dropRefusedToken(outcome: AttemptOutcome): void {
    const isRefused = outcome.kind === 'response' && outcome.status === 401 && !this.hasNewToken;
    if (isRefused && this.token !== null) this.target.tokens?.invalidate(this.token);
  }

  onFailure(reason: Denial): void {
    this.guard(() => {
      const outcome = failures.get(reason.reason);
      if (outcome === undefined || this.onOutcome(outcome, null)) this.fail(reason);
    });
  }

  private stop(reason: NoRetryReason): void {
    this.notRetried = reason === 'final' ? null : reason;
    if (this.notRetried !== null) this.deps.onNotRetried(this.target.name, this.notRetried);
    this.releaseBody();
  }

  onHead(status: number, rawHeaders: readonly string[]): void {
    const made = this.made();
    this.sink.onAttempts?.(made);
    this.takeNonce(rawHeaders);
    this.sink.onHead(status, withAttempts(rawHeaders, made));
  }

  onData(chunk: Buffer): boolean {
    return this.sink.onData(chunk);
  }

  onEnd(trailers: readonly string[] | null): void {
    this.end();
    this.sink.onEnd(trailers);
  }

  onError(reason: Denial): void {
    this.end();
    this.sink.onError(reason);
  }

  private takeNonce(rawHeaders: readonly string[]): void {
    const { proofs } = this.target;
    if (proofs !== null) proofs.nonce = nonceIn(rawHeaders) ?? proofs.nonce;
  }

  /** The target's own word, where no better one can be had. */
  private passHeld({ status, rawHeaders, chunks, trailers }: HeldResponse): void {
    if (this.notRetried === null) this.stop('final');
    if (this.doubt !== null) {
      this.fail(this.doubt);
      return;
    }
    this.end();
    this.onHead(status, rawHeaders);
    for (const chunk of chunks) this.sink.onData(chunk);
    this.sink.onEnd(trailers);
  }

  private fail(reason: Denial): void {
    if (this.isOver) return;
    this.end();
    const attempts = this.made();
    this.sink.onAttempts?.(attempts);
    // That a later attempt was not applied says nothing of an earlier one.
    const isInDoubt = failures.get(reason.reason)?.kind === 'no_response';
    const told = isInDoubt ? reason : (this.doubt ?? reason);
    this.sink.onError({ ...told, attempts });
  }

  private made(): AttemptsMade {
    return { count: this.attempts, notRetried: this.notRetried, key: this.key };
  }

  private end(): void {
    this.isOver = true;
    if (this.waiting !== null) clearTimeout(this.waiting);
    this.waiting = null;
    this.releaseBody();
    if (this.body instanceof RetryBuffer) this.body.close();
  }

  private guard(step: () => void): void {
    try {
      step();
    } catch (error) {
      this.deps.onBug(error);
      this.fail(denial('internal'));
    }
  }
}

/** The trace names the path that goes out to the target, not the one that was asked for here. */
function traceThere(trace: NonNullable<UpstreamRequest['trace']>, target: EgressTarget): typeof trace {
  return { send: (to) => trace.send({ ...to, pathThere: (path) => outgoingTarget(target, path) }) };
}

function doubtOf(outcome: AttemptOutcome): Denial {
  return denial(outcome.kind === 'response' && outcome.status === 504 ? 'upstream_timeout' : 'upstream_failed');
}
