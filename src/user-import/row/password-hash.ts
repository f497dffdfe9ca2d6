/** Password hashes as the Core takes them (docs/specification.md 2.4). What is wrong is told without the hash. */
import { accept, refuse, type Result } from '../../lib/result.js';
import type { HashAlgorithm, RowProblem } from './user.js';

/** Identifiers that not every Core takes: SuperTokens does. */
export const extraIdentifiers = ['2b', '2x', '2y', 'argon2i'] as const;

export type ExtraIdentifier = (typeof extraIdentifiers)[number];

export interface HashRules {
  /** Identifiers besides `2a`, `argon2id` and `argon2d`. */
  readonly accepted: ReadonlySet<string>;
  /** Whether what a provider put in front of the hash is removed. */
  readonly stripPrefix: boolean;
}

interface CheckedHash {
  readonly passwordHash: string;
  readonly algorithm: HashAlgorithm;
}

/** The Core's column holds no more, and a Core that is sent more fails on it. */
const maxLength = 256;

/** Firebase's own bounds of its parameters. */
const maxMemCost = 14;
const maxRounds = 8;

const allowedFormats =
  'bcrypt $2a$, argon2 $argon2id$ or $argon2d$, hosted scrypt $f_scrypt$<hash>$<salt>$m=<n>$r=<n>$s=<separator>';

/** Where a hash begins that something stands in front of. */
const standardStart = /\$(?:2[abxy]\$[0-9]{2}\$|argon2(?:id|i|d)\$|f_scrypt\$)/;

/** A provider's identifier: it names how the hash was made and is no part of it. */
const providerPrefix = /^[\w{}@:.-]{1,40}\$?$/;

/** Hashes of hashes: the password alone does not verify against what is behind such a prefix. */
const prehashed = /sha|md5|hmac|pbkdf|peppered/i;

const algorithmNames: Readonly<Record<string, HashAlgorithm>> = {
  bcrypt: 'bcrypt',
  argon2: 'argon2',
  hosted_scrypt: 'hosted_scrypt',
  firebase_scrypt: 'hosted_scrypt',
};

/** Checks a hash, and the algorithm where the row names one. */
export function readPasswordHash(value: unknown, named: unknown, rules: HashRules): Result<CheckedHash, RowProblem> {
  if (value === undefined || value === '') return refuse(problem('is missing'));
  if (typeof value !== 'string') return refuse(problem('is no text'));
  const bare = withoutPrefix(value, rules);
  if (!bare.ok) return bare;
  const read = readFormat(bare.value, rules);
  if (!read.ok || named === undefined) return read;
  const algorithm =
    typeof named === 'string' && Object.hasOwn(algorithmNames, named) ? algorithmNames[named] : undefined;
  const allowed = 'bcrypt, argon2, hosted_scrypt (or firebase_scrypt), as the hash is, or nothing';
  if (algorithm === undefined) return refuse({ field: 'hashingAlgorithm', what: 'names no algorithm', allowed });
  if (algorithm === read.value.algorithm) return read;
  return refuse({
    field: 'hashingAlgorithm',
    what: `does not fit the hash, which is ${read.value.algorithm}`,
    allowed,
  });
}

function withoutPrefix(value: string, { stripPrefix }: HashRules): Result<string, RowProblem> {
  const start = standardStart.exec(value)?.index ?? 0;
  if (start === 0) return accept(value);
  const prefix = value.slice(0, start);
  if (!providerPrefix.test(prefix)) return refuse(problem('has something in front of the standard format'));
  if (prehashed.test(prefix)) {
    return refuse(
      problem(
        `has the provider's identifier ${prefix} in front, by which the password was hashed before: no sign-in would succeed`,
      ),
    );
  }
  if (stripPrefix) return accept(value.slice(start));
  return refuse(problem(`has the provider's identifier ${prefix} in front, which --strip-hash-prefix removes`));
}

function readFormat(hash: string, rules: HashRules): Result<CheckedHash, RowProblem> {
  if (hash.length > maxLength) return refuse(problem(`is longer than ${String(maxLength)} characters`));
  if (/^\$2[a-z]?\$/.test(hash)) return readBcrypt(hash, rules);
  if (hash.startsWith('$argon2')) return readArgon2(hash, rules);
  if (hash.startsWith('$f_scrypt$')) return readHostedScrypt(hash);
  return refuse(problem('is in no known format'));
}

