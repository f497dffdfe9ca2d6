import { randomUUID } from 'node:crypto';
import type { Call } from '../context.js';
import { optional, readFields, string } from '../http/body.js';
import { json, text, type Message } from '../http/messages.js';
import { algorithmNamed, algorithmOf, standardAlgorithmOf, type HashingAlgorithm } from '../passwords.js';
import { recipeUserId, userJson } from './user-json.js';
import type { UserRecord } from '../storage/users.js';
import { contactReaders, normaliseEmail } from './contacts.js';

const formatNames: Readonly<Record<HashingAlgorithm, string>> = {
  bcrypt: 'BCrypt',
  argon2: 'Argon2',
  hosted_scrypt: 'Hosted SCrypt',
};

/**
 * `POST /recipe/user/passwordhash/import`. The hash of a user that exists is overwritten. SuperTokens looks at the
 * beginning of a hash and trims it; in the specification's dialect it has to be whole, and in one of the formats of
 * docs/specification.md 2.4.
 */
export function importPasswordHash({ core, fields, version }: Call): Message {
  const asked = readFields(fields, {
    email: contactReaders(core).email,
    passwordHash: string,
    hashingAlgorithm: optional(string),
  });
  if ('refused' in asked) return text(400, asked.refused);
  const isStrict = core.dialect === 'seed';
  const passwordHash = isStrict ? asked.passwordHash : asked.passwordHash.trim();
  if (passwordHash.trim() === '') return text(400, 'Password hash cannot be an empty string');
  const algorithm = isStrict ? standardAlgorithmOf(passwordHash) : algorithmOf(passwordHash);
  if (asked.hashingAlgorithm !== undefined) {
    if (asked.hashingAlgorithm.trim() === '') return text(400, 'Hashing Algorithm cannot be an empty string');
    const named = algorithmNamed(asked.hashingAlgorithm);
    if (named === undefined) return text(400, 'Unsupported password hashing algorithm');
    if (named === 'hosted_scrypt' && !core.passwords.hasSignerKey) return text(500, 'Internal Error');
    if (named !== algorithm) return text(400, `Password hash is in invalid ${formatName(named, core.dialect)} format`);
  }
  if (algorithm === null) return text(400, 'Password hash is in invalid format');
  // The Core looks for the signer key when a hash needs it, and fails where it has none.
  if (algorithm === 'hosted_scrypt' && !core.passwords.hasSignerKey) return text(500, 'Internal Error');
  const email = normaliseEmail(asked.email);
  const existing = core.records.users.byEmail('emailpassword', email);
  const user: UserRecord =
    existing === undefined ? { ...newUser(core.now()), email, passwordHash } : { ...existing, passwordHash };
  core.records.make({ type: 'user', user });
  return json(200, { status: 'OK', user: userJson(user, version), didUserAlreadyExist: existing !== undefined });
}

/** `POST /recipe/signin`: verifies the imported hash, whichever algorithm made it. */
export async function signIn({ core, fields, version }: Call): Promise<Message> {
  const asked = readFields(fields, { email: string, password: string });
  if ('refused' in asked) return text(400, asked.refused);
  const email = normaliseEmail(asked.email);
  const wrong = json(200, { status: 'WRONG_CREDENTIALS_ERROR' });
  const hash = core.records.users.byEmail('emailpassword', email)?.passwordHash;
  if (hash === undefined || hash === null) return wrong;
  const verdict = await core.passwords.verify(asked.password, hash);
  if (verdict === 'too_costly') return text(500, 'Internal Error');
  if (verdict === 'mismatch') return wrong;
  // Read again: it may have changed while the hash was worked on, and may then not be proven by the old password.
  const user = core.records.users.byEmail('emailpassword', email);
  if (user?.passwordHash !== hash) return wrong;
  return json(200, { status: 'OK', user: userJson(user, version), ...recipeUserId(user, version) });
}

/** `PUT /recipe/user` with `rid: emailpassword`. */
export async function updateEmailOrPassword({ core, fields }: Call, id: string): Promise<Message> {
  const asked = readFields(fields, { email: optional(contactReaders(core).email), password: optional(string) });
  if ('refused' in asked) return text(400, asked.refused);
  if (asked.email === undefined && asked.password === undefined) {
    return text(400, 'You have to provide either email or password.');
  }
  const email = asked.email === undefined ? undefined : normaliseEmail(asked.email);
  const hash = asked.password === undefined ? undefined : await core.passwords.hash(asked.password);
  const user = core.records.users.byId(id);
  if (user?.recipe !== 'emailpassword') return json(200, { status: 'UNKNOWN_USER_ID_ERROR' });
  const holder = email === undefined ? undefined : core.records.users.byEmail('emailpassword', email);
  if (holder !== undefined && holder.id !== id) return json(200, { status: 'EMAIL_ALREADY_EXISTS_ERROR' });
  const changed = email === undefined || email === user.email ? {} : { email, verified: false };
  core.records.make({ type: 'user', user: { ...user, ...changed, passwordHash: hash ?? user.passwordHash } });
  return json(200, { status: 'OK' });
}

function newUser(timeJoined: number): UserRecord {
  return {
    id: randomUUID(),
    recipe: 'emailpassword',
    timeJoined,
    email: null,
    phoneNumber: null,
    thirdParty: null,
    passwordHash: null,
    verified: false,
  };
}

function formatName(algorithm: HashingAlgorithm, dialect: Call['core']['dialect']): string {
  return algorithm === 'hosted_scrypt' && dialect === 'supertokens' ? 'Firebase SCrypt' : formatNames[algorithm];
}
