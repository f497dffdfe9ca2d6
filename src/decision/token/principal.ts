import type { Confirmation } from '../binding/confirmation.js';
import type { JsonObject } from '../../lib/strict-json.js';

/** Longest subject, in visible ASCII characters: it goes to a header and to every log line. */
export const maxSubjectLength = 1_024;

/** Longest subject that a route may name. */
export const maxApprovedSubjectLength = 256;

/** Who a verified credential speaks for. */
export interface Principal {
  /** What kind of credential it was. */
  readonly kind: 'service' | 'session';
  /** Name of the issuer in the config; `sessions` for every session. */
  readonly issuerName: string;
  /** The `iss` claim. */
  readonly issuer: string;
  /** The `sub` claim: visible ASCII. */
  readonly subject: string;
  /** Permissions in the order of the token; RFC 6749 §3.3 scope-tokens. */
  readonly permissions: readonly string[];
  /** The `jti` claim, where there is one. */
  readonly tokenId: string | null;
  /** The `kid` of the key that verified it; empty where its issuer's word did, as of an opaque token. */
  readonly keyId: string;
  /** Seconds since the epoch. */
  readonly expiresAtS: number;
  /** Seconds since the epoch, where the token has an `iat`. */
  readonly issuedAtS: number | null;
  /** What whoever sends the credential has to prove with each request; left out where that is nothing. */
  readonly confirmation?: Confirmation;
  /** `principalName` of it, where it is remembered and would be put together for each request. */
  readonly name?: string;
  /** Of sessions only. */
  readonly session?: SessionFacts;
}

/** One text for one caller, whatever token it shows: no issuer or subject holds a line feed. */
export function principalName({ kind, issuer, subject }: Pick<Principal, 'kind' | 'issuer' | 'subject'>): string {
  return `${kind}\n${issuer}\n${subject}`;
}

/** What else is known of a verified session. */
interface SessionFacts {
  /** The access token's payload. */
  readonly claims: JsonObject;
  /** What the caller is to use from now on, where the Core made a new access token. Secret. */
  readonly renewed: RenewedSession | null;
}

/** A new access token, and how it goes to the caller. */
export interface RenewedSession {
  readonly accessToken: string;
  /** What frontends may read of it, as the SDK writes it. */
  readonly frontToken: string;
  /** Where the caller's token came from. */
  readonly to: 'header' | 'cookie';
}
