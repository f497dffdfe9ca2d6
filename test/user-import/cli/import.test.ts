import {
  symlinkSync,
  existsSync,
  readFileSync,
  statSync,
  writeFileSync,
  appendFileSync,
  chmodSync,
  rmSync,
} from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { run } from '../../../src/cli/program.js';
import { userColumns } from '../../../src/user-import/row/csv.js';
import { startImportCore, type ImportCore } from '../../support/import-core.js';
import {
  createUserMaker,
  hostedScryptSecret,
  publishedSample,
  userLines,
  type MadeUser,
} from '../../support/import-users.js';
import { tempDir } from '../../support/temp-dir.js';
import { captureIo, type CapturedIo } from '../../cli/captured-io.js';

async function importFile(
  core: Pick<ImportCore, 'curlConfig' | 'dir'>,
  file: string,
  ...args: readonly string[]
): Promise<CapturedIo> {
  const io = captureIo({ cwd: core.dir });
  await run(['import', file, '--curl-config', core.curlConfig, ...args], io);
  return io;
}

function written(core: Pick<ImportCore, 'dir'>, name: string, content: string, mode = 0o644): string {
  writeFileSync(join(core.dir, name), content, { mode });
  chmodSync(join(core.dir, name), mode);
  return name;
}

function madeUsers(count: number): readonly MadeUser[] {
  return Array.from({ length: count }, (_, number) => maker(number));
}

const maker = createUserMaker();
const scrypt = hostedScryptSecret('x').passwordHash;
const bcrypt = `$2a$04$${'a'.repeat(53)}`;

t.test('mixed users are in, and sign in', async (t) => {
  const core = await startImportCore(t);
  const users = madeUsers(120);
  const file = written(core, 'users.jsonl', [...userLines(120, maker)].join(''));
  const io = await importFile(core, file);
  t.equal(io.code(), 0, io.err());
  t.match(io.out(), /^all +120 +0 +0$/m);
  t.match(io.err(), /^120 users, 0 of them cannot be imported$/m);
  t.equal(await core.count(), 120);
  for (const { proof } of users) t.ok(await core.holds(proof), JSON.stringify(proof));
  const report = JSON.parse(readFileSync(join(core.dir, `${file}.import-report.json`), 'utf8')) as Record<
    string,
    unknown
  >;
  t.match(report, {
    total: 120,
    created: 120,
    existed: 0,
    rejected: 0,
    left: 0,
    complete: true,
    stopped: null,
    rejectedFile: null,
  });

  await t.test('what is left behind is for the owner alone and holds no hash, code or key', async (t) => {
    for (const name of [`${file}.import-journal`, `${file}.import-report.json`]) {
      const text = readFileSync(join(core.dir, name), 'utf8');
      t.equal(statSync(join(core.dir, name)).mode & 0o777, 0o600, name);
      t.notMatch(text, /\$2a|\$argon2|f_scrypt|a-key-for-tests|linkCode|preAuth/, name);
    }
  });

  await t.test('a journal without --resume is a usage error, with it nothing is done again', async (t) => {
    const refused = await importFile(core, file);
    t.equal(refused.code(), 2);
    t.match(refused.err(), /is the journal of an import of this file: go on with --resume/);
    const again = await importFile(core, file, '--resume', '--json');
    t.equal(again.code(), 0);
    t.match(JSON.parse(again.out()), { created: 120, complete: true });
    t.equal(await core.count(), 120);
  });

  await t.test('a changed input is noticed', async (t) => {
    appendFileSync(join(core.dir, file), '\n');
    const changed = await importFile(core, file, '--resume');
    t.equal(changed.code(), 2);
    t.match(changed.err(), /the input has changed since the journal was begun/);
  });
});

