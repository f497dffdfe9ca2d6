/** The Core's calls that an import makes (docs/specification.md 4.4 to 4.8), in its dialects. */
import type { Result } from '../../lib/result.js';
import type { JsonObject } from '../../lib/strict-json.js';
import type { ImportedUser, PasswordlessUser, PasswordUser, ThirdPartyUser } from '../row/user.js';

export interface CoreRequest {
  readonly method: 'GET' | 'POST' | 'PUT';
  readonly path: string;
  readonly rid?: string;
  readonly cdiVersion: string;
  readonly body?: unknown;
  /** What no message may show of it. */
  readonly secrets?: readonly string[];
}

export interface CoreReply {
  readonly status: number;
  readonly json: JsonObject | null;
  /** One readable line, without what the request kept secret. */
  readonly text: string;
  readonly retryAfterMs: number | null;
}

export interface CoreTrouble {
  readonly kind: 'unreachable' | 'refused_address' | 'timeout' | 'broken' | 'aborted';
  readonly reason: string;
  readonly mayHaveRun: boolean;
}

/** Whoever makes the calls. Never rejects. */
export interface Core {
  readonly call: (request: CoreRequest) => Promise<Result<CoreReply, CoreTrouble>>;
}

/** Versions of the driver interface that the Core speaks. */
export interface SpokenVersions {
  readonly cdiVersion: string;
  /** That of the call for third-party users, which loses `isVerified` at the version of the others. */
  readonly thirdPartyVersion: string;
}

export interface CoreSpeech extends SpokenVersions {
  readonly dialect: 'seed' | 'supertokens';
}

/** What consuming a code takes. Kept in memory only. */
export interface IssuedCode {
  readonly preAuthSessionId: string;
  readonly linkCode: string;
}

/** The one version whose look-ups by recipe every Core has. */
const lookUpVersion = '2.16';

export function versionsRequest(cdiVersion: string): CoreRequest {
  return { method: 'GET', path: '/apiversion', cdiVersion };
}

/** Asks whether the user is there. Only SuperTokens has these calls. */
export function lookUpRequest(user: ImportedUser): CoreRequest {
  const [rid, query] = lookUpOf(user);
  return {
    method: 'GET',
    path: `/recipe/user?${new URLSearchParams(query).toString()}`,
    rid,
    cdiVersion: lookUpVersion,
  };
}

function lookUpOf(user: ImportedUser): [string, Record<string, string>] {
  switch (user.kind) {
    case 'password':
      return ['emailpassword', { email: user.email }];
    case 'passwordless':
      return ['passwordless', { [user.contact.kind]: user.contact.value }];
    case 'third_party':
      return ['thirdparty', { thirdPartyId: user.thirdPartyId, thirdPartyUserId: user.thirdPartyUserId }];
  }
}

export function importHashRequest(
  { email, passwordHash, algorithm }: PasswordUser,
  { dialect, cdiVersion }: CoreSpeech,
): CoreRequest {
  const hashingAlgorithm = dialect === 'supertokens' ? 'firebase_scrypt' : 'hosted_scrypt';
  const body = { email, passwordHash, ...(algorithm === 'hosted_scrypt' ? { hashingAlgorithm } : {}) };
  return {
    method: 'POST',
    path: '/recipe/user/passwordhash/import',
    cdiVersion,
    body,
    // Salt and hash; shorter are the name of the algorithm and its parameters.
    secrets: [passwordHash, ...passwordHash.split('$').filter(({ length }) => length >= 16)],
  };
}

export function codeRequest({ contact }: PasswordlessUser, { cdiVersion }: CoreSpeech): CoreRequest {
  return { method: 'POST', path: '/recipe/signinup/code', cdiVersion, body: { [contact.kind]: contact.value } };
}

export function consumeRequest({ preAuthSessionId, linkCode }: IssuedCode, { cdiVersion }: CoreSpeech): CoreRequest {
  const secrets = [preAuthSessionId, linkCode];
  return {
    method: 'POST',
    path: '/recipe/signinup/code/consume',
    cdiVersion,
    body: { preAuthSessionId, linkCode },
    secrets,
  };
}

/** Both contacts: the one that the user has already changes nothing, and docs/specification.md 4.7 names both. */
export function addContactRequest(user: PasswordlessUser, userId: string, { cdiVersion }: CoreSpeech): CoreRequest {
  const contacts = [user.contact, ...(user.add === null ? [] : [user.add])].map(
    ({ kind, value }) => [kind, value] as const,
  );
  const id = Number.parseInt(cdiVersion, 10) >= 4 ? { recipeUserId: userId } : { userId };
  return {
    method: 'PUT',
    path: '/recipe/user',
    rid: 'passwordless',
    cdiVersion,
    body: { ...id, ...Object.fromEntries(contacts) },
  };
}

export function signInUpRequest(
  { thirdPartyId, thirdPartyUserId, email, isVerified }: ThirdPartyUser,
  { thirdPartyVersion }: CoreSpeech,
): CoreRequest {
  const body = { thirdPartyId, thirdPartyUserId, email: { id: email, isVerified } };
  return { method: 'POST', path: '/recipe/signinup', cdiVersion: thirdPartyVersion, body };
}
