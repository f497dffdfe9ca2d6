/** A whole deployment on loopback: a JWKS server, a receiver and `sallyport serve` as a real process between them. */
import { createHash } from 'node:crypto';
import { appendFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { startJwksServer, type JwksServer } from './jwks-server.js';
import { rsaKey, type RsaKey } from './keys.js';
import { request, requestBytes, sendRaw, type RawResponse, type RequestInput, type SendOptions } from './raw-client.js';
import { startUpstreamServer, type UpstreamServer } from './upstream-server.js';
import type { Scope } from './scope.js';
import { createSecrets } from './secrets.js';
import { startHttp2Mirror } from './http2-mirror.js';
import { startMirror, type Mirror, type MirrorSettings, type ShadowMirror } from './shadow-mirror.js';
import { startServe, type LogLine, type ServeProcess } from './serve-process.js';
import { tempDir } from './temp-dir.js';
import { mintToken, type Claims } from './tokens.js';
import { isMirrored, mirrorKind, withMirrors } from './mirror-servers.js';
import { until } from './until.js';

/** A piece of config as YAML would hold it. */
export type ConfigTree = Readonly<Record<string, unknown>>;

const defaults: ConfigTree = {
  listen: { host: '127.0.0.1', port: 0 },
  admin: { host: '127.0.0.1', port: 0 },
  upstream: { url: 'http://127.0.0.1:3000' },
  issuers: {
    core: {
      issuer: 'https://api.example.com',
      jwks_url: 'http://127.0.0.1:3567/auth/jwt/jwks.json',
      audience: 'orders',
      source: 'microservice',
      token_type: 'service',
      key_ids: { accept: ['d-*'] },
    },
  },
  shutdown: { delay: '0s', grace: '5s' },
  // An edit counts at once: tests that are about something else need not wait.
  reload: { least_age: '0s' },
  routes: [
    {
      name: 'list-orders',
      methods: ['GET'],
      path: '/orders',
      subjects: ['checkout', 'reporting'],
      permissions: ['orders:read'],
    },
    {
      name: 'create-order',
      methods: ['POST'],
      path: '/orders',
      subjects: ['checkout'],
      permissions: ['orders:write'],
      idempotency: { mode: 'none', because: 'a test' },
    },
    {
      name: 'read-order',
      methods: ['GET', 'HEAD'],
      path: '/orders/{id}',
      subjects: ['checkout'],
      permissions: ['orders:read'],
    },
    { name: 'health', methods: ['GET'], path: '/healthz', access: 'public' },
  ],
};

export interface ProxyProcess {
  /** Port of the proxy. */
  readonly port: number;
  readonly adminPort: number;
  readonly receiver: UpstreamServer;
  readonly jwks: JwksServer;
  readonly key: RsaKey;
  readonly process: ServeProcess;
  readonly configFile: string;
  /** A good token, unless the overrides say otherwise. */
  readonly token: (claims?: Claims, header?: Claims) => string;
  /** `Authorization` with a good token. */
  readonly authorization: (claims?: Claims) => Readonly<Record<string, string>>;
  /** One request over a connection of its own, as it stands. */
  readonly request: (input: RequestInput, options?: SendOptions) => Promise<RawResponse>;
  /** These bytes over a connection of their own. */
  readonly send: (bytes: string | Buffer, options?: SendOptions) => Promise<RawResponse[]>;
  /** Keeps in mind something sent that nothing may ever write; `request` and `send` do so by themselves. */
  readonly markSecret: (secret: string) => void;
  /** Secrets minted or sent here that stand in a log line, on `/metrics` or on `/status`: there has to be none. */
  readonly exposures: () => Promise<string[]>;
  /** One request to the admin listener. */
  readonly admin: (path: string) => Promise<RawResponse>;
  /**
   * The sum of the series of `/metrics` with these labels, 0 where there are none:
   * `sallyport_denials_total{reason="framing"}`.
   */
  readonly metric: (series: string) => Promise<number>;
  readonly logs: () => readonly LogLine[];
  /** The line of the request with this `X-Request-Id`, once it is written. */
  readonly logOf: (requestId: string) => Promise<LogLine>;
  /** Writes a new config over the old one; `serve` notices by itself. */
  readonly rewrite: (overrides: ConfigTree) => void;
  /** Writes text at the end of the config file, or in its place. */
  readonly writeConfigText: (text: string, where: 'at its end' | 'in its place') => void;
  /** Waits until the file, as it is now, is in force. */
  readonly loaded: () => Promise<void>;
  readonly signal: (signal: NodeJS.Signals) => void;
  readonly stop: ServeProcess['stop'];
  /** The proxy in shadow mode beside it, in runs that have one. */
  readonly shadow: ShadowMirror | null;
}

export interface ProxyProcessOptions {
  /** Laid over `baseConfig` and over the URLs of this proxy's servers. */
  readonly config?: ConfigTree;
  readonly key?: RsaKey;
  readonly jwks?: JwksServer;
  readonly receiver?: UpstreamServer;
  readonly env?: Readonly<Record<string, string>>;
  /** The program in the place of `dist/main.js`. */
  readonly main?: string;
  /** Wait for `/readyz` to say 200; true unless given. */
  readonly ready?: boolean;
}

/** Starts one; everything ends with the test. */
export async function startProxyProcess(t: Scope, options: ProxyProcessOptions = {}): Promise<ProxyProcess> {
  const key = options.key ?? rsaKey();
  const jwks = options.jwks ?? (await startJwksServer(t, { keys: [key] }));
  const receiver = options.receiver ?? (await startUpstreamServer(t));
  const configFile = join(tempDir(t), 'sallyport.yaml');
  const places: ConfigTree = {
    upstream: { url: receiver.url },
    issuers: { core: { jwks_url: jwks.url } },
    // The mirror reads of each refusal in the log why it was one.
    ...(isMirrored ? { log: { refusals_per_second: null } } : {}),
  };
  const mirrorFile = `${configFile}.mirror.yaml`;
  const files = isMirrored ? [configFile, mirrorFile] : [configFile];
  const rewrite = (overrides: ConfigTree): void => {
    const config = merge(places, overrides);
    writeFileSync(configFile, baseConfig(config));
    if (isMirrored) writeFileSync(mirrorFile, baseConfig(mirrored(config)));
  };
  rewrite(options.config ?? {});
  const serve = startServe(t, configFile, {
    ...(options.env === undefined ? {} : { env: options.env }),
    ...(options.main === undefined ? {} : { main: options.main }),
  });
  const port = await serve.port('proxy');
  const adminPort = await serve.port('admin');
  const admin = async (path: string): Promise<RawResponse> => request(adminPort, { path });
  if (options.ready ?? true) {
    await until('ready', async () => (await admin('/readyz')).status === 200);
  }
  const logOf: ProxyProcess['logOf'] = async (requestId) =>
    until(`the log line of ${requestId}`, () => serve.logs().find((line) => line['request_id'] === requestId));
  const settings: MirrorSettings = {
    configFile: mirrorFile,
    env: options.env ?? {},
    ready: options.ready ?? true,
    logOf,
    port,
  };
  const shadow = mirrorKind === 'shadow' ? await startMirror(t, settings) : null;
  const mirror: Mirror | null = mirrorKind === 'http2' ? await startHttp2Mirror(t, settings) : shadow;
  const secrets = createSecrets();
  const token = (claims?: Claims, header?: Claims): string => {
    const minted = mintToken({ key, claims, header });
    secrets.add(minted);
    return minted;
  };
  const send: ProxyProcess['send'] = async (bytes, sendOptions) => {
    secrets.addFieldsOf(bytes);
    const answers = await sendRaw(port, bytes, sendOptions);
    await mirror?.compareRaw(bytes, sendOptions, answers);
    return answers;
  };
  return {
    port,
    adminPort,
    receiver,
    jwks,
    key,
    process: serve,
    configFile,
    token,
    authorization: (claims) => ({ Authorization: `Bearer ${token(claims)}` }),
    request: async (input, sendOptions) => {
      secrets.addFieldsOf(requestBytes(port, input));
      const answer = await request(port, input, sendOptions).catch(async (error: unknown) => {
        await mirror?.compare(input, sendOptions, null);
        throw error;
      });
      await mirror?.compare(input, sendOptions, answer);
      return answer;
    },
    send,
    markSecret: secrets.add,
    exposures: async () => {
      const pages = await Promise.all(['/metrics', '/status', '/readyz'].map(async (path) => (await admin(path)).text));
      return secrets.foundIn([serve.output(), ...pages].join('\n'));
    },
    admin,
    metric: async (series) => seriesValue((await admin('/metrics')).text, series),
    logs: serve.logs,
    logOf,
    rewrite,
    writeConfigText: (text, where) => {
      for (const file of files) {
        if (where === 'at its end') appendFileSync(file, text);
        else writeFileSync(file, text);
      }
    },
    loaded: async () => {
      const pages = [async () => admin('/status'), ...(mirror === null ? [] : [mirror.status])];
      for (const [index, page] of pages.entries()) {
        const sha256 = createHash('sha256')
          .update(readFileSync(files[index] ?? configFile))
          .digest('hex');
        await until('the config is in force', async () => (await page()).text.includes(sha256));
      }
    },
    signal: (signal) => {
      serve.signal(signal);
      mirror?.signal(signal);
    },
    stop: async () => {
      mirror?.signal('SIGTERM');
      return serve.stop();
    },
    shadow,
  };
}

/** The config of the second proxy beside the one that is tested. */
function mirrored(config: ConfigTree): ConfigTree {
  if (mirrorKind === 'http2') return merge(withMirrors(config), { listen: { http2: true } });
  const { mode: _mode, ...rest } = config;
  return merge(withMirrors(rest), { mode: 'shadow' });
}

/** The sum of the series of this name that have these labels, of the Prometheus text format; 0 where there are none. */
export function seriesValue(exposition: string, series: string): number {
  const [name = '', labels = ''] = series.split('{', 2);
  const wanted = labelsOf(labels);
  return exposition.split('\n').reduce((sum, line) => {
    if (!line.startsWith(`${name} `) && !line.startsWith(`${name}{`)) return sum;
    const found = new Set(labelsOf(line.slice(name.length)));
    return wanted.every((label) => found.has(label)) ? sum + Number(line.slice(line.lastIndexOf(' ') + 1)) : sum;
  }, 0);
}

/** `name="value"` of each label. */
function labelsOf(text: string): readonly string[] {
  return text.match(/\w+="(?:[^"\\]|\\.)*"/g) ?? [];
}

