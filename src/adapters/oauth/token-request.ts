import type { OAuthTokenSettings } from '../../config/types.js';
import { nonceIn } from '../../decision/egress/attempt-outcome.js';
import { readRetryAfter } from '../../decision/egress/retry-after.js';
import { readIssuedToken, readTokenRefusal } from '../../decision/egress/token-response.js';
import { networkFailure } from '../../lib/errors.js';
import { accept, refuse, type Result } from '../../lib/result.js';
import { defaultMaxDepth, parseStrictJson, type JsonObject } from '../../lib/strict-json.js';
import type { Clock, Files } from '../../ports/system.js';
import type { FetchedToken, ProofSigner, TokenFailure, TokenFetcher } from '../../ports/tokens.js';
import type { Agent, Dispatcher } from 'undici';
import { readClientCredentials, type ClientCredentials } from './client-credentials.js';
import { agentFor, dropBody, isPlain, readBody } from '../../lib/http/requests.js';

interface TokenRequestDeps {
  readonly clock: Clock;
  readonly files: Pick<Files, 'read' | 'digest'>;
  /** The tokens are bound to its key; `null` where they count for whoever has them. */
  readonly proofs: ProofSigner | null;
  /** Where the issuer's metadata says that tokens are asked for; in words why nobody knows. */
  readonly endpoint: TokenEndpoint;
}

/** Where tokens are asked for, as the issuer's metadata says. */
interface TokenEndpoint {
  readonly find: () => Promise<Result<{ readonly url: string; readonly mtlsUrl: string | null }, string>>;
  /** It was not there: it is looked for anew. */
  readonly forget: () => void;
}

/** Requests at once; more wait for a connection, within their time. */
const maxConnections = 32;

/** Largest response that is read. */
const maxBytes = 64 * 1024;

/** The files are looked at for a request, at most each second. */
const lookEveryMs = 1_000;

/** Connections with the credentials that the files held. */
interface Connected {
  readonly agent: Agent;
  readonly credentials: ClientCredentials;
  readonly digest: string;
}

/** Makes what asks an authorization server for tokens. Secrets and keys that change count from the next request on. */
export function createTokenRequests(
  settings: OAuthTokenSettings,
  { clock, files, proofs, endpoint }: TokenRequestDeps,
): TokenFetcher {
  const { timeoutMs } = settings;
  let connected: Connected | null = null;
  let lookedAtMs = -Infinity;
  let looking: Promise<Result<Connected, string>> | null = null;
  let isClosed = false;
  /** The last one that the issuer gave (RFC 9449 §8). */
  let nonce: string | null = null;

  /** Connections as the files say; several requests at once look at them once. */
  function connect(): Promise<Result<Connected, string>> {
    if (connected !== null && clock.monotonic() < lookedAtMs + lookEveryMs) return Promise.resolve(accept(connected));
    looking ??= look().finally(() => {
      looking = null;
    });
    return looking;
  }

  async function look(): Promise<Result<Connected, string>> {
    const digests: string[] = [];
    const read = await readClientCredentials(settings, files, (_path, text) => digests.push(files.digest(text)));
    if (!read.ok) return read;
    if (isClosed) return refuse('the source was closed');
    lookedAtMs = clock.monotonic();
    const digest = digests.join(' ');
    if (connected?.digest === digest) return accept(connected);
    // Requests under way are answered.
    connected?.agent.close().catch(() => undefined);
    connected = { agent: agentFor(read.value, { timeoutMs, maxConnections }), credentials: read.value, digest };
    return accept(connected);
  }

  async function place(): Promise<Result<URL, string>> {
    if (settings.tokenUrl !== null) return accept(new URL(settings.tokenUrl));
    const found = await endpoint.find();
    if (!found.ok) return found;
    const { url, mtlsUrl } = found.value;
    return accept(new URL(settings.auth.method === 'tls_client_auth' ? (mtlsUrl ?? url) : url));
  }

  async function ask(
    { agent, credentials }: Connected,
    url: URL,
    subjectToken: string | null,
  ): Promise<Result<FetchedToken, TokenFailure>> {
    const askedAtMs = clock.now();
    const hasSubject = subjectToken !== null;
    const { authorization, form } = credentials.authenticate(askedAtMs);
    const deadline = new AbortController();
    const timer = setTimeout(() => {
      deadline.abort();
    }, timeoutMs);
    try {
      const response = await agent.request({
        origin: url.origin,
        path: `${url.pathname}${url.search}`,
        method: 'POST',
        headers: {
          accept: 'application/json',
          'content-type': 'application/x-www-form-urlencoded',
          'user-agent': 'sallyport',
          ...(authorization === null ? {} : { authorization }),
          ...(proofs === null
            ? {}
            : { dpop: proofs.prove({ method: 'POST', url, token: null, nonce, nowMs: askedAtMs }) }),
        },
        body: new URLSearchParams({ ...grantForm(settings, subjectToken), ...form }).toString(),
        signal: deadline.signal,
      });
      const given = response.headers['dpop-nonce'];
      if (typeof given === 'string') nonce = nonceIn(['dpop-nonce', given]) ?? nonce;
      return await readResponse(response, hasSubject, askedAtMs, proofs === null ? 'Bearer' : 'DPoP');
    } catch (error) {
      const isLate = deadline.signal.aborted;
      const reason = isLate ? `no complete response within ${String(timeoutMs)} ms` : networkFailure(error);
      return refuse({ problem: 'away', reason, retryAfterMs: null, mayBeOfSubject: hasSubject });
    } finally {
      clearTimeout(timer);
    }
  }

  return {
    fetch: async (subjectToken) => {
      const connection = await connect();
      if (!connection.ok) return failed('unreadable', connection.error);
      const url = await place();
      if (!url.ok) return failed('away', url.error);
      const proved = nonce;
      // Those of before may have been closed meanwhile: another request has looked at the files.
      const now = (): Connected => connected ?? connection.value;
      let answered = await ask(now(), url.value, subjectToken);
      // It may have asked for the nonce that it gave, which counts from the next request on.
      if (!answered.ok && answered.error.problem === 'refused' && proofs !== null && nonce !== proved) {
        answered = await ask(now(), url.value, subjectToken);
      }
      // The issuer may have moved.
      if (!answered.ok && answered.error.problem !== 'subject') endpoint.forget();
      return answered;
    },
    close: () => {
      isClosed = true;
      connected?.agent.destroy().catch(() => undefined);
    },
  };
}

