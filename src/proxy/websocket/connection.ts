import type { Duplex } from 'node:stream';
import { isOver } from '../../decision/binding/certificate.js';
import { denial } from '../../decision/denial.js';
import type { Route } from '../../decision/route/policy.js';
import type { Principal } from '../../decision/token/principal.js';
import type { RequestHead } from '../../decision/http/request-head.js';
import { clientHeaders } from '../../decision/http/response-headers.js';
import { closeCauseOf, closeCauses, type CloseCause } from '../../decision/websocket/close-codes.js';
import { readAgreement, webSocketProtocol } from '../../decision/websocket/handshake.js';
import type { OpenConnection } from '../../ports/auth.js';
import { takeSettled } from '../maybe-promise.js';
import type { Clock, Timers } from '../../ports/system.js';
import { upstreamRequest, withRenewedToken } from '../exchange/forwarded-messages.js';
import { reauthorizeInMs } from '../exchange/reauthorization.js';
import type { Exchange } from '../exchange/exchange.js';
import type { ExchangeSummary } from '../exchange/access-log-record.js';
import type { ActiveConfig } from '../auth/active-config.js';
import { authorizeRequest, type Admission, type AuthResult, type Peer } from '../auth/authorize-request.js';
import type { ResponseSink } from '../upstream/call.js';
import type { UpstreamCall, UpstreamOperation } from '../upstream/pool/pool.js';
import type { Slot } from '../exchange/concurrency.js';
import { Relay } from './relay.js';
import type { UpgradableResponse, UpgradeRequest } from './upgrade-request.js';

/** The request of a handshake, which takes the response of an upstream that does not switch. */
type HandshakeClient = ResponseSink &
  Pick<Exchange, 'isGone' | 'refuse' | 'fail' | 'upstreamAsked' | 'upstreamResponded'>;

/** An opening handshake that may go on. */
export interface Handshake {
  readonly admission: Admission;
  readonly head: RequestHead;
  readonly peer: Peer;
  readonly activeConfig: ActiveConfig;
  /** `null` where Node, which reads Connection for itself, has left the connection to its parser. */
  readonly upgrade: UpgradeRequest | null;
  readonly client: HandshakeClient;
  readonly response: UpgradableResponse;
  /** Told what shadow mode lets pass while the connection is open. */
  readonly summary: Pick<ExchangeSummary, 'shadow' | 'trace'>;
  /** The place among the requests of all: given back at the switch, for a connection may last for hours. */
  readonly releaseGlobal: Slot | null;
}

/** What all WebSocket connections share. */
export interface WebSocketHost {
  /** What is in force now. */
  readonly activeConfig: () => ActiveConfig;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly idleTimeoutMs: number;
  /** Whether no more connections are to be opened. */
  readonly isDraining: () => boolean;
  readonly onOpened: (webSocket: WebSocket) => void;
  /** It is over, or never came to be: `null`. */
  readonly onClosed: (webSocket: WebSocket, cause: CloseCause | null) => void;
}

/**
 * One WebSocket connection from its opening handshake to its end. An upstream that does not switch has answered a plain
 * request: the client's request hears that by itself.
 */
export class WebSocket implements UpstreamOperation, OpenConnection {
  private readonly handshake: Handshake;
  private readonly host: WebSocketHost;
  private call: UpstreamCall | null = null;
  private relay: Relay | null = null;
  private principal: Principal | null;
  private mode: Route['mode'];
  private stopTimer = (): void => undefined;
  private isOver = false;

  constructor(handshake: Handshake, host: WebSocketHost) {
    this.handshake = handshake;
    this.host = host;
    this.principal = handshake.admission.principal;
    this.mode = handshake.admission.route.mode;
  }

  send(method: string): void {
    const { admission, client, activeConfig, summary } = this.handshake;
    client.upstreamAsked();
    this.call = activeConfig.upstream.send(
      {
        ...upstreamRequest({ admission, method, body: null, activeConfig, trace: summary.trace }),
        upgrade: webSocketProtocol,
        onUpgrade: (rawHeaders, socket) => this.onUpgrade(rawHeaders, socket),
      },
      client,
    );
  }

  resume(): void {
    this.call?.resume();
  }

  cancel(): void {
    this.call?.cancel();
    if (this.relay === null) this.finish(null);
    else this.relay.destroy();
  }

