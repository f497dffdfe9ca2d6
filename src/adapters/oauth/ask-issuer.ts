import type { Dispatcher } from 'undici';
import type { IntrospectionSettings } from '../../config/types.js';
import { clientErrors } from '../../decision/egress/token-response.js';
import { codeOf, networkFailure } from '../../lib/errors.js';
import { accept, refuse, type Result } from '../../lib/result.js';
import { defaultMaxDepth, parseStrictJson } from '../../lib/strict-json.js';
import type { ClientCredentials } from './client-credentials.js';
import { agentFor, dropBody, isPlain, isRedirect, readBody } from '../../lib/http/requests.js';
import { createNetworkTurns, type Leave } from './network-shares.js';

/** Questions at once of each group; more wait for a connection, within their time. */
const maxConnections = 32;

/** What the issuer sent with status 200. */
interface IssuerResponse {
  /** Media type in lower case, without parameters. */
  readonly type: string;
  readonly bytes: Buffer;
}

/** Why there is no response. */
export interface IssuerRequestFailure {
  /** In words, which hold nothing of what was sent or received. */
  readonly why: string;
  /** Whether the issuer does not take this proxy for a client that may ask. */
  readonly refusesClient: boolean;
  /** Whether the token alone may be the cause, so that it says nothing of the issuer. */
  readonly isOfToken: boolean;
  /** Whether the issuer, or what stands before it, has answered. */
  readonly hasResponse: boolean;
}

/**
 * About what an issuer is asked: a token that was active before (`known`), another one of somebody who has shown a good
 * credential (`callers`), or one of a stranger.
 */
export type QuestionGroup = 'known' | 'callers' | 'strangers';

/** One question. */
export interface IssuerQuestion {
  readonly token: string;
  readonly group: QuestionGroup;
  /** Of whoever brings the token; empty where there is none. */
  readonly address: string;
}

/** Connections to an issuer that know who asks. */
export interface IssuerConnections {
  /**
   * Asks once; again where the connection of a question is cut before a response, and it is not a stranger's. Ends
   * within the time limit; never rejects. Follows no redirect: the token would go where it says.
   */
  readonly ask: (
    question: IssuerQuestion,
    url: URL,
    nowMs: number,
  ) => Promise<Result<IssuerResponse, IssuerRequestFailure>>;
  /** Asks as this client from now on, those too that still wait for a turn; questions under way are answered. */
  readonly use: (credentials: ClientCredentials) => void;
  readonly close: () => Promise<void>;
}

export const acceptedTypes = {
  json: 'application/json',
  jwt: 'application/token-introspection+jwt',
} as const;

