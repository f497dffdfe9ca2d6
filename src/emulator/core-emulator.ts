import { createHash, timingSafeEqual } from 'node:crypto';
import { createServer, type IncomingMessage } from 'node:http';
import type { Core, Dialect } from './core.js';
import { newestVersion, versionOf } from './driver-interface.js';
import { parseFields } from './fields.js';
import { listen, readBody, send, text, type Message, type RunningServer } from './messages.js';
import { createPasswords } from './passwords.js';
import { createRecords } from './records.js';
import { routeOf } from './routes.js';
import { createSigningKeys } from './signing-keys.js';

/** How the emulated Core runs. What is not given is as in a Core that nobody configured. */
export interface CoreEmulatorOptions {
  readonly host: string;
  /** 0 asks the system for a free one. */
  readonly port: number;
  /** Milliseconds between two dynamic keys. */
  readonly rotateEveryMs: number;
  /** Values of the `api-key` header that count; none asks for none. */
  readonly apiKeys: readonly string[];
  /** `seed` unless given. */
  readonly dialect?: Dialect;
  /** The hosted provider's signer key; without it, hosted-scrypt hashes are answered with 500. */
  readonly signerKey?: Buffer | null;
  /** Milliseconds that a code of a passwordless sign-in can be consumed; 15 minutes unless given. */
  readonly codeLifetimeMs?: number;
  /** Milliseconds that an access token lives, and half of what a replaced key stays published; an hour unless given. */
  readonly accessTokenValidityMs?: number;
  /** Milliseconds since the epoch. */
  readonly now?: () => number;
}

const hourMs = 60 * 60 * 1000;
const quarterMs = 15 * 60 * 1000;

/** Starts a Core emulator, for development and tests: whoever reaches it can mint any token. */
export async function startCoreEmulator(options: CoreEmulatorOptions): Promise<RunningServer> {
  const { rotateEveryMs, accessTokenValidityMs = hourMs, now = Date.now } = options;
  const records = createRecords();
  const core: Core = {
    now,
    records,
    dialect: options.dialect ?? 'seed',
    keys: await createSigningKeys({ rotateEveryMs, overlapMs: 2 * accessTokenValidityMs }, records, now),
    passwords: createPasswords(options.signerKey ?? null),
    accessTokenValidityMs,
    codeLifetimeMs: options.codeLifetimeMs ?? quarterMs,
  };
  const apiKeyDigests = options.apiKeys.map(digest);
  const server = createServer((request, response) => {
    answer(core, request, apiKeyDigests).then(
      (message) => send(request, response, message),
      // An incomplete request is a caller that broke off: nobody is left to answer.
      () => request.complete ? send(request, response, text(500, 'Internal Error')) : response.destroy(),
    );
  });
  return listen(server, options.host, options.port);
}

/** Checks in the Core's order: API key, version, method, body. */
async function answer(core: Core, request: IncomingMessage, apiKeyDigests: readonly Buffer[]): Promise<Message> {
  const { pathname, query } = targetOf(request);
  const version = versionOf(request.headers['cdi-version']);
  const rid = request.headers['rid'];
  const route = routeOf(pathname, typeof rid === 'string' ? rid : undefined, version);
  if (route === undefined) return text(404, 'Not found');
  if (route.open !== true && !holdsApiKey(request, apiKeyDigests)) return text(401, 'Invalid API key');
  if (version === null && route.unversioned !== true) return text(400, refusedVersion(request.headers['cdi-version']));
  const method = request.method ?? '';
  const endpoint = Object.hasOwn(route.methods, method) ? route.methods[method] : undefined;
  if (endpoint === undefined) return text(405, 'Method not supported');
  const body = await readBody(request);
  if (body === null) return text(413, 'Request body too large');
  return endpoint({ core, version: version ?? newestVersion, query, fields: parseFields(body) });
}

function targetOf(request: IncomingMessage): { readonly pathname: string; readonly query: URLSearchParams } {
  const [pathname = '', ...rest] = (request.url ?? '').split('?');
  return { pathname, query: new URLSearchParams(rest.join('?')) };
}

/** Names the version only where it looks like one: the Core's text answers are declared as HTML. */
function refusedVersion(version: string | readonly string[] | undefined): string {
  return typeof version === 'string' && /^\d{1,4}\.\d{1,4}$/.test(version) ? `cdi-version ${version} not supported` : 'cdi-version not supported';
}

function holdsApiKey(request: IncomingMessage, apiKeyDigests: readonly Buffer[]): boolean {
  if (apiKeyDigests.length === 0) return true;
  const given = request.headers['api-key'];
  if (typeof given !== 'string') return false;
  const givenDigest = digest(given.trim());
  return apiKeyDigests.some((known) => timingSafeEqual(known, givenDigest));
}

/** Digests have one length, so comparing them tells nothing of the key's. */
function digest(apiKey: string): Buffer {
  return createHash('sha256').update(apiKey).digest();
}
