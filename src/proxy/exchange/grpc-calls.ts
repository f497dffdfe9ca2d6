import { isOver } from '../../decision/binding/certificate.js';
import { denial, isOurs, type Denial } from '../../decision/denial.js';
import { UnorderedList, type Listed } from '../unordered-list.js';
import { takeSettled } from '../maybe-promise.js';
import type { Clock, Timers } from '../../ports/system.js';
import type { ActiveConfig } from '../auth/active-config.js';
import type { RequestHead } from '../../decision/http/request-head.js';
import type { KeyAsker } from '../../ports/auth.js';
import { reauthorizeInMs, reauthorizeInTurns } from './reauthorization.js';
import { authorizeRequest, type Admission, type AuthResult, type Peer } from '../auth/authorize-request.js';

/** How often calls are looked at. */
const lookMs = 1_000;

/** The request of a call. */
interface CallClient extends KeyAsker {
  readonly refuse: (reason: Denial) => void;
  /** A bug: it ends, and everybody else is served on. */
  readonly fail: (error: unknown) => void;
}

/** One gRPC call under way. */
export interface GrpcCall {
  /** It is over. */
  readonly end: () => void;
}

/** The gRPC calls of a server: each ends when its caller waits no longer, and is authorized again while it lasts. */
export interface GrpcCalls {
  readonly begin: (client: CallClient, head: RequestHead, peer: Peer, admission: Admission) => GrpcCall;
  /** What is in force has changed: calls that it does not allow are ended. */
  readonly reauthorize: () => Promise<void>;
}

interface GrpcCallsDeps {
  readonly activeConfig: () => ActiveConfig;
  readonly clock: Clock;
  readonly timers: Timers;
}

interface OpenCall extends Listed {
  readonly client: CallClient;
  readonly head: RequestHead;
  readonly peer: Peer;
  readonly admission: Admission;
  /** When it is authorized again, of the monotonic clock. */
  dueMs: number;
  /** Whether it has a certificate that was not over when it was authorized last. */
  hasCertificate: boolean;
}

export function createGrpcCalls({ activeConfig, clock, timers }: GrpcCallsDeps): GrpcCalls {
  const open = new UnorderedList<OpenCall>();
  let stopLooking: (() => void) | null = null;
  const look = (): void => {
    stopLooking = null;
    const nowMs = clock.monotonic();
    for (const call of open) {
      if (!open.has(call)) continue;
      if (nowMs < call.dueMs && !hasExpired(call) && call.hasCertificate === hasCertificate(call.peer)) continue;
      call.dueMs = nowMs + reauthorizeInMs();
      call.hasCertificate = hasCertificate(call.peer);
      reauthorize(call);
    }
    if (open.size > 0) stopLooking = timers.after(lookMs, look);
  };
  const hasCertificate = ({ certificate = null }: Peer): boolean =>
    certificate !== null && !isOver(certificate, clock.now());
  const hasExpired = ({ admission: { principal } }: OpenCall): boolean => {
    if (principal === null) return false;
    const issuer = activeConfig().issuers.find(({ rules }) => rules.name === principal.issuerName);
    return (principal.expiresAtS + (issuer?.rules.clockSkewS ?? 0)) * 1_000 <= clock.now();
  };
  /**
   * Ends it where what is in force now would not let it begin: its credential has expired or was revoked, or the policy
   * is another. That nobody can tell now says nothing of the caller.
   */
  const reauthorize = (call: OpenCall): void => {
    const { client, head, peer, admission } = call;
    const { principal } = admission;
    const take = (judgement: AuthResult): void => {
      if (judgement.ok) return;
      const { denial: reason } = judgement.error;
      if (!isOurs(reason)) client.refuse(reason);
      else if (hasExpired(call)) {
        client.refuse(denial(principal?.kind === 'session' ? 'session_expired' : 'token_expired'));
      }
    };
    try {
      const proved = principal?.confirmation?.key ?? null;
      const judged = authorizeRequest(head, peer, activeConfig(), clock.now(), undefined, client, proved, client);
      takeSettled(judged, take, client.fail);
    } catch (error) {
      client.fail(error);
    }
  };
  return {
    begin: (client, head, peer, admission) => {
      const dueMs = clock.monotonic() + reauthorizeInMs();
      const call: OpenCall = {
        client,
        head,
        peer,
        admission,
        dueMs,
        hasCertificate: hasCertificate(peer),
        place: -1,
      };
      open.add(call);
      stopLooking ??= timers.after(lookMs, look);
      // The deadline is of the whole call, streams included (https://grpc.io/docs/guides/deadlines/).
      const stopWaiting =
        admission.grpcTimeoutMs === null
          ? null
          : timers.after(admission.grpcTimeoutMs, () => client.refuse(denial('upstream_timeout')));
      return {
        end: () => {
          open.delete(call);
          stopWaiting?.();
        },
      };
    },
    reauthorize: () => reauthorizeInTurns(open, reauthorize),
  };
}
