import { createHash, timingSafeEqual } from 'node:crypto';
import { createServer, type IncomingMessage } from 'node:http';
import { isSupported, supportedVersions, supportsDynamicKeys } from './driver-interface.js';
import { parseFields, readJwtRequest, signJwt } from './jwt-request.js';
import { json, listen, readBody, send, text, type Message, type RunningServer } from './messages.js';
import { createSigningKeys, type SigningKeys } from './signing-keys.js';

/** How the emulated Core runs. */
export interface CoreEmulatorOptions {
  readonly host: string;
  /** 0 asks the system for a free one. */
  readonly port: number;
  /** Milliseconds between two dynamic keys. */
  readonly rotateEveryMs: number;
  /** Values of the `api-key` header that count; none asks for none. */
  readonly apiKeys: readonly string[];
  /** Milliseconds since the epoch. */
  readonly now?: () => number;
}

/** One call of the API. */
interface Call {
  readonly request: IncomingMessage;
  readonly keys: SigningKeys;
  readonly now: () => number;
}

interface Route {
  readonly methods: readonly string[];
  /** Whether the call needs an API key where there are any. */
  readonly open: boolean;
  readonly answer: (call: Call) => Message | Promise<Message>;
}

const anyMethod = ['GET', 'POST', 'PUT', 'DELETE'];
const hello: Route = { methods: anyMethod, open: true, answer: () => text(200, 'Hello') };

/** The part of the Core's API that mints and publishes; unknown calls are 404, as there. */
const routes: ReadonlyMap<string, Route> = new Map([
  ['/', hello],
  ['/hello', hello],
  ['/apiversion', { methods: ['GET'], open: false, answer: () => json(200, { versions: supportedVersions }) }],
  ['/.well-known/jwks.json', { methods: ['GET'], open: true, answer: publishKeys }],
  // The backend SDK serves this one on the API domain; here it stands in for that too.
  ['/auth/jwt/jwks.json', { methods: ['GET'], open: true, answer: publishKeys }],
  ['/recipe/jwt/jwks', { methods: ['GET'], open: false, answer: publishKeysWithStatus }],
  ['/recipe/jwt', { methods: ['POST'], open: false, answer: mintJwt }],
  ['/emulator/rotate', { methods: ['POST'], open: false, answer: async ({ keys }) => json(200, { kid: (await keys.rotate()).keyId }) }],
]);

/** Starts a Core that mints and publishes, with fresh keys, for development and tests: whoever reaches it can mint. */
export async function startCoreEmulator(options: CoreEmulatorOptions): Promise<RunningServer> {
  const now = options.now ?? Date.now;
  const keys = await createSigningKeys(options.rotateEveryMs, now);
  const apiKeyDigests = options.apiKeys.map(digest);
  const server = createServer((request, response) => {
    answer({ request, keys, now }, apiKeyDigests).then(
      (message) => send(request, response, message),
      // An incomplete request is a caller that broke off: nobody is left to answer.
      () => request.complete ? send(request, response, text(500, 'Internal Error')) : response.destroy(),
    );
  });
  return listen(server, options.host, options.port);
}

async function answer(call: Call, apiKeyDigests: readonly Buffer[]): Promise<Message> {
  const route = routes.get(call.request.url?.split('?', 1)[0] ?? '');
  if (route?.open !== true && !holdsApiKey(call.request, apiKeyDigests)) return text(401, 'Invalid API key');
  if (route === undefined) return text(404, 'Not found');
  const version = call.request.headers['cdi-version'];
  if (!route.open && version !== undefined && !isSupported(version)) return text(400, refusedVersion(version));
  if (!route.methods.includes(call.request.method ?? '')) return text(405, 'Method not supported');
  return route.answer(call);
}

/** Names the version only where it looks like one: the Core's text answers are declared as HTML. */
function refusedVersion(version: string | readonly string[]): string {
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

async function publishKeys({ keys }: Call): Promise<Message> {
  await keys.dynamic();
  return json(200, { keys: keys.published() }, { 'cache-control': `max-age=${keys.secondsToNextKey()}, must-revalidate` });
}

/** The older end point: it needs a key, says `OK` and sets no age. */
async function publishKeysWithStatus({ keys }: Call): Promise<Message> {
  await keys.dynamic();
  return json(200, { status: 'OK', keys: keys.published() });
}

async function mintJwt({ request, keys, now }: Call): Promise<Message> {
  const body = await readBody(request);
  if (body === null) return text(413, 'Request body too large');
  const fields = parseFields(body);
  if (fields === null) return text(400, 'Invalid Json Input');
  const asked = readJwtRequest(fields);
  if ('refused' in asked) return text(400, asked.refused);
  if (asked.algorithm !== 'RS256') return json(200, { status: 'UNSUPPORTED_ALGORITHM_ERROR' });
  const dynamic = !asked.useStaticSigningKey && supportsDynamicKeys(request.headers['cdi-version']);
  return json(200, { status: 'OK', jwt: await signJwt(asked, dynamic ? await keys.dynamic() : keys.fixed, now()) });
}
