import { startCoreEmulator, type CoreEmulatorOptions } from '../../src/core-emulator/server.js';
import type { MakeKey } from '../../src/core-emulator/keys/signing-keys.js';
import { rsaKey } from '../support/keys.js';
import type { Scope } from '../support/scope.js';

export interface CoreAnswer {
  readonly status: number;
  readonly headers: globalThis.Headers;
  readonly body: string;
  readonly json: () => Record<string, unknown>;
}

export type Headers = Readonly<Record<string, string>>;

export interface CoreClient {
  readonly url: string;
  readonly get: (path: string, headers?: Headers) => Promise<CoreAnswer>;
  readonly post: (path: string, body: unknown, headers?: Headers) => Promise<CoreAnswer>;
  readonly put: (path: string, body: unknown, headers?: Headers) => Promise<CoreAnswer>;
  readonly call: (method: string, path: string, headers?: Headers) => Promise<CoreAnswer>;
}

/** What every call of `POST /recipe/jwt` in these tests starts from. */
export const jwtCall = {
  algorithm: 'RS256',
  jwksDomain: 'https://api.example.com',
  payload: { sub: 'checkout', permissions: ['orders:read'] },
  validity: 300,
  useStaticSigningKey: false,
};

/**
 * Makes keys for one Core. No two of it are the same; other Cores of this process have the same ones, since making one
 * takes a tenth of a second and more.
 */
export function sharedKeys(): MakeKey {
  let next = 0;
  return () => Promise.resolve(rsaKey(`core-${String(next++)}`).privateKey);
}

/** A Core emulator on an ephemeral port, closed when the test ends; its keys are those of `sharedKeys`. */
export async function startCore(t: Scope, options: Partial<CoreEmulatorOptions> = {}): Promise<CoreClient> {
  const core = await startCoreEmulator({
    host: '127.0.0.1',
    port: 0,
    rotateEveryMs: 604_800_000,
    apiKeys: [],
    makeKey: sharedKeys(),
    ...options,
  });
  t.teardown(() => core.close());
  return connectCore(core.url);
}

/** Calls a Core with these header fields in every call. Bodies that are no text and no bytes are sent as JSON. */
export function connectCore(url: string, always: Headers = {}): CoreClient {
  const ask = async (path: string, method: string, headers: Headers, body?: unknown): Promise<CoreAnswer> => {
    const bytes = typeof body === 'string' || body instanceof Uint8Array ? body : JSON.stringify(body);
    const typed = body === undefined ? {} : { 'content-type': 'application/json; charset=utf-8' };
    const response = await fetch(url + path, {
      method,
      headers: { ...typed, ...always, ...headers },
      ...(body === undefined ? {} : { body: bytes }),
    });
    const text = await response.text();
    return {
      status: response.status,
      headers: response.headers,
      body: text,
      json: () => JSON.parse(text) as Record<string, unknown>,
    };
  };
  return {
    url,
    get: (path, headers = {}) => ask(path, 'GET', headers),
    post: (path, body, headers = {}) => ask(path, 'POST', headers, body),
    put: (path, body, headers = {}) => ask(path, 'PUT', headers, body),
    call: (method, path, headers = {}) => ask(path, method, headers),
  };
}

/** The key ids that a JWKS end point shows. */
export async function publishedKeyIds(core: CoreClient, path = '/.well-known/jwks.json'): Promise<readonly string[]> {
  const keys = (await core.get(path)).json()['keys'] as readonly { readonly kid: string }[];
  return keys.map((key) => key.kid);
}

/** Header and payload of a token, not verified. */
export function decoded(answer: CoreAnswer): { header: Record<string, unknown>; payload: Record<string, unknown> } {
  const [header = '', payload = ''] = String(answer.json()['jwt']).split('.');
  const part = (text: string): Record<string, unknown> =>
    JSON.parse(Buffer.from(text, 'base64url').toString()) as Record<string, unknown>;
  return { header: part(header), payload: part(payload) };
}
