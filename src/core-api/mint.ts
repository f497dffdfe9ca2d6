import { mintBody, type MintRequest } from './mint-request.js';
import { checkMinted, type MintedToken } from './mint-response.js';
import { accept, refuse, type Result } from '../lib/result.js';
import type { Clock } from '../ports/system.js';
import type { CoreResponse, CoreCall, CoreClient, CoreFailure } from './core-client.js';

/** Why there is no token. */
export interface MintFailure {
  /**
   * Those of the call; `unauthorized`: the Core refused the API key; `rate_limited`; `core_error`: a 5xx; `rejected`:
   * another response than OK; `unsupported_algorithm`: the Core does not sign with RS256; `not_as_asked`: it signed
   * something else.
   */
  readonly kind:
    | CoreFailure['kind']
    | 'unauthorized'
    | 'rate_limited'
    | 'core_error'
    | 'rejected'
    | 'unsupported_algorithm'
    | 'not_as_asked';
  /** In words, without anything secret. */
  readonly reason: string;
  /** Of the Core's response, where there was one. */
  readonly status: number | null;
  /** How long the Core asked to wait. */
  readonly retryAfterMs: number | null;
}

interface MintDeps {
  readonly client: CoreClient;
  readonly clock: Clock;
  /** Besides those of the client. */
  readonly headers?: CoreCall['headers'];
  readonly signal?: AbortSignal | undefined;
}

/** Has the Core sign a token and checks it before anybody sees it. A token that is not as asked is thrown away. */
export async function mintToken(
  request: MintRequest,
  { client, clock, headers = [], signal }: MintDeps,
): Promise<Result<MintedToken, MintFailure>> {
  const startedMs = clock.now();
  const called = await client.call({
    method: 'POST',
    path: '/recipe/jwt',
    rid: 'jwt',
    body: mintBody(request),
    headers,
    signal,
  });
  if (!called.ok) {
    return refuse({ kind: called.error.kind, reason: called.error.reason, status: null, retryAfterMs: null });
  }
  const response = called.value;
  const token = tokenOf(response);
  if (!token.ok) return token;
  const minted = checkMinted(token.value, request, { startedMs, endedMs: clock.now() });
  if (minted.ok) return accept(minted.value);
  return failed(
    response,
    'not_as_asked',
    `the token that the Core signed is not the one that was asked for, and was thrown away: ${minted.error}`,
  );
}

function tokenOf(response: CoreResponse): Result<string, MintFailure> {
  const { status, json } = response;
  if (status !== 200) return refusedBy(response);
  if (json === null) {
    return failed(response, 'rejected', `the Core answered 200 with something else than JSON${said(response)}`);
  }
  const { status: word, jwt } = json;
  if (word === 'OK' && typeof jwt === 'string') return accept(jwt);
  if (word === 'OK') return failed(response, 'rejected', 'the Core answered OK without a token');
  if (word === 'UNSUPPORTED_ALGORITHM_ERROR') {
    return failed(response, 'unsupported_algorithm', 'the Core does not sign with RS256 (UNSUPPORTED_ALGORITHM_ERROR)');
  }
  // Whatever else is written there is not repeated: only what has the form of a status.
  const name = typeof word === 'string' && /^[A-Z_]{1,64}$/.test(word) ? word : 'none that is known';
  return failed(response, 'rejected', `the Core answered with another status than OK: ${name}`);
}

function refusedBy(response: CoreResponse): Result<never, MintFailure> {
  const { status } = response;
  const told = `${String(status)}${said(response)}`;
  if (status === 401 || status === 403) {
    return failed(response, 'unauthorized', `the Core refused the API key: ${told}`);
  }
  if (status === 404 || status === 405) {
    return failed(
      response,
      'rejected',
      `there is no POST /recipe/jwt at this address; is the URL that of the Core? ${told}`,
    );
  }
  if (status === 429) return failed(response, 'rate_limited', `the Core has had too many calls: ${told}`);
  if (status >= 500) return failed(response, 'core_error', `the Core failed: ${told}`);
  return failed(response, 'rejected', `the Core answered ${told}`);
}

function said({ text }: CoreResponse): string {
  return text === '' ? '' : `: ${text}`;
}

function failed(
  { status, retryAfterMs }: CoreResponse,
  kind: MintFailure['kind'],
  reason: string,
): Result<never, MintFailure> {
  return refuse({ kind, reason, status, retryAfterMs });
}
