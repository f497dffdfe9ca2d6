import t from 'tap';
import { readPasswordHash, type HashRules } from '../../../src/user-import/row/password-hash.js';

const strict: HashRules = { accepted: new Set(), stripPrefix: false };
const bcrypt = `$2a$10$${'a'.repeat(53)}`;
const argon2 = '$argon2id$v=19$m=19456,t=2,p=1$c29tZXNhbHQ$ZHVtbXlkdW1teWR1bW15';
const scrypt = '$f_scrypt$aGFzaA==$c2FsdA==$m=14$r=8$s=Bw==';

const taken = [
  { name: 'bcrypt', hash: bcrypt, algorithm: 'bcrypt' },
  { name: 'bcrypt, least cost', hash: bcrypt.replace('$10$', '$04$'), algorithm: 'bcrypt' },
  { name: 'bcrypt, most cost', hash: bcrypt.replace('$10$', '$31$'), algorithm: 'bcrypt' },
  { name: 'bcrypt by name', hash: bcrypt, named: 'bcrypt', algorithm: 'bcrypt' },
  { name: 'argon2id', hash: argon2, algorithm: 'argon2' },
  { name: 'argon2d', hash: argon2.replace('2id', '2d'), algorithm: 'argon2' },
  { name: 'argon2 without a version', hash: argon2.replace('$v=19', ''), algorithm: 'argon2' },
  { name: 'argon2, least memory', hash: argon2.replace('m=19456', 'm=8'), algorithm: 'argon2' },
  { name: 'hosted scrypt', hash: scrypt, algorithm: 'hosted_scrypt' },
  { name: 'hosted scrypt by its name', hash: scrypt, named: 'hosted_scrypt', algorithm: 'hosted_scrypt' },
  { name: 'hosted scrypt by the other name', hash: scrypt, named: 'firebase_scrypt', algorithm: 'hosted_scrypt' },
  { name: 'hosted scrypt, least parameters', hash: scrypt.replace('m=14$r=8', 'm=1$r=1'), algorithm: 'hosted_scrypt' },
];

t.test('hashes that are taken', async (t) => {
  for (const { name, hash, named, algorithm } of taken) {
    t.same(readPasswordHash(hash, named, strict), { ok: true, value: { passwordHash: hash, algorithm } }, name);
  }
});

