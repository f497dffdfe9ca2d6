/** Ways to hash a password that the Core imports. */
export type HashingAlgorithm = 'bcrypt' | 'argon2' | 'hosted_scrypt';

/** A hash of the scrypt that a hosted provider (Firebase) uses, with its parameters. */
export interface HostedScrypt {
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
