import type { MintFailure } from '../../core-api/mint.js';

/**
 * Why there is no token. `unreachable`, `timeout`, `broken`, `core_error` and `rate_limited` may pass by themselves;
 * `refused_address`, `unauthorized`, `rejected`, `unsupported_algorithm` and `not_as_asked` want somebody to look at
 * the settings; `api_key_unavailable` and `not_recorded`: a function of the options failed; `closed`: the source was
 * closed.
 */
export type TokenErrorCode =
  Exclude<MintFailure['kind'], 'aborted'> | 'api_key_unavailable' | 'not_recorded' | 'closed';

/** What `getToken` rejects with. It holds nothing secret. */
export class TokenError extends Error {
  override readonly name = 'TokenError';
  readonly code: TokenErrorCode;
  /** HTTP status of the Core's response, where there was one. */
  readonly status: number | null;
  /** Milliseconds after which the Core is asked again; until then `getToken` fails at once. */
  readonly retryAfterMs: number;

  constructor(
    code: TokenErrorCode,
    reason: string,
    details: { readonly status?: number | null; readonly retryAfterMs?: number } = {},
  ) {
    super(`no service token: ${reason}`);
    this.code = code;
    this.status = details.status ?? null;
    this.retryAfterMs = details.retryAfterMs ?? 0;
  }
}
