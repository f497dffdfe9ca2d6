import { fastify, type FastifyInstance, type FastifyServerOptions } from 'fastify';
import { parse } from 'yaml';
import { sallyport, type SallyportOptions } from '../../src/fastify/plugin.js';
import { startJwksServer } from '../support/jwks-server.js';
import { rsaKey, type RsaKey } from '../support/keys.js';
import { baseConfig, merge, type ConfigTree } from '../support/proxy-process.js';
import { request, sendRaw, type RawResponse, type RequestInput } from '../support/raw-client.js';
import type { Scope } from '../support/scope.js';
import { mintToken, type Claims } from '../support/tokens.js';
import { until } from '../support/until.js';

export interface AppSettings {
  readonly config?: ConfigTree;
  readonly options?: Omit<SallyportOptions, 'config'>;
  readonly server?: FastifyServerOptions;
  /** Before the plugin is registered. */
  readonly before?: (app: FastifyInstance) => unknown;
  readonly routes: (app: FastifyInstance) => unknown;
}

export interface OpenApp {
  readonly app: FastifyInstance;
  readonly port: number;
  readonly key: RsaKey;
  readonly token: (claims?: Claims) => string;
  readonly request: (input: RequestInput) => Promise<RawResponse>;
  readonly send: (bytes: string) => Promise<RawResponse[]>;
}

/** An application with the plugin, which listens; without what it need not say in its config. */
export async function openApp(t: Scope, settings: AppSettings): Promise<OpenApp> {
  const key = rsaKey();
  const app = await buildApp(t, key, settings);
  await app.listen({ host: '127.0.0.1', port: 0 });
  await until('keys', () => app.sallyport.readiness().status === 'ready');
  const address = app.server.address();
  const port = typeof address === 'object' ? (address?.port ?? 0) : 0;
  return {
    app,
    port,
    key,
    token: (claims) => mintToken({ key, claims }),
    request: async (input) => request(port, input),
    send: async (bytes) => sendRaw(port, bytes),
  };
}

/** The same, not ready yet. */
export async function buildApp(
  t: Scope,
  key: RsaKey,
  { config = {}, options = {}, server = {}, before = () => undefined, routes }: AppSettings,
): Promise<FastifyInstance> {
  const jwks = await startJwksServer(t, { keys: [key] });
  const app = fastify({ forceCloseConnections: true, ...server });
  t.teardown(() => app.close());
  await before(app);
  await app.register(sallyport, { config: applicationConfig(jwks.url, config), ...options });
  await routes(app);
  return app;
}

/** What a sidecar's config says, without its listeners and its upstream. */
export function applicationConfig(jwksUrl: string, overrides: ConfigTree): object {
  const issuers = merge({ core: { jwks_url: jwksUrl } }, (overrides['issuers'] ?? {}) as ConfigTree);
  const text = baseConfig({ listen: undefined, upstream: undefined, admin: undefined, ...overrides, issuers });
  return parse(text) as object;
}