const grantTypes = {
  client_credentials: 'client_credentials',
  exchange: 'urn:ietf:params:oauth:grant-type:token-exchange',
  jwt_bearer: 'urn:ietf:params:oauth:grant-type:jwt-bearer',
} as const;

/** What is asked for: RFC 6749 §4.4.2, RFC 8693 §2.1, RFC 7523 §2.1; `resource` of RFC 8707. */
function grantForm(
  { grant, scope, audience, resource }: OAuthTokenSettings,
  subjectToken: string | null,
): Record<string, string> {
  const subject: Record<string, string> =
    grant === 'exchange'
      ? {
          subject_token: subjectToken ?? '',
          subject_token_type: 'urn:ietf:params:oauth:token-type:access_token',
          requested_token_type: 'urn:ietf:params:oauth:token-type:access_token',
        }
      : grant === 'jwt_bearer'
        ? { assertion: subjectToken ?? '' }
        : {};
  return {
    grant_type: grantTypes[grant],
    ...subject,
    ...(scope === null ? {} : { scope }),
    ...(audience === null ? {} : { audience }),
    ...(resource === null ? {} : { resource }),
  };
}

async function readResponse(
  { statusCode, headers, body }: Dispatcher.ResponseData,
  hasSubject: boolean,
  nowMs: number,
  type: 'Bearer' | 'DPoP',
): Promise<Result<FetchedToken, TokenFailure>> {
  // What answers an odd token with nothing that can be read may have tokens for all others.
  const unusable = (reason: string): Result<never, TokenFailure> =>
    refuse({ problem: 'bad_response', reason, retryAfterMs: null, mayBeOfSubject: hasSubject });
  if (statusCode >= 300 && statusCode < 400) {
    dropBody(body);
    return unusable(
      `the response is a redirect (status ${String(statusCode)}), which is not followed: the secret would go there`,
    );
  }
  if (!isPlain(headers)) {
    dropBody(body);
    return unusable('the response is compressed, which was not asked for');
  }
  const bytes = await readBody(body, maxBytes);
  if (bytes === null) return unusable(`the response is larger than ${String(maxBytes)} bytes`);
  const json = objectIn(bytes);
  if (statusCode !== 200) {
    return refuse({ ...readTokenRefusal(statusCode, json, hasSubject), retryAfterMs: retryAfterMs(headers, nowMs) });
  }
  if (json === null) return unusable('the response is no duplicate-free JSON object');
  const issued = readIssuedToken(json, nowMs, type);
  return issued.ok ? issued : failed(hasSubject ? 'subject' : 'bad_response', `the response ${issued.error}`);
}

function objectIn(bytes: Buffer): JsonObject | null {
  const parsed = parseStrictJson(bytes, { maxDepth: defaultMaxDepth });
  return parsed.ok ? parsed.value : null;
}

function retryAfterMs(headers: Dispatcher.ResponseData['headers'], nowMs: number): number | null {
  const written = headers['retry-after'];
  return typeof written === 'string' ? readRetryAfter(written, nowMs) : null;
}

function failed(problem: TokenFailure['problem'], reason: string): Result<never, TokenFailure> {
  return refuse({ problem, reason, retryAfterMs: null });
}
