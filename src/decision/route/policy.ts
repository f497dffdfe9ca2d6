/** The compiled policy: what a config says of routes, as the decision functions read it. Types only. */

import type { Binding } from '../binding/confirmation.js';
import type { SessionPolicy } from '../session/claim-rules.js';
import type { Algorithm, ClaimRules, Profile } from '../token/profiles.js';

/** One segment of a route's path: decoded text, one whole non-empty segment, or anything below. */
export type Segment =
  | { readonly kind: 'literal'; readonly text: string }
  | { readonly kind: 'parameter'; readonly name: string }
  | { readonly kind: 'rest' };

/** One path of a route: `/orders/{id}` or `/files/**`. A trailing slash is a last, empty literal segment. */
export interface RoutePath {
  /** As written in the config. */
  readonly text: string;
  readonly segments: readonly Segment[];
}

/** One approved pair: any of the subjects, holding all of the permissions. */
export interface Approval {
  readonly subjects: ReadonlySet<string>;
  /** How subjects may begin instead; each ends in a slash, so that it ends where a part of the name does. */
  readonly prefixes: readonly string[];
  readonly permissions: readonly string[];
}

/** Whether a refusal for want of a credential or a right is answered, or only written down. */
export type Mode = 'enforce' | 'shadow';

/** One route. */
export interface Route {
  readonly name: string;
  /** Upper-case methods; `null` is every method but TRACE and CONNECT. */
  readonly methods: ReadonlySet<string> | null;
  readonly paths: readonly RoutePath[];
  /** Whether it takes gRPC calls, and nothing else. */
  readonly isGrpc: boolean;
  readonly access: 'public' | 'protected';
  /** Public routes always enforce: they refuse nobody for want of a credential. */
  readonly mode: Mode;
  /** Whether service tokens count; on public routes nothing does. */
  readonly acceptsService: boolean;
  /** What sessions have to hold; `null` where they do not count. */
  readonly session: SessionPolicy | null;
  /** One of these has to hold for a service token; empty on public routes. */
  readonly approvals: readonly Approval[];
  /**
   * SPIFFE IDs and subjects of certificates, one of which the caller has to have shown, verified; `null` asks for none.
   */
  readonly clientCertificates: ReadonlySet<string> | null;
  /** Names of the issuers whose tokens count here; `null` is all. */
  readonly issuers: ReadonlySet<string> | null;
  /** Whether callers may open WebSocket connections here. */
  readonly allowsWebSocket: boolean;
  /** Origins of the pages that may open them, in lower case; `null` where the route names none. */
  readonly origins: ReadonlySet<string> | null;
  /** Whether GET and HEAD may carry a body. */
  readonly allowsBody: boolean;
  readonly encodedSlashes: boolean;
  readonly pathParameters: boolean;
  /** Whether the upstream gets the caller's `Authorization`. */
  readonly forwardsAuthorization: boolean;
  readonly maxBodyBytes: number;
  readonly responseTimeoutMs: number;
  /** `null` where nothing is reserved. */
  readonly reservation: ReservationRules | null;
  /**
   * Why a write that comes twice may run twice, as the operator has it; `null` where nobody said so. It decides
   * nothing.
   */
  readonly unreservedBecause: string | null;
  /** What each of its callers may ask for; `null` is anything. */
  readonly limits: Limits | null;
}

/** What each caller may ask for. */
export interface Limits {
  /** `null` where requests are not counted over time. */
  readonly rate: Rate | null;
  /** Requests under way in each process; `null` is any number. */
  readonly maxInFlight: number | null;
  /** Name of the route that counts for itself; `null` where all routes without limits of their own count together. */
  readonly route: string | null;
}

export interface Rate {
  readonly perSecond: number;
  /** Requests that may come at once, 1 or more. */
  readonly burst: number;
  /** Whether all proxies on one store count together. */
  readonly shared: boolean;
}

