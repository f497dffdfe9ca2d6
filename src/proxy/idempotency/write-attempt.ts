import { denial, type Denial } from '../../decision/denial.js';
import { checkDispatch, leaseMsOf, markerTtlMs } from '../../decision/idempotency/dispatch-check.js';
import { fingerprintOf } from '../../decision/idempotency/fingerprint.js';
import type { Complete, Reserve, Reserved } from '../../decision/idempotency/record.js';
import { settle, statusOnly, type Settlement, type UpstreamOutcome } from '../../decision/idempotency/settlement.js';
import type { RequestTrace } from '../../ports/tracing.js';
import type { Clock, Timers } from '../../ports/system.js';
import type { ReservationMetrics, ReservationStore, StoreShare } from '../../ports/idempotency.js';
import { newAttempt } from '../exchange/ids.js';
import type { ActiveConfig } from '../auth/active-config.js';
import type { Admission } from '../auth/authorize-request.js';
import { valuesOf } from '../../decision/http/header-values.js';
import { isBefore, type Preparation } from './plan-reservation.js';
import type { SettleCommand, Settlements } from './settlement-queue.js';

export interface WriteAttemptDeps {
  readonly store: ReservationStore;
  readonly settlements: Settlements;
  readonly metrics: ReservationMetrics;
  readonly share: StoreShare | null;
  readonly clock: Clock;
  readonly timers: Timers;
  /** Replicas that have to confirm. */
  readonly replicas: number;
  readonly settleTimeoutMs: number;
}

/** The write that is reserved. */
export interface AttemptedWrite {
  readonly admission: Admission;
  readonly preparation: Preparation;
  readonly method: string;
  readonly body: Buffer;
  readonly activeConfig: ActiveConfig;
  /** `null` where it is not traced. */
  readonly trace: RequestTrace | null;
}

/** Names of what the upstream learns of a reservation. */
const recordHeader = 'Idempotency-Record';
const fenceHeader = 'Idempotency-Fence';
const recordKey = recordHeader.toLowerCase();

/** Which host the caller asked for, as the upstream is told. */
const forwardedHostKey = 'x-forwarded-host';

/** How long what the store did not take is offered again, milliseconds: retries come within minutes. */
const offeredForMs = 5 * 60_000;

type CompleteSettlement = Extract<Settlement, { kind: 'complete' }>;

/** One attempt to run a write, as the store knows it: reserved, dispatched at most once, settled. */
export class WriteAttempt {
  /** Longest time that the upstream may take in all, milliseconds. */
  readonly upstreamMs: number;
  private readonly deps: WriteAttemptDeps;
  private readonly write: AttemptedWrite;
  private readonly id = newAttempt();
  private readonly fingerprint: string;
  private readonly leaseMs: number;
  private fence = 0;
  private takenOver = false;
  private confirmedReplicas = 0;
  private reservedAt = { monotonicMs: 0, wallMs: 0 };

  constructor(deps: WriteAttemptDeps, write: AttemptedWrite) {
    const {
      admission: {
        route: { responseTimeoutMs: responseMs },
      },
      activeConfig: { config },
    } = write;
    // Waiting for a free connection and connecting may take that long each.
    const connectMs = 2 * config.upstream.connectTimeoutMs;
    this.deps = deps;
    this.write = write;
    this.upstreamMs = connectMs + responseMs;
    this.leaseMs = leaseMsOf({ connectMs, responseMs, settleMs: deps.settleTimeoutMs });
    this.fingerprint = fingerprint(write);
  }

  /** Takes record and token together. `null` where the store did not answer: nothing may be dispatched. */
  async reserve(): Promise<Reserved | null> {
    const { clock, store, metrics } = this.deps;
    this.reservedAt = { monotonicMs: clock.monotonic(), wallMs: clock.now() };
    const reply = await store.reserve(this.write.preparation.scope, this.command());
    const repliedMs = clock.monotonic();
    const { trace } = this.write;
    metrics.storeCall('reserve', repliedMs - this.reservedAt.monotonicMs, trace?.exemplar());
    trace?.part('reserve', this.reservedAt.monotonicMs, repliedMs, {
      'sallyport.result': reply.ok ? reply.value.reserved.kind : 'unavailable',
    });
    if (!reply.ok) {
      metrics.reservation('unavailable');
      if (reply.error.mayHaveRun) this.releaseById();
      return null;
    }
    const { reserved, confirmedReplicas } = reply.value;
    metrics.reservation(reserved.kind === 'unsupported' ? 'unavailable' : reserved.kind);
    this.confirmedReplicas = confirmedReplicas ?? 0;
    if (reserved.kind === 'acquired') {
      this.fence = reserved.fence;
      this.takenOver = reserved.takenOver;
    }
    return reserved;
  }

