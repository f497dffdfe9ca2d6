/** Users as `firebase auth:export` writes them, and the account's hash parameters. */
import { accept, refuse, type Result } from '../../lib/result.js';
import { isJsonObject, type JsonObject, type JsonValue } from '../../lib/strict-json.js';
import { fieldName } from '../losses.js';
import { isBase64 } from './password-hash.js';
import type { RowProblem } from './user.js';

/** What all hashes of an account have in common. The signer key is the Core's to have, not ours. */
export interface HostedHashParameters {
  readonly memCost: number;
  readonly rounds: number;
  readonly saltSeparator: string;
}

/** Names by which the SDKs know Firebase's providers; others keep theirs (`oidc.…`, `saml.…`). */
const providers: Readonly<Record<string, string>> = {
  'google.com': 'google',
  'apple.com': 'apple',
  'facebook.com': 'facebook',
  'github.com': 'github',
  'twitter.com': 'twitter',
  'linkedin.com': 'linkedin',
  'microsoft.com': 'active-directory',
};

/** Entries of `providerUserInfo` that are no third party: the other members of the user say the same. */
const ownProviders = ['password', 'phone'];

/**
 * Reads the parameters as the console shows them (`hash_config { … }`) or as JSON, whose names may have a `base64_` in
 * front. Refuses in words that follow the file's name.
 */
export function parseHashParameters(text: string): Result<HostedHashParameters, string> {
  const parameters = new Map<string, string>();
  for (const [, name = '', value = ''] of text.matchAll(/"?([a-z0-9_]+)"?\s*[:=]\s*"?([A-Za-z0-9+/=_-]+)"?/g)) {
    parameters.set(name.replace(/^base64_/, ''), value);
  }
  const algorithm = parameters.get('algorithm');
  if (algorithm !== undefined && algorithm !== 'SCRYPT') return refuse('has an algorithm that is not SCRYPT');
  const memCost = numberOf(parameters.get('mem_cost'), 14);
  const rounds = numberOf(parameters.get('rounds'), 8);
  const saltSeparator = standardBase64(parameters.get('salt_separator') ?? '');
  if (memCost === null) return refuse('has no mem_cost from 1 to 14');
  if (rounds === null) return refuse('has no rounds from 1 to 8');
  if (!isBase64(saltSeparator)) return refuse('has no base64_salt_separator in base64');
  return accept({ memCost, rounds, saltSeparator });
}

/** What a user of the export becomes. */
interface FirebaseRow {
  readonly row: JsonValue;
  /** Names of what the export says and no call of the Core carries, for each user of the row in order. */
  readonly lost: readonly (readonly string[])[];
}

/** Members that become something, or that say something of what does. */
const readMembers = new Set([
  'email',
  'emailVerified',
  'passwordHash',
  'salt',
  'phoneNumber',
  'disabled',
  'providerUserInfo',
]);

/** The row that a user of the export stands for, and what of the export it cannot hold. */
export function rowOfFirebaseUser(user: JsonValue, parameters: HostedHashParameters): Result<FirebaseRow, RowProblem> {
  if (!isJsonObject(user)) {
    return refuse({ field: 'user', what: 'is no object', allowed: 'users as firebase auth:export writes them' });
  }
  const malformed = malformedMember(user);
  if (malformed !== null) return refuse(malformed);
  // The Core would let them in again.
  if (user['disabled'] === true) {
    return refuse({
      field: 'user',
      what: 'is disabled there, which an import cannot carry over',
      allowed: 'enabled users',
    });
  }
  const infos = providerInfosOf(user);
  const password = passwordOf(user, parameters);
  const thirdParties = infos.filter(isThirdParty).map((info) => thirdPartyOf(user, info));
  const methods = [...password, ...passwordlessOf(user, [...password, ...thirdParties]), ...thirdParties];
  const allowed = 'an email, a phoneNumber or providerUserInfo';
  if (methods.length === 0) return refuse({ field: 'user', what: 'has no way to sign in (anonymous)', allowed });
  const lostOfAll = [
    ...lostMembers(user, readMembers, ''),
    ...infos.flatMap((info) => lostOfInfo(user, info)),
    ...lostEmailOf(user, methods),
  ];
  const lost = methods.map((method) => [...new Set([...lostOfAll, ...lostMarkOf(user, method)])]);
  const [only] = methods;
  return accept({ row: methods.length === 1 && only !== undefined ? only : { methods }, lost });
}

/** A member of another type than the export writes would be passed over, with what it says. */
function malformedMember(user: JsonObject): RowProblem | null {
  for (const field of ['email', 'passwordHash', 'salt', 'phoneNumber']) {
    if (says(user[field]) && typeof user[field] !== 'string') {
      return { field, what: 'is no text', allowed: 'a text, or nothing' };
    }
  }
  for (const field of ['disabled', 'emailVerified']) {
    const isRead = typeof (user[field] ?? false) === 'boolean';
    if (!isRead) return { field, what: 'is neither true nor false', allowed: 'true, false or nothing' };
  }
  const infos = user['providerUserInfo'] ?? [];
  if (Array.isArray(infos) && infos.every(isJsonObject)) return null;
  return { field: 'providerUserInfo', what: 'is no list of objects', allowed: 'a list of objects, or nothing' };
}

