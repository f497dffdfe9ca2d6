import { Agent, type Dispatcher } from 'undici';
import { readCaBundle } from '../../lib/pem.js';
import { keepingRules, type KeepingRules } from '../../decision/http/http-freshness.js';
import { networkFailure } from '../../lib/errors.js';
import { accept, refuse, type Result } from '../../lib/result.js';
import type { Files } from '../../ports/system.js';

/** A misconfigured pair of redirects must not go round until the time limit. */
const maxRedirects = 3;

/** A key set has a dozen fields at most. */
const maxHeaderBytes = 16 * 1024;

/** A bundle of every public authority has some 250 KB. */
const maxCaBytes = 1024 * 1024;

/**
 * A key set that is fetched over HTTP. A CA file is read for every fetch, so that a new one counts from the next on.
 */
export function createUrlOrigin(url: string, caFile: string | null, files: Files): KeyOrigin {
  return {
    load: async (limits, signal) => {
      const authorities = await readAuthorities(caFile, files);
      return authorities.ok ? fetchKeySet(new URL(url), authorities.value, limits, signal) : authorities;
    },
    close: () => undefined,
  };
}

/** `null` stands for the system's authorities, which a CA file that cannot be used never falls back to. */
async function readAuthorities(caFile: string | null, files: Files): Promise<Result<readonly string[] | null, string>> {
  if (caFile === null) return accept(null);
  const text = await files.read(caFile, { maxBytes: maxCaBytes });
  if (!text.ok) return refuse(`the CA file ${caFile} ${text.error}`);
  const certificates = readCaBundle(text.value);
  return certificates.ok ? certificates : refuse(`the CA file ${caFile} ${certificates.error}`);
}

async function fetchKeySet(
  url: URL,
  authorities: readonly string[] | null,
  limits: LoadLimits,
  signal: AbortSignal,
): Promise<Result<LoadedKeySet, string>> {
  // One agent for each fetch, since fetches are minutes apart: no idle connection that the other side may have dropped.
  const agent = new Agent({
    connect: {
      // Said here, so that NODE_TLS_REJECT_UNAUTHORIZED in the environment does not unsay it.
      rejectUnauthorized: true,
      timeout: limits.timeoutMs,
      ...(authorities === null ? {} : { ca: [...authorities] }),
    },
    headersTimeout: limits.timeoutMs,
    bodyTimeout: limits.timeoutMs,
    maxHeaderSize: maxHeaderBytes,
    pipelining: 0,
  });
  try {
    return await follow(agent, url, limits, signal);
  } catch (error) {
    return refuse(networkFailure(error));
  } finally {
    await agent.destroy();
  }
}

async function follow(
  agent: Agent,
  start: URL,
  limits: LoadLimits,
  signal: AbortSignal,
): Promise<Result<LoadedKeySet, string>> {
  let url = start;
  for (let redirects = 0; redirects <= maxRedirects; redirects += 1) {
    const response = await agent.request({
      origin: url.origin,
      path: `${url.pathname}${url.search}`,
      method: 'GET',
      headers: { accept: 'application/json', 'user-agent': 'sallyport' },
      signal,
    });
    if (!isRedirect(response.statusCode)) return read(response, limits);
    // Nobody looks at this body, but an error of its stream still has to be taken.
    response.body.on('error', () => undefined).destroy();
    const next = redirectTarget(response, url);
    if (!next.ok) return next;
    url = next.value;
  }
  return refuse(`more than ${String(maxRedirects)} redirects`);
}

function isRedirect(status: number): boolean {
  return [301, 302, 303, 307, 308].includes(status);
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

async function read(response: Dispatcher.ResponseData, limits: LoadLimits): Promise<Result<LoadedKeySet, string>> {
  const { statusCode, headers, body } = response;
  if (statusCode !== 200) {
    body.on('error', () => undefined).destroy();
    return refuse(`the answer has status ${String(statusCode)}`);
  }
  if ((field(headers, 'content-encoding') ?? 'identity') !== 'identity') {
    body.on('error', () => undefined).destroy();
    return refuse('the answer is compressed, which was not asked for');
  }
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of body as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    // Leaving the loop destroys the stream: nothing more is read.
    if (bytes > limits.maxBytes) return refuse(`the answer is larger than ${String(limits.maxBytes)} bytes`);
    chunks.push(chunk);
  }
  const keeping = keepingRules({
    cacheControl: field(headers, 'cache-control'),
    age: field(headers, 'age'),
    expires: field(headers, 'expires'),
    date: field(headers, 'date'),
  });
  return accept({ bytes: Buffer.concat(chunks), ...keeping });
}

/** A field's value; several lines as one list (RFC 9110 §5.3). */
function field(headers: Dispatcher.ResponseData['headers'], name: string): string | null {
  const value = headers[name];
  return Array.isArray(value) ? value.join(', ') : (value ?? null);
}

/** Where the text of a key set comes from. */
export interface KeyOrigin {
  /** Gets it anew, or says in words why not. Stops when the signal says so; never rejects. */
  readonly load: (limits: LoadLimits, signal: AbortSignal) => Promise<Result<LoadedKeySet, string>>;
  readonly close: () => void;
}

export interface LoadLimits {
  readonly maxBytes: number;
  readonly timeoutMs: number;
}

/** The text of a key set, and for how long it may be kept. */
export interface LoadedKeySet extends KeepingRules {
  readonly bytes: Uint8Array;
}
