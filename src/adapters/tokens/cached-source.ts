import type { TokenFetcher, TokenOutcome, TokenSource, TokenSourceStatus } from '../../ports/tokens.js';
import { createFetchState, type TokenSourceDeps } from './fetch-state.js';
import { createTokenSlot } from './token-slot.js';

/** One token for all requests. */
export function createSharedSource(
  name: string,
  kind: TokenSourceStatus['kind'],
  fetcher: TokenFetcher,
  deps: TokenSourceDeps,
): TokenSource {
  const state = createFetchState(name, fetcher, deps);
  const slot = createTokenSlot(state, { longestMs: () => Infinity, onFetched: () => undefined }, deps);
  return {
    get: () => slot.get(null),
    invalidate: slot.invalidate,
    status: () => {
      const life = slot.life();
      return { kind, kept: life !== null, endsAtMs: life?.endsAtMs ?? null, ...state.status() };
    },
    close: () => {
      state.close();
      slot.clear();
    },
  };
}

/** A fresh token for each request, good once. The fetcher bounds how many are asked for at once. */
export function createSingleUseSource(
  name: string,
  kind: TokenSourceStatus['kind'],
  fetcher: TokenFetcher,
  deps: TokenSourceDeps,
): TokenSource {
  const state = createFetchState(name, fetcher, deps);

  async function fetchOne(): Promise<TokenOutcome> {
    const fetched = await state.fetch(null);
    return fetched.ok ? { kind: 'token', token: fetched.value.token, scheme: 'Bearer' } : fetched.error;
  }

  return {
    get: () => state.refusal(null) ?? state.join(fetchOne),
    invalidate: () => undefined,
    status: () => ({ kind, kept: false, endsAtMs: null, ...state.status() }),
    close: state.close,
  };
}
