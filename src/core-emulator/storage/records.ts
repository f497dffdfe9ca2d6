import { createPrivateKey, randomBytes } from 'node:crypto';
import { createDevices, type Contact, type Device, type Devices } from './passwordless-devices.js';
import { createSessionRecords, type SessionRecord, type SessionRecords } from './sessions.js';
import { createUserRecords, type UserRecord, type UserRecords } from './users.js';

/** A signing key as it is kept. */
export interface KeyRecord {
  readonly keyId: string;
  /** The private key, PKCS #8. */
  readonly pem: string;
  readonly createdMs: number;
  readonly signsFromMs: number;
}

/** What changes the records. */
export type Change =
  | { readonly type: 'secret'; readonly secret: string }
  | { readonly type: 'key'; readonly key: KeyRecord }
  | { readonly type: 'user'; readonly user: UserRecord }
  | { readonly type: 'device'; readonly device: Device }
  | { readonly type: 'device_removed'; readonly id: string }
  | { readonly type: 'devices_removed'; readonly contact: Contact }
  | { readonly type: 'session'; readonly session: SessionRecord }
  | { readonly type: 'session_removed'; readonly handle: string };

/** Everything that the Core knows. */
export interface Records {
  readonly users: UserRecords;
  readonly devices: Devices;
  readonly sessions: SessionRecords;
  readonly keys: () => Iterable<KeyRecord>;
  /** What refresh tokens are authenticated with, in base64. */
  readonly secret: () => string;
  /** Makes a change: seen at once by every later call. Throws where the Core's database would refuse it. */
  readonly make: (change: Change) => void;
  /** Changes that make these records from nothing. */
  readonly changes: () => Iterable<Change>;
}

/** More than are ever published at once. */
const maxKeys = 16;

/** The Core's columns are so wide; what does not fit is its error 500. */
const columnCharacters = {
  email: 256,
  phoneNumber: 256,
  passwordHash: 256,
  thirdPartyId: 28,
  thirdPartyUserId: 256,
} as const;

/** Keeps the records in memory. */
export function createRecords(): Records {
  const users = createUserRecords();
  const devices = createDevices();
  const sessions = createSessionRecords();
  const keys = new Map<string, KeyRecord>();
  let secret = randomBytes(32).toString('base64');

  const putKey = (key: KeyRecord): void => {
    keys.set(key.keyId, key);
    const dynamic = [...keys.keys()].filter((keyId) => keyId.startsWith('d-'));
    for (const keyId of dynamic.slice(0, -maxKeys)) keys.delete(keyId);
  };

  const make = (change: Change): void => {
    switch (change.type) {
      case 'secret':
        checkTexts([change.secret]);
        secret = change.secret;
        break;
      case 'key':
        checkKey(change.key);
        putKey(change.key);
        break;
      case 'user':
        checkUser(change.user);
        users.put(change.user);
        break;
      case 'device':
        checkColumns(change.device.contact);
        devices.put(change.device);
        break;
      case 'device_removed':
        devices.remove(change.id);
        break;
      case 'devices_removed':
        devices.removeAll(change.contact);
        break;
      case 'session':
        checkSession(change.session);
        sessions.put(change.session);
        break;
      case 'session_removed':
        sessions.remove(change.handle);
        break;
      default:
        throw new Error('A change of an unknown type');
    }
  };

  return {
    users,
    devices,
    sessions,
    make,
    keys: () => keys.values(),
    secret: () => secret,
    *changes() {
      yield { type: 'secret', secret };
      for (const key of keys.values()) yield { type: 'key', key };
      for (const user of users.all()) yield { type: 'user', user };
      for (const device of devices.all()) yield { type: 'device', device };
      for (const session of sessions.all()) yield { type: 'session', session };
    },
  };
}

/** The same records, with every change handed on once it is made. */
export function watchRecords(records: Records, seen: (change: Change) => void): Records {
  return {
    ...records,
    make: (change) => {
      records.make(change);
      seen(change);
    },
  };
}

/** A data file may hold anything: what is no key is found here, and not when it is to sign. */
function checkKey({ keyId, pem, createdMs, signsFromMs }: KeyRecord): void {
  checkTexts([keyId, pem]);
  checkTimes([createdMs, signsFromMs]);
  if (!/^[ds]-/.test(keyId)) throw new TypeError('A key id of an unknown kind');
  if (createPrivateKey(pem).asymmetricKeyType !== 'rsa') throw new TypeError('A key of another type than RSA');
}

function checkSession({ handle, userId, refreshTokenHash2, timeCreated, expiryMs }: SessionRecord): void {
  checkTexts([handle, userId, refreshTokenHash2]);
  checkTimes([timeCreated, expiryMs]);
}

function checkTexts(values: readonly unknown[]): void {
  if (!values.every((value) => typeof value === 'string' && value !== '')) throw new TypeError('A text is missing');
}

function checkTimes(values: readonly unknown[]): void {
  if (!values.every((value) => Number.isSafeInteger(value))) throw new TypeError('A time is missing');
}

function checkUser({ email, phoneNumber, passwordHash, thirdParty }: UserRecord): void {
  checkColumns({
    email,
    phoneNumber,
    passwordHash,
    thirdPartyId: thirdParty?.id ?? null,
    thirdPartyUserId: thirdParty?.userId ?? null,
  });
}

function checkColumns(values: Readonly<Partial<Record<keyof typeof columnCharacters, string | null>>>): void {
  for (const [name, most] of Object.entries(columnCharacters) as [keyof typeof columnCharacters, number][]) {
    if ((values[name]?.length ?? 0) > most) throw new RangeError(`${name} is too long for its column`);
  }
}
