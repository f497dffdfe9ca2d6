/**
 * A deployment on loopback with the proxy in this process: quicker than a process of its own, and open to inspection.
 */
import { join } from 'node:path';
import { startApp, type App } from '../../src/app/start.js';
import { fileSource } from '../../src/app/config/config-source.js';
import type { StartFailure } from '../../src/app/start-failure.js';
import type { Result } from '../../src/lib/result.js';
import { startJwksServer, type JwksServer } from '../support/jwks-server.js';
import { rsaKey } from '../support/keys.js';
import { request, type RawResponse, type RequestInput } from '../support/raw-client.js';
import { startUpstreamServer, type UpstreamServer } from '../support/upstream-server.js';
import { replaceFile } from '../support/replace-file.js';
import type { Scope } from '../support/scope.js';
import type { LogLine } from '../support/serve-process.js';
import { tempDir } from '../support/temp-dir.js';
import { mintToken, type Claims } from '../support/tokens.js';
import { until } from '../support/until.js';
import { baseConfig, merge, seriesValue, type ConfigTree } from '../support/proxy-process.js';

/** Files are looked at this often, so that a test need not wait for half a second. */
const defaultWatchMs = 20;

export interface InProcessProxy {
  readonly app: App;
  readonly port: number;
  readonly adminPort: number;
  readonly jwks: JwksServer;
  readonly receiver: UpstreamServer;
  readonly configFile: string;
  readonly logs: () => readonly LogLine[];
  readonly token: (claims?: Claims) => string;
  /** One request with a good token, unless the claims say otherwise. */
  readonly request: (input: ProxyRequest, claims?: Claims) => Promise<RawResponse>;
  readonly admin: (path: string) => Promise<RawResponse>;
  readonly metric: (series: string) => Promise<number>;
  /** Writes a new config in the place of the old one, at once; the watch notices. */
  readonly rewrite: (overrides: ConfigTree) => void;
}

/** A request without its credential. */
export interface ProxyRequest extends Omit<RequestInput, 'headers'> {
  readonly headers?: Readonly<Record<string, string>>;
}

export interface InProcessProxyOptions {
  readonly config?: ConfigTree;
  /** Sections that the config has not, though others have them. */
  readonly without?: readonly string[];
  readonly jwks?: JwksServer;
  readonly receiver?: UpstreamServer;
  /** Wait until ready; true unless given. */
  readonly ready?: boolean;
  readonly watchMs?: number;
}

/** What of an app runs without a deployment around it: the result of its start, and its log. */
export interface StartedApp {
  readonly started: Result<App, StartFailure>;
  readonly logs: () => readonly LogLine[];
}

/** Starts an app with a config file and stops it with the test. */
export async function startFrom(
  t: Scope,
  configFile: string,
  env: Readonly<Record<string, string>> = {},
  watchIntervalMs = defaultWatchMs,
): Promise<StartedApp> {
  const lines: string[] = [];
  const started = await startApp({
    source: fileSource(configFile, 'sallyport.yaml', watchIntervalMs),
    env,
    logTo: {
      write: (line) => {
        lines.push(line);
      },
    },
    watchIntervalMs,
  });
  if (started.ok) t.teardown(started.value.stop);
  return { started, logs: () => lines.map((line) => JSON.parse(line) as LogLine) };
}

/** Starts one that accepts requests; everything ends with the test. */
export async function startInProcessProxy(t: Scope, options: InProcessProxyOptions = {}): Promise<InProcessProxy> {
  const key = rsaKey();
  const jwks = options.jwks ?? (await startJwksServer(t, { keys: [key] }));
  const receiver = options.receiver ?? (await startUpstreamServer(t));
  const configFile = join(tempDir(t), 'sallyport.yaml');
  const places: ConfigTree = { upstream: { url: receiver.url }, issuers: { core: { jwks_url: jwks.url } } };
  const rewrite = (overrides: ConfigTree): void => {
    const left = Object.fromEntries((options.without ?? []).map((name) => [name, undefined]));
    replaceFile(configFile, baseConfig({ ...merge(places, overrides), ...left }));
  };
  rewrite(options.config ?? {});
  const { started, logs } = await startFrom(t, configFile, {}, options.watchMs);
  if (!started.ok) throw new Error(started.error.messages.join('\n'));
  const app = started.value;
  const port = app.listeners.proxy?.port ?? 0;
  const adminPort = app.listeners.admin.port;
  if (options.ready ?? true) await until('ready', () => app.readiness().status === 'ready');
  const token = (claims?: Claims): string => mintToken({ key, claims });
  const admin = async (path: string): Promise<RawResponse> => request(adminPort, { path });
  return {
    app,
    port,
    adminPort,
    jwks,
    receiver,
    configFile,
    logs,
    token,
    request: async (input, claims) =>
      request(port, { ...input, headers: { ...input.headers, Authorization: `Bearer ${token(claims)}` } }),
    admin,
    metric: async (series) => seriesValue((await admin('/metrics')).text, series),
    rewrite,
  };
}
