/**
 * The calls of an import as a Core receives them, held to the tables of the specification (docs/specification.md 4.4 to
 * 4.8, 9).
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { run } from '../../../src/cli/program.js';
import { startFakeCore, type ReceivedCall } from '../../support/fake-core.js';
import { tempDir } from '../../support/temp-dir.js';
import { captureIo, type CapturedIo } from '../../cli/captured-io.js';

const apiKey = 'a-key-for-tests-0123456789';
const bcrypt = `$2a$10$${'a'.repeat(53)}`;
const scrypt = '$f_scrypt$aGFzaA==$c2FsdA==$m=14$r=8$s=Bw==';
const rows = [
  { email: 'ada@example.com', passwordHash: bcrypt, hashingAlgorithm: 'bcrypt' },
  { email: 'bob@example.com', passwordHash: scrypt },
  { passwordless: { phoneNumber: '+4915112345678', add: 'eve@example.com' } },
  { passwordless: { email: 'kim@example.com' } },
  { thirdParty: { thirdPartyId: 'google', thirdPartyUserId: '1077', email: 'dan@example.com', isVerified: true } },
];

interface Imported {
  readonly io: CapturedIo;
  readonly calls: readonly ReceivedCall[];
  readonly dir: string;
}

/** Imports the rows into a Core that speaks these versions, one user at a time. */
async function imported(
  t: Parameters<typeof startFakeCore>[0],
  versions: readonly string[],
  ...args: readonly string[]
): Promise<Imported> {
  const fake = await startFakeCore(t);
  fake.answer(({ target }, response) => {
    const path = target.replace(/\?.*/, '');
    const timeJoined = Date.now();
    const answers: Record<string, object> = {
      '/apiversion': { versions },
      '/recipe/user/passwordhash/import': { status: 'OK', didUserAlreadyExist: false, user: { id: 'u', timeJoined } },
      '/recipe/signinup/code': {
        status: 'OK',
        preAuthSessionId: 'pre-auth',
        codeId: 'c',
        deviceId: 'd',
        userInputCode: '123456',
        linkCode: 'link-code',
        timeCreated: 1,
        codeLifetime: 900_000,
      },
      '/recipe/signinup/code/consume': { status: 'OK', createdNewUser: true, user: { id: 'the-id', timeJoined } },
      '/recipe/signinup': { status: 'OK', createdNewUser: true, user: { id: 'u', timeJoined } },
      '/recipe/user': { status: 'OK' },
    };
    response.end(JSON.stringify(answers[path]));
  });
  const dir = tempDir(t);
  // As in the runbook of minting: another recipe and version stand in the file.
  const file = `url = "${fake.url}/recipe/jwt"\nheader = "api-key: ${apiKey}"\nheader = "rid: jwt"\nheader = "cdi-version: 5.4"\n`;
  writeFileSync(join(dir, 'core.curl'), file, { mode: 0o600 });
  writeFileSync(join(dir, 'users.jsonl'), rows.map((row) => `${JSON.stringify(row)}\n`).join(''));
  const io = captureIo({ cwd: dir });
  await run(['import', 'users.jsonl', '--curl-config', 'core.curl', '--concurrency', '1', ...args], io);
  return { io, calls: fake.calls, dir };
}

function field(call: ReceivedCall, name: string): string | undefined {
  return Object.fromEntries(call.headers)[name];
}

t.test('each call has the method, path, header and body of its table, and nothing else', async (t) => {
  const { io, calls } = await imported(t, ['2.16']);
  t.equal(io.code(), 0, io.err());
  const [versions, ...others] = calls;
  t.match(versions, { method: 'GET', target: '/apiversion' });
  t.same(
    others.map((call) => [`${call.method} ${call.target}`, field(call, 'rid'), JSON.parse(call.body) as unknown]),
    [
      ['POST /recipe/user/passwordhash/import', undefined, { email: 'ada@example.com', passwordHash: bcrypt }],
      [
        'POST /recipe/user/passwordhash/import',
        undefined,
        { email: 'bob@example.com', passwordHash: scrypt, hashingAlgorithm: 'hosted_scrypt' },
      ],
      ['POST /recipe/signinup/code', undefined, { phoneNumber: '+4915112345678' }],
      ['POST /recipe/signinup/code/consume', undefined, { preAuthSessionId: 'pre-auth', linkCode: 'link-code' }],
      [
        'PUT /recipe/user',
        'passwordless',
        { userId: 'the-id', email: 'eve@example.com', phoneNumber: '+4915112345678' },
      ],
      ['POST /recipe/signinup/code', undefined, { email: 'kim@example.com' }],
      ['POST /recipe/signinup/code/consume', undefined, { preAuthSessionId: 'pre-auth', linkCode: 'link-code' }],
      [
        'POST /recipe/signinup',
        undefined,
        { thirdPartyId: 'google', thirdPartyUserId: '1077', email: { id: 'dan@example.com', isVerified: true } },
      ],
    ],
  );
  for (const call of calls) t.equal(field(call, 'api-key'), apiKey, call.target);
  for (const call of others) t.equal(field(call, 'content-type'), 'application/json; charset=utf-8', call.target);
});

t.test(
  'every call is of version 2.16, but that of third-party users where the Core speaks one that carries isVerified',
  async (t) => {
    const versionsOf = async (versions: readonly string[], ...args: readonly string[]): Promise<unknown> => {
      const { calls } = await imported(t, versions, ...args);
      return Object.fromEntries(calls.map((call) => [call.target.replace(/\?.*/, ''), field(call, 'cdi-version')]));
    };
    const all = (version: string): object =>
      Object.fromEntries(
        [
          '/apiversion',
          '/recipe/user/passwordhash/import',
          '/recipe/signinup/code',
          '/recipe/signinup/code/consume',
          '/recipe/user',
          '/recipe/signinup',
        ].map((path) => [path, version]),
      );
    t.same(await versionsOf(['2.16']), all('2.16'));
    t.same(await versionsOf(['2.16', '4.0', '5.4']), { ...all('2.16'), '/recipe/signinup': '4.0' });
    t.same(await versionsOf(['2.16', '3.0'], '--cdi-version', '3.0'), all('3.0'));
  },
);

t.test('what an import writes and prints has neither the key nor a code nor a hash', async (t) => {
  const { io, dir } = await imported(t, ['2.16']);
  const left = ['users.jsonl.import-journal', 'users.jsonl.import-report.json'].map((name) =>
    readFileSync(join(dir, name), 'utf8'),
  );
  for (const text of [io.out(), io.err(), ...left]) {
    t.notMatch(text, /a-key-for-tests|pre-auth|link-code|123456|\$2a|f_scrypt/);
  }
});
