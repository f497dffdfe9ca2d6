/** What verifying a credential needs from outside: keys of issuers, and the SDK of sessions. Types only. */
import type { Proof } from '../decision/binding/confirmation.js';
import type { Algorithm } from '../decision/token/profiles.js';
import type { RenewedSession } from '../decision/token/principal.js';
import type { Result } from '../lib/result.js';
import type { JsonObject } from '../lib/strict-json.js';
import type { KeyObject } from 'node:crypto';

/** A public key that may verify service tokens, checked: RSA of 2048 to 8192 bits, or one of a curve. */
export interface VerificationKey {
  readonly keyId: string;
  /** The only one that it verifies. */
  readonly algorithm: Algorithm;
  readonly key: KeyObject;
}

/** What a look-up of a `kid` says. */
export type KeyLookup =
  | { readonly kind: 'found'; readonly key: VerificationKey }
  /** The issuer's set has no such key: 401. */
  | { readonly kind: 'unknown' }
  /** No usable set, or nobody can tell whether there is such a key: 503, not 401. */
  | { readonly kind: 'unavailable' }
  /** It may be a new key, and too many wait to hear that already: 503. */
  | { readonly kind: 'busy' };

/** Who asks for a key, and is ready to wait until it may be fetched. */
export interface KeyAsker {
  /** Of the client; empty where there is none. */
  readonly address: () => string;
  /** Whether its connection has shown a good credential before; its address, where the connection is a proxy's. */
  readonly hasAuthenticated: () => boolean;
  /** Whether nobody waits for the response any more. */
  readonly isGone: () => boolean;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** It has waited for a key. */
  readonly onKeyWait?: (wait: KeyWait) => void;
}

/** How long a request waited for a key of an issuer; monotonic milliseconds. */
export interface KeyWait {
  readonly issuer: string;
  readonly startedMs: number;
  readonly endedMs: number;
  readonly result: KeyLookup['kind'];
}

/**
 * How long a look-up may wait. `now`: not at all, and nothing is fetched. `fetch`: for a fetch that is under way or
 * allowed now. Somebody who asks: until one that began after they came is over, for 10 s at most.
 */
export type LookupWait = 'now' | 'fetch' | KeyAsker;

/** The keys of one issuer. */
export interface KeySource {
  /** Answers at once where the key is known, else as soon as `wait` allows, which is `fetch` unless given. */
  readonly find: (keyId: string, wait?: LookupWait) => KeyLookup | Promise<KeyLookup>;
  /** What operators see. */
  readonly state: () => KeySourceState;
}

/** One issuer's keys, as `/status`, `/readyz` and metrics show them. */
export interface KeySourceState {
  readonly issuer: string;
  /**
   * Whether a key can be had now: a set with an accepted key was loaded and is past its lifetime by no more than
   * `max_stale`.
   */
  readonly usable: boolean;
  /** Whether the last attempt failed, a set without keys waits to be confirmed, or the set is past its age. */
  readonly stale: boolean;
  /** Milliseconds since the set was fetched, or `null` before the first. */
  readonly ageMs: number | null;
  /** Milliseconds for which the set serves if its source stays away, 0 or more; `null` before the first. */
  readonly servesForMs: number | null;
  /** Milliseconds until it is asked again, if nobody asks earlier; `null` while it is being asked, or never is. */
  readonly nextFetchMs: number | null;
  /**
   * How much of the time past their lifetime is over for which the keys serve: 0 within their lifetime, 1 at its end;
   * `null` before the first.
   */
  readonly stalePart: number | null;
  readonly keys: readonly { readonly keyId: string; readonly ageMs: number; readonly accepted: boolean }[];
  /** Keys that left with a fetch, the last one first, 20 at most. `ageMs`: since then. */
  readonly withdrawn: readonly { readonly keyId: string; readonly ageMs: number }[];
  /** Whether the issuer says that no key counts: once so far, or again when it was asked again, so that none does. */
  readonly emptySet: 'unconfirmed' | 'confirmed' | null;
  /** Why the last attempt failed, in words, or `null`. */
  readonly lastError: string | null;
  /** Requests that wait for a fetch. */
  readonly waiting: number;
  /** `null` where the config names the place of the keys. */
  readonly metadata: MetadataState | null;
}

/** The document that names the place of an issuer's keys (OpenID Connect Discovery §4.2, RFC 8414 §3.2). */
export interface MetadataState {
  /** Milliseconds since the document in force was fetched, or `null` before the first. */
  readonly ageMs: number | null;
  /** Where it says that the keys are; `null` before the first. */
  readonly keysUrl: string | null;
  /** Why the last attempt to fetch it failed, in words, or `null`. */
  readonly lastError: string | null;
  /** The same as a kind, or `null`. */
  readonly lastProblem: MetadataProblem | null;
  /** Where it says that the issuer is asked about tokens, and where with a certificate; `null`: nowhere that counts. */
  readonly introspection: { readonly url: string | null; readonly mtlsUrl: string | null };
}

