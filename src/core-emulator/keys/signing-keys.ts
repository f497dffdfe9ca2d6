import { createPrivateKey, createPublicKey, generateKeyPair, randomUUID, type KeyObject } from 'node:crypto';
import { promisify } from 'node:util';
import { CompactSign } from 'jose';
import type { Fields } from '../http/body.js';
import {
  activeConfig,
  nextKeyDueMs,
  nextSignsFromMs,
  unexpired,
  type KeySchedule,
  type ScheduledKey,
} from './schedule.js';
import type { KeyRecord, Records } from '../storage/records.js';

/** A public key as the key set shows it: `kty kid n e alg use` and nothing else. */
interface PublishedKey {
  readonly kty: 'RSA';
  readonly kid: string;
  readonly n: string;
  readonly e: string;
  readonly alg: 'RS256';
  readonly use: 'sig';
}

/** A key that signs. */
interface SigningKey extends ScheduledKey {
  readonly keyId: string;
  readonly privateKey: KeyObject;
  readonly publicKey: KeyObject;
  readonly published: PublishedKey;
}

/** The Core's keys: a static one that never changes and dynamic ones that rotate. */
export interface SigningKeys {
  readonly fixed: SigningKey;
  /** The dynamic key in force; where the next one is due, it is made first, as the Core does it: when asked. */
  readonly dynamic: () => Promise<SigningKey>;
  /** Replaces the dynamic key now; the one before stays published while its tokens may live. */
  readonly rotate: () => Promise<SigningKey>;
  /**
   * What verifiers may use: dynamic in force, static, then the dynamic one that comes next and those that were
   * replaced.
   */
  readonly published: () => readonly PublishedKey[];
  /** The published key of that id. */
  readonly byId: (keyId: string) => SigningKey | undefined;
  /** Whole seconds until the next key is published, at least 1. */
  readonly secondsToNextKey: () => number;
}

/** Makes the private key of an RSA pair. */
export type MakeKey = () => Promise<KeyObject>;

const keyPair = promisify(generateKeyPair);

const makeRsaKey: MakeKey = async () => (await keyPair('rsa', { modulusLength: 2048 })).privateKey;

/** Takes up the keys of the records and makes those that are missing. `now` is milliseconds since the epoch. */
export async function createSigningKeys(
  schedule: KeySchedule,
  records: Records,
  now: () => number,
  makeKey: MakeKey = makeRsaKey,
): Promise<SigningKeys> {
  const stored = [...records.keys()].map(signingKey);
  // The newest first.
  let keys: readonly SigningKey[] = stored
    .filter(({ keyId }) => keyId.startsWith('d-'))
    .sort((a, b) => b.signsFromMs - a.signsFromMs || b.createdMs - a.createdMs);
  let rotation: Promise<SigningKey> | null = null;
  let making: Promise<unknown> = Promise.resolve();

  /** One key is made at a time: the next one is due by what the last one says. */
  const inTurn = <T>(make: () => Promise<T>): Promise<T> => {
    const made = making.then(make);
    making = made.catch(() => undefined);
    return made;
  };

  const keep = (record: KeyRecord): SigningKey => {
    records.make({ type: 'key', key: record });
    const key = signingKey(record);
    keys = [key, ...unexpired(keys, schedule, now())];
    return key;
  };

  const add = async (signsFromMs: (nowMs: number) => number): Promise<SigningKey> => {
    const pem = pemOf(await makeKey());
    // Key ids hold the time of creation: two keys of one millisecond would share theirs.
    const createdMs = Math.max(now(), (keys[0]?.createdMs ?? 0) + 1);
    return keep({ keyId: `d-${createdMs}`, pem, createdMs, signsFromMs: signsFromMs(now()) });
  };

  const isDue = (): boolean => now() >= nextKeyDueMs(keys, schedule);

  const dynamic = async (): Promise<SigningKey> => {
    if (isDue()) await inTurn(async () => (isDue() ? add((nowMs) => nextSignsFromMs(keys, schedule, nowMs)) : null));
    const signing = activeConfig(keys, now());
    if (signing === undefined) throw new Error('No dynamic key is in force');
    return signing;
  };

  /** One that waits for its time takes over now. */
  const replace = async (): Promise<SigningKey> => {
    const [newest] = keys;
    if (newest === undefined || newest.signsFromMs <= now()) return add((nowMs) => nowMs);
    keys = keys.slice(1);
    return keep({
      keyId: newest.keyId,
      pem: pemOf(newest.privateKey),
      createdMs: newest.createdMs,
      signsFromMs: now(),
    });
  };

  const fixed =
    stored.find(({ keyId }) => keyId.startsWith('s-')) ??
    keep({ keyId: `s-${randomUUID()}`, pem: pemOf(await makeKey()), createdMs: now(), signsFromMs: now() });
  keys = keys.filter((key) => key !== fixed);
  await dynamic();

  const all = (): readonly SigningKey[] => {
    const signing = activeConfig(keys, now());
    const others = unexpired(keys, schedule, now()).filter((key) => key !== signing);
    return [...(signing === undefined ? [] : [signing]), fixed, ...others];
  };

  return {
    fixed,
    dynamic,
    rotate: () => {
      rotation ??= inTurn(replace).finally(() => {
        rotation = null;
      });
      return rotation;
    },
    published: () => all().map(({ published }) => published),
    byId: (keyId) => all().find((key) => key.keyId === keyId),
    secondsToNextKey: () => Math.max(1, Math.ceil((nextKeyDueMs(keys, schedule) - now()) / 1000)),
  };
}

/** Signs claims; `version` is the header member that sets session tokens apart. */
export function signToken(claims: Fields, { keyId, privateKey }: SigningKey, version?: string): Promise<string> {
  return new CompactSign(Buffer.from(JSON.stringify(claims)))
    .setProtectedHeader({ alg: 'RS256', typ: 'JWT', kid: keyId, ...(version === undefined ? {} : { version }) })
    .sign(privateKey);
}

function pemOf(privateKey: KeyObject): string {
  return privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
}

function signingKey({ keyId, pem, createdMs, signsFromMs }: KeyRecord): SigningKey {
  const privateKey = createPrivateKey(pem);
  const publicKey = createPublicKey(privateKey);
  const { n, e } = publicKey.export({ format: 'jwk' });
  if (n === undefined || e === undefined) throw new Error('An RSA key was exported without its numbers');
  return {
    keyId,
    privateKey,
    publicKey,
    createdMs,
    signsFromMs,
    published: { kty: 'RSA', kid: keyId, n, e, alg: 'RS256', use: 'sig' },
  };
}
