/** A real authorization server, `oidc-provider`, as a process; and `openid-client`, with which callers get tokens. */
import { fork, type ChildProcess } from 'node:child_process';
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
  /** What `openid-client` needs to ask it as the client `checkout`, and any `https` server on loopback. */
  readonly configuration: () => Promise<Configuration>;
  /** Asks it, and any `https` server on loopback, for whoever takes a `fetch` of one's own. */
  readonly fetch: CustomFetch;
  /** Revokes a token that it issued (RFC 7009), as its client does. */
  readonly revoke: (token: string) => Promise<void>;
  /** Drops every key for a new one, and publishes them at this path and no other: `/jwks` at first. */
  readonly rotate: (jwksPath: string) => Promise<void>;
  /** Ends the process at once, as a crash does. It forgets its opaque tokens. */
  readonly kill: () => Promise<void>;
  /** Starts another one at the same place, with the keys that the last one had or with new ones. */
  readonly restart: (keys: 'the same keys' | 'new keys') => Promise<void>;
}

interface Launched {
  readonly child: ChildProcess;
  readonly ended: Promise<unknown>;
  readonly origin: string;
  /** Private, as JWKs. */
  readonly keys: unknown;
}

/** What a client has to know of itself; not secret. */
export const oidcClient = { id: 'checkout', secret: 'a secret of the client' };

/** Starts it on loopback; it ends with the test. */
export async function startOidcProvider(
  t: Scope,
  clients: readonly Readonly<Record<string, unknown>>[] = [],
): Promise<OidcProvider> {
  const { server, ca } = certificates(t);
  const dispatcher = new Agent({ connect: { ca: ca.cert } });
  const listenWith = { cert: server.cert, key: server.key, ca: ca.cert };
  const launch = async (port: number, keys: unknown): Promise<Launched> => {
    const child = fork(join(projectDir, 'test/support/oidc-provider.mjs'), {
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    });
    const ended = once(child, 'exit');
    child.send({ listenWith, clients, port, keys });
    const [told] = (await once(child, 'message')) as [Pick<Launched, 'origin' | 'keys'>];
    return { ...told, child, ended };
  };
  let running = await launch(0, undefined);
  const { origin } = running;
  const kill = async (): Promise<void> => {
    running.child.kill('SIGKILL');
    await running.ended;
  };
  t.teardown(async () => {
    await kill();
    await dispatcher.destroy();
  });
  const trusting: CustomFetch = async (url, { body = null, ...options }) => {
    const answer = await fetch(url, { ...options, body, dispatcher });
    return new Response(await answer.text(), { status: answer.status, headers: [...answer.headers] });
  };
  const discovered = async (): Promise<Configuration> => {
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
    configuration: discovered,
    fetch: trusting,
    revoke: async (token) => tokenRevocation(await discovered(), token),
    rotate: async (jwksPath) => {
      const rotated = once(running.child, 'message');
      running.child.send({ rotateTo: jwksPath });
      const [{ keys }] = (await rotated) as [Pick<Launched, 'keys'>];
      running = { ...running, keys };
    },
    kill,
    restart: async (which) => {
      running = await launch(Number(new URL(origin).port), which === 'the same keys' ? running.keys : undefined);
    },
  };
}