  /** Whether so much is kept of this caller that no write of it begins; at once where nothing limits it. */
  isOverShare(): Promise<boolean> | false {
    const { recordId, scope } = this.write.preparation;
    return recordId !== null && this.deps.share !== null && this.deps.share.isUsedUp(scope.principal);
  }

  /** Why it may not be dispatched now, or `null`. To be asked before it is handed on. */
  refusal(callerGone: boolean): Denial | null {
    const { replicas, metrics } = this.deps;
    if (!(this.confirmedReplicas >= replicas)) metrics.replicaShortfall();
    return this.gate(callerGone, this.upstreamMs);
  }

  /**
   * Why its first byte may not go out now, or `null`: waiting for a connection takes time, and a machine may have slept
   * meanwhile.
   */
  lateRefusal(): Denial | null {
    return this.gate(false, this.write.admission.route.responseTimeoutMs);
  }

  /** What the upstream is told of it: names and values in turn. */
  headers(): readonly string[] {
    const { reservationId } = this.write.preparation;
    return reservationId === null ? [] : [recordHeader, reservationId, fenceHeader, String(this.fence)];
  }

  /**
   * Whether a response is to another attempt, or to none of ours: an upstream that takes part in it may name the record
   * that it answers for. One that answers twice would otherwise have its second response kept for the next write on the
   * connection.
   */
  isForThisAttempt(rawHeaders: readonly string[]): boolean {
    const { recordId, rules } = this.write.preparation;
    return (
      recordId === null ||
      rules.receiver === 'plain' ||
      valuesOf(rawHeaders, recordKey).every((value) => value.trim() === recordId)
    );
  }

  /** Writes down how it ended. Settles when the store answered or failed to; never rejects for the latter. */
  async settle(outcome: UpstreamOutcome): Promise<void> {
    const { rules } = this.write.preparation;
    const { id: attempt, fence, fingerprint, takenOver } = this;
    const settlement = settle(outcome, {
      releaseOn: rules.releaseOn,
      trustsOutcome: rules.receiver !== 'plain',
      takenOver,
      isGrpc: this.write.admission.route.isGrpc,
    });
    switch (settlement.kind) {
      case 'release':
        await this.settleWith({ kind: 'release', command: { attempt }, wasSent: outcome.kind !== 'not_dispatched' });
        return;
      case 'mark': {
        const {
          admission: {
            route: { name: route },
          },
          preparation: { recordId, scope },
        } = this.write;
        const { retentionMs } = rules;
        await this.settleWith({ kind: 'mark', command: { attempt, fence, fingerprint, route, retentionMs } });
        // It is kept as long as a result is, whatever the share.
        if (recordId !== null) await this.deps.share?.keeps(scope.principal, { bytes: 0, retentionMs });
        return;
      }
      case 'complete': {
        const { share } = this.deps;
        const { state, response } = share === null ? settlement : await this.kept(settlement, share);
        await this.settleWith({
          kind: 'complete',
          command: { attempt, fence, fingerprint, state, response, retentionMs: rules.retentionMs },
        });
      }
    }
  }

  /**
   * Decides what is kept of a response. Beyond the caller's share of the store it is the status alone: the key stays
   * taken, and a retry is told that the write was answered.
   */
  private async kept(
    { state, response }: CompleteSettlement,
    share: StoreShare,
  ): Promise<Pick<Complete, 'state' | 'response'>> {
    const {
      preparation: {
        recordId,
        rules: { retentionMs },
        scope,
      },
    } = this.write;
    if (recordId === null) return { state, response };
    const texts = [...response.headers, ...(response.trailers ?? [])];
    const bytes = texts.reduce((sum, text) => sum + text.length, response.body.byteLength);
    if ((await share.keeps(scope.principal, { bytes, retentionMs })) || state === 'tombstone') {
      return { state, response };
    }
    this.deps.metrics.shareExceeded();
    return { state: 'tombstone', response: statusOnly(response.status) };
  }

