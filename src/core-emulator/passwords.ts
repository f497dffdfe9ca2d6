import { createCipheriv, scrypt, timingSafeEqual, type ScryptOptions } from 'node:crypto';
import { parseOptions as argon2Options, verify as verifyArgon2 } from '@node-rs/argon2';
import { hash as hashBcrypt, verify as verifyBcrypt } from '@node-rs/bcrypt';

/** Verifies and makes password hashes, away from the event loop. */
export interface Passwords {
  /** Whether hosted-scrypt hashes can be verified. */
  readonly hasSignerKey: boolean;
  /** `too_costly` where the hash asks for more memory or time than a sign-in may take here. */
  readonly verify: (password: string, hash: string) => Promise<'match' | 'mismatch' | 'too_costly'>;
  /** Hashes a password with bcrypt, as the Core does by default. */
  readonly hash: (password: string) => Promise<string>;
}

/** The Core's own default, `bcrypt_log_rounds`. */
const bcryptCost = 11;

/** Some 10 s of one core, and half a GiB: far above what anybody sets, far below what stops a laptop. */
const most = {
  bcryptCost: 17,
  argon2MemoryKiB: 512 * 1024,
  argon2Work: 8 * 1024 * 1024,
  scryptBytes: 512 * 1024 * 1024,
};

/** The thread pool has four threads, and the data file needs one of them. */
const maxAtOnce = 2;

/** Makes the verifier; `signerKey` is the provider's, where there is one. */
export function createPasswords(signerKey: Buffer | null): Passwords {
  const limited = createLimit(maxAtOnce);
  return {
    hasSignerKey: signerKey !== null,
    verify: async (password, hash) => {
      if (isTooCostly(hash)) return 'too_costly';
      return (await limited(() => matches(password, hash, signerKey))) ? 'match' : 'mismatch';
    },
    hash: (password) => limited(async () => as2a(await hashBcrypt(password, bcryptCost))),
  };
}

/** The library says `2y`, the Core `2a`: two names of one algorithm. */
function as2a(hash: string): string {
  return hash.replace(/^\$2[by]/, () => '$2a');
}

function isTooCostly(hash: string): boolean {
  try {
    switch (algorithmOf(hash)) {
      case 'bcrypt':
        return Number(/^\$2[abxy]?\$([0-9]{2})\$/.exec(hash)?.[1] ?? 0) > most.bcryptCost;
      case 'argon2': {
        const { memoryCost, timeCost } = argon2Options(hash);
        return memoryCost > most.argon2MemoryKiB || memoryCost * timeCost > most.argon2Work;
      }
      case 'hosted_scrypt': {
        const parsed = parseHostedScrypt(hash);
        return parsed !== null && scryptBytes(parsed) > most.scryptBytes;
      }
      case null:
        return false;
    }
  } catch {
    // Not a hash at all, though it begins like one: it matches nothing and costs nothing.
    return false;
  }
}

async function matches(password: string, hash: string, signerKey: Buffer | null): Promise<boolean> {
  try {
    switch (algorithmOf(hash)) {
      case 'bcrypt':
        return await verifyBcrypt(password, hash);
      case 'argon2':
        return await verifyArgon2(hash, password);
      case 'hosted_scrypt': {
        const parsed = parseHostedScrypt(hash);
        return parsed !== null && signerKey !== null && (await matchesHostedScrypt(password, parsed, signerKey));
      }
      case null:
        return false;
    }
  } catch {
    // The Core imports by the beginning of a hash, so that the rest may be anything.
    return false;
  }
}

/** The provider's scrypt: the derived key encrypts the account's signer key, and the result is what is stored. */
async function matchesHostedScrypt(password: string, parsed: HostedScrypt, signerKey: Buffer): Promise<boolean> {
  const options = { N: 2 ** parsed.memoryCost, r: parsed.rounds, p: 1, maxmem: 2 * scryptBytes(parsed) };
  const key = await deriveKey(password, Buffer.concat([parsed.salt, parsed.saltSeparator]), options);
  const cipher = createCipheriv('aes-256-ctr', key, Buffer.alloc(16));
  const made = Buffer.concat([cipher.update(signerKey), cipher.final()]);
  return made.length === parsed.hash.length && timingSafeEqual(made, parsed.hash);
}

function deriveKey(password: string, salt: Buffer, options: ScryptOptions): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    scrypt(password, salt, 32, options, (error, key) => (error === null ? resolve(key) : reject(error)));
  });
}

/** RFC 7914 §2: 128 bytes for each of N blocks of r. */
function scryptBytes({ memoryCost, rounds }: HostedScrypt): number {
  return 128 * 2 ** memoryCost * rounds;
}

