import type { Test } from 'tap';
import {
  argon2Hashes,
  freshEmail,
  hashes,
  importing,
  notEmails,
  statusOf,
  userOf,
  type CoreUnderTest,
} from './core-under-test.js';

/** A password hashed by the hosted provider, as it publishes it. */
export interface HostedSample {
  readonly signer_key: string;
  readonly salt_separator: string;
  readonly rounds: number;
  readonly mem_cost: number;
  readonly salt: string;
  readonly password: string;
  readonly password_hash: string;
}

/**
 * docs/specification.md 4.4 and docs/contract.md 7: password hashes are imported, and prove themselves at a sign-in.
 */
export function passwordContract(t: Test, subject: CoreUnderTest, sample: HostedSample): void {
  const { core, dialect, hasSignerKey } = subject;
  const hosted = dialect === 'seed' ? 'hosted_scrypt' : 'firebase_scrypt';
  const sampleHash = `$f_scrypt$${sample.password_hash}$${sample.salt}$m=${String(sample.mem_cost)}$r=${String(sample.rounds)}$s=${sample.salt_separator}`;
  const importHash = (email: string, passwordHash: string, hashingAlgorithm?: string) =>
    core.post('/recipe/user/passwordhash/import', { email, passwordHash, hashingAlgorithm }, importing);
  const signIn = async (email: string, password: string): Promise<unknown> =>
    statusOf(await core.post('/recipe/signin', { email, password }, importing));

  t.test('an imported hash signs its user in, whichever algorithm made it', async (t) => {
    const cases = [
      { name: 'bcrypt', hash: await hashes.bcrypt('correct horse'), algorithm: undefined },
      { name: 'bcrypt, named', hash: await hashes.bcrypt('correct horse'), algorithm: 'bcrypt' },
      ...(dialect === 'seed' ? [] : (['$2b$', '$2x$', '$2y$'] as const)).map((prefix) => ({ name: prefix, prefix })),
      { name: 'argon2id', hash: argon2Hashes.argon2id, algorithm: undefined },
      ...(dialect === 'seed' ? [] : [{ name: 'argon2i', hash: argon2Hashes.argon2i, algorithm: 'argon2' }]),
      { name: 'argon2d, named in capitals', hash: argon2Hashes.argon2d, algorithm: 'ARGON2' },
    ];
    for (const entry of cases) {
      const email = freshEmail();
      const hash =
        'prefix' in entry ? (await hashes.bcrypt('correct horse')).replace('$2a$', entry.prefix) : entry.hash;
      const imported = await importHash(email, hash, 'prefix' in entry ? undefined : entry.algorithm);
      t.match(imported.json(), { status: 'OK', didUserAlreadyExist: false, user: { email } }, entry.name);
      t.same(Object.keys(userOf(imported)).sort(), ['email', 'id', 'timeJoined'], entry.name);
      t.equal(await signIn(email, 'correct horse'), 'OK', entry.name);
      t.equal(await signIn(email, 'correct hors'), 'WRONG_CREDENTIALS_ERROR', entry.name);
    }
  });

  if (hasSignerKey) {
    t.test("the hosted provider's published sample signs in", async (t) => {
      const email = freshEmail();
      t.equal(statusOf(await importHash(email, sampleHash, hosted)), 'OK');
      t.equal(await signIn(email, sample.password), 'OK');
      t.equal(await signIn(email, `${sample.password}x`), 'WRONG_CREDENTIALS_ERROR');
    });
  }

  t.test('a second import overwrites the hash and says so', async (t) => {
    const email = freshEmail();
    const first = await importHash(email, await hashes.bcrypt('one'));
    const second = await importHash(
      dialect === 'seed' ? email.toUpperCase() : ` ${email.toUpperCase()}`,
      await hashes.argon2('two'),
    );
    t.match(second.json(), { status: 'OK', didUserAlreadyExist: true });
    t.equal(userOf(second).id, userOf(first).id);
    t.equal(await signIn(email, 'two'), 'OK');
    t.equal(await signIn(email, 'one'), 'WRONG_CREDENTIALS_ERROR');
  });

  t.test('nobody signs in unknown', async (t) => {
    t.equal(await signIn(freshEmail(), 'anything'), 'WRONG_CREDENTIALS_ERROR');
  });

  t.test('refusals of hashes are 400 in plain text', async (t) => {
    const bcrypt = await hashes.bcrypt('x');
    const argon2 = await hashes.argon2('x');
    const field = (name: string): string => `400 Field name '${name}' is invalid in JSON input`;
    const cases: readonly { name: string; body: unknown; expected: string | RegExp }[] = [
      { name: 'no email', body: { passwordHash: bcrypt }, expected: field('email') },
      { name: 'email a number', body: { email: 5, passwordHash: bcrypt }, expected: field('email') },
      { name: 'no hash', body: { email: 'a@b.c' }, expected: field('passwordHash') },
      { name: 'hash null', body: { email: 'a@b.c', passwordHash: null }, expected: field('passwordHash') },
      {
        name: 'algorithm null',
        body: { email: 'a@b.c', passwordHash: bcrypt, hashingAlgorithm: null },
        expected: field('hashingAlgorithm'),
      },
      {
        name: 'hash blank',
        body: { email: 'a@b.c', passwordHash: ' ' },
        expected: '400 Password hash cannot be an empty string',
      },
      {
        name: 'algorithm blank',
        body: { email: 'a@b.c', passwordHash: bcrypt, hashingAlgorithm: ' ' },
        expected: '400 Hashing Algorithm cannot be an empty string',
      },
      {
        name: 'algorithm unknown',
        body: { email: 'a@b.c', passwordHash: bcrypt, hashingAlgorithm: 'md5' },
        expected: '400 Unsupported password hashing algorithm',
      },
      {
        name: 'no known beginning',
        body: { email: 'a@b.c', passwordHash: '$1$abc' },
        expected: '400 Password hash is in invalid format',
      },
      {
        name: 'an identifier of the provider',
        body: { email: 'a@b.c', passwordHash: `x${bcrypt}` },
        expected: '400 Password hash is in invalid format',
      },
      {
        name: 'argon2 as bcrypt',
        body: { email: 'a@b.c', passwordHash: argon2, hashingAlgorithm: 'bcrypt' },
        expected: '400 Password hash is in invalid BCrypt format',
      },
      {
        name: 'bcrypt as argon2',
        body: { email: 'a@b.c', passwordHash: bcrypt, hashingAlgorithm: 'argon2' },
        expected: '400 Password hash is in invalid Argon2 format',
      },
      ...(hasSignerKey
        ? [
            {
              name: 'bcrypt as scrypt',
              body: { email: 'a@b.c', passwordHash: bcrypt, hashingAlgorithm: hosted },
              expected: /^400 Password hash is in invalid \w+ SCrypt format$/,
            },
            {
              name: 'scrypt in six parts',
              body: { email: 'a@b.c', passwordHash: sampleHash.replace(/\$s=.*/, ''), hashingAlgorithm: hosted },
              expected: /^400 .*SCrypt format$/,
            },
          ]
        : []),
      { name: 'no JSON', body: '{', expected: '400 Invalid Json Input' },
      ...(dialect === 'seed'
        ? notEmails.map((email) => ({
            name: `email ${email}`,
            body: { email, passwordHash: bcrypt },
            expected: field('email'),
          }))
        : []),
    ];
    for (const { name, body, expected } of cases) {
      const answer = await core.post('/recipe/user/passwordhash/import', body, importing);
      if (typeof expected === 'string') t.equal(statusOf(answer), expected, name);
      else t.match(statusOf(answer), expected, name);
      t.match(answer.headers.get('content-type'), /^text\/html/, name);
    }
  });

  t.test(
    'hashes that the specification does not name are refused; SuperTokens looks at the beginning alone',
    async (t) => {
      const bcrypt = await hashes.bcrypt('x');
      const cases: readonly (readonly [string, string])[] = [
        ['$2b$', bcrypt.replace('$2a$', '$2b$')],
        ['$2x$', bcrypt.replace('$2a$', '$2x$')],
        ['$2y$', bcrypt.replace('$2a$', '$2y$')],
        ['argon2i', argon2Hashes.argon2i],
        ['bcrypt cut off', bcrypt.slice(0, -1)],
        ['bcrypt with more behind it', `${bcrypt}x`],
        ['bcrypt of cost 99', bcrypt.replace('$04$', '$99$')],
        ['nonsense that begins like bcrypt', '$2a$nonsense'],
        ['nonsense that begins like argon2', '$argon2id$nonsense'],
        ['argon2 without its hash', argon2Hashes.argon2id.replace(/\$[^$]*$/, '')],
        ['a space in front', ` ${bcrypt}`],
        ['a line feed behind', `${bcrypt}\n`],
      ];
      for (const [name, hash] of cases) {
        const expected = dialect === 'seed' ? '400 Password hash is in invalid format' : 'OK';
        t.equal(statusOf(await importHash(freshEmail(), hash)), expected, name);
      }
      // How SuperTokens reads what is broken inside is its own affair.
      if (!hasSignerKey || dialect !== 'seed') return;
      for (const hash of [
        sampleHash.replace('$m=14$r=8', '$r=8$m=14'),
        sampleHash.replace(/=\$m/, '$m'),
        sampleHash.replace(/\$s=.*/, '$s='),
      ]) {
        t.equal(
          statusOf(await importHash(freshEmail(), hash, hosted)),
          '400 Password hash is in invalid Hosted SCrypt format',
          hash,
        );
      }
    },
  );

  t.test('an imported user is found by email and by id', async (t) => {
    const email = freshEmail();
    const rid = { ...importing, rid: 'emailpassword' };
    const find = (query: string) => core.get(`/recipe/user?${query}`, rid);
    t.equal(statusOf(await find(`email=${encodeURIComponent(email)}`)), 'UNKNOWN_EMAIL_ERROR');
    const user = userOf(await importHash(email, await hashes.bcrypt('x')));
    t.same((await find(`email=${encodeURIComponent(email.toUpperCase())}`)).json(), { status: 'OK', user });
    t.same((await find(`userId=${user.id}`)).json(), { status: 'OK', user });
    t.equal(statusOf(await find('userId=00000000-0000-4000-8000-000000000000')), 'UNKNOWN_USER_ID_ERROR');
    t.equal(statusOf(await find('')), '400 Please provide one of userId or email');
    t.equal(statusOf(await find('email=a&userId=b')), '400 Please provide only one of userId or email');
    t.equal(
      statusOf(await core.get(`/recipe/user?userId=${user.id}`, { ...importing, rid: 'passwordless' })),
      'UNKNOWN_USER_ID_ERROR',
    );
  });
}