  /** The upstream has switched: so does the client's side, and from then on frames are relayed. */
  private onUpgrade(rawHeaders: readonly string[], upstream: Duplex): void {
    const { response, client, activeConfig, admission } = this.handshake;
    const agreement = readAgreement(admission.headers.passed, rawHeaders);
    if (!agreement.ok || this.host.isDraining()) {
      upstream.on('error', () => undefined).destroy();
      client.onError(agreement.ok ? denial('shutting_down') : agreement.error);
      return;
    }
    const headers = [
      'Upgrade',
      webSocketProtocol,
      'Connection',
      'Upgrade',
      ...clientHeaders(101, rawHeaders, activeConfig.headerRules, admission.requestId),
    ];
    const switched = response.switchProtocols(
      withRenewedToken(headers, admission.principal, activeConfig, this.host.clock),
    );
    if (switched === null) {
      upstream.on('error', () => undefined).destroy();
      return;
    }
    this.relay = new Relay({
      client: switched,
      upstream,
      hasExtension: agreement.value.extended,
      idleTimeoutMs: this.host.idleTimeoutMs,
      onClosed: (cause) => this.finish(cause),
    });
    this.handshake.releaseGlobal?.();
    this.host.onOpened(this);
    this.relay.start();
    // A reload or a revocation in the meantime has asked those that were open, and this one was not.
    if (this.host.activeConfig() === activeConfig && admission.revoked() === null) this.scheduleReauthorization();
    else this.reauthorize();
  }

  close(cause: CloseCause): void {
    this.relay?.close(cause);
  }

  /** Judges the opening handshake again, by what is in force now. */
  reauthorize(): void {
    if (this.isOver) return;
    // At once, whether keys are at hand or not; in shadow mode the judgement may let it pass.
    if (this.expiresInMs() <= 0 && this.mode === 'enforce') {
      this.close(this.expiry());
      return;
    }
    const { head, peer } = this.handshake;
    const { activeConfig, clock } = this.host;
    const provedKey = this.handshake.admission.principal?.confirmation?.key ?? null;
    const judgement = authorizeRequest(head, peer, activeConfig(), clock.now(), undefined, null, provedKey, this);
    // It may have to wait for its turn to ask the Core: meanwhile its credential ends as ever.
    if (judgement instanceof Promise) this.scheduleReauthorization();
    takeSettled(judgement, (settled) => this.onAuthorized(settled), this.handshake.client.fail);
  }

  isGone(): boolean {
    return this.isOver;
  }

  private onAuthorized(judgement: AuthResult): void {
    if (this.isOver) return;
    if (judgement.ok) {
      this.principal = judgement.value.principal;
      this.mode = judgement.value.route.mode;
      this.handshake.summary.shadow ??= judgement.value.shadow;
    }
    const refused = judgement.ok ? null : closeCauseOf(judgement.error.denial);
    const cause = refused ?? (this.expiresInMs() <= 0 ? this.expiry() : null);
    if (cause === null) this.scheduleReauthorization();
    else this.close(cause);
  }

  private expiry(): CloseCause {
    return this.principal?.kind === 'session' ? closeCauses.sessionExpired : closeCauses.expired;
  }

  private scheduleReauthorization(): void {
    this.stopTimer();
    const expiresInMs = this.expiresInMs();
    // In shadow mode one whose credential is over may go on.
    const endsInMs = expiresInMs > 0 ? expiresInMs : Infinity;
    const inMs = Math.min(reauthorizeInMs(), endsInMs, this.certificateEndsInMs());
    this.stopTimer = this.host.timers.after(inMs, () => this.reauthorize());
  }

  /** Milliseconds until the credential ends, as long as it may be behind our clock; endless without one. */
  private expiresInMs(): number {
    const { principal } = this;
    if (principal === null) return Infinity;
    const issuer = this.host.activeConfig().issuers.find(({ rules }) => rules.name === principal.issuerName);
    return (principal.expiresAtS + (issuer?.rules.clockSkewS ?? 0)) * 1_000 - this.host.clock.now();
  }

  /** Milliseconds until the certificate of the connection is over; endless without one, and once it is. */
  private certificateEndsInMs(): number {
    const { certificate = null } = this.handshake.peer;
    const nowMs = this.host.clock.now();
    return certificate === null || isOver(certificate, nowMs) ? Infinity : certificate.endsAtMs + 1 - nowMs;
  }

  private finish(cause: CloseCause | null): void {
    if (this.isOver) return;
    this.isOver = true;
    this.stopTimer();
    this.host.onClosed(this, cause);
    if (cause === null) return;
    const { client, response } = this.handshake;
    client.upstreamResponded();
    if (cause.reason !== null) client.refuse(denial(cause.reason));
    response.endUpgraded();
  }
}
