/** One row of the input: which users it asks for, and what is wrong with it. */
import type { JsonObject, JsonValue } from '../../lib/strict-json.js';
import { isJsonObject } from '../../lib/strict-json.js';
import { accept, refuse, type Result } from '../../lib/result.js';
import { readEmail, readId, readPhoneNumber } from './contacts.js';
import { readPasswordHash, type HashRules } from './password-hash.js';
import type { Contact, ImportedUser, RowProblem } from './user.js';

/** One user of a row, or why it is none, with what the row says of it. */
interface RowUser {
  /** Place within `methods`, from 1; 0 in a row for one user. */
  readonly method: number;
  readonly read: Result<ImportedUser, RowProblem>;
  readonly rawValue: JsonValue;
}

/** More than one person has; each becomes a call or three. */
const maxMethods = 32;

const forms = '{"email","passwordHash"}, {"passwordless":{…}}, {"thirdParty":{…}} or {"methods":[…]}';

/** Reads the users of a row. Never empty. */
export function readRow(row: JsonValue, rules: HashRules): readonly RowUser[] {
  const alone = (read: RowUser['read']): readonly RowUser[] => [{ method: 0, read, rawValue: row }];
  if (!isJsonObject(row)) return alone(refuse({ field: 'row', what: 'is no object', allowed: forms }));
  if (row['methods'] === undefined) return alone(readUser(row, rules));
  const others = unknownMember(row, ['methods'], 'row');
  if (others !== null) return alone(refuse(others));
  const methods = row['methods'];
  const allowed = `1 to ${String(maxMethods)} users in the other forms`;
  if (!Array.isArray(methods)) return alone(refuse({ field: 'methods', what: 'is no list', allowed }));
  if (methods.length === 0 || methods.length > maxMethods) {
    return alone(refuse({ field: 'methods', what: `has ${String(methods.length)} users`, allowed }));
  }
  return methods.map((rawValue: JsonValue, index) => ({
    method: index + 1,
    read: readUser(rawValue, rules),
    rawValue,
  }));
}

function readUser(rawValue: JsonValue, rules: HashRules): Result<ImportedUser, RowProblem> {
  if (!isJsonObject(rawValue)) return refuse({ field: 'row', what: 'is no object', allowed: forms });
  if (rawValue['passwordless'] !== undefined) return readOnly(rawValue, 'passwordless', readPasswordless);
  if (rawValue['thirdParty'] !== undefined) return readOnly(rawValue, 'thirdParty', readThirdParty);
  const unknown = unknownMember(rawValue, ['email', 'passwordHash', 'hashingAlgorithm'], 'row');
  if (unknown !== null) return refuse(unknown);
  if (rawValue['email'] === undefined && rawValue['passwordHash'] === undefined) {
    return refuse({ field: 'row', what: 'has no way to sign in', allowed: forms });
  }
  const email = readEmail(rawValue['email'], 'email');
  if (!email.ok) return email;
  const hash = readPasswordHash(rawValue['passwordHash'], rawValue['hashingAlgorithm'], rules);
  return hash.ok ? accept({ kind: 'password', email: email.value, ...hash.value }) : hash;
}

/** Reads a member that has to be the only one. */
function readOnly(
  rawValue: JsonObject,
  name: string,
  read: (value: JsonObject) => Result<ImportedUser, RowProblem>,
): Result<ImportedUser, RowProblem> {
  const unknown = unknownMember(rawValue, [name], 'row');
  if (unknown !== null) return refuse(unknown);
  const value = rawValue[name];
  return isJsonObject(value) ? read(value) : refuse({ field: name, what: 'is no object', allowed: forms });
}

function readPasswordless(rawValue: JsonObject): Result<ImportedUser, RowProblem> {
  const unknown = unknownMember(rawValue, ['email', 'phoneNumber', 'add'], 'passwordless');
  if (unknown !== null) return refuse(unknown);
  const kinds = (['email', 'phoneNumber'] as const).filter((name) => rawValue[name] !== undefined);
  const [kind] = kinds;
  if (kind === undefined || kinds.length > 1) {
    const what = kind === undefined ? 'has no contact' : 'has two contacts';
    return refuse({ field: 'passwordless', what, allowed: 'email or phoneNumber, and the other one as add' });
  }
  const contact = readContact(kind, rawValue[kind], `passwordless.${kind}`);
  if (!contact.ok) return contact;
  const add = readAdded(rawValue['add'], kind === 'email' ? 'phoneNumber' : 'email');
  return add.ok ? accept({ kind: 'passwordless', contact: contact.value, add: add.value }) : add;
}

/** The other contact: as a text, or as an object that names its kind. */
function readAdded(added: JsonValue | undefined, kind: Contact['kind']): Result<Contact | null, RowProblem> {
  if (added === undefined || added === null) return accept(null);
  if (!isJsonObject(added)) return readContact(kind, added, 'passwordless.add');
  const unknown = unknownMember(added, [kind], 'passwordless.add');
  return unknown === null ? readContact(kind, added[kind], `passwordless.add.${kind}`) : refuse(unknown);
}

function readContact(kind: Contact['kind'], value: JsonValue | undefined, field: string): Result<Contact, RowProblem> {
  const read = kind === 'email' ? readEmail(value, field) : readPhoneNumber(value, field);
  return read.ok ? accept({ kind, value: read.value }) : read;
}

function readThirdParty(rawValue: JsonObject): Result<ImportedUser, RowProblem> {
  const unknown = unknownMember(rawValue, ['thirdPartyId', 'thirdPartyUserId', 'email', 'isVerified'], 'thirdParty');
  if (unknown !== null) return refuse(unknown);
  const thirdPartyId = readId(rawValue['thirdPartyId'], 'thirdPartyId');
  if (!thirdPartyId.ok) return thirdPartyId;
  const thirdPartyUserId = readId(rawValue['thirdPartyUserId'], 'thirdPartyUserId');
  if (!thirdPartyUserId.ok) return thirdPartyUserId;
  const email = readEmail(rawValue['email'], 'thirdParty.email');
  if (!email.ok) return email;
  const isVerified = rawValue['isVerified'];
  if (typeof isVerified !== 'boolean') {
    return refuse({ field: 'thirdParty.isVerified', what: 'is neither true nor false', allowed: 'true or false' });
  }
  return accept({
    kind: 'third_party',
    thirdPartyId: thirdPartyId.value,
    thirdPartyUserId: thirdPartyUserId.value,
    email: email.value,
    isVerified,
  });
}

/** A misspelt member would be lost without a word. */
function unknownMember(rawValue: JsonObject, known: readonly string[], field: string): RowProblem | null {
  const unknown = Object.keys(rawValue).find((name) => !known.includes(name));
  if (unknown === undefined) return null;
  // The name of a member may be what should have been its value.
  const named = /^\w{1,32}$/.test(unknown) ? `the member ${unknown}` : 'a member';
  return {
    field,
    what: `has ${named} that does not belong there`,
    allowed: field === 'row' ? forms : known.join(', '),
  };
}