t.test('a journal that was begun with other hashes is refused, and the option is named', async (t) => {
  const core = await startImportCore(t, { dialect: 'supertokens' });
  const rows = [
    { email: 'ada@example.com', passwordHash: `{bcrypt}${bcrypt}` },
    { email: 'bob@example.com', passwordHash: bcrypt.replace('2a', '2b') },
  ];
  const file = written(core, 'users.jsonl', rows.map((row) => `${JSON.stringify(row)}\n`).join(''));
  const asked = ['--strip-hash-prefix', '--accept-hash', '2y,2b'];
  t.equal((await importFile(core, file, ...asked)).code(), 0);
  const others: readonly (readonly [readonly string[], RegExp])[] = [
    [['--strip-hash-prefix'], /does not fit: the journal was begun with --accept-hash 2b,2y$/m],
    [['--accept-hash', '2y,2b'], /does not fit: the journal was begun with --strip-hash-prefix$/m],
    [[...asked, '--dialect', 'supertokens'], /does not fit: the journal was begun with --dialect seed$/m],
  ];
  for (const [args, says] of others) {
    const io = await importFile(core, file, '--resume', ...args);
    t.equal(io.code(), 2, args.join(' '));
    t.match(io.err(), says);
  }
  t.equal((await importFile(core, file, '--resume', '--accept-hash', '2b', ...asked)).code(), 0, 'in whatever order');

  const journal = join(core.dir, `${file}.import-journal`);
  const old = readFileSync(journal, 'utf8').replace(/,"hashes":{[^}]*}/, '');
  t.notMatch(old, /"hashes"/);
  writeFileSync(journal, old);
  t.equal((await importFile(core, file, '--resume', ...asked)).code(), 0, 'one of an older version fits');
});