/**
 * A config that is accepted as it stands, as YAML text. Maps of the overrides are merged into it key by key, anything
 * else replaces what is there, `undefined` takes a key away.
 */
export function baseConfig(overrides: ConfigTree = {}): string {
  return stringify(merge({ ...defaults, ...everywhere, ...workersOf(overrides) }, overrides), {
    aliasDuplicateObjects: false,
  });
}

/** Whether proxies of tests verify each token anew, unless their config says otherwise. */
export const tokenCacheSwitch = 'SALLYPORT_TEST_TOKEN_CACHE';

/** Workers of proxies of tests, unless their config says otherwise or has a store that they could not share. */
export const workersSwitch = 'SALLYPORT_TEST_WORKERS';

/** Processes that serve callers of such a proxy. Each fetches keys and connects to Redis for itself. */
export const usualWorkers = Number(process.env[workersSwitch] ?? 1);

const everywhere: ConfigTree = process.env[tokenCacheSwitch] === 'off' ? { token_cache: null } : {};

function workersOf(overrides: ConfigTree): ConfigTree {
  const { store } = overrides;
  return usualWorkers === 1 || (isTree(store) && 'memory' in store) ? {} : { workers: usualWorkers };
}

/** `under` with `over` laid on it. */
export function merge(under: ConfigTree, over: ConfigTree): ConfigTree {
  const merged = new Map(Object.entries(under));
  for (const [key, value] of Object.entries(over)) {
    const below = merged.get(key);
    if (value === undefined) merged.delete(key);
    else merged.set(key, isTree(value) && isTree(below) ? merge(below, value) : value);
  }
  return Object.fromEntries(merged);
}

function isTree(value: unknown): value is ConfigTree {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
