/** Requests with a token that is bound: a proof for each, or a certificate when TLS begins. */
import { Agent, fetch, FormData, Headers, type RequestInit, type Response } from 'undici';
import type { ProofKey } from './proof-key.js';

/** What a program has that its tokens are bound to; at least one of both. */
export interface BoundFetchOptions {
  /** Asked for each request: a `TokenSource`, or whatever else has tokens. */
  readonly tokens: { readonly getToken: () => Promise<string> };
  readonly key?: ProofKey;
  /** Shown to the services. In PEM. */
  readonly certificate?: { readonly certificate: string; readonly privateKey: string };
  /** Authorities of the services, in PEM, to trust instead of the system's. */
  readonly ca?: string;
}

/** What a request may say beside its address; `redirect` is `manual` or `error`. */
export type BoundRequest = Omit<RequestInit, 'body' | 'dispatcher' | 'redirect'> & {
  readonly body?: RequestInit['body'] | globalThis.FormData;
  readonly redirect?: 'manual' | 'error';
};

/** Sends requests as `fetch` does. */
export interface BoundFetch {
  /**
   * Sends one with a token and a new proof. A 401 with another `DPoP-Nonce` than the proof had is answered by one
   * more request, unless the body is a stream, which is gone by then (RFC 9449 §9). Redirects are not followed: a proof
   * is for one address. Rejects as `getToken` and `fetch` do.
   */
  readonly fetch: (url: string | URL, init?: BoundRequest) => Promise<Response>;
  /** Ends its connections, once the responses that are read are over. */
  readonly close: () => Promise<void>;
}

/** Services of one program; the nonce that was told first is forgotten first. */
const maxOrigins = 1_000;

/** RFC 9449 §8.1: what may stand in a nonce; longer ones would make proofs that no header holds. */
const nonceText = /^[\x21\x23-\x5b\x5d-\x7e]{1,1024}$/;

/** With a body that our `fetch` knows. */
type OwnRequest = Omit<BoundRequest, 'body'> & Pick<RequestInit, 'body'>;

interface AttemptResult {
  readonly response: Response;
  /** Whether another proof, with the nonce that came, may be let through. */
  readonly isChallenged: boolean;
}

/** Throws a `TypeError` where there is neither key nor certificate, or where one is none. */
export function createBoundFetch({ tokens, key, certificate, ca }: BoundFetchOptions): BoundFetch {
  if (key === undefined && certificate === undefined) {
    throw new TypeError('createBoundFetch: neither key nor certificate: tokens are bound to one of them');
  }
  const dispatcher = new Agent({
    connect: {
      rejectUnauthorized: true,
      ...(ca === undefined ? {} : { ca }),
      ...(certificate === undefined ? {} : { cert: certificate.certificate, key: certificate.privateKey }),
    },
  });
  /** By origin (RFC 9449 §8.2: each server has its own). */
  const nonces = new Map<string, string>();

  async function attempt(url: URL, init: OwnRequest, token: string): Promise<AttemptResult> {
    const { method = 'GET' } = init;
    const nonce = nonces.get(url.origin);
    const asked = { method: writtenMethod(method), url, token, ...(nonce === undefined ? {} : { nonce }) };
    const proved = key === undefined ? { authorization: `Bearer ${token}` } : key.headers(asked);
    const headers = new Headers(init.headers);
    for (const [name, value] of Object.entries(proved)) headers.set(name, value);
    const response = await fetch(url, {
      ...init,
      // A proof is for one address, whatever the request says of redirects.
      redirect: init.redirect === 'error' ? 'error' : 'manual',
      method: asked.method,
      headers,
      dispatcher,
    });
    const told = response.headers.get('dpop-nonce');
    const isTold = key !== undefined && told !== null && nonceText.test(told);
    if (isTold) keep(url.origin, told);
    return { response, isChallenged: isTold && response.status === 401 && told !== nonce };
  }

  function keep(origin: string, nonce: string): void {
    nonces.delete(origin);
    nonces.set(origin, nonce);
    const [oldest] = nonces.keys();
    if (nonces.size > maxOrigins && oldest !== undefined) nonces.delete(oldest);
  }

  return {
    fetch: async (address, asked = {}) => {
      const url = new URL(address);
      const { body, ...rest } = asked;
      const init: OwnRequest = body === undefined ? rest : { ...rest, body: ownBody(body) };
      const token = await tokens.getToken();
      const first = await attempt(url, init, token);
      if (!first.isChallenged || !canBeSentAgain(init.body)) return first.response;
      await first.response.body?.cancel();
      return (await attempt(url, init, token)).response;
    },
    close: () => dispatcher.close(),
  };
}

/** `fetch` writes these in upper case, and all others as they are (Fetch §2.2.1). */
function writtenMethod(method: string): string {
  return /^(?:delete|get|head|options|post|put)$/i.test(method) ? method.toUpperCase() : method;
}

/** A program's form is Node's, or of an undici of its own: our `fetch` would send any but its own as plain text. */
function ownBody(body: NonNullable<BoundRequest['body']> | null): NonNullable<OwnRequest['body']> | null {
  if (!isForm(body)) return body;
  const own = new FormData();
  for (const [name, value] of body) {
    if (typeof value === 'string') own.append(name, value);
    else own.append(name, value, value.name);
  }
  return own;
}

function isForm(body: unknown): body is FormData | globalThis.FormData {
  return typeof body === 'object' && body !== null && Reflect.get(body, Symbol.toStringTag) === 'FormData';
}

/** Whether sending it leaves it as it was. */
function canBeSentAgain(body: OwnRequest['body']): boolean {
  return (
    body === undefined ||
    body === null ||
    typeof body === 'string' ||
    body instanceof URLSearchParams ||
    // With another boundary each time, which its Content-Type says.
    body instanceof FormData ||
    body instanceof Blob ||
    body instanceof ArrayBuffer ||
    ArrayBuffer.isView(body)
  );
}
