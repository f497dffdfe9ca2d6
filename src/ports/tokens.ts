/** Tokens that the calling side attaches: where they come from. Types only. */
import type { Result } from '../lib/result.js';

/**
 * Why there is no token.
 * - `away`: its issuer was not reached, did not answer in time, failed, or asked to be left alone
 * - `refused`: its issuer does not give this client such a token, or the settings name what may not be reached
 * - `bad_response`: what its issuer gave is no usable bearer token
 * - `unreadable`: a file that is needed holds nothing that can be used
 * - `subject`: the caller's own token is missing, over, or the issuer gave nothing usable for it: no fault of the
 *   issuer's
 * - `busy`: too many requests wait for a token already
 * - `closed`: the source was closed
 */
export type TokenProblem = 'away' | 'refused' | 'bad_response' | 'unreadable' | 'subject' | 'busy' | 'closed';

/** What a request is told. */
export type TokenOutcome =
  | { readonly kind: 'token'; readonly token: string; readonly scheme: 'Bearer' }
  | {
      readonly kind: 'unavailable';
      readonly problem: TokenProblem;
      /** In words, of operators; nothing secret is in them. */
      readonly reason: string;
      /** Whole seconds after which it may be otherwise, 1 to 300. */
      readonly retryAfterS: number;
    };

/** Signs proofs of a key that tokens are bound to (RFC 9449 §4.2). */
export interface ProofSigner {
  /** RFC 7638: `cnf.jkt` of these tokens. */
  readonly thumbprint: string;
  /** The value of `DPoP` for one request: it counts once. */
  readonly prove: (request: ProofInput) => string;
}

/** What a proof says of its request (RFC 9449 §4.2). */
interface ProofInput {
  /** As it is sent. */
  readonly method: string;
  /** Where it is sent; query and fragment are no part of the proof. */
  readonly url: string | URL;
  /** What it bears; `null` where a token is asked for. */
  readonly token: string | null;
  /** The last `DPoP-Nonce` of that server; `null` where it gave none. */
  readonly nonce: string | null;
  /** Milliseconds since the epoch. */
  readonly nowMs: number;
}

/** Where the calling side's tokens come from. */
export interface TokenSource {
  /**
   * A token for one request: at once where one is kept, else once the fetch is over that all requests at the same time
   * share. Never throws or rejects.
   *
   * @param subjectToken the caller's own token, for an exchange alone; others do not look at it.
   */
  readonly get: (subjectToken: string | null) => TokenOutcome | Promise<TokenOutcome>;
  /**
   * The target did not take this token (401): the next `get` has another one fetched, once however many say so, and
   * this one is given only where no other can be had. A token that was replaced already changes nothing. Where this is
   * said again and again, so that it is not the tokens' fault, the one in hand goes on being given.
   */
  readonly invalidate: (token: string) => void;
  readonly status: () => TokenSourceStatus;
  /** Forgets every token; what is under way ends without one. */
  readonly close: () => void;
}

/** How it stands with a source, for `/status` and metrics. */
export interface TokenSourceStatus {
  readonly kind: 'core' | 'oauth' | 'file';
  /** Whether a token is kept that can be given now; of an exchange, one of any caller. */
  readonly kept: boolean;
  /** When the kept one ends, milliseconds since the epoch; `null` where there is none, several, or nobody knows. */
  readonly endsAtMs: number | null;
  /** Why the last fetch gave no token; `null` where it did, or before the first. */
  readonly lastError: TokenProblem | null;
  /** Fetches that ended, whatever came of them; of a file, how often it was read. */
  readonly fetches: number;
  /** Requests that wait for a fetch. */
  readonly waiting: number;
}

/** What a fetch brought. */
export interface FetchedToken {
  readonly token: string;
  /** Milliseconds for which it lives, counted from before the fetch. */
  readonly lifetimeMs: number;
}

/** Why a fetch brought nothing. */
export interface TokenFailure {
  readonly problem: TokenProblem;
  /** In words, without anything secret. */
  readonly reason: string;
  /** How long the issuer asked to be left alone. */
  readonly retryAfterMs: number | null;
  /** Whether the caller's own token may be the cause, so that it says little of the issuer; false unless given. */
  readonly mayBeOfSubject?: boolean;
}

/** Has one token made. Ends within its own time limit; never rejects. */
export interface TokenFetcher {
  readonly fetch: (subjectToken: string | null) => Promise<Result<FetchedToken, TokenFailure>>;
  /** Ends its connections. */
  readonly close: () => void;
}
