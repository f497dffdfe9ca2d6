import type { Agent, Dispatcher } from 'undici';
import { maxCaFileBytes, readCaFile } from '../../lib/pem.js';
import { keepingRules, type KeepingRules } from '../../decision/http/http-freshness.js';
import { networkFailure } from '../../lib/errors.js';
import { agentFor, dropBody, isPlain, isRedirect, readBody } from '../../lib/http/requests.js';
import { accept, refuse, type Result } from '../../lib/result.js';
import type { MetadataState } from '../../ports/auth.js';
import type { Files } from '../../ports/system.js';
import { isB64Token } from '../../lib/text.js';

/** A misconfigured pair of redirects must not go round until the time limit. */
const maxRedirects = 3;

/** What fetches are made with. */
export interface FetchAccess {
  /** PEM of authorities; `null` stands for the system's. */
  readonly caFile: string | null;
  /** Bearer token, which goes out over https only; `null` where none is asked for. */
  readonly tokenFile: string | null;
  readonly files: Files;
}

/** Why nothing was fetched. */
export interface FetchFailure {
  /** In words that hold nothing of what was received. */
  readonly why: string;
  /** That of the response; `null` where there was none, or where something else is wrong with it. */
  readonly status: number | null;
}

/**
 * A key set that is fetched over HTTP. The files of the access are read for every fetch, so that new ones count from
 * the next on.
 */
export function createUrlOrigin(url: string, access: FetchAccess): NamedOrigin {
  return {
    load: async (limits, signal) => {
      const fetched = await fetchText(new URL(url), access, { ...limits, maxRedirects }, signal);
      return fetched.ok ? fetched : refuse(fetched.error.why);
    },
    metadata: () => null,
    close: () => undefined,
  };
}

/** Fetches a text once. Stops when the signal says so; never rejects. */
export async function fetchText(
  url: URL,
  { caFile, tokenFile, files }: FetchAccess,
  limits: FetchLimits,
  signal: AbortSignal,
): Promise<Result<LoadedKeySet, FetchFailure>> {
  const authorities =
    caFile === null ? accept(null) : readCaFile(caFile, await files.read(caFile, { maxBytes: maxCaFileBytes }));
  if (!authorities.ok) return fail(authorities.error);
  const token = url.protocol === 'https:' ? await readToken(tokenFile, files) : accept(null);
  if (!token.ok) return fail(token.error);
  return fetchWith(url, authorities.value, token.value, limits, signal);
}

function fail(why: string, status: number | null = null): Result<never, FetchFailure> {
  return refuse({ why, status });
}

/** A server takes no longer header anyway. */
const maxTokenBytes = 8 * 1024;

async function readToken(tokenFile: string | null, files: Files): Promise<Result<string | null, string>> {
  if (tokenFile === null) return accept(null);
  const text = await files.read(tokenFile, { maxBytes: maxTokenBytes });
  if (!text.ok) return refuse(`the token file ${tokenFile} ${text.error}`);
  const token = text.value.trim();
  return isB64Token(token) ? accept(token) : refuse(`the token file ${tokenFile} holds no bearer token`);
}

async function fetchWith(
  url: URL,
  authorities: readonly string[] | null,
  token: string | null,
  limits: FetchLimits,
  signal: AbortSignal,
): Promise<Result<LoadedKeySet, FetchFailure>> {
  // One agent for each fetch, since fetches are minutes apart: no idle connection that the other side may have dropped.
  const agent = agentFor({ ca: authorities, certificate: null }, { timeoutMs: limits.timeoutMs, maxConnections: null });
  try {
    return await follow(agent, url, token, limits, signal);
  } catch (error) {
    return fail(networkFailure(error));
  } finally {
    await agent.destroy();
  }
}

