import { importPasswordHash, signIn } from './api/email-password.js';
import { mintJwt, publishKeys, publishKeysWithStatus, rotateKey } from './api/jwt.js';
import { consumeCode, createCode } from './api/passwordless.js';
import {
  createSession,
  describeSession,
  listSessions,
  refreshSession,
  regenerateSession,
  removeSessions,
  verifySession,
} from './api/sessions.js';
import { signInUp } from './api/third-party.js';
import {
  countUsers,
  findByAccountInfo,
  findByContact,
  findByEmail,
  findById,
  findByThirdParty,
  putEmailPasswordUser,
  putPasswordlessUser,
} from './api/users.js';
import type { Endpoint } from './context.js';
import { isFrom, supportedVersions, type Version } from './cdi-version.js';
import { json, text } from './http/messages.js';

/** End points of one path, by method. */
type Methods = Readonly<Partial<Record<string, Endpoint>>>;

interface Route {
  readonly methods: Methods;
  /** Whether a call needs an API key where there are any; yes unless this says so. */
  readonly open?: true;
  /** Whether the version of a call has to be one that is supported; yes unless this says so. */
  readonly unversioned?: true;
}

interface Entry extends Route {
  /** Absent before this version. */
  readonly since?: Version;
  /** Where recipes share the path: the end points of each `rid`. Another `rid`, or none, gets `methods`. */
  readonly recipes?: Readonly<Record<string, Methods>>;
}

const hello: Entry = { ...everyMethod(() => text(200, 'Hello')), open: true, unversioned: true };
const publicKeys: Entry = { methods: { GET: publishKeys }, open: true, unversioned: true };
const emailPasswordUser: Methods = { GET: findByEmail, PUT: putEmailPasswordUser };

const entries: ReadonlyMap<string, Entry> = new Map<string, Entry>([
  ['/', hello],
  ['/hello', hello],
  ['/apiversion', { methods: { GET: () => json(200, { versions: supportedVersions }) }, unversioned: true }],
  ['/.well-known/jwks.json', publicKeys],
  // The backend SDK serves this one on the API domain; here it stands in for that too.
  ['/auth/jwt/jwks.json', publicKeys],
  ['/recipe/jwt/jwks', { methods: { GET: publishKeysWithStatus } }],
  ['/recipe/jwt', { methods: { POST: mintJwt } }],
  ['/recipe/user/passwordhash/import', { methods: { POST: importPasswordHash } }],
  ['/recipe/signin', { methods: { POST: signIn } }],
  ['/recipe/signinup/code', { methods: { POST: createCode } }],
  ['/recipe/signinup/code/consume', { methods: { POST: consumeCode } }],
  ['/recipe/signinup', { methods: { POST: signInUp } }],
  [
    '/recipe/user',
    {
      methods: emailPasswordUser,
      recipes: {
        emailpassword: emailPasswordUser,
        passwordless: { GET: findByContact, PUT: putPasswordlessUser },
        thirdparty: { GET: findByThirdParty },
      },
    },
  ],
  // The access tokens of versions before were another format, with another signature.
  ['/recipe/session', { methods: { POST: createSession, GET: describeSession }, since: '2.21' }],
  ['/recipe/session/verify', { methods: { POST: verifySession }, since: '2.21' }],
  ['/recipe/session/refresh', { methods: { POST: refreshSession }, since: '2.21' }],
  ['/recipe/session/regenerate', { methods: { POST: regenerateSession }, since: '2.21' }],
  ['/recipe/session/remove', { methods: { POST: removeSessions }, since: '2.21' }],
  ['/recipe/session/user', { methods: { GET: listSessions }, since: '2.21' }],
  ['/users/count', { methods: { GET: countUsers } }],
  ['/user/id', { methods: { GET: findById }, since: '4.0' }],
  ['/users/by-accountinfo', { methods: { GET: findByAccountInfo }, since: '4.0' }],
  ['/emulator/rotate', { methods: { POST: rotateKey }, unversioned: true }],
]);

/** The route of a call; `undefined` where this version of the Core has none. */
export function routeOf(path: string, rid: string | undefined, version: Version | null): Route | undefined {
  const entry = entries.get(withoutTenant(path, version));
  if (entry === undefined || (entry.since !== undefined && version !== null && !isFrom(entry.since, version))) {
    return undefined;
  }
  const recipe =
    entry.recipes !== undefined && rid !== undefined && Object.hasOwn(entry.recipes, rid)
      ? entry.recipes[rid]
      : undefined;
  return recipe === undefined ? entry : { ...entry, methods: recipe };
}

/** From CDI 3.0 on a path may begin with the tenant; there is one. A slash at the end does not count. */
function withoutTenant(path: string, version: Version | null): string {
  const bare =
    version !== null && isFrom('3.0', version) ? path.replace(/^\/(?:appid-public\/)?public(?=\/)/, '') : path;
  return bare.length > 1 && bare.endsWith('/') ? bare.slice(0, -1) : bare;
}

function everyMethod(endpoint: Endpoint): { readonly methods: Methods } {
  return { methods: { GET: endpoint, POST: endpoint, PUT: endpoint, DELETE: endpoint } };
}
