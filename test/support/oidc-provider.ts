/** A real authorization server, `oidc-provider`, as a process; and `openid-client`, with which callers get tokens. */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import {
  clientCredentialsGrant,
  customFetch,
  discovery,
  tokenRevocation,
  type Configuration,
  type CustomFetch,
} from 'openid-client';
import { Agent, fetch } from 'undici';
import { certificates } from './certificates.js';
import { projectDir } from './project-dir.js';
import type { Scope } from './scope.js';

export interface OidcProvider {
  /** Its `iss`, and where it listens. */
  readonly issuer: string;
  /** PEM of the authority that vouches for it. */
  readonly caFile: string;
  /** A new access token of the client `checkout` for `orders`. */
  readonly token: (alg: 'RS256' | 'PS256' | 'ES256' | 'EdDSA' | 'opaque', scope?: string) => Promise<string>;
  /** Revokes a token that it issued (RFC 7009), as its client does. */
  readonly revoke: (token: string) => Promise<void>;
  /** Drops every key for a new one, and publishes them at this path and no other: `/jwks` at first. */
  readonly rotate: (jwksPath: string) => Promise<void>;
}

/** What a client has to know of itself; not secret. */
const oidcClient = { id: 'checkout', secret: 'a secret of the client' };

/** Starts it on loopback; it ends with the test. */
export async function startOidcProvider(
  t: Scope,
  clients: readonly Readonly<Record<string, unknown>>[] = [],
): Promise<OidcProvider> {
  const child = fork(join(projectDir, 'test/support/oidc-provider.mjs'), {
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
  });
  const { server, ca } = certificates(t);
  const dispatcher = new Agent({ connect: { ca: ca.cert } });
  const ended = once(child, 'exit');
  t.teardown(async () => {
    child.kill('SIGKILL');
    await ended;
    await dispatcher.destroy();
  });
  child.send({ listenWith: { cert: server.cert, key: server.key, ca: ca.cert }, clients });
  const [{ origin }] = (await once(child, 'message')) as [{ readonly origin: string }];
  const discovered = async (): Promise<Configuration> => {
    const trusting: CustomFetch = async (url, { body = null, ...options }) => {
      const answer = await fetch(url, { ...options, body, dispatcher });
      return new Response(await answer.text(), { status: answer.status, headers: [...answer.headers] });
    };
    const { id, secret } = oidcClient;
    return discovery(new URL(origin), id, secret, undefined, { [customFetch]: trusting });
  };
  return {
    issuer: origin,
    caFile: ca.certFile,
    token: async (alg, scope = 'orders:read') => {
      const config = await discovered();
      const { access_token: token } = await clientCredentialsGrant(config, { scope, resource: `urn:orders:${alg}` });
      return token;
    },
    revoke: async (token) => tokenRevocation(await discovered(), token),
    rotate: async (jwksPath) => {
      const rotated = once(child, 'message');
      child.send({ rotateTo: jwksPath });
      await rotated;
    },
  };
}
