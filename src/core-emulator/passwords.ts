import { createCipheriv, scrypt, timingSafeEqual, type ScryptOptions } from 'node:crypto';
import { parseOptions as argon2Options, verify as verifyArgon2 } from '@node-rs/argon2';
import { hash as hashBcrypt, verify as verifyBcrypt } from '@node-rs/bcrypt';
import { algorithmOf, parseHostedScrypt, type HostedScrypt } from './password-hash.js';

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