  private gate(callerGone: boolean, upstreamMs: number): Denial | null {
    const { clock, replicas, store } = this.deps;
    const { rules, principal, issuer } = this.write.preparation;
    const nowMs = clock.now();
    // Reading the body and waiting for the store take time, too.
    const revoked = this.write.admission.revoked();
    if (revoked !== null) return revoked;
    // The store may have failed over while the body came in, or since: the marker may then stand where earlier uses of
    // the token are not known.
    if (rules.singleUse && isBefore(principal, issuer, store.issuedBeforeFloorS())) return denial('issue_time_revoked');
    return checkDispatch({
      // The monotonic clock stands still while a machine is suspended, the wall clock does not.
      sinceReserveMs: Math.max(clock.monotonic() - this.reservedAt.monotonicMs, nowMs - this.reservedAt.wallMs),
      leaseMs: this.leaseMs,
      upstreamMs,
      confirmedReplicas: this.confirmedReplicas,
      neededReplicas: replicas,
      nowMs,
      tokenExpiresAtMs: principal.expiresAtS * 1000,
      clockSkewMs: issuer.clockSkewS * 1000,
      callerGone,
    });
  }

  private command(): Reserve {
    const {
      preparation: { rules, principal, scope, recordId },
      admission: {
        route: { name: route },
      },
    } = this.write;
    const { id: attempt, fingerprint, leaseMs } = this;
    return {
      attempt,
      key:
        recordId === null
          ? null
          : {
              fingerprint,
              route,
              leaseMs,
              retentionMs: rules.retentionMs,
              takesOver: rules.receiver === 'deduplicates',
            },
      markerTtlMs: scope.token === null ? null : markerTtlMs(principal.expiresAtS, this.deps.clock.now()),
    };
  }

  /**
   * The reserve may have taken effect all the same, or be about to: frees the key by the attempt's id as soon as the
   * store answers again.
   */
  private releaseById(): void {
    void this.settleWith({ kind: 'release', command: { attempt: this.id }, wasSent: false });
  }

  private async settleWith(write: SettleCommand): Promise<void> {
    const { scope, rules, recordId } = this.write.preparation;
    // Only a token was reserved: there is no record to settle, and the token stays used, if it was.
    if (recordId === null) return;
    // A result is worth keeping, and a key worth freeing, for as long as somebody may ask for it, also after the lease.
    // So is a mark: the end of the lease puts the write in doubt by itself only where the store has the record.
    const leaseEndsMs = this.reservedAt.monotonicMs + this.leaseMs;
    const untilMs = Math.max(leaseEndsMs, this.deps.clock.monotonic() + Math.min(rules.retentionMs, offeredForMs));
    const startedMs = this.deps.clock.monotonic();
    const { trace } = this.write;
    await this.deps.settlements.settle({
      scope,
      recordId,
      write,
      untilMs,
      deduplicates: rules.receiver === 'deduplicates',
      exemplar: trace?.exemplar(),
    });
    trace?.part('settle', startedMs, this.deps.clock.monotonic(), { 'sallyport.result': write.kind });
  }
}

/** Names what is asked for, so that one key stands for one request. */
function fingerprint(write: AttemptedWrite): string {
  const {
    admission: { target, headers, forwarded },
    preparation: { rules },
    method,
    body,
    activeConfig: { config },
  } = write;
  // An upstream that learns which host is asked for may be several.
  const addsHost = config.upstream.host === 'preserve' && !rules.fields.includes('host');
  const names = addsHost ? [...rules.fields, 'host'] : rules.fields;
  const valueOf = (name: string): string | null => {
    if (name === 'host') return headers.host;
    const values = valuesOf(headers.passed, name);
    return values.length === 0 ? null : values.join(', ');
  };
  return fingerprintOf({
    method,
    operation: rules.operation,
    path: target.path,
    query: target.query,
    contentType: valueOf('content-type'),
    contentEncoding: valueOf('content-encoding'),
    body,
    headers: [
      ...names.map((name) => ({ name, value: valueOf(name) })),
      ...(names.includes('host') ? otherHost(headers.host, forwarded) : []),
    ],
  });
}

/**
 * The host that a trusted proxy in front was asked for, where it is another than ours: the upstream learns both. Case
 * makes no other host (RFC 9110 §4.2.3).
 */
function otherHost(host: string, forwarded: readonly string[]): readonly { name: string; value: string }[] {
  const own = host.toLowerCase();
  return valuesOf(forwarded, forwardedHostKey)
    .filter((value) => value.toLowerCase() !== own)
    .map((value) => ({ name: forwardedHostKey, value }));
}