/** Runs at most so many of the tasks it is given at once, the others in the order they came. */
function createLimit(atOnce: number): <T>(task: () => Promise<T>) => Promise<T> {
  const waiting: (() => void)[] = [];
  let running = 0;
  return async (task) => {
    if (running >= atOnce) await new Promise<void>((resolve) => waiting.push(resolve));
    else running += 1;
    try {
      return await task();
    } finally {
      const next = waiting.shift();
      if (next === undefined) running -= 1;
      else next();
    }
  };
}

/** Ways to hash a password that the Core imports. */
export type HashingAlgorithm = 'bcrypt' | 'argon2' | 'hosted_scrypt';

/** A hash of the scrypt that a hosted provider (Firebase) uses, with its parameters. */
interface HostedScrypt {
  readonly hash: Buffer;
  readonly salt: Buffer;
  readonly saltSeparator: Buffer;
  /** Base-2 logarithm of scrypt's N. */
  readonly memoryCost: number;
  readonly rounds: number;
}

const algorithms: Readonly<Record<string, HashingAlgorithm>> = {
  BCRYPT: 'bcrypt',
  ARGON2: 'argon2',
  HOSTED_SCRYPT: 'hosted_scrypt',
  FIREBASE_SCRYPT: 'hosted_scrypt',
};

/** The algorithm that a name means, in either dialect and any case. */
export function algorithmNamed(name: string): HashingAlgorithm | undefined {
  const key = name.trim().toUpperCase();
  return Object.hasOwn(algorithms, key) ? algorithms[key] : undefined;
}

/** The algorithm that made a hash, by its beginning, as the Core tells it. */
export function algorithmOf(hash: string): HashingAlgorithm | null {
  if (/^\$2[abxy]/.test(hash)) return 'bcrypt';
  if (/^\$argon2(?:id|i|d)/.test(hash)) return 'argon2';
  return parseHostedScrypt(hash) === null ? null : 'hosted_scrypt';
}

/** RFC 9106 and the reference implementation: parameters in this order, salt and hash in base64 without padding. */
const standardArgon2 =
  /^\$argon2(?:id|d)(?:\$v=\d{1,10})?\$m=\d{1,10},t=\d{1,10},p=\d{1,8}\$[A-Za-z0-9+/]+\$[A-Za-z0-9+/]+$/;
const standardBcrypt = /^\$2a\$(?:0[4-9]|[12][0-9]|3[01])\$[./A-Za-z0-9]{53}$/;
const standardHostedScrypt = /^\$f_scrypt\$([^$]+)\$([^$]+)\$m=\d{1,3}\$r=\d{1,5}\$s=([^$]+)$/;

/**
 * The algorithm that made a hash, where it is whole and in a format that the specification names (docs/specification.md
 * 2.4).
 */
export function standardAlgorithmOf(hash: string): HashingAlgorithm | null {
  if (standardBcrypt.test(hash)) return 'bcrypt';
  if (standardArgon2.test(hash)) return 'argon2';
  const [, ...encoded] = standardHostedScrypt.exec(hash) ?? [];
  return encoded.length === 3 && encoded.every(isBase64) ? 'hosted_scrypt' : null;
}

function isBase64(text: string): boolean {
  return Buffer.from(text, 'base64').toString('base64') === text;
}

/**
 * Reads `$f_scrypt$<hash>$<salt>$m=<cost>$r=<rounds>$s=<separator>`, its parameters in any order; `null` for anything
 * else.
 */
export function parseHostedScrypt(text: string): HostedScrypt | null {
  const [before, name, hash = '', salt = '', ...parameters] = text.split('$');
  if (before !== '' || name !== 'f_scrypt' || parameters.length !== 3) return null;
  const given = new Map(parameters.map((parameter) => [parameter.slice(0, 2), parameter.slice(2)]));
  const memoryCost = given.get('m=') ?? '';
  const rounds = given.get('r=') ?? '';
  const saltSeparator = given.get('s=');
  if (
    hash === '' ||
    salt === '' ||
    saltSeparator === undefined ||
    !/^\d{1,3}$/.test(memoryCost) ||
    !/^\d{1,5}$/.test(rounds)
  ) {
    return null;
  }
  return {
    hash: Buffer.from(hash, 'base64'),
    salt: Buffer.from(salt, 'base64'),
    saltSeparator: Buffer.from(saltSeparator, 'base64'),
    memoryCost: Number(memoryCost),
    rounds: Number(rounds),
  };
}
