import { startCoreEmulator, type CoreEmulatorOptions } from '../../src/emulator/core-emulator.js';
import type { Scope } from '../support/scope.js';

export interface CoreAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: string;
  readonly json: () => Record<string, unknown>;
}

export interface CoreClient {
  readonly url: string;
  readonly get: (path: string, headers?: Record<string, string>) => Promise<CoreAnswer>;
  readonly post: (path: string, body: string | Uint8Array, headers?: Record<string, string>) => Promise<CoreAnswer>;
  readonly call: (method: string, path: string) => Promise<CoreAnswer>;
}

/** What every call of `POST /recipe/jwt` in these tests starts from. */
export const jwtCall = {
  algorithm: 'RS256',
  jwksDomain: 'https://api.example.com',
  payload: { sub: 'checkout', permissions: ['orders:read'] },
  validity: 300,
  useStaticSigningKey: false,
};

/** A Core emulator on an ephemeral port, closed when the test ends. */
export async function startCore(t: Scope, options: Partial<CoreEmulatorOptions> = {}): Promise<CoreClient> {
  const core = await startCoreEmulator({ host: '127.0.0.1', port: 0, rotateEveryMs: 604_800_000, apiKeys: [], ...options });
  t.teardown(() => core.close());
  const ask = async (path: string, init: RequestInit): Promise<CoreAnswer> => {
    const response = await fetch(core.url + path, init);
    const body = await response.text();
    return { status: response.status, headers: response.headers, body, json: () => JSON.parse(body) as Record<string, unknown> };
  };
  return {
    url: core.url,
    get: (path, headers = {}) => ask(path, { headers }),
    post: (path, body, headers = {}) =>
      ask(path, { method: 'POST', body, headers: { 'content-type': 'application/json', ...headers } }),
    call: (method, path) => ask(path, { method }),
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
  const part = (text: string): Record<string, unknown> => JSON.parse(Buffer.from(text, 'base64url').toString()) as Record<string, unknown>;
  return { header: part(header), payload: part(payload) };
}