async function follow(
  agent: Agent,
  start: URL,
  token: string | null,
  limits: FetchLimits,
  signal: AbortSignal,
): Promise<Result<LoadedKeySet, FetchFailure>> {
  const credentials = token === null ? {} : { authorization: `Bearer ${token}` };
  let url = start;
  for (let redirects = 0; redirects <= limits.maxRedirects; redirects += 1) {
    const response = await agent.request({
      origin: url.origin,
      path: `${url.pathname}${url.search}`,
      method: 'GET',
      headers: { accept: 'application/json', 'user-agent': 'sallyport', ...credentials },
      signal,
    });
    if (!isRedirect(response.statusCode)) return read(response, limits);
    dropBody(response.body);
    const next = redirectTarget(response, url);
    if (!next.ok) return fail(next.error);
    url = next.value;
  }
  return fail(
    limits.maxRedirects === 0
      ? 'the response is a redirect, which is not followed'
      : `more than ${String(limits.maxRedirects)} redirects`,
  );
}

/**
 * Only the host that the operator named may say what the keys are, and never less protected than the operator asked
 * for.
 */
function redirectTarget(response: Dispatcher.ResponseData, from: URL): Result<URL, string> {
  const { location } = response.headers;
  const url = typeof location === 'string' && URL.canParse(location, from.href) ? new URL(location, from.href) : null;
  if (url === null) return refuse('a redirect without a usable Location');
  if (url.protocol !== 'https:' && url.protocol !== from.protocol) return refuse('a redirect to another scheme');
  if (url.host !== from.host) return refuse('a redirect to another host');
  return accept(url);
}

async function read(
  response: Dispatcher.ResponseData,
  limits: LoadLimits,
): Promise<Result<LoadedKeySet, FetchFailure>> {
  const { statusCode, headers, body } = response;
  if (statusCode !== 200) {
    dropBody(body);
    return fail(`the response has status ${String(statusCode)}`, statusCode);
  }
  if (!isPlain(headers)) {
    dropBody(body);
    return fail('the response is compressed, which was not asked for');
  }
  const bytes = await readBody(body, limits.maxBytes);
  if (bytes === null) return fail(`the response is larger than ${String(limits.maxBytes)} bytes`);
  const keeping = keepingRules({
    cacheControl: headerValue(headers, 'cache-control'),
    age: headerValue(headers, 'age'),
    expires: headerValue(headers, 'expires'),
    date: headerValue(headers, 'date'),
  });
  return accept({ bytes, ...keeping });
}

/** A header's value; several lines as one list (RFC 9110 §5.3). */
function headerValue(headers: Dispatcher.ResponseData['headers'], name: string): string | null {
  const value = headers[name];
  return Array.isArray(value) ? value.join(', ') : (value ?? null);
}

/** Where the text of a key set comes from. */
export interface KeyOrigin {
  /** Gets it anew, or says in words why not. Stops when the signal says so; never rejects. */
  readonly load: (limits: RefreshLimits, signal: AbortSignal) => Promise<Result<LoadedKeySet, string>>;
  /** Of the metadata that names the place of the keys; `null` where the config names it. */
  readonly metadata: () => MetadataState | null;
  readonly close: () => void;
}

/** A place that the config names: it needs to know less. */
export interface NamedOrigin {
  readonly load: (limits: LoadLimits, signal: AbortSignal) => Promise<Result<LoadedKeySet, string>>;
  readonly metadata: () => null;
  readonly close: () => void;
}

export interface LoadLimits {
  readonly maxBytes: number;
  readonly timeoutMs: number;
}

interface FetchLimits extends LoadLimits {
  readonly maxRedirects: number;
}

/** What bounds a fetch, and when what was fetched has to be fetched again. */
export interface RefreshLimits extends LoadLimits {
  readonly minAgeMs: number;
  readonly maxAgeMs: number;
  readonly maxStaleMs: number | null;
  readonly cooldownMs: number;
  /** Whether somebody waits for a key that is not known. */
  readonly isAwaited: boolean;
}

/** The text of a key set, and for how long it may be kept. */
export interface LoadedKeySet extends KeepingRules {
  readonly bytes: Uint8Array;
  /** Called once the set is in hand: what was refused, or is still in doubt, says nothing of later ones. */
  readonly onTaken?: () => void;
}
