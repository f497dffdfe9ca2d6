/** Users as `firebase auth:export` writes them, and the account's hash parameters. */
import { accept, refuse, type Result } from '../decision/result.js';
import { isJsonObject, type JsonObject, type JsonValue } from '../decision/strict-json.js';
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
  'google.com': 'google', 'apple.com': 'apple', 'facebook.com': 'facebook', 'github.com': 'github', 'twitter.com': 'twitter',
  'linkedin.com': 'linkedin', 'microsoft.com': 'active-directory',
};

/** Entries of `providerUserInfo` that are no third party: the other members of the user say the same. */
const ownProviders = ['password', 'phone'];

/**
 * Reads the parameters as the console shows them (`hash_config { … }`) or as JSON, whose names may have a `base64_` in
 * front. Refuses in words that follow the file's name.
 */
export function parseHashParameters(text: string): Result<HostedHashParameters, string> {
  const parameters = new Map<string, string>();
  for (const [, name = '', value = ''] of text.matchAll(/"?([a-z0-9_]+)"?\s*[:=]\s*"?([A-Za-z0-9+/=_-]+)"?/g)) parameters.set(name.replace(/^base64_/, ''), value);
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

/** The row that a user of the export stands for. */
export function rowOfFirebaseUser(user: JsonValue, parameters: HostedHashParameters): Result<JsonValue, RowProblem> {
  if (!isJsonObject(user)) return refuse({ field: 'user', what: 'is no object', allowed: 'users as firebase auth:export writes them' });
  // The Core would let them in again.
  if (user['disabled'] === true) return refuse({ field: 'user', what: 'is disabled there, which an import cannot carry over', allowed: 'enabled users' });
  const methods = [...passwordOf(user, parameters), ...phoneOf(user), ...thirdPartiesOf(user)];
  if (methods.length === 0 && typeof user['email'] === 'string') methods.push({ passwordless: { email: user['email'] } });
  const [only] = methods;
  if (only === undefined) return refuse({ field: 'user', what: 'has no way to sign in (anonymous)', allowed: 'an email, a phoneNumber or providerUserInfo' });
  return accept(methods.length === 1 ? only : { methods });
}

function passwordOf(user: JsonObject, { memCost, rounds, saltSeparator }: HostedHashParameters): JsonObject[] {
  const { email = null, passwordHash, salt = '' } = user;
  if (typeof passwordHash !== 'string' || passwordHash === '') return [];
  const parts = [standardBase64(passwordHash), standardBase64(typeof salt === 'string' ? salt : ''), `m=${String(memCost)}`, `r=${String(rounds)}`];
  return [{ email, passwordHash: `$f_scrypt$${parts.join('$')}$s=${saltSeparator}`, hashingAlgorithm: 'hosted_scrypt' }];
}

function phoneOf({ phoneNumber }: JsonObject): JsonObject[] {
  return phoneNumber === undefined || phoneNumber === '' ? [] : [{ passwordless: { phoneNumber } }];
}

function thirdPartiesOf(user: JsonObject): JsonObject[] {
  const infos = user['providerUserInfo'];
  if (!Array.isArray(infos)) return [];
  return infos.filter(isJsonObject).flatMap((info: JsonObject): JsonObject[] => {
    const { providerId = null, rawId = null, email = user['email'] ?? null } = info;
    if (typeof providerId !== 'string') return [{ thirdParty: { thirdPartyId: providerId } }];
    if (ownProviders.includes(providerId)) return [];
    const thirdPartyId = Object.hasOwn(providers, providerId) ? (providers[providerId] ?? providerId) : providerId;
    return [{ thirdParty: { thirdPartyId, thirdPartyUserId: rawId, email, isVerified: user['emailVerified'] === true } }];
  });
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
