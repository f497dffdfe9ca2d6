/** What rows say and the Core does not get to know: nothing of it is lost without a word. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { run } from '../../../src/cli/program.js';
import { startFakeCore } from '../../support/fake-core.js';
import { startImportCore, type ImportCore } from '../../support/import-core.js';
import { hostedScryptSecret, publishedSample } from '../../support/import-users.js';
import { tempDir } from '../../support/temp-dir.js';
import { captureIo, type CapturedIo } from '../../cli/captured-io.js';

async function imported(
  at: Pick<ImportCore, 'dir' | 'curlConfig'>,
  file: string,
  ...args: readonly string[]
): Promise<CapturedIo> {
  const io = captureIo({ cwd: at.dir });
  await run(['import', file, '--curl-config', at.curlConfig, ...args], io);
  return io;
}

const thirdParty = (thirdPartyUserId: string, isVerified: boolean): object => ({
  thirdPartyId: 'google',
  thirdPartyUserId,
  email: `${thirdPartyUserId}@example.com`,
  isVerified,
});
const lines = (...rows: readonly object[]): string => rows.map((row) => `${JSON.stringify(row)}\n`).join('');
const proof = (thirdPartyUserId: string, isVerified: boolean) =>
  ({
    kind: 'third_party',
    thirdPartyId: 'google',
    thirdPartyUserId,
    email: `${thirdPartyUserId}@example.com`,
    isVerified,
  }) as const;

for (const dialect of ['seed', 'supertokens'] as const) {
  t.test(`a verified email comes in as verified, and another as it is: ${dialect}`, async (t) => {
    const core = await startImportCore(t, { dialect });
    const users = Array.from({ length: 40 }, (_, index) => ({
      thirdParty: thirdParty(`u${String(index)}`, index % 2 === 0),
    }));
    writeFileSync(join(core.dir, 'users.jsonl'), lines(...users));
    const io = await imported(core, 'users.jsonl', '--dialect', dialect, '--json');
    t.equal(io.code(), 0, io.err());
    t.notMatch(io.err(), /warning/);
    t.match(JSON.parse(io.out()), { created: 40, complete: true, notCarried: {} });
    for (const [index] of users.entries()) {
      t.ok(await core.holds(proof(`u${String(index)}`, index % 2 === 0)), String(index));
    }
  });

  t.test(
    `with a version that does not carry it, that is said before, counted in the report, and kept for --resume: ${dialect}`,
    async (t) => {
      const core = await startImportCore(t, { dialect });
      const rows = [
        { thirdParty: thirdParty('a', true) },
        { thirdParty: thirdParty('b', false) },
        { thirdParty: thirdParty('c', true) },
      ];
      writeFileSync(join(core.dir, 'users.jsonl'), lines(...rows));
      const io = await imported(core, 'users.jsonl', '--dialect', dialect, '--cdi-version', '2.16');
      t.equal(io.code(), 0, io.err());
      t.match(
        io.err(),
        /^warning: thirdParty\.isVerified of 2 users will be lost: --cdi-version 2\.16 does not carry it$/m,
      );
      t.match(io.out(), /^warning: thirdParty\.isVerified of 2 users was not carried$/m);
      t.equal(
        await core.holds(proof('a', true)),
        dialect === 'seed',
        'the specification has it carried; SuperTokens does not read it',
      );
      const report = JSON.parse(readFileSync(join(core.dir, 'users.jsonl.import-report.json'), 'utf8')) as object;
      t.match(report, { created: 3, notCarried: { 'thirdParty.isVerified': { users: 2, line: 1 } } });
      t.match(JSON.parse((await imported(core, 'users.jsonl', '--dialect', dialect, '--resume', '--json')).out()), {
        notCarried: { 'thirdParty.isVerified': { users: 2, line: 1 } },
      });
    },
  );
}

t.test('a Core whose versions do not carry it', async (t) => {
  const fake = await startFakeCore(t);
  fake.answer(({ target }, response) =>
    response.end(
      JSON.stringify(
        target.startsWith('/apiversion')
          ? { versions: ['2.16', '3.1'] }
          : { status: 'OK', createdNewUser: true, user: { id: 'u', timeJoined: Date.now() } },
      ),
    ),
  );
  const dir = tempDir(t);
  writeFileSync(join(dir, 'core.curl'), `url = "${fake.url}"\n`, { mode: 0o600 });
  writeFileSync(
    join(dir, 'users.jsonl'),
    lines({ thirdParty: thirdParty('a', true) }, { thirdParty: thirdParty('b', false) }),
  );
  const io = await imported({ dir, curlConfig: 'core.curl' }, 'users.jsonl', '--json');
  t.equal(io.code(), 0, io.err());
  t.match(
    io.err(),
    /warning: thirdParty\.isVerified of 1 user will be lost: the Core at \S+ speaks no version that carries it, from 4\.0 on/,
  );
  t.match(JSON.parse(io.out()), { created: 2, notCarried: { 'thirdParty.isVerified': { users: 1, line: 1 } } });
  const sent = fake.calls.filter(({ target }) => target === '/recipe/signinup');
  t.same(
    sent.map(({ headers }) => Object.fromEntries(headers)['cdi-version']),
    ['2.16', '2.16'],
  );
});

t.test('a Core that takes the mark and keeps none', async (t) => {
  const fake = await startFakeCore(t);
  fake.answer(({ target }, response) =>
    response.end(
      JSON.stringify(
        target.startsWith('/apiversion')
          ? { versions: ['2.16', '5.0'] }
          : {
              status: 'OK',
              createdNewUser: true,
              recipeUserId: 'u',
              user: { id: 'u', timeJoined: Date.now(), loginMethods: [{ recipeUserId: 'u', verified: false }] },
            },
      ),
    ),
  );
  const dir = tempDir(t);
  writeFileSync(join(dir, 'core.curl'), `url = "${fake.url}"\n`, { mode: 0o600 });
  writeFileSync(join(dir, 'users.jsonl'), lines({ thirdParty: thirdParty('a', true) }));
  const io = await imported({ dir, curlConfig: 'core.curl' }, 'users.jsonl', '--json');
  t.match(JSON.parse(io.out()), { created: 1, notCarried: { 'thirdParty.isVerified': { users: 1, line: 1 } } });
  t.equal(Object.fromEntries(fake.calls.at(-1)?.headers ?? [])['cdi-version'], '5.0');
});

t.test('a dry run says what needs a newer version', async (t) => {
  const dir = tempDir(t);
  writeFileSync(
    join(dir, 'users.jsonl'),
    lines({ thirdParty: thirdParty('a', true) }, { thirdParty: thirdParty('b', false) }),
  );
  const text = captureIo({ cwd: dir });
  await run(['import', 'users.jsonl', '--dry-run'], text);
  t.equal(text.code(), 0);
  t.match(text.out(), /^thirdParty\.isVerified: true of 1 user needs a Core that speaks version 4\.0 or a later one$/m);
  const data = captureIo({ cwd: dir });
  await run(['import', 'users.jsonl', '--dry-run', '--json'], data);
  t.match(JSON.parse(data.out()), {
    notCarried: {},
    carriedFrom: { 'thirdParty.isVerified': { version: '4.0', users: 1 } },
  });
});

const password = { passwordHash: publishedSample.passwordHash, salt: publishedSample.salt };
const exported = {
  users: [
    {
      localId: '1',
      email: 'one@example.com',
      emailVerified: true,
      ...password,
      displayName: 'One',
      createdAt: '1',
      lastSignedInAt: '2',
    },
    {
      localId: '2',
      email: 'two@example.com',
      ...password,
      customAttributes: '{"admin":true}',
      mfaInfo: [{ phoneInfo: '+4930901820' }],
    },
    {
      localId: '3',
      email: 'three@example.com',
      emailVerified: true,
      providerUserInfo: [
        {
          providerId: 'google.com',
          rawId: '3',
          email: 'three@example.com',
          displayName: 'Three',
          photoUrl: 'https://example.com/3.png',
        },
      ],
    },
    { localId: '4', email: 'four@example.com', phoneNumber: '+4915112345678' },
    { localId: '5', email: 'gone@example.com', disabled: true, displayName: 'Gone' },
  ],
};
const hashConfig = `hash_config { base64_salt_separator: ${publishedSample.saltSeparator}, rounds: 8, mem_cost: 14, base64_signer_key: x }\n`;

t.test(
  'what an export says and no call carries is counted in plan and report, and nothing of it is an error',
  async (t) => {
    const core = await startImportCore(t, { dialect: 'supertokens' });
    writeFileSync(join(core.dir, 'export.json'), JSON.stringify(exported, null, 1));
    writeFileSync(join(core.dir, 'hash-config'), hashConfig, { mode: 0o600 });
    const from = ['--from', 'firebase', '--hash-config', 'hash-config'];
    const counts = {
      localId: 4,
      displayName: 1,
      createdAt: 1,
      lastSignedInAt: 1,
      emailVerified: 1,
      customAttributes: 1,
      mfaInfo: 1,
      'providerUserInfo.displayName': 1,
      'providerUserInfo.photoUrl': 1,
      email: 1,
    };

    const dry = await imported(core, 'export.json', ...from, '--dry-run');
    for (const [field, users] of Object.entries(counts)) {
      t.match(
        dry.out(),
        new RegExp(
          `^warning: ${field} of ${String(users)} users? will be lost, first in line \\d+: no call of the Core carries it$`,
          'm',
        ),
      );
    }
    interface Counted {
      readonly notCarried: Readonly<Record<string, { readonly users: number; readonly line: number }>>;
    }
    const usersOf = ({ notCarried }: Counted): object =>
      Object.fromEntries(Object.entries(notCarried).map(([field, { users }]) => [field, users]));
    const plan = JSON.parse((await imported(core, 'export.json', ...from, '--dry-run', '--json')).out()) as Counted;
    t.same(usersOf(plan), counts);

    const io = await imported(core, 'export.json', ...from, '--json');
    t.equal(io.code(), 1, 'for the user that is disabled');
    t.match(io.err(), /^warning: displayName of 1 user will be lost/m);
    t.same((JSON.parse(io.out()) as Counted).notCarried, plan.notCarried, 'all good rows are in');
    t.ok(
      await core.holds({
        kind: 'third_party',
        thirdPartyId: 'google',
        thirdPartyUserId: '3',
        email: 'three@example.com',
        isVerified: true,
      }),
    );
    t.ok(await core.holds({ kind: 'passwordless', email: null, phoneNumber: '+4915112345678' }));
    for (const name of ['export.json.import-journal', 'export.json.import-report.json']) {
      t.notMatch(
        readFileSync(join(core.dir, name), 'utf8'),
        /"One"|admin|example\.com\/3/,
        `${name} has names, no values`,
      );
    }
  },
);

t.test('a row with thousands of members that nobody knows keeps no run from going on', async (t) => {
  const core = await startImportCore(t, { dialect: 'supertokens' });
  const users = ['m', 'n'].map((letter) => {
    const members = Array.from({ length: 4_000 }, (_, number) => [`${letter}${number.toString(36)}`, 1] as const);
    const email = `${letter}@example.com`;
    const info = { providerId: 'google.com', rawId: letter, email, ...Object.fromEntries(members) };
    return { email, emailVerified: true, providerUserInfo: [info] };
  });
  writeFileSync(join(core.dir, 'export.json'), JSON.stringify({ users }));
  writeFileSync(join(core.dir, 'hash-config'), hashConfig, { mode: 0o600 });
  const from = ['--from', 'firebase', '--hash-config', 'hash-config', '--json'];
  const first = await imported(core, 'export.json', ...from);
  t.equal(first.code(), 0, first.err());
  const { notCarried } = JSON.parse(first.out()) as { readonly notCarried: object };
  t.equal(Object.keys(notCarried).length, 101);
  t.match(notCarried, { 'providerUserInfo.m0': { users: 1, line: 1 }, 'other members': { users: 2, line: 1 } });
  const again = await imported(core, 'export.json', ...from, '--resume');
  t.equal(again.code(), 0, again.err());
  t.same((JSON.parse(again.out()) as { readonly notCarried: object }).notCarried, notCarried);
});

t.test('members and columns that nobody knows cost the row, or the file, and never go unsaid', async (t) => {
  const core = await startImportCore(t);
  const { passwordHash } = hostedScryptSecret('x');
  // A header that cannot be read is no row's fault.
  const cases: readonly { file: string; content: string; says: RegExp; code?: number }[] = [
    {
      file: 'a.jsonl',
      content: lines({ email: 'a@example.com', passwordHash, emailVerified: true }),
      says: /the member emailVerified that does not belong there/,
    },
    {
      file: 'b.jsonl',
      content: lines({ passwordless: { email: 'a@example.com', isVerified: true } }),
      says: /passwordless has the member isVerified/,
    },
    {
      file: 'c.jsonl',
      content: lines({ thirdParty: { ...thirdParty('a', true), name: 'A' } }),
      says: /thirdParty has the member name/,
    },
    {
      file: 'd.jsonl',
      content: lines({ methods: [{ thirdParty: thirdParty('a', true) }], roles: ['admin'] }),
      says: /the member roles that does not belong there/,
    },
    {
      file: 'e.csv',
      code: 2,
      content: `email,passwordHash,roles\na@example.com,${passwordHash},admin\n`,
      says: /column 3 of the header has no known name: "roles"/,
    },
    {
      file: 'f.csv',
      code: 2,
      content: `email,passwordHash,reason\na@example.com,${passwordHash},vip\n`,
      says: /column 3 of the header has no known name: "reason"/,
    },
    {
      file: 'g.csv',
      content: `email,passwordHash\na@example.com,${passwordHash},admin\n`,
      says: /row has 3 cells; allowed: 2, as the header/,
    },
    {
      file: 'h.csv',
      code: 2,
      content:
        'passwordless.email,passwordless.add,passwordless.add.phoneNumber\na@example.com,+4930901820,+4915112345678\n',
      says: /the columns passwordless\.add and passwordless\.add\.phoneNumber say the same, and one would be lost/,
    },
    {
      file: 'i.csv',
      content: 'passwordless.email,passwordless.phoneNumber\na@example.com,+4930901820\n',
      says: /passwordless has two contacts/,
    },
    {
      file: 'j.csv',
      content: 'thirdParty.thirdPartyId,thirdParty.thirdPartyUserId,thirdParty.email\ngoogle,1,a@example.com\n',
      says: /isVerified is neither true nor false/,
    },
  ];
  for (const { file, content, says, code = 1 } of cases) {
    writeFileSync(join(core.dir, file), content);
    const io = await imported(core, file);
    t.equal(io.code(), code, file);
    t.match(io.err() + io.out(), says, file);
  }
  t.equal(await core.count(), 0, 'nobody came in halved');
});

t.test('what does not fit the columns of the Core is refused before it can hold up the others', async (t) => {
  const core = await startImportCore(t);
  const argon2 = `$argon2id$v=19$m=8,t=1,p=1$${'A'.repeat(16)}$${'A'.repeat(256)}`;
  const provider = { ...thirdParty('a', true), thirdPartyId: 'oidc.a-name-of-29-characters-' };
  const rows = [
    { email: 'a@example.com', passwordHash: argon2 },
    { thirdParty: provider },
    { thirdParty: thirdParty('b', true) },
  ];
  writeFileSync(join(core.dir, 'users.jsonl'), lines(...rows));
  const io = await imported(core, 'users.jsonl', '--give-up-after', '5s', '--json');
  t.equal(io.code(), 1, io.err());
  t.notMatch(io.err(), /trying again/);
  t.match(JSON.parse(io.out()), {
    created: 1,
    left: 0,
    rows: [
      { why: /passwordHash is longer than 256 characters/ },
      { why: /thirdPartyId is no id; allowed: a text of 1 to 28/ },
    ],
  });
});
