import { setMaxListeners } from 'node:events';
import { Agent, type Dispatcher } from 'undici';
import type { CoreAddressRules } from './core-url.js';
import { readRetryAfter } from '../decision/egress/retry-after.js';
import { dropBody, isRedirect, readBody } from '../lib/http/requests.js';
import { networkFailure } from '../lib/errors.js';
import { accept, refuse, type Result } from '../lib/result.js';
import { isJsonObject, parseStrictJson, defaultMaxDepth, type JsonObject } from '../lib/strict-json.js';
import { hide, readableResponse } from './redact-response.js';
import { createPinnedConnector, NotConnected, RefusedAddress, type Lookup } from './pinned-connector.js';

/** How the Core is reached. */
export interface CoreClientOptions {
  /** http or https, perhaps with a base path; without a slash at its end. */
  readonly baseUrl: string;
  /** Go with every call. Their values are secret. */
  readonly headers: readonly { readonly name: string; readonly value: string }[];
  /** PEM certificates to trust instead of the system's; `null` trusts those. */
  readonly ca: readonly string[] | null;
  readonly rules: CoreAddressRules;
  /** For a whole call, from its start to the last byte of the response. Default 10 s. */
  readonly timeoutMs?: number | null;
  /** For a connection, TLS included. Default 5 s. */
  readonly connectTimeoutMs?: number | null;
  /** Calls at once; more wait. Default 1. */
  readonly maxConnections?: number;
  /** Stands in for the system's resolver in tests. */
  readonly lookup?: Lookup;
}

/** One call of the Core's API. */
export interface CoreCall {
  readonly method: 'GET' | 'POST' | 'PUT';
  /** Behind the base path: `/recipe/jwt`. */
  readonly path: string;
  /** Wins over one of the client's headers, as `cdiVersion` does; neither is sent where both are missing. */
  readonly rid?: string;
  readonly cdiVersion?: string;
  /** Besides those of the client; secret too. */
  readonly headers?: CoreClientOptions['headers'];
  /** Sent as JSON. */
  readonly body?: unknown;
  /** What must not be shown besides the headers: a password hash in the body, for one. */
  readonly secrets?: readonly string[];
  /** Calls the call off. */
  readonly signal?: AbortSignal | undefined;
}

/** What the Core answered, whatever its status. */
export interface CoreResponse {
  readonly status: number;
  /** The response as a strict JSON object; `null` where it is none. */
  readonly json: JsonObject | null;
  /** The response as one readable line of at most 200 characters, without what the call kept secret. For people. */
  readonly text: string;
  /** Milliseconds that a 429 or 503 asked to wait, where it gave a number of seconds. */
  readonly retryAfterMs: number | null;
}

/** Why there is no response. */
export interface CoreFailure {
  /**
   * `unreachable`: not connected. `refused_address`: the rules forbid the address. `timeout`: too slow. `broken`: the
   * connection broke, or what came is no response that can be taken (too large, not HTTP, a redirect). `aborted`: by
   * the caller's signal.
   */
  readonly kind: 'unreachable' | 'refused_address' | 'timeout' | 'broken' | 'aborted';
  /** In words, without anything secret. */
  readonly reason: string;
  /** Whether the Core may have acted on the call. */
  readonly mayHaveRun: boolean;
}

/** Calls one Core. */
export interface CoreClient {
  readonly call: (call: CoreCall) => Promise<Result<CoreResponse, CoreFailure>>;
  /** Ends its connections; calls under way end as `aborted`. */
  readonly close: () => Promise<void>;
}

const defaultTimeoutMs = 10_000;
const defaultConnectTimeoutMs = 5_000;

/** A response of the Core has some KB; a key set, 20. */
const maxResponseBytes = 1024 * 1024;
const maxHeaderBytes = 16 * 1024;

/**
 * Shorter than what servers in front of a Core allow, so that a call does not meet a connection that was just given up.
 */
const keepAliveMs = 2_000;

/** A name that the header has no second time. */
const ownNames = new Set(['accept', 'content-type', 'rid', 'cdi-version']);

/** Makes a client. TLS is verified, no redirect is followed, nothing is sent twice. */
export function createCoreClient(options: CoreClientOptions): CoreClient {
  const base = new URL(options.baseUrl);
  const timeoutMs = options.timeoutMs ?? defaultTimeoutMs;
  const connectTimeoutMs = Math.min(options.connectTimeoutMs ?? defaultConnectTimeoutMs, timeoutMs);
  const closing = new AbortController();
  // Every call under way listens, and each lets go at its end.
  setMaxListeners(0, closing.signal);
  const agent = new Agent({
    connect: createPinnedConnector({ rules: options.rules, ca: options.ca, connectTimeoutMs, lookup: options.lookup }),
    connections: options.maxConnections ?? 1,
    keepAliveTimeout: keepAliveMs,
    keepAliveMaxTimeout: keepAliveMs,
    headersTimeout: timeoutMs,
    bodyTimeout: timeoutMs,
    maxHeaderSize: maxHeaderBytes,
  });
  return {
    call: async (call) => {
      const given = [...options.headers, ...(call.headers ?? [])];
      const hidden = [...withoutOwnNames(given).map(({ value }) => value), ...(call.secrets ?? [])];
      const limits = limitCall(timeoutMs, [closing.signal, ...(call.signal === undefined ? [] : [call.signal])]);
      try {
        const response = await agent.request({
          origin: base.origin,
          path: `${base.pathname.replace(/\/$/, '')}${call.path}`,
          method: call.method,
          headers: headersOf(call, given),
          body: call.body === undefined ? null : JSON.stringify(call.body),
          signal: limits.signal,
        });
        return await readResponse(response, hidden);
      } catch (error) {
        return refuse(
          failureOf(error, { isCalledOff: limits.isCalledOff(), isLate: limits.isLate(), timeoutMs, hidden }),
        );
      } finally {
        limits.release();
      }
    },
    close: async () => {
      closing.abort();
      await agent.destroy();
    },
  };
}