const refused = [
  { name: 'nothing', hash: undefined, what: 'is missing' },
  { name: 'an empty text', hash: '', what: 'is missing' },
  { name: 'a number', hash: 7, what: 'is no text' },
  { name: 'something else', hash: 'secret-secret', what: 'is in no known format' },
  { name: 'PHC scrypt', hash: '$scrypt$ln=16,r=8,p=1$c2FsdA$aGFzaA', what: 'is in no known format' },
  {
    name: 'another bcrypt',
    hash: bcrypt.replace('2a', '2b'),
    what: 'begins with $2b$, which --dialect supertokens or --accept-hash 2b takes',
  },
  { name: 'a bcrypt that nobody knows', hash: bcrypt.replace('2a', '2q'), what: 'begins with $2q$' },
  { name: 'a short bcrypt', hash: bcrypt.slice(0, -1), what: 'is no whole bcrypt hash (52 characters after the cost)' },
  { name: 'a long bcrypt', hash: `${bcrypt}a`, what: 'is no whole bcrypt hash (54 characters after the cost)' },
  {
    name: 'bcrypt with another character',
    hash: bcrypt.replace(/a$/, '='),
    what: 'is no whole bcrypt hash (53 characters after the cost)',
  },
  {
    name: 'bcrypt with a line end',
    hash: `${bcrypt}\n`,
    what: 'is no whole bcrypt hash (54 characters after the cost)',
  },
  { name: 'too little cost', hash: bcrypt.replace('$10$', '$03$'), what: 'has the cost 03' },
  { name: 'too much cost', hash: bcrypt.replace('$10$', '$32$'), what: 'has the cost 32' },
  {
    name: 'argon2i',
    hash: argon2.replace('2id', '2i'),
    what: 'begins with $argon2i$, which --dialect supertokens or --accept-hash argon2i takes',
  },
  { name: 'argon2 without parameters', hash: '$argon2id$v=19$c29tZXNhbHQ$ZHVtbXk', what: 'is no whole argon2 hash' },
  {
    name: 'argon2 with too little memory',
    hash: argon2.replace('m=19456', 'm=7'),
    what: 'has the parameters m=7,t=2,p=1',
  },
  { name: 'argon2 without a pass', hash: argon2.replace('t=2', 't=0'), what: 'has the parameters m=19456,t=0,p=1' },
  { name: 'argon2 without a lane', hash: argon2.replace('p=1', 'p=0'), what: 'has the parameters m=19456,t=2,p=0' },
  { name: 'argon2 with padding', hash: `${argon2}=`, what: 'is no whole argon2 hash' },
  {
    name: 'argon2 with a short salt',
    hash: argon2.replace('c29tZXNhbHQ', 'c2FsdA'),
    what: 'has a salt or hash that is no base64 or too short',
  },
  {
    name: 'hosted scrypt without a separator',
    hash: scrypt.replace('$s=Bw==', ''),
    what: 'does not have the six parts of hosted scrypt',
  },
  {
    name: 'hosted scrypt with an empty separator',
    hash: scrypt.replace('Bw==', ''),
    what: 'has no valid base64 as separator',
  },
  { name: 'hosted scrypt with seven parts', hash: `${scrypt}$x`, what: 'does not have the six parts of hosted scrypt' },
  {
    name: 'hosted scrypt with a hash that is no base64',
    hash: scrypt.replace('aGFzaA==', 'a-b_'),
    what: 'has no valid base64 as hash',
  },
  {
    name: 'hosted scrypt with a salt that is cut off',
    hash: scrypt.replace('c2FsdA==', 'c2FsdA'),
    what: 'has no valid base64 as salt',
  },
  { name: 'hosted scrypt without a hash', hash: scrypt.replace('aGFzaA==', ''), what: 'has no valid base64 as hash' },
  { name: 'too much memory', hash: scrypt.replace('m=14', 'm=15'), what: 'has a memory cost or rounds out of bounds' },
  { name: 'too many rounds', hash: scrypt.replace('r=8', 'r=9'), what: 'has a memory cost or rounds out of bounds' },
  { name: 'no rounds', hash: scrypt.replace('r=8', 'r=0'), what: 'has a memory cost or rounds out of bounds' },
  {
    name: "a provider's identifier",
    hash: `{bcrypt}${bcrypt}`,
    what: "has the provider's identifier {bcrypt} in front, which --strip-hash-prefix removes",
  },
  { name: 'a hash of a hash', hash: `bcrypt_sha256$${bcrypt}`, what: /hashed before: no sign-in would succeed$/ },
  {
    name: 'something long in front',
    hash: `${'x'.repeat(50)}${bcrypt}`,
    what: 'has something in front of the standard format',
  },
  { name: 'too long', hash: `${argon2}${'A'.repeat(257 - argon2.length)}`, what: 'is longer than 256 characters' },
];

t.test('hashes that are refused, without a word of them', async (t) => {
  for (const { name, hash, what } of refused) {
    const read = readPasswordHash(hash, undefined, strict);
    t.match(read, { ok: false, error: { field: 'passwordHash', what } }, name);
    if (!read.ok) t.notMatch(`${read.error.what}${read.error.allowed}`, /secret-secret|aaaa|c29tZX|aGFzaA/, name);
  }
});

t.test('the algorithm that a row names has to be that of the hash', async (t) => {
  t.match(readPasswordHash(bcrypt, 'argon2', strict), {
    ok: false,
    error: { field: 'hashingAlgorithm', what: 'does not fit the hash, which is bcrypt' },
  });
  t.match(readPasswordHash(bcrypt, 'constructor', strict), {
    ok: false,
    error: { field: 'hashingAlgorithm', what: 'names no algorithm' },
  });
  t.match(readPasswordHash(bcrypt, 7, strict), { ok: false, error: { what: 'names no algorithm' } });
});

t.test('identifiers that are accepted by name', async (t) => {
  const lenient: HashRules = { accepted: new Set(['2y', 'argon2i']), stripPrefix: false };
  t.ok(readPasswordHash(bcrypt.replace('2a', '2y'), undefined, lenient).ok);
  t.ok(readPasswordHash(argon2.replace('2id', '2i'), undefined, lenient).ok);
  t.notOk(readPasswordHash(bcrypt.replace('2a', '2b'), undefined, lenient).ok);
});

t.test("a provider's identifier is removed where that was asked for", async (t) => {
  const stripping: HashRules = { accepted: new Set(['2b']), stripPrefix: true };
  for (const [prefix, hash] of [
    ['{bcrypt}', bcrypt],
    ['bcrypt$', bcrypt.replace('2a', '2b')],
    ['argon2', argon2],
    ['{argon2@SpringSecurity_v5_8}', argon2],
    ['bcrypt:', bcrypt],
  ] as const) {
    t.match(
      readPasswordHash(`${prefix}${hash}`, undefined, stripping),
      { ok: true, value: { passwordHash: hash } },
      prefix,
    );
  }
  t.notOk(readPasswordHash(`bcrypt_sha256$${bcrypt}`, undefined, stripping).ok, 'what was hashed before');
});
