import { randomBytes } from 'node:crypto';
import { createDevices, type Contact, type Device, type Devices } from './devices.js';
import { createSessionRecords, type SessionRecord, type SessionRecords } from './session-records.js';
import { createUserRecords, type UserRecord, type UserRecords } from './user-records.js';

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
  | { readonly type: 'key'; readonly key: KeyRecord }
  | { readonly type: 'secret'; readonly secret: string }
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
  /** Makes a change: seen at once by every later call. */
  readonly make: (change: Change) => void;
}

/** Keeps the records in memory. */
export function createRecords(): Records {
  const users = createUserRecords();
  const devices = createDevices();
  const sessions = createSessionRecords();
  const keys = new Map<string, KeyRecord>();
  let secret = randomBytes(32).toString('base64');
  return {
    users,
    devices,
    sessions,
    keys: () => keys.values(),
    secret: () => secret,
    make: (change) => {
      switch (change.type) {
        case 'key':
          keys.set(change.key.keyId, change.key);
          break;
        case 'secret':
          secret = change.secret;
          break;
        case 'user':
          users.put(change.user);
          break;
        case 'device':
          devices.put(change.device);
          break;
        case 'device_removed':
          devices.remove(change.id);
          break;
        case 'devices_removed':
          devices.removeAll(change.contact);
          break;
        case 'session':
          sessions.put(change.session);
          break;
        case 'session_removed':
          sessions.remove(change.handle);
          break;
      }
    },
  };
}