/** What is wrong: nothing came, or no metadata, or that of somebody else, or keys at a place that was not named. */
export type MetadataProblem = 'not_fetched' | 'malformed' | 'other_issuer' | 'other_origin';

/** What an issuer says of an opaque token. */
export type IntrospectionResponse =
  /** With everything that it says. Whether that is enough is the caller's to judge. */
  | { readonly kind: 'active'; readonly claims: JsonObject }
  /** It is none of the issuer's, or none any more: 401. */
  | { readonly kind: 'inactive' }
  /**
   * Nobody could tell: the issuer was not reached, gave no response that can be believed, or refuses this proxy: 503.
   */
  | { readonly kind: 'unavailable' }
  /** The issuer was not asked, since too many unknown tokens are: 503. */
  | { readonly kind: 'limited' };

/** An issuer's word on its opaque tokens. */
export interface Introspection {
  /**
   * Answers at once where that is remembered, or where the issuer is not asked. Never rejects.
   *
   * @param digest by which responses are remembered, where it was worked out before: that of the `Authorization`
   * header.
   */
  readonly ask: (
    token: string,
    digest: string | null,
    asker: KeyAsker | null,
  ) => IntrospectionResponse | Promise<IntrospectionResponse>;
  /** What was said of the token last, as long as that is remembered, where it was active. Nobody is asked. */
  readonly lastClaims: (token: string) => JsonObject | null;
  readonly state: () => IntrospectionState;
}

/** How it stands with an issuer that is asked about opaque tokens, for `/status` and metrics. */
export interface IntrospectionState {
  readonly issuer: string;
  /** Whether the last question was answered; true before the first. */
  readonly up: boolean;
  /** Why the last one was not, in words; `null` where it was. */
  readonly problem: string | null;
  /** Tokens whose response is remembered: it was `active`, or was not. */
  readonly active: number;
  readonly inactive: number;
  /** Questions that wait for their response. */
  readonly inFlight: number;
}

/** What the SDK of the Core says of a session that it vouches for. */
export interface VerifiedSession {
  readonly userId: string;
  /** The access token's payload, the new one where there is a new one. */
  readonly claims: JsonObject;
  /** Where the Core made a new access token. */
  readonly renewed: Pick<RenewedSession, 'accessToken' | 'frontToken'> | null;
}

/**
 * Why the SDK does not vouch for a session. `refresh`: its access token is worth no more. `refused`: the session is
 * none any more. `unavailable`: nobody could tell, for the Core was not reached or had no time.
 */
export type SessionRefusal = 'refresh' | 'refused' | 'unavailable';

/** A connection, or a call, that was let in. */
export interface OpenConnection {
  /** Whether it is over. */
  readonly isGone: () => boolean;
}

/** Whose session is verified, as its token says, which was verified. */
export interface SessionAsker {
  readonly user: string;
  /** End of the token, milliseconds since the epoch. */
  readonly expiresAtMs: number;
  /** What is authorized again, and stays open while that takes its time; `null` where it is a request. */
  readonly again: OpenConnection | null;
}

/**
 * Verifies sessions of users with the SDK of the Core. Never rejects. Every call ends within its deadline, but for
 * those of connections that are authorized again: these wait for their turn.
 */
export interface SessionVerifier {
  /** `asksCore` is whether more than the token is needed to tell. */
  readonly verify: (
    accessToken: string,
    asksCore: boolean,
    asker: SessionAsker,
  ) => Promise<Result<VerifiedSession, SessionRefusal>>;
}

/** Accepted service tokens since the start: those that were remembered, and those that had to be verified. */
export interface TokenLookups {
  hits: number;
  misses: number;
}

export interface TokenCacheState extends Readonly<TokenLookups> {
  /** Memory that the tokens remembered now take, about. */
  readonly bytes: number;
}

/** What became of a proof that counts once. `unavailable`: nobody could tell: 503. */
export type ProofUse = 'new' | 'used' | 'unavailable';

/** Knows which proofs of possession were used, and which nonces are ours, whatever kind of proof has them. */
export interface ProofKeeper {
  /** Takes note of a proof, which was verified, by the key that made it. Never rejects. */
  readonly use: (proof: Proof & { readonly key: string }, nowMs: number) => Promise<ProofUse>;
  /** Whether a nonce is one of ours and not too old; `null` where none is asked for. */
  readonly isNonce: ((nonce: string) => boolean) | null;
}