function passwordOf(user: JsonObject, { memCost, rounds, saltSeparator }: HostedHashParameters): JsonObject[] {
  const { email = null, passwordHash, salt } = user;
  if (typeof passwordHash !== 'string' || passwordHash === '') return [];
  const parts = [
    standardBase64(passwordHash),
    standardBase64(typeof salt === 'string' ? salt : ''),
    `m=${String(memCost)}`,
    `r=${String(rounds)}`,
  ];
  return [
    { email, passwordHash: `$f_scrypt$${parts.join('$')}$s=${saltSeparator}`, hashingAlgorithm: 'hosted_scrypt' },
  ];
}

/**
 * A phone number signs in by itself; an email does so where nothing else holds it, and a phone number takes along one
 * that is verified.
 */
function passwordlessOf(user: JsonObject, others: readonly JsonObject[]): JsonObject[] {
  const { email, phoneNumber } = user;
  const isHeld = !says(email) || others.some((method) => holdsEmail(user, method));
  const add = isHeld || user['emailVerified'] !== true ? {} : { add: email ?? null };
  if (says(phoneNumber)) return [{ passwordless: { phoneNumber: phoneNumber ?? null, ...add } }];
  return says(email) && others.length === 0 ? [{ passwordless: { email: email ?? null } }] : [];
}

function providerInfosOf(user: JsonObject): readonly JsonObject[] {
  const infos = user['providerUserInfo'];
  return Array.isArray(infos) ? infos.filter(isJsonObject) : [];
}

function isThirdParty({ providerId }: JsonObject): boolean {
  return typeof providerId !== 'string' || !ownProviders.includes(providerId);
}

/** The mark of the account is about the account's address, and says nothing of another one that the provider has. */
function thirdPartyOf(user: JsonObject, info: JsonObject): JsonObject {
  const { providerId = null, rawId = null } = info;
  const email = says(info['email']) ? (info['email'] ?? null) : (user['email'] ?? null);
  const known =
    typeof providerId === 'string' && Object.hasOwn(providers, providerId) ? providers[providerId] : undefined;
  const isVerified = user['emailVerified'] === true && isSame(email, user['email']);
  return { thirdParty: { thirdPartyId: known ?? providerId, thirdPartyUserId: rawId, email, isVerified } };
}

/** Whether the method's user gets the account's email address. */
function holdsEmail(user: JsonObject, { email, passwordless, thirdParty }: JsonObject): boolean {
  const held = [
    email,
    ...[passwordless, thirdParty].filter(isJsonObject).flatMap((form) => [form['email'], form['add']]),
  ];
  return held.some((value) => isSame(value, user['email']));
}

/** The address, where no user gets it. */
function lostEmailOf(user: JsonObject, methods: readonly JsonObject[]): readonly string[] {
  if (!says(user['email']) || methods.some((method) => holdsEmail(user, method))) return [];
  return user['emailVerified'] === true ? ['email', 'emailVerified'] : ['email'];
}

/** That the address is verified: only third-party users can be imported with it. */
function lostMarkOf(user: JsonObject, method: JsonObject): readonly string[] {
  return user['emailVerified'] === true && method['thirdParty'] === undefined && holdsEmail(user, method)
    ? ['emailVerified']
    : [];
}

function lostOfInfo(user: JsonObject, info: JsonObject): readonly string[] {
  if (isThirdParty(info)) return lostMembers(info, new Set(['providerId', 'rawId', 'email']), 'providerUserInfo.');
  // What such an entry repeats is carried, or lost, as the user's own member.
  const repeated = new Set(['email', 'phoneNumber', 'displayName', 'photoUrl'].map((name) => user[name]));
  const further = Object.entries(info)
    .filter(([name, value]) => name === 'providerId' || repeated.has(value))
    .map(([name]) => name);
  return lostMembers(info, new Set(further), 'providerUserInfo.');
}

function lostMembers(object: JsonObject, read: ReadonlySet<string>, prefix: string): readonly string[] {
  return Object.entries(object)
    .filter(([name, value]) => !read.has(name) && says(value))
    .map(([name]) => `${prefix}${fieldName(name)}`);
}

/** Whether there is anything in a value: exports write empty ones for what a user does not have. */
function says(value: JsonValue | undefined): boolean {
  if (value === undefined || value === null || value === '' || value === false || value === '{}') return false;
  return typeof value !== 'object' || Object.keys(value).length > 0;
}

function isSame(a: JsonValue | undefined, b: JsonValue | undefined): boolean {
  return typeof a === 'string' && typeof b === 'string' && a.toLowerCase() === b.toLowerCase();
}

function numberOf(text: string | undefined, most: number): number | null {
  if (text === undefined || !/^[1-9][0-9]?$/.test(text)) return null;
  return Number(text) <= most ? Number(text) : null;
}

/** The web API writes base64url, the command line tool standard base64. */
function standardBase64(text: string): string {
  const standard = text.replaceAll('-', '+').replaceAll('_', '/').replace(/=+$/, '');
  return standard.padEnd(Math.ceil(standard.length / 4) * 4, '=');
}
