import { appendFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { run } from '../../../src/cli/program.js';
import { startImportCore } from '../../support/import-core.js';
import { hostedScryptSecret } from '../../support/import-users.js';
import { captureIo, type CapturedIo } from '../../cli/captured-io.js';

const bcrypt = `$2a$04$${'b'.repeat(53)}`;
const argon2 = '$argon2id$v=19$m=8,t=1,p=1$c29tZXNhbHQ$ZHVtbXlkdW1teWR1bW15';
const scrypt = hostedScryptSecret('x').passwordHash;
const third = { thirdPartyId: 'google', thirdPartyUserId: '1', email: 'third@example.com', isVerified: true };

/** Each kind of badness once, with what is said of it. Good rows stand between them. */
const bad: readonly { row: string | object; says: RegExp }[] = [
  { row: 'not json', says: /row is no JSON; allowed: one JSON object/ },
  { row: '[]', says: /row is no object/ },
  { row: '{"email":"a@example.com","email":"b@example.com"}', says: /row has a member twice/ },
  { row: {}, says: /row has no way to sign in/ },
  {
    row: { email: 'x1@example.com', passwordHash: bcrypt, note: 1 },
    says: /the member note that does not belong there/,
  },
  { row: { email: 'x2@example.com' }, says: /passwordHash is missing/ },
  { row: { passwordHash: bcrypt }, says: /email is missing/ },
  {
    row: { email: 'not an email', passwordHash: bcrypt },
    says: /email is no email address; allowed: .*ada@example\.com/,
  },
  {
    row: { email: 'x3@example.com', passwordHash: 'plain-secret' },
    says: /passwordHash is in no known format; allowed: bcrypt \$2a\$/,
  },
  {
    row: { email: 'x4@example.com', passwordHash: bcrypt.replace('2a', '2y') },
    says: /begins with \$2y\$.*--accept-hash 2y/,
  },
  { row: { email: 'x5@example.com', passwordHash: bcrypt.slice(0, -1) }, says: /is no whole bcrypt hash/ },
  {
    row: { email: 'x6@example.com', passwordHash: `{bcrypt}${bcrypt}` },
    says: /provider's identifier \{bcrypt\} in front, which --strip-hash-prefix removes/,
  },
  {
    row: { email: 'x7@example.com', passwordHash: argon2.replace('t=1', 't=0') },
    says: /has the parameters m=8,t=0,p=1/,
  },
  { row: { email: 'x8@example.com', passwordHash: argon2.replace('2id', '2i') }, says: /begins with \$argon2i\$/ },
  { row: { email: 'x9@example.com', passwordHash: scrypt.replace(/\$s=.*/, '') }, says: /does not have the six parts/ },
  {
    row: { email: 'x10@example.com', passwordHash: scrypt.replace(/=\$m/, '-$m') },
    says: /has no valid base64 as salt/,
  },
  {
    row: { email: 'x11@example.com', passwordHash: bcrypt, hashingAlgorithm: 'argon2' },
    says: /hashingAlgorithm does not fit the hash/,
  },
  {
    row: { passwordless: { email: 'x12@example.com', phoneNumber: '+4915112345678' } },
    says: /passwordless has two contacts/,
  },
  {
    row: { passwordless: { phoneNumber: '0151 12345678' } },
    says: /passwordless\.phoneNumber is not written as E\.164; allowed: .*\+4930901820/,
  },
  { row: { passwordless: { phoneNumber: '+49999' } }, says: /passwordless\.phoneNumber is/ },
  {
    row: { passwordless: { email: 'x13@example.com', add: 'x14@example.com' } },
    says: /passwordless\.add is not written as E\.164/,
  },
  { row: { thirdParty: { ...third, thirdPartyId: '' } }, says: /thirdParty\.thirdPartyId is missing/ },
  {
    row: { thirdParty: { ...third, isVerified: 'yes' } },
    says: /isVerified is neither true nor false; allowed: true or false/,
  },
  { row: { methods: [] }, says: /methods has 0 users/ },
  {
    row: { methods: [{ passwordless: { email: 'm@example.com' } }, { email: 'm', passwordHash: bcrypt }] },
    says: /email is no email address/,
  },
  {
    row: { email: 'GOOD0@example.com', passwordHash: argon2 },
    says: /email is the same user as in line 2; allowed: each user of a kind once/,
  },
];

async function imported(
  dir: string,
  file: string,
  curlConfig: string,
  ...args: readonly string[]
): Promise<CapturedIo> {
  const io = captureIo({ cwd: dir });
  await run(['import', file, '--curl-config', curlConfig, ...args], io);
  return io;
}

t.test(
  'each kind of bad row is named with its line and what is allowed; the good rows between them are imported',
  async (t) => {
    const core = await startImportCore(t);
    const lines = bad.flatMap(({ row }, index) => [
      typeof row === 'string' ? row : JSON.stringify(row),
      JSON.stringify({ email: `good${String(index)}@example.com`, passwordHash: bcrypt }),
    ]);
    writeFileSync(join(core.dir, 'users.jsonl'), lines.map((line) => `${line}\n`).join(''));

    const dry = await imported(core.dir, 'users.jsonl', core.curlConfig, '--dry-run');
    t.equal(dry.code(), 1);
    const named = dry
      .out()
      .split('\n')
      .filter((line) => line.startsWith('users.jsonl:'));
    t.equal(named.length, bad.length);
    for (const [index, { says }] of bad.entries()) {
      t.match(named[index], new RegExp(`^users\\.jsonl:${String(index * 2 + 1)}: .*${says.source}`), says.source);
    }

    const io = await imported(core.dir, 'users.jsonl', core.curlConfig, '--json');
    t.equal(io.code(), 1);
    const report = JSON.parse(io.out()) as { rows: readonly { line: number; why: string }[]; rejectedFile: string };
    t.match(report, { created: bad.length + 1, rejected: bad.length, left: 0, complete: false });
    for (const [index, { says }] of bad.entries()) t.match(report.rows[index], { line: index * 2 + 1, why: says });
    t.equal(await core.count(), bad.length + 1, 'the good rows, and the good user beside a bad one');

    await t.test('no report holds a hash', async (t) => {
      const files = [report.rejectedFile, join(core.dir, 'users.jsonl.import-journal')].map((path) =>
        readFileSync(path, 'utf8'),
      );
      for (const text of [dry.out(), io.out(), io.err(), ...files]) {
        t.notMatch(text, /bbbbb|c29tZ|plain-secret/);
        t.notOk(text.includes(scrypt.split('$')[2] ?? '?'));
      }
    });

    await t.test(
      'the list of rejected rows can be mended and imported, with the hashes of the first file',
      async (t) => {
        const list = readFileSync(report.rejectedFile, 'utf8').split('\n');
        t.equal(list.length, bad.length + 2);
        const mended = [
          list[0],
          ...list.slice(1).flatMap((line) => {
            if (line.includes('not an email')) return [line.replace('not an email', 'mended1@example.com')];
            if (line.includes('0151 12345678')) return [line.replace('0151 12345678', '+4915112345678')];
            if (line.includes(',m,')) return [line.replace(',m,', ',mended2@example.com,')];
            return [];
          }),
          '',
        ];
        t.equal(mended.length, 5);
        writeFileSync(join(core.dir, 'mended.csv'), mended.join('\n'));
        const again = await imported(core.dir, 'mended.csv', core.curlConfig, '--hashes-from', 'users.jsonl');
        t.equal(again.code(), 0, `${again.err()}${again.out()}`);
        t.match(again.out(), /^bcrypt +2 +0 +0\npasswordless +1 +0 +0$/m);
        t.equal(await core.count(), bad.length + 4);

        const resumed = ['mended.csv', core.curlConfig, '--hashes-from', 'users.jsonl', '--resume'] as const;
        t.equal((await imported(core.dir, ...resumed)).code(), 0);
        appendFileSync(join(core.dir, 'users.jsonl'), '\n');
        const changed = await imported(core.dir, ...resumed);
        t.equal(changed.code(), 2);
        t.match(changed.err(), /does not fit: the file of --hashes-from has changed since the journal was begun/);
      },
    );

    await t.test('what comes back twice still gets its own hash, and never that of another', async (t) => {
      const rows = Array.from({ length: 3 }, (_, index) => ({
        email: `twice${String(index)} example.com`,
        passwordHash: `$2a$04$${String(index).repeat(53)}`,
      }));
      const list = (file: string): string => readFileSync(join(core.dir, `${file}.import-rejected.csv`), 'utf8');
      writeFileSync(join(core.dir, 'first.jsonl'), rows.map((row) => `${JSON.stringify(row)}\n`).join(''));
      t.equal((await imported(core.dir, 'first.jsonl', core.curlConfig)).code(), 1);
      // Of the second and the third, the third is mended at once.
      const [header, , ...others] = list('first.jsonl').split('\n');
      writeFileSync(join(core.dir, 'second.csv'), [header, ...others].join('\n').replace('twice2 ', 'twice2@'));
      t.equal((await imported(core.dir, 'second.csv', core.curlConfig, '--hashes-from', 'first.jsonl')).code(), 1);
      t.match(
        list('second.csv').split('\n')[1],
        /^2,2,,"email is no email address/,
        'its line there, its place in the first file',
      );
      writeFileSync(join(core.dir, 'third.csv'), list('second.csv').replace('twice1 ', 'twice1@'));
      writeFileSync(
        join(core.dir, 'other.jsonl'),
        `{}\n${JSON.stringify({ email: 'other@example.com', passwordHash: bcrypt })}\n`,
      );
      const wrong = await imported(core.dir, 'third.csv', core.curlConfig, '--hashes-from', 'other.jsonl', '--dry-run');
      t.equal(wrong.code(), 1);
      t.match(
        wrong.out(),
        /third\.csv:2: passwordHash is missing, and the row of the first file that this one names is another user/,
      );
      const right = await imported(core.dir, 'third.csv', core.curlConfig, '--hashes-from', 'first.jsonl');
      t.equal(right.code(), 0, right.err());
      const data = readFileSync(join(core.dir, 'core.data'), 'utf8');
      for (const index of [1, 2]) {
        t.match(data, new RegExp(`twice${String(index)}@example\\.com[^\\n]*${String(index).repeat(53)}`));
      }
    });
  },
);
