import t from 'tap';
import {
  algorithmNamed,
  algorithmOf,
  parseHostedScrypt,
  standardAlgorithmOf,
  createPasswords,
} from '../../src/core-emulator/passwords.js';
import { argon2Hashes, hashes } from './contract/core-under-test.js';
import { hostedSample } from './contract/live-core.js';

const sample = `$f_scrypt$${hostedSample.password_hash}$${hostedSample.salt}$m=14$r=8$s=${hostedSample.salt_separator}`;
const passwords = createPasswords(Buffer.from(hostedSample.signer_key, 'base64'));

t.test("algorithms are told by the beginning of the hash, and by either dialect's name", (t) => {
  for (const prefix of ['$2a$', '$2b$', '$2x$', '$2y$', '$2a']) t.equal(algorithmOf(prefix), 'bcrypt', prefix);
  for (const prefix of ['$argon2id$', '$argon2i$', '$argon2d$']) t.equal(algorithmOf(prefix), 'argon2', prefix);
  for (const text of ['', '2a$', '$2$', '$2c$', '$argon2', '$scrypt$', '$f_scrypt$', 'plain']) {
    t.equal(algorithmOf(text), null, text);
  }
  t.equal(algorithmOf(sample), 'hosted_scrypt');
  for (const name of ['hosted_scrypt', 'FIREBASE_SCRYPT', ' firebase_scrypt ']) {
    t.equal(algorithmNamed(name), 'hosted_scrypt', name);
  }
  for (const name of ['', 'scrypt', '__proto__', 'constructor']) t.equal(algorithmNamed(name), undefined, name);
  t.end();
});

t.test('formats that the specification names, whole', async (t) => {
  t.equal(standardAlgorithmOf(await hashes.bcrypt('x')), 'bcrypt');
  t.equal(standardAlgorithmOf(argon2Hashes.argon2id), 'argon2');
  t.equal(standardAlgorithmOf(argon2Hashes.argon2d), 'argon2');
  t.equal(standardAlgorithmOf(argon2Hashes.argon2d.replace('$v=19', '')), 'argon2', 'version 1.0 has no v');
  t.equal(standardAlgorithmOf(sample), 'hosted_scrypt');
  const others = [argon2Hashes.argon2i, '$2a$', '$argon2id$', `x${sample}`, sample.replace('$r=8', ''), '', 'plain'];
  for (const text of others) t.equal(standardAlgorithmOf(text), null, text);
});

t.test('hosted scrypt is seven parts', (t) => {
  t.match(parseHostedScrypt(sample), { memoryCost: 14, rounds: 8 });
  t.match(
    parseHostedScrypt('$f_scrypt$aA==$bA==$s=$r=8$m=14'),
    { memoryCost: 14, rounds: 8 },
    'parameters in any order, an empty separator',
  );
  const broken = [
    '$f_scrypt$aA==$bA==$m=14$r=8',
    `${sample}$x=1`,
    sample.replace('m=14', 'm=x'),
    sample.replace('r=8', 'r='),
    sample.replace('$m=', '$q='),
    sample.replace('f_scrypt', 'scrypt'),
    `x${sample}`,
    '$f_scrypt$$bA==$m=14$r=8$s=Bw==',
    '$f_scrypt$aA==$$m=14$r=8$s=Bw==',
  ];
  for (const text of broken) t.equal(parseHostedScrypt(text), null, text);
  t.end();
});

t.test('what is no hash matches nothing', async (t) => {
  for (const hash of [
    '$2a$',
    '$argon2id$v=19$broken',
    '$argon2id$',
    '$f_scrypt$aA==$bA==$m=0$r=8$s=Bw==',
    'plain',
    '',
  ]) {
    t.equal(await passwords.verify('x', hash), 'mismatch', hash);
  }
  t.equal(
    await createPasswords(null).verify(hostedSample.password, sample),
    'mismatch',
    'nor a good one without its signer key',
  );
});

t.test('a hash that asks for more than a sign-in may take is told apart, at once', async (t) => {
  const bcrypt = await hashes.bcrypt('x');
  for (const hash of [
    bcrypt.replace('$04$', '$31$'),
    argon2Hashes.argon2id.replace('m=1024', 'm=1048576'),
    argon2Hashes.argon2id.replace('t=1,', 't=100000,'),
    sample.replace('m=14', 'm=30'),
    sample.replace('r=8', 'r=99999'),
  ]) {
    t.equal(await passwords.verify('x', hash), 'too_costly', hash);
  }
});

t.test('many sign-ins at once: each gets its response, and the event loop lives', async (t) => {
  const hash = await hashes.bcrypt('right');
  let ticks = 0;
  const timer = setInterval(() => (ticks += 1), 1);
  const verdicts = await Promise.all(
    Array.from({ length: 40 }, (_, index) => passwords.verify(index % 2 === 0 ? 'right' : 'wrong', hash)),
  );
  clearInterval(timer);
  t.same(
    verdicts,
    Array.from({ length: 40 }, (_, index) => (index % 2 === 0 ? 'match' : 'mismatch')),
  );
  t.ok(ticks > 0);
  t.equal(await passwords.verify('new', await passwords.hash('new')), 'match');
});
