/** Service tokens for programs that call other services: `import { createTokenSource } from 'sallyport/client'`. */
import { randomBytes } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import { systemClock } from '../../adapters/system/clock.js';
import { createCoreClient, type CoreClient } from '../../core-api/core-client.js';
import { mintToken } from '../../core-api/mint.js';
import { issuanceRecord } from '../../core-api/issuance-log.js';
import { tokenIdBytes, type MintRequest } from '../../core-api/mint-request.js';
import { accept, refuse, type Result } from '../../lib/result.js';
import type { Clock } from '../../ports/system.js';
import { createTokenCache, createTokenMint, type MintAttempt, type AttemptFailure } from './cache.js';
import { createProofKey, type ProofKey, type ProvedRequest } from './proof-key.js';
import { createBoundFetch, type BoundFetch, type BoundFetchOptions, type BoundRequest } from './bound-fetch.js';
import { TokenError, type TokenErrorCode } from './error.js';
import { apiKeyRule, isApiKey, readTokenOptions, type TokenSettings, type TokenSourceOptions } from './options.js';

// The one module that programs import: what they catch and what they write down belongs to it.
export { createBoundFetch, createProofKey, TokenError };
export type { BoundFetch, BoundFetchOptions, BoundRequest, ProofKey, ProvedRequest, TokenSourceOptions };

/** Gives out tokens. They are in memory only. */
export interface TokenSource {
  /**
   * A token that is good for a while; of a single-use source, one that is good once. While the one in hand is good it
   * costs no more than a resolved promise. Rejects with a `TokenError`, or with the signal's reason once that aborts.
   */
  readonly getToken: (options?: { readonly signal?: AbortSignal }) => Promise<string>;
  /**
   * Says that a receiver refused this token (401): where it is the one in hand, the next call has another one minted.
   */
  readonly invalidate: (token: string) => void;
  /** Forgets the token and ends the connection; calls under way and later ones are rejected with the code `closed`. */
  readonly close: () => Promise<void>;
}

/** What a test replaces. */
interface TokenSourceDeps {
  readonly clock?: Clock;
  /** From 0 to 1, for jitter. */
  readonly random?: () => number;
}

/** Single-use tokens are minted while a program's own requests wait. */
const singleUseConnections = 4;

/** Makes a source. Throws a `TypeError` that names the option that is wrong. */
export function createTokenSource(options: TokenSourceOptions, deps: TokenSourceDeps = {}): TokenSource {
  const settings = readTokenOptions(options);
  if (!settings.ok) throw new TypeError(`createTokenSource: ${settings.error}`);
  const { clock = systemClock, random = Math.random } = deps;
  const { baseUrl, headers, ca, timeoutMs } = settings.value;
  const { allowHttp = false, allowPublicCore = false } = options.core;
  const isSingleUse = options.singleUse === true;
  const client = createCoreClient({
    baseUrl,
    headers,
    ca,
    timeoutMs,
    rules: { allowHttp, allowPublic: allowPublicCore },
    maxConnections: isSingleUse ? singleUseConnections : 1,
  });
  const closing = new AbortController();
  // Every attempt under way listens, and each lets go at its end.
  setMaxListeners(0, closing.signal);
  const supply = (isSingleUse ? createTokenMint : createTokenCache)({
    attempt: attemptWith(options, settings.value, { client, clock, closing: closing.signal }),
    clock,
    random,
  });
  return {
    getToken: ({ signal } = {}) => {
      if (closing.signal.aborted) return Promise.reject(new TokenError('closed', sourceClosed));
      return signal === undefined ? supply.get() : unlessAborted(() => supply.get(), signal);
    },
    invalidate: supply.forget,
    close: async () => {
      closing.abort();
      supply.clear();
      await client.close();
    },
  };
}

const sourceClosed = 'the source was closed';

interface AttemptDeps {
  readonly client: CoreClient;
  readonly clock: Clock;
  /** Aborted at the end of the source. */
  readonly closing: AbortSignal;
}