/** What may be a secret: the rest says what is spoken. */
function withoutOwnNames(given: CoreClientOptions['headers']): CoreClientOptions['headers'] {
  return given.filter(({ name }) => !ownNames.has(name.toLowerCase()));
}

function headersOf(call: CoreCall, given: CoreClientOptions['headers']): Record<string, string> {
  const find = (name: string): string | undefined => given.find((header) => header.name.toLowerCase() === name)?.value;
  const rid = call.rid ?? find('rid');
  const cdiVersion = call.cdiVersion ?? find('cdi-version');
  return {
    'user-agent': 'sallyport',
    accept: 'application/json',
    ...Object.fromEntries(withoutOwnNames(given).map(({ name, value }) => [name.toLowerCase(), value])),
    ...(call.body === undefined ? {} : { 'content-type': 'application/json; charset=utf-8' }),
    ...(rid === undefined ? {} : { rid }),
    ...(cdiVersion === undefined ? {} : { 'cdi-version': cdiVersion }),
  };
}

async function readResponse(
  { statusCode, headers, body }: Dispatcher.ResponseData,
  hidden: readonly string[],
): Promise<Result<CoreResponse, CoreFailure>> {
  const problem = headProblem(statusCode, headers);
  if (problem !== null) {
    dropBody(body);
    return refuse({ kind: 'broken', reason: problem, mayHaveRun: true });
  }
  const bytes = await readBody(body, maxResponseBytes);
  if (bytes === null) {
    const reason = `the response is larger than ${String(maxResponseBytes)} bytes`;
    return refuse({ kind: 'broken', reason, mayHaveRun: true });
  }
  const json = parseStrictJson(bytes, { maxDepth: defaultMaxDepth });
  const retryAfter = headers['retry-after'];
  return accept({
    status: statusCode,
    json: json.ok && isJsonObject(json.value) ? json.value : null,
    text: readableResponse(bytes.toString('utf8'), hidden),
    retryAfterMs: typeof retryAfter === 'string' ? readRetryAfter(retryAfter, Date.now()) : null,
  });
}

function headProblem(status: number, headers: Dispatcher.ResponseData['headers']): string | null {
  if (isRedirect(status)) {
    return `the response is a redirect (status ${String(status)}), which is not followed: the key would go where it says`;
  }
  const encoding = headers['content-encoding'] ?? 'identity';
  return encoding === 'identity' ? null : 'the response is compressed, which was not asked for';
}

interface Circumstances {
  readonly isCalledOff: boolean;
  readonly isLate: boolean;
  readonly timeoutMs: number;
  readonly hidden: readonly string[];
}

function failureOf(error: unknown, { isCalledOff, isLate, timeoutMs, hidden }: Circumstances): CoreFailure {
  if (isCalledOff) return { kind: 'aborted', reason: 'the call was called off', mayHaveRun: true };
  if (error instanceof RefusedAddress) {
    return { kind: 'refused_address', reason: hide(error.message, hidden), mayHaveRun: false };
  }
  const cause = error instanceof NotConnected ? error.cause : error;
  if (cause instanceof RefusedAddress) {
    return { kind: 'refused_address', reason: hide(cause.message, hidden), mayHaveRun: false };
  }
  if (error instanceof NotConnected) return { kind: 'unreachable', reason: networkFailure(cause), mayHaveRun: false };
  if (isLate) {
    return { kind: 'timeout', reason: `no complete response within ${String(timeoutMs)} ms`, mayHaveRun: true };
  }
  return { kind: 'broken', reason: networkFailure(error), mayHaveRun: true };
}

/** A signal that ends one call, and what made it end. */
interface CallLimits {
  readonly signal: AbortSignal;
  readonly isLate: () => boolean;
  readonly isCalledOff: () => boolean;
  /** Lets go of the timer and of the callers' signals, which may live much longer than the call. */
  readonly release: () => void;
}

/** Bounds a call by a time in milliseconds and by the signals of those who may call it off. */
function limitCall(timeoutMs: number, callers: readonly AbortSignal[]): CallLimits {
  const controller = new AbortController();
  let isLate = false;
  const abort = (): void => controller.abort();
  const timer = setTimeout(() => {
    isLate = true;
    abort();
  }, timeoutMs);
  for (const caller of callers) caller.addEventListener('abort', abort, { once: true });
  if (callers.some(({ aborted }) => aborted)) abort();
  return {
    signal: controller.signal,
    isLate: () => isLate,
    isCalledOff: () => callers.some(({ aborted }) => aborted),
    release: () => {
      clearTimeout(timer);
      for (const caller of callers) caller.removeEventListener('abort', abort);
    },
  };
}
