import { generateKeyPair, randomUUID, type KeyObject } from 'node:crypto';
import { promisify } from 'node:util';

/** A public key as the key set shows it: `kty kid n e alg use` and nothing else. */
export interface PublishedKey {
  readonly kty: 'RSA';
  readonly kid: string;
  readonly n: string;
  readonly e: string;
  readonly alg: 'RS256';
  readonly use: 'sig';
}

/** A key that signs. */
export interface SigningKey {
  readonly keyId: string;
  readonly privateKey: KeyObject;
  readonly published: PublishedKey;
}

/** The Core's keys: a static one that never changes and a dynamic one that rotates. */
export interface SigningKeys {
  readonly fixed: SigningKey;
  /** The dynamic key in force; where it is due, it is replaced first, as the Core does it: when asked. */
  readonly dynamic: () => Promise<SigningKey>;
  /** Replaces the dynamic key now; the one before stays published while its tokens may live. */
  readonly rotate: () => Promise<SigningKey>;
  /** What verifiers may use: dynamic, static, then the dynamic keys that were replaced, the newest first. */
  readonly published: () => readonly PublishedKey[];
  /** Whole seconds to the next rotation, at least 1. */
  readonly secondsToNextKey: () => number;
}

/** A replaced key verifies for as long as the longest token it may have signed: 2 h, as in the Core. */
const overlapMs = 2 * 60 * 60 * 1000;

/** Rotating every second would otherwise publish 7,200 keys, more than a verifier reads. */
const maxReplacedKeys = 4;

const keyPair = promisify(generateKeyPair);

interface DynamicKey extends SigningKey {
  readonly createdMs: number;
}

interface ReplacedKey {
  readonly published: PublishedKey;
  readonly untilMs: number;
}

/** Makes both keys. `now` is milliseconds since the epoch. */
export async function createSigningKeys(rotateEveryMs: number, now: () => number): Promise<SigningKeys> {
  const [fixed, first] = await Promise.all([createKey(`s-${randomUUID()}`), createDynamicKey(now())]);
  let dynamic = first;
  let replaced: readonly ReplacedKey[] = [];
  let rotation: Promise<DynamicKey> | null = null;

  const rotate = (): Promise<DynamicKey> => {
    rotation ??= replaceDynamicKey().finally(() => {
      rotation = null;
    });
    return rotation;
  };

  const replaceDynamicKey = async (): Promise<DynamicKey> => {
    // Key ids hold the time of creation: two keys of one millisecond would share theirs.
    const next = await createDynamicKey(Math.max(now(), dynamic.createdMs + 1));
    replaced = [{ published: dynamic.published, untilMs: now() + overlapMs }, ...replaced].slice(0, maxReplacedKeys);
    dynamic = next;
    return next;
  };

  return {
    fixed,
    rotate,
    dynamic: () => now() < dynamic.createdMs + rotateEveryMs ? Promise.resolve(dynamic) : rotate(),
    published: () => {
      const inOverlap = replaced.filter((key) => now() < key.untilMs);
      return [dynamic.published, fixed.published, ...inOverlap.map((key) => key.published)];
    },
    secondsToNextKey: () => Math.max(1, Math.ceil((dynamic.createdMs + rotateEveryMs - now()) / 1000)),
  };
}

async function createDynamicKey(createdMs: number): Promise<DynamicKey> {
  return { ...await createKey(`d-${createdMs}`), createdMs };
}

async function createKey(keyId: string): Promise<SigningKey> {
  const { privateKey, publicKey } = await keyPair('rsa', { modulusLength: 2048 });
  const { n, e } = publicKey.export({ format: 'jwk' });
  if (n === undefined || e === undefined) throw new Error('An RSA key was exported without its numbers');
  return { keyId, privateKey, published: { kty: 'RSA', kid: keyId, n, e, alg: 'RS256', use: 'sig' } };
}