/** Opens connections, when they are needed. TLS is verified by the issuer's authorities alone where there are some. */
export function connectToIssuer(
  initial: ClientCredentials,
  settings: Pick<IntrospectionSettings, 'answer' | 'timeoutMs' | 'maxBytes'>,
): IssuerConnections {
  const { timeoutMs, maxBytes, answer } = settings;
  let client = open(initial);
  const turns = createNetworkTurns(maxConnections);

  function open(credentials: ClientCredentials) {
    const limits = { timeoutMs, maxConnections };
    const agents = {
      known: agentFor(credentials, limits),
      callers: agentFor(credentials, limits),
      strangers: agentFor(credentials, limits),
    };
    return { credentials, agents };
  }

  async function ask(
    question: IssuerQuestion,
    url: URL,
    nowMs: number,
  ): Promise<Result<IssuerResponse, IssuerRequestFailure>> {
    const deadline = new AbortController();
    const timer = setTimeout(() => {
      deadline.abort();
    }, timeoutMs);
    const once = (): Promise<Dispatcher.ResponseData> => send(question, url, nowMs, deadline.signal);
    let leave: Leave | null = null;
    try {
      if (question.group === 'callers') leave = await turns.take(question.address, deadline.signal);
      const response = await once().catch((error: unknown) => {
        // A question changes nothing. Those of strangers are counted, and their tokens may be why it was cut.
        if (question.group === 'strangers' || deadline.signal.aborted || !isCut(error)) throw error;
        return once().catch(() => {
          throw error;
        });
      });
      return await read(response, maxBytes);
    } catch (error) {
      const isLate = deadline.signal.aborted;
      // Others had the connections: that says nothing of the issuer.
      if (question.group === 'callers' && leave === null) {
        return refuse({ ...failed('no connection to the issuer was free in time'), isOfToken: true });
      }
      return refuse(failed(isLate ? `no complete response within ${String(timeoutMs)} ms` : networkFailure(error)));
    } finally {
      clearTimeout(timer);
      leave?.();
    }
  }

  function send(
    { token, group }: IssuerQuestion,
    url: URL,
    nowMs: number,
    signal: AbortSignal,
  ): Promise<Dispatcher.ResponseData> {
    const { credentials, agents } = client;
    const { authorization, form } = credentials.authenticate(nowMs);
    return agents[group].request({
      origin: url.origin,
      path: `${url.pathname}${url.search}`,
      method: 'POST',
      headers: {
        accept: acceptedTypes[answer],
        'content-type': 'application/x-www-form-urlencoded',
        'user-agent': 'sallyport',
        ...(authorization === null ? {} : { authorization }),
      },
      body: new URLSearchParams({ token, token_type_hint: 'access_token', ...form }).toString(),
      signal,
    });
  }

  return {
    ask,
    use: (credentials) => {
      for (const agent of Object.values(client.agents)) agent.close().catch(() => undefined);
      client = open(credentials);
    },
    close: async () => {
      await Promise.all(Object.values(client.agents).map((agent) => agent.destroy()));
    },
  };
}

/** Whether a connection broke before a response began: one that was kept may have been given up meanwhile. */
function isCut(error: unknown): boolean {
  return ['ECONNRESET', 'EPIPE', 'EPROTO', 'UND_ERR_SOCKET'].includes(codeOf(error));
}

async function read(
  { statusCode, headers, body }: Dispatcher.ResponseData,
  maxBytes: number,
): Promise<Result<IssuerResponse, IssuerRequestFailure>> {
  const type = mediaTypeOf(headers['content-type']);
  const problem = headProblem(statusCode, headers);
  if (problem !== null && statusCode !== 400) {
    dropBody(body);
    return refuse({ ...problem, hasResponse: true });
  }
  const whole = await readBody(body, maxBytes);
  if (whole === null) {
    return refuse({ ...failed(`the response is larger than ${String(maxBytes)} bytes`), hasResponse: true });
  }
  if (problem === null) return accept({ type, bytes: whole });
  return refuse({ ...(clientErrors.has(errorIn(whole)) ? refusedClient(statusCode) : problem), hasResponse: true });
}

function errorIn(bytes: Buffer): unknown {
  const parsed = parseStrictJson(bytes, { maxDepth: defaultMaxDepth });
  return parsed.ok ? parsed.value['error'] : null;
}

/** What an odd or long token may be answered with. */
const statusesOfTokens: ReadonlySet<number> = new Set([400, 413, 414, 422, 431]);

function headProblem(status: number, headers: Dispatcher.ResponseData['headers']): IssuerRequestFailure | null {
  if (isRedirect(status)) {
    return failed(
      `the response is a redirect (status ${String(status)}), which is not followed: the token would go there`,
    );
  }
  // RFC 7662 §2.3.
  if (status === 401 || status === 403) return refusedClient(status);
  if (status !== 200) {
    return { ...failed(`the response has status ${String(status)}`), isOfToken: statusesOfTokens.has(status) };
  }
  return isPlain(headers) ? null : failed('the response is compressed, which was not asked for');
}

function refusedClient(status: number): IssuerRequestFailure {
  return { ...failed(`the issuer refuses this client (status ${String(status)})`), refusesClient: true };
}

function mediaTypeOf(written: string | string[] | undefined): string {
  const [type = ''] = (typeof written === 'string' ? written : '').split(';', 1);
  return type.trim().toLowerCase();
}

/** A failure that may be anybody's. */
export function failed(why: string): IssuerRequestFailure {
  return { why, refusesClient: false, isOfToken: false, hasResponse: false };
}
