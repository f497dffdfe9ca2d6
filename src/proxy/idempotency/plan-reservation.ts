import { denial, type Denial } from '../../decision/denial.js';
import { readIdempotencyKey } from '../../decision/idempotency/key.js';
import type { IssuerRules, ReservationRules } from '../../decision/route/policy.js';
import type { Principal } from '../../decision/token/principal.js';
import {
  audienceOf,
  recordIdOf,
  reservationIdOf,
  scopeOf,
  type ReservationScope,
} from '../../decision/idempotency/scope.js';
import { accept, refuse, type Result } from '../../lib/result.js';
import type { ActiveConfig } from '../auth/active-config.js';
import type { Admission } from '../auth/authorize-request.js';

/** What of a credential's issuer counts for a reservation. */
interface ScopedIssuer extends Pick<IssuerRules, 'clockSkewS'> {
  /** By which keys are counted, whichever entry of the config accepted the credential. */
  readonly audience: string;
}

/** What is reserved for one request, before its body is known. */
export interface Preparation {
  readonly rules: ReservationRules;
  readonly principal: Principal;
  readonly issuer: ScopedIssuer;
  readonly scope: ReservationScope;
  /** `null` where only the token is reserved. */
  readonly recordId: string | null;
  /** What the upstream and the log call it: the record's id, or one made of the token where only that is reserved. */
  readonly reservationId: string | null;
  /** The header as received; `null` where there is none. */
  readonly sentKey: string | null;
}

/**
 * Decides what a request reserves. What is wrong with the credential comes before what is wrong with the key, and both
 * before anything is reserved: what is refused here uses up nothing.
 *
 * @param floorS single-use tokens issued before are refused, for the store may have forgotten that they were used.
 * @returns `null` where the request reserves nothing, or why it may not go on.
 */
export function planReservation(
  admission: Admission,
  activeConfig: Pick<ActiveConfig, 'issuers'>,
  floorS: number | null,
): Result<Preparation | null, Denial> {
  const {
    route: { reservation: rules, isGrpc },
    principal,
    headers,
  } = admission;
  if (rules === null) return accept(null);
  const issuer = issuerOf(principal, activeConfig);
  // Without a caller there is no scope, and without a scope one caller's key would answer another.
  if (principal === null || issuer === undefined) return refuse(denial('internal'));
  if (rules.singleUse && principal.tokenId === null) return refuse(denial('token_id_missing'));
  if (rules.singleUse && isBefore(principal, issuer, floorS)) return refuse(denial('issue_time_revoked'));
  const key =
    rules.key === null
      ? accept(null)
      : readIdempotencyKey(headers.idempotencyKey, rules.key, headers.isHttp2 || isGrpc);
  if (!key.ok) return key;
  if (key.value === null && !rules.singleUse) return accept(null);
  const scope = scopeOf({
    principal,
    audience: issuer.audience,
    operation: rules.operation,
    key: key.value,
    tokenId: rules.singleUse ? principal.tokenId : null,
  });
  return accept({
    rules,
    principal,
    issuer,
    scope,
    recordId: recordIdOf(scope),
    reservationId: reservationIdOf(scope),
    sentKey: key.value === null ? null : headers.idempotencyKey,
  });
}

/** What becomes of a request that was admitted. */
export type Plan =
  /** It goes to the upstream: with another admission where shadow mode waives the reservation. */
  | { readonly kind: 'forward'; readonly admission: Admission }
  /** The body, of so many bytes at most, is read whole, and the write is reserved before it is sent. */
  | { readonly kind: 'reserve'; readonly preparation: Preparation; readonly maxBodyBytes: number }
  | { readonly kind: 'refuse'; readonly denial: Denial; readonly reservationId: string | null };

/** What a plan has to know of the store. */
export interface PlannedStore {
  /** Single-use tokens issued before are refused; seconds since the epoch. */
  readonly floorS: () => number | null;
}

/**
 * Plans what becomes of an admitted request: serving and `sallyport test` both ask this. In order: the reservation,
 * which shadow mode may waive, the store, the size of the body.
 *
 * @param store `null` where there is none: what has to be reserved is refused then.
 * @param bodyBytes as far as it is known before the body is read, or 0.
 */
export function planRequest(
  admission: Admission,
  activeConfig: Pick<ActiveConfig, 'issuers'>,
  store: PlannedStore | null,
  bodyBytes: number,
): Plan {
  if (admission.route.reservation === null) return planForward(admission, bodyBytes);
  const planned = planReservation(admission, activeConfig, store?.floorS() ?? null);
  if (!planned.ok) {
    const passed = admission.shadowAdmission(planned.error);
    return passed === null
      ? { kind: 'refuse', denial: planned.error, reservationId: null }
      : planForward(passed, bodyBytes);
  }
  const preparation = planned.value;
  if (preparation === null) return planForward(admission, bodyBytes);
  const { reservationId } = preparation;
  if (store === null) return { kind: 'refuse', denial: denial('store_unavailable'), reservationId };
  const maxBodyBytes = maxReservedBodyBytes(admission, preparation);
  if (bodyBytes > maxBodyBytes) return { kind: 'refuse', denial: denial('body_too_large'), reservationId };
  return { kind: 'reserve', preparation, maxBodyBytes };
}

function planForward(admission: Admission, bodyBytes: number): Plan {
  return bodyBytes > admission.route.maxBodyBytes
    ? { kind: 'refuse', denial: denial('body_too_large'), reservationId: null }
    : { kind: 'forward', admission };
}

/** Most that a reserved request's body may have: it is held whole. */
export function maxReservedBodyBytes({ route }: Admission, { rules }: Preparation): number {
  return Math.min(route.maxBodyBytes, rules.maxBodyBytes);
}

/**
 * Sessions name no upstream. Their keys are scoped by the audience of the first issuer, which is this upstream's name:
 * upstreams that share a store keep their users' keys apart by it.
 */
function issuerOf(principal: Principal | null, { issuers }: Pick<ActiveConfig, 'issuers'>): ScopedIssuer | undefined {
  if (principal?.kind === 'session') return { audience: issuers[0]?.rules.audience ?? '', clockSkewS: 0 };
  const accepting = issuers.find(({ rules: { name } }) => name === principal?.issuerName)?.rules;
  return accepting === undefined
    ? undefined
    : { audience: audienceOf(accepting, issuers), clockSkewS: accepting.clockSkewS };
}

/**
 * Whether a fail-over may have lost what was known of a token's use. The issuer's clock may be ahead by the skew: a
 * token issued just before may say just after.
 */
export function isBefore({ issuedAtS }: Principal, { clockSkewS }: ScopedIssuer, floorS: number | null): boolean {
  return floorS !== null && (issuedAtS === null || issuedAtS < floorS + clockSkewS);
}