function readBcrypt(hash: string, { accepted }: HashRules): Result<CheckedHash, RowProblem> {
  const [, identifier = '', cost = '', rest = ''] = hash.split('$');
  const taken = identifier === '2a' || accepted.has(identifier);
  if (!taken) return refuse(notTaken(identifier));
  const whole = /^\$2[abxy]\$[0-9]{2}\$[./A-Za-z0-9]{53}$/.test(hash);
  const form = '$2a$, two digits of cost, $, 53 characters';
  if (!whole) {
    return refuse(problem(`is no whole bcrypt hash (${String(rest.length)} characters after the cost)`, form));
  }
  if (Number(cost) < 4 || Number(cost) > 31) {
    return refuse(problem(`has the cost ${cost}`, 'a bcrypt cost of 04 to 31'));
  }
  return accept({ passwordHash: hash, algorithm: 'bcrypt' });
}

const argon2Form =
  /^\$(argon2(?:id|i|d))(?:\$v=(16|19))?\$m=([0-9]{1,10}),t=([0-9]{1,10}),p=([0-9]{1,8})\$([A-Za-z0-9+/]+)\$([A-Za-z0-9+/]+)$/;

function readArgon2(hash: string, { accepted }: HashRules): Result<CheckedHash, RowProblem> {
  const identifier = hash.split('$')[1] ?? '';
  const allowed =
    '$argon2id$ or $argon2d$, v=19, m=<KiB>,t=<passes>,p=<lanes>, salt and hash in base64 without padding';
  if (identifier === 'argon2i' && !accepted.has('argon2i')) return refuse(notTaken(identifier));
  const [form, , , memory, passes, lanes, salt = '', digest = ''] = argon2Form.exec(hash) ?? [];
  if (form === undefined) return refuse(problem('is no whole argon2 hash', allowed));
  const [m, t, p] = [Number(memory), Number(passes), Number(lanes)];
  // RFC 9106 §3.1.
  if (p < 1 || p > 2 ** 24 - 1 || t < 1 || t > 2 ** 32 - 1 || m < 8 * p || m > 2 ** 32 - 1) {
    return refuse(
      problem(
        `has the parameters m=${String(m)},t=${String(t)},p=${String(p)}`,
        'p of 1 to 16777215, t of at least 1, m of at least 8 p',
      ),
    );
  }
  if (!isBareBase64(salt, 8) || !isBareBase64(digest, 4)) {
    return refuse(problem('has a salt or hash that is no base64 or too short', allowed));
  }
  return accept({ passwordHash: hash, algorithm: 'argon2' });
}

function readHostedScrypt(hash: string): Result<CheckedHash, RowProblem> {
  const [, identifier, digest = '', salt = '', m = '', r = '', s = '', ...more] = hash.split('$');
  const allowed =
    '$f_scrypt$<hash>$<salt>$m=<memory cost>$r=<rounds>$s=<salt separator>: six parts, hash, salt and separator in base64';
  if (identifier !== 'f_scrypt' || more.length > 0 || s === '') {
    return refuse(problem('does not have the six parts of hosted scrypt', allowed));
  }
  const wrong = Object.entries({ hash: digest, salt, separator: s.slice(2) })
    .filter(([, text]) => !isBase64(text))
    .map(([name]) => name);
  if (!s.startsWith('s=') || wrong.length > 0) {
    return refuse(problem(`has no valid base64 as ${wrong.join(' and ') || 'separator'}`, allowed));
  }
  if (!isParameter(m, 'm', maxMemCost) || !isParameter(r, 'r', maxRounds)) {
    return refuse(
      problem(
        'has a memory cost or rounds out of bounds',
        `m=1 to m=${String(maxMemCost)}, r=1 to r=${String(maxRounds)}`,
      ),
    );
  }
  return accept({ passwordHash: hash, algorithm: 'hosted_scrypt' });
}

function isParameter(text: string, name: string, most: number): boolean {
  const [, value = ''] = new RegExp(`^${name}=([1-9][0-9]?)$`).exec(text) ?? [];
  return value !== '' && Number(value) <= most;
}

/**
 * Standard base64 with its padding, and at least one byte: a decoder that stops early would make another salt of it.
 */
export function isBase64(text: string): boolean {
  return text !== '' && Buffer.from(text, 'base64').toString('base64') === text;
}

function isBareBase64(text: string, leastBytes: number): boolean {
  const bytes = Buffer.from(text, 'base64');
  return bytes.length >= leastBytes && bytes.toString('base64').replace(/=+$/, '') === text;
}

function notTaken(identifier: string): RowProblem {
  const known = (extraIdentifiers as readonly string[]).includes(identifier);
  const how = known ? `, which --dialect supertokens or --accept-hash ${identifier} takes` : '';
  return problem(`begins with $${identifier}$${how}`);
}

function problem(what: string, allowed: string = allowedFormats): RowProblem {
  return { field: 'passwordHash', what, allowed };
}