t.test('on a terminal a bar shows how far it is', async (t) => {
  const core = await startImportCore(t);
  const file = written(core, 'users.jsonl', [...userLines(30, maker)].join(''));
  const io = captureIo({ cwd: core.dir });
  await run(['import', file, '--curl-config', core.curlConfig, '--rate', '100'], { ...io, columns: () => 60 });
  t.equal(io.code(), 0, io.err());
  t.match(io.err(), /\r\x1b\[K\[#*\.+\] \d+ of 30, /);
  t.match(io.err(), /\r\x1b\[K\[#+\] 30 of 30, 100 %[^\n]*\n$/);
});

t.test('CSV, and --resume without a journal begins', async (t) => {
  const core = await startImportCore(t);
  const secret = hostedScryptSecret('a password');
  const file = written(
    core,
    'users.csv',
    [
      userColumns.join(','),
      `ada@example.com,${secret.passwordHash},firebase_scrypt,,,,,,,`,
      ',,,,+4915112345678,bob@example.com,,,,',
      ',,,,,,github,7,"eve@example.com",false',
      '',
    ].join('\r\n'),
  );
  const io = await importFile(core, file, '--resume', '--json');
  t.equal(io.code(), 0, io.err());
  t.ok(await core.holds({ kind: 'password', email: 'ada@example.com', password: 'a password' }));
  t.ok(await core.holds({ kind: 'passwordless', email: 'bob@example.com', phoneNumber: '+4915112345678' }));
  t.ok(
    await core.holds({
      kind: 'third_party',
      thirdPartyId: 'github',
      thirdPartyUserId: '7',
      email: 'eve@example.com',
      isVerified: false,
    }),
  );
});

const exported = {
  users: [
    {
      localId: '1',
      email: 'sample@example.com',
      passwordHash: publishedSample.passwordHash,
      salt: publishedSample.salt,
      providerUserInfo: [{ providerId: 'password' }],
    },
    {
      localId: '2',
      phoneNumber: '+4915112345678',
      email: 'p@example.com',
      providerUserInfo: [{ providerId: 'google.com', rawId: '77', email: 'p@example.com' }],
    },
    { localId: '3', email: 'gone@example.com', disabled: true },
  ],
};
const hashConfig = `hash_config {
  algorithm: SCRYPT,
  base64_signer_key: ${publishedSample.signerKey},
  base64_salt_separator: Bw==,
  rounds: 8,
  mem_cost: 14,
}
`;

t.test("Firebase's published sample imports and signs in", async (t) => {
  const core = await startImportCore(t);
  const file = written(core, 'export.json', JSON.stringify(exported, null, 2));
  written(core, 'hash-config', hashConfig, 0o600);
  const io = await importFile(core, file, '--from', 'firebase', '--hash-config', 'hash-config');
  t.equal(io.code(), 1, 'the disabled one is not in');
  t.match(io.err(), /^export\.json:\d+: user 3: user is disabled there/m);
  t.ok(await core.holds({ kind: 'password', email: 'sample@example.com', password: publishedSample.password }));
  t.notOk(await core.holds({ kind: 'password', email: 'sample@example.com', password: 'another' }));
  t.ok(
    await core.holds({
      kind: 'third_party',
      thirdPartyId: 'google',
      thirdPartyUserId: '77',
      email: 'p@example.com',
      isVerified: false,
    }),
  );
  t.equal(await core.count(), 3);
  chmodSync(join(core.dir, 'hash-config'), 0o644);
  const open = await importFile(core, file, '--from', 'firebase', '--hash-config', 'hash-config', '--resume');
  t.equal(open.code(), 2);
  t.match(open.err(), /hash-config is open to others \(mode 0644\); chmod 600 it/);
});

t.test('without the signer key the first hosted scrypt hash stops the run and names it', async (t) => {
  const core = await startImportCore(t, { signerKey: false });
  const rows = Array.from({ length: 20 }, (_, index) => ({
    email: `u${index}@example.com`,
    passwordHash: index < 3 ? bcrypt : scrypt,
  }));
  const file = written(core, 'users.jsonl', rows.map((row) => `${JSON.stringify(row)}\n`).join(''));
  const io = await importFile(core, file);
  t.equal(io.code(), 3);
  t.match(io.err(), /^stopped: line 4: .*hosted_password_hashing_signer_key/m);
  t.match(io.out(), /^all +3 +0 +0\n17 of 20 are left$/m);
  await core.kill();
  await core.restart({});
  const resumed = await importFile(core, file, '--resume');
  t.equal(resumed.code(), 0, resumed.err());
  t.equal(await core.count(), 20);
});

t.test('users that were there before: the first one stops the run, --overwrite and the look-up do not', async (t) => {
  const core = await startImportCore(t, { dialect: 'supertokens' });
  const users = madeUsers(6);
  const file = written(core, 'users.jsonl', [...userLines(6, maker)].join(''));
  t.equal((await importFile(core, file)).code(), 0);
  rmSync(join(core.dir, `${file}.import-journal`));

  const stopped = await importFile(core, file);
  t.equal(stopped.code(), 3);
  t.match(stopped.err(), /^stopped: line 1: the user was in the Core before this import/m);
  t.match(stopped.out(), /^all +0 +1 +0\n5 of 6 are left$/m);
  t.equal((await importFile(core, file, '--resume')).code(), 3, 'and so does the next');
  const meant = await importFile(core, file, '--resume', '--overwrite');
  t.equal(meant.code(), 0, meant.err());
  t.match(meant.out(), /^all +0 +6 +0$/m);
  rmSync(join(core.dir, `${file}.import-journal`));

  const other = written(
    core,
    'other.jsonl',
    `${JSON.stringify({ email: 'user0@example.com', passwordHash: bcrypt })}\n`,
  );
  const left = await importFile(core, other, '--dialect', 'supertokens');
  t.equal(left.code(), 1);
  t.match(left.out(), /other\.jsonl:1: existed: the user was there before and was left as it was/);
  for (const { proof } of users) t.ok(await core.holds(proof), 'the hash is still the old one');
});

t.test('a dry run calls nothing and writes nothing', async (t) => {
  const dir = tempDir(t);
  const file = written(
    { dir },
    'users.jsonl',
    `${JSON.stringify({ email: 'a@b.de', passwordHash: bcrypt })}\n{"email":"a@b.de","passwordHash":"x"}\n`,
  );
  const io = captureIo({ cwd: dir });
  await run(['import', file, '--dry-run'], io);
  t.equal(io.code(), 1);
  t.match(
    io.out(),
    /^users\.jsonl:2: passwordHash is in no known format; allowed: .*\n2 users, 1 of them cannot be imported\n {2}bcrypt +1\n {2}unreadable +1\n$/,
  );
  t.notOk(existsSync(join(dir, `${file}.import-journal`)));
  const data = captureIo({ cwd: dir });
  await run(['import', file, '--dry-run', '--json'], data);
  t.match(JSON.parse(data.out()), {
    users: 2,
    byKind: { bcrypt: 1, unreadable: 1 },
    problemCount: 1,
    problems: [{ line: 2, record: 2, method: null }],
  });
  const good = captureIo({ cwd: dir });
  written(
    { dir },
    'good.jsonl',
    `${JSON.stringify({ email: 'a@b.de', passwordHash: `{bcrypt}${bcrypt.replace('2a', '2y')}` })}\n`,
  );
  await run(['import', 'good.jsonl', '--dry-run', '--strip-hash-prefix', '--accept-hash', '2b,$2y$'], good);
  t.equal(good.code(), 0, good.out());
});

t.test('usage', async (t) => {
  const dir = tempDir(t);
  written({ dir }, 'users.jsonl', '');
  written({ dir }, 'bad.csv', 'email,password_hash\na@b.de,x\n');
  written({ dir }, 'open.cfg', 'url = "http://127.0.0.1:1"\n', 0o644);
  written({ dir }, 'away.cfg', 'url = "http://127.0.0.1:1"\n', 0o600);
  written({ dir }, 'public.cfg', 'url = "https://192.0.2.1"\n', 0o600);
  // A regular file that opens, and has nothing at its start.
  symlinkSync('/proc/self/mem', join(dir, 'broken.jsonl'));
  const cases: readonly { args: readonly string[]; code: number; err: RegExp }[] = [
    { args: ['users.jsonl'], code: 2, err: /needs --curl-config/ },
    {
      args: ['bad.csv', '--hashes-from', 'broken.jsonl', '--dry-run'],
      code: 2,
      err: /^error: broken\.jsonl cannot be read \(EIO\)/,
    },
    { args: ['none.jsonl', '--dry-run'], code: 2, err: /^error: none\.jsonl does not exist/ },
    { args: ['users.jsonl', '--curl-config', 'open.cfg'], code: 2, err: /0600/ },
    {
      args: ['users.jsonl', '--curl-config', 'away.cfg'],
      code: 3,
      err: /the Core at http:\/\/127\.0\.0\.1:1 is out of reach/,
    },
    { args: ['users.jsonl', '--curl-config', 'public.cfg'], code: 3, err: /public address.*--allow-public-core/ },
    {
      args: ['bad.csv', '--dry-run'],
      code: 2,
      err: /^error: bad\.csv:1: column 2 of the header has no known name: "password_hash"; did you mean passwordHash/,
    },
    { args: ['users.jsonl', '--from', 'firebase', '--dry-run'], code: 2, err: /--hash-config/ },
    { args: ['users.jsonl', '--hash-config', 'x', '--dry-run'], code: 2, err: /--from firebase only/ },
    { args: ['users.jsonl', '--hashes-from', 'x', '--dry-run'], code: 2, err: /CSV of rejected rows only/ },
    {
      args: ['users.jsonl', '--from', 'firebase', '--hash-config', 'none', '--dry-run'],
      code: 2,
      err: /^error: none does not exist/,
    },
    { args: ['users.jsonl', '--concurrency', '0'], code: 2, err: /from 1 to 256/ },
    { args: ['users.jsonl', '--rate', 'x'], code: 2, err: /from 1 to 100000/ },
    { args: ['users.jsonl', '--cdi-version', '2'], code: 2, err: /such as 2\.16/ },
    { args: ['users.jsonl', '--accept-hash', 'md5'], code: 2, err: /2b, 2x, 2y, argon2i/ },
  ];
  for (const { args, code, err } of cases) {
    const io = captureIo({ cwd: dir });
    await run(['import', ...args], io);
    t.equal(io.code(), code, args.join(' '));
    t.match(io.err(), err, args.join(' '));
  }
});

t.test('the Core has to speak the version, and to know the key', async (t) => {
  const core = await startImportCore(t);
  const file = written(core, 'users.jsonl', '');
  const version = await importFile(core, file, '--cdi-version', '9.9');
  t.equal(version.code(), 3);
  t.match(version.err(), /does not speak version 9\.9 .*allowed: .*2\.16/);
  const other = written(core, 'other.cfg', `url = "${core.url}"\nheader = "api-key: another-key-0123456789"\n`, 0o600);
  const refused = await importFile({ ...core, curlConfig: join(core.dir, other) }, file);
  t.equal(refused.code(), 3);
  t.match(refused.err(), /api-key in the curl config file/);
  t.notMatch(refused.err(), /another-key/);
  t.notOk(existsSync(join(core.dir, `${file}.import-journal`)), 'nothing was begun');
  t.equal((await importFile(core, file)).code(), 0, 'nobody to import is no failure');
});