/**
 * Whether a write needs a key. With `optional` it does over HTTP/2: a malformed header is dropped there before anybody
 * sees it, and who sent a key must not have the write run as if there were none.
 */
export type KeyRequirement = 'required' | 'optional' | 'optional_over_http2';

/** How a route's writes are reserved. */
export interface ReservationRules {
  /** Whether a key is needed; `null` where the route takes none, and only the token counts. */
  readonly key: KeyRequirement | null;
  /** Whether a token passes once. It needs a `jti` then. */
  readonly singleUse: boolean;
  /** The scope of a key: retries have to name the same one. */
  readonly operation: string;
  readonly retentionMs: number;
  /** Names of headers that are part of what makes two requests the same, lower-case. */
  readonly fields: readonly string[];
  /** Names of response headers that are kept besides the usual ones, lower-case. */
  readonly storeHeaders: ReadonlySet<string>;
  /** Statuses of the upstream that mean *not applied*. */
  readonly releaseOn: ReadonlySet<number>;
  /** What the upstream adds: nothing, its word on the outcome, or deduplication of its own. */
  readonly receiver: 'plain' | 'reports' | 'deduplicates';
  readonly maxBodyBytes: number;
  readonly maxStoredResponseBytes: number;
}

/** What one issuer's tokens have to say. */
export interface IssuerRules {
  /** Name in the config. */
  readonly name: string;
  readonly profile: Profile;
  /** Who its callers are said to come from: the exact `iss`, or of SPIFFE the trust domain's id where none is named. */
  readonly issuer: string;
  /** Exact `iss`; `null` where tokens need none and any is taken, which only SPIFFE allows. */
  readonly expectedIssuer: string | null;
  /** The first of `audiences`: the name of this upstream, by which idempotency keys are counted. */
  readonly audience: string;
  /** What `aud` may name. Of the Core it is one text and equal to the only one. */
  readonly audiences: ReadonlySet<string>;
  /** Exact `source`: of the Core only, else empty. */
  readonly sources: ReadonlySet<string>;
  /** Exact claim `token_type`: of the Core only, else empty. */
  readonly tokenTypes: ReadonlySet<string>;
  /** What `alg` may say. Which of them a key verifies is fixed by the key. */
  readonly algorithms: ReadonlySet<Algorithm>;
  /** What `typ` of the header may say: lower-case, without `application/`; `absent` where it may be missing. */
  readonly headerTypes: ReadonlySet<string>;
  readonly claims: ClaimRules;
  /** Of SPIFFE only: `shop.example`. */
  readonly trustDomain: string | null;
  /** Seconds, 0 to 60. */
  readonly clockSkewS: number;
  /** Seconds. */
  readonly maxLifetimeS: number;
  readonly keyIds: KeyIdRules;
  /** What becomes of `cnf`. */
  readonly binding: Binding;
}

/** Which `kid`s count: patterns with at most one `*`, at the end. */
export interface KeyIdRules {
  readonly accept: readonly string[];
  readonly reject: readonly string[];
}

/** Credentials revoked before their time. */
export interface Revocations {
  /** `iss` of the credentials that are meant; `null` where they may be of any issuer. */
  readonly issuer: string | null;
  readonly keyIds: ReadonlySet<string>;
  readonly subjects: ReadonlySet<string>;
  readonly tokenIds: ReadonlySet<string>;
  /** `tokenDigest` of each token. */
  readonly tokenDigests: ReadonlySet<string>;
  /** Seconds since the epoch: tokens issued before are refused, and tokens without `iat`. */
  readonly issuedBeforeS: number | null;
}

/** Names of the identity headers; `null` drops one. */
export interface IdentityHeaders {
  readonly subject: string | null;
  readonly issuer: string | null;
  readonly permissions: string | null;
  readonly tokenId: string | null;
  readonly kind: string | null;
  /** Left out as `null` is. */
  readonly clientCertificate?: string | null;
}