/** One call of the Core, with the key as it is now. */
function attemptWith(
  options: TokenSourceOptions,
  settings: TokenSettings,
  { client, clock, closing }: AttemptDeps,
): MintAttempt {
  const { issuer, claims, validityS, confirmation, timeoutMs } = settings;
  return async () => {
    const key = await readKey(options, { timeoutMs, closing });
    if (!key.ok) return key;
    const tokenId = options.singleUse === true ? randomBytes(tokenIdBytes).toString('base64url') : null;
    const request: MintRequest = {
      claims,
      issuer,
      validityS,
      tokenId,
      ...(confirmation === null ? {} : { confirmation }),
    };
    const minted = await mintToken(request, { client, clock, headers: key.value });
    if (!minted.ok) {
      const { kind, ...details } = minted.error;
      // Nothing but the end of the source calls a call off.
      return kind === 'aborted' ? failed('closed', sourceClosed) : refuse({ code: kind, ...details });
    }
    const record = issuanceRecord(minted.value, clock.now());
    const recorded = await outcomeOf(() => options.onIssued?.(record), { timeoutMs, closing });
    if (closing.aborted) return failed('closed', sourceClosed);
    return recorded.kind === 'done'
      ? minted
      : failed('not_recorded', `onIssued ${recorded.problem}, so that the token is not given out`);
  };
}

async function readKey(
  { core: { apiKey } }: TokenSourceOptions,
  limits: CallLimits,
): Promise<Result<TokenSettings['headers'], AttemptFailure>> {
  if (apiKey === undefined) return accept([]);
  const read =
    typeof apiKey === 'string' ? ({ kind: 'done', value: apiKey } as const) : await outcomeOf(apiKey, limits);
  if (limits.closing.aborted) return failed('closed', sourceClosed);
  if (read.kind === 'failed') return failed('api_key_unavailable', `core.apiKey ${read.problem}`);
  return isApiKey(read.value)
    ? accept([{ name: 'api-key', value: read.value }])
    : failed('api_key_unavailable', `what core.apiKey gave ${apiKeyRule}`);
}

interface CallLimits {
  readonly timeoutMs: number;
  /** Nobody waits for it any more. */
  readonly closing: AbortSignal;
}

type CallOutcome<T> =
  | { readonly kind: 'done'; readonly value: T }
  /** In words that follow its name. */
  | { readonly kind: 'failed'; readonly problem: string };

/** What a function of the options comes to. It may never end: all who want a token would wait for it. */
function outcomeOf<T>(call: () => T | Promise<T>, { timeoutMs, closing }: CallLimits): Promise<CallOutcome<T>> {
  return new Promise((resolve) => {
    const end = (outcome: CallOutcome<T>): void => {
      clearTimeout(timer);
      closing.removeEventListener('abort', giveUp);
      resolve(outcome);
    };
    const giveUp = (): void => end({ kind: 'failed', problem: 'was called off' });
    const isLate = (): void => end({ kind: 'failed', problem: `did not end within ${String(timeoutMs)} ms` });
    const timer = setTimeout(isLate, timeoutMs);
    closing.addEventListener('abort', giveUp, { once: true });
    if (closing.aborted) giveUp();
    Promise.resolve()
      .then(call)
      .then(
        (value) => end({ kind: 'done', value }),
        // What it threw may hold anything.
        () => end({ kind: 'failed', problem: 'failed' }),
      );
  });
}

function failed(code: TokenErrorCode, reason: string): Result<never, AttemptFailure> {
  return refuse({ code, reason, status: null, retryAfterMs: null });
}

/** Ends one caller's wait; what it waited for goes on for the others. */
function unlessAborted(get: () => Promise<string>, signal: AbortSignal): Promise<string> {
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(signal.reason instanceof Error ? signal.reason : new Error('aborted'));
    if (signal.aborted) {
      abort();
      return;
    }
    signal.addEventListener('abort', abort, { once: true });
    get()
      .then(resolve, reject)
      .finally(() => signal.removeEventListener('abort', abort));
  });
}
