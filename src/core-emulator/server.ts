import { createHash, timingSafeEqual } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { Core, Dialect } from './context.js';
import { openDataFile } from './storage/data-file.js';
import { newestVersion, versionOf } from './cdi-version.js';
import { createFaults, type Fault, type FaultOptions } from './faults.js';
import { parseFields } from './http/body.js';
import { noJournal, type Journal } from './storage/journal.js';
import { listen, readBody, send, text, type Message, type RunningServer } from './http/messages.js';
import { createPasswords } from './passwords.js';
import { createRecords, watchRecords } from './storage/records.js';
import { routeOf } from './routes.js';
import { createSigningKeys, type MakeKey } from './keys/signing-keys.js';

/** How the emulated Core runs. What is not given is as in a Core that nobody configured. */
export interface CoreEmulatorOptions {
  readonly host: string;
  /** 0 asks the system for a free one. */
  readonly port: number;
  /** Milliseconds between two dynamic keys. */
  readonly rotateEveryMs: number;
  /** Values of the `api-key` header that count; none asks for none. */
  readonly apiKeys: readonly string[];
  /** Where users, keys, codes and sessions are kept; in memory unless given. */
  readonly dataFile?: string | null;
  /** `seed` unless given. */
  readonly dialect?: Dialect;
  /** The hosted provider's signer key; without it, hosted-scrypt hashes are answered with 500. */
  readonly signerKey?: Buffer | null;
  /** Milliseconds that a code of a passwordless sign-in can be consumed; 15 minutes unless given. */
  readonly codeLifetimeMs?: number;
  /** Milliseconds that an access token lives, and half of what a replaced key stays published; an hour unless given. */
  readonly accessTokenValidityMs?: number;
  /** Trouble for callers to live with; none unless given. */
  readonly faults?: FaultOptions | null;
  /** Told once when the data file cannot be written any more: every answer is 500 from then on. */
  readonly onLost?: (error: unknown) => void;
  /** Milliseconds since the epoch. */
  readonly now?: () => number;
  /** Makes an RSA key of 2,048 bits that nobody else has, unless given. */
  readonly makeKey?: MakeKey;
}

const hourMs = 60 * 60 * 1000;
const quarterMs = 15 * 60 * 1000;

/** What the server needs beside the Core itself. */
interface Front {
  readonly core: Core;
  readonly journal: Journal;
  readonly apiKeyDigests: readonly Buffer[];
  readonly drawFault: () => Fault | null;
}

/**
 * Starts a Core emulator, for development and tests: whoever reaches it can mint any token. Rejects with the system's
 * error or a `DataFileError`.
 */
export async function startCoreEmulator(options: CoreEmulatorOptions): Promise<RunningServer> {
  const { now = Date.now, codeLifetimeMs = quarterMs, accessTokenValidityMs = hourMs, dataFile = null } = options;
  const bare = createRecords();
  const prune = (): void => {
    bare.devices.sweep(now() - codeLifetimeMs);
    bare.sessions.sweep(now());
  };
  const journal = dataFile === null ? noJournal : await openDataFile(dataFile, bare, prune);
  try {
    const records = dataFile === null ? bare : watchRecords(bare, (change) => journal.append(JSON.stringify(change)));
    const keys = await createSigningKeys(
      { rotateEveryMs: options.rotateEveryMs, overlapMs: 2 * accessTokenValidityMs },
      records,
      now,
      options.makeKey,
    );
    const core: Core = {
      now,
      records,
      keys,
      codeLifetimeMs,
      accessTokenValidityMs,
      dialect: options.dialect ?? 'seed',
      passwords: createPasswords(options.signerKey ?? null),
    };
    const drawFault = createFaults(options.faults ?? { share: 0 });
    const front = {
      core,
      journal: tellingOnce(journal, options.onLost),
      apiKeyDigests: options.apiKeys.map(digest),
      drawFault,
    };
    const server = await listen(
      createServer((request, response) => void serve(front, request, response)),
      options.host,
      options.port,
    );
    return {
      url: server.url,
      close: async () => {
        await server.close();
        // That the last changes cannot be kept was told when it happened.
        await journal.close().catch(() => undefined);
      },
    };
  } catch (error) {
    await journal.close();
    throw error;
  }
}

async function serve(front: Front, request: IncomingMessage, response: ServerResponse): Promise<void> {
  try {
    // What cannot be kept is not begun.
    const message = front.journal.hasFailed() ? text(500, 'Internal Error') : await respond(front, request);
    // Nothing is told that a kill could still undo.
    await front.journal.settled();
    if (message === null) request.socket.destroy();
    else send(request, response, message);
  } catch {
    // An incomplete request is a caller that broke off: nobody is left to answer.
    if (request.complete) send(request, response, text(500, 'Internal Error'));
    else response.destroy();
  }
}

/** Checks in the Core's order: API key, version, method, body. `null` cuts the connection. */
async function respond({ core, apiKeyDigests, drawFault }: Front, request: IncomingMessage): Promise<Message | null> {
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
  const fault = route.unversioned === true ? null : drawFault();
  if (fault === 'too_many_requests') return text(429, 'Too many requests');
  if (fault === 'server_error') return text(500, 'Internal Error');
  if (fault === 'cut_before') return null;
  const message = await endpoint({ core, version: version ?? newestVersion, query, fields: parseFields(body) });
  return fault === 'cut_after' ? null : message;
}

/** The same journal; its failure is told to somebody once. */
function tellingOnce(journal: Journal, onLost: ((error: unknown) => void) | undefined): Journal {
  let isTold = false;
  return {
    ...journal,
    settled: () =>
      journal.settled().catch((error: unknown) => {
        if (!isTold) onLost?.(error);
        isTold = true;
        throw error;
      }),
  };
}

function targetOf(request: IncomingMessage): { readonly pathname: string; readonly query: URLSearchParams } {
  const [pathname = '', ...rest] = (request.url ?? '').split('?');
  return { pathname, query: new URLSearchParams(rest.join('?')) };
}

/** Names the version only where it looks like one: the Core's text answers are declared as HTML. */
function refusedVersion(version: string | readonly string[] | undefined): string {
  return typeof version === 'string' && /^\d{1,4}\.\d{1,4}$/.test(version)
    ? `cdi-version ${version} not supported`
    : 'cdi-version not supported';
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
