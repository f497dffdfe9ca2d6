import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { startCoreEmulator, type CoreEmulatorOptions } from '../../../src/core-emulator/server.js';
import type { Scope } from '../../support/scope.js';
import { tempDir } from '../../support/temp-dir.js';
import { freshEmail, freshPhoneNumber, hashes, importing, statusOf, userOf } from '../contract/core-under-test.js';
import { connectCore, decoded, jwtCall, publishedKeyIds, sharedKeys, type CoreClient } from '../core-client.js';

interface Life {
  readonly core: CoreClient;
  readonly end: () => Promise<void>;
}

/** A Core on a data file, which the test may end before its own end. */
async function begin(t: Scope, dataFile: string, options: Partial<CoreEmulatorOptions> = {}): Promise<Life> {
  const emulator = await startCoreEmulator({
    host: '127.0.0.1',
    port: 0,
    rotateEveryMs: 604_800_000,
    apiKeys: [],
    dataFile,
    makeKey: sharedKeys(),
    ...options,
  });
  let hasEnded = false;
  const end = async (): Promise<void> => {
    if (!hasEnded) await emulator.close();
    hasEnded = true;
  };
  t.teardown(end);
  return { core: connectCore(emulator.url), end };
}

/** A data file of a Core that had one user. */
async function fileWithUser(t: Scope): Promise<{ readonly path: string; readonly email: string }> {
  const path = join(tempDir(t), 'core.data');
  const { core, end } = await begin(t, path);
  const email = freshEmail();
  await core.post(
    '/recipe/user/passwordhash/import',
    { email, passwordHash: await hashes.bcrypt('secret') },
    importing,
  );
  await end();
  return { path, email };
}

function signIn(core: CoreClient, email: string): Promise<unknown> {
  return core.post('/recipe/signin', { email, password: 'secret' }, importing).then(statusOf);
}

t.test('users, keys, codes and sessions outlive the process', async (t) => {
  const path = join(tempDir(t), 'core.data');
  const first = await begin(t, path);
  const [email, phoneNumber] = [freshEmail(), freshPhoneNumber()];
  await first.core.post(
    '/recipe/user/passwordhash/import',
    { email, passwordHash: await hashes.bcrypt('secret') },
    importing,
  );
  const thirdParty = { thirdPartyId: 'google', thirdPartyUserId: 'g-1', email: { id: email, isVerified: true } };
  const user = userOf(await first.core.post('/recipe/signinup', thirdParty));
  const code = (await first.core.post('/recipe/signinup/code', { phoneNumber }, importing)).json();
  const used = (await first.core.post('/recipe/signinup/code', { email }, importing)).json();
  const usedLink = { preAuthSessionId: used['preAuthSessionId'], linkCode: used['linkCode'] };
  await first.core.post('/recipe/signinup/code/consume', usedLink, importing);
  const asked = { userId: user.id, enableAntiCsrf: false, userDataInJWT: {}, userDataInDatabase: {} };
  const session = (await first.core.post('/recipe/session', asked)).json() as Record<string, { token: string }>;
  const keyIds = await publishedKeyIds(first.core);
  await first.end();

  const { core } = await begin(t, path);
  t.same(await publishedKeyIds(core), keyIds);
  t.ok(keyIds.includes(String(decoded(await core.post('/recipe/jwt', jwtCall)).header['kid'])));
  t.equal(await signIn(core, email), 'OK');
  t.same(userOf(await core.post('/recipe/signinup', thirdParty)), user);
  t.equal(
    statusOf(await core.post('/recipe/signinup/code/consume', usedLink, importing)),
    'RESTART_FLOW_ERROR',
    'a used code stays used',
  );
  const link = { preAuthSessionId: code['preAuthSessionId'], linkCode: code['linkCode'] };
  t.match((await core.post('/recipe/signinup/code/consume', link, importing)).json(), {
    status: 'OK',
    createdNewUser: true,
  });
  const accessToken = session['accessToken']?.token;
  t.equal(
    statusOf(
      await core.post('/recipe/session/verify', {
        accessToken,
        doAntiCsrfCheck: false,
        enableAntiCsrf: false,
        checkDatabase: true,
      }),
    ),
    'OK',
  );
  t.equal(
    statusOf(
      await core.post('/recipe/session/refresh', {
        refreshToken: session['refreshToken']?.token,
        enableAntiCsrf: false,
      }),
    ),
    'OK',
  );
  t.equal((await core.get('/users/count')).json()['count'], 4);
});

t.test("the file is its owner's alone, and small again at each start", async (t) => {
  const path = join(tempDir(t), 'core.data');
  const first = await begin(t, path);
  t.equal(statSync(path).mode & 0o777, 0o600);
  const imported = { email: 'a@b.c', passwordHash: await hashes.bcrypt('x') };
  for (let count = 0; count < 50; count += 1) {
    await first.core.post('/recipe/user/passwordhash/import', imported, importing);
  }
  await first.end();
  const full = statSync(path).size;
  const second = await begin(t, path);
  t.ok(statSync(path).size < full / 2, 'fifty changes of one user are one user');
  t.equal(statSync(path).mode & 0o777, 0o600);
  await second.end();
  t.same(readdirSync(join(path, '..')), ['core.data'], 'no lock and no half-written file is left');
});

t.test('a torn last line is dropped: nobody was told of it', async (t) => {
  for (const torn of ['{"type":"user","us', '{', '\u00e9'.repeat(3)]) {
    const { path, email } = await fileWithUser(t);
    writeFileSync(path, torn, { flag: 'a' });
    const { core, end } = await begin(t, path);
    t.equal(await signIn(core, email), 'OK', torn);
    await end();
    t.ok(readFileSync(path, 'utf8').endsWith('}\n'));
  }
  const path = join(tempDir(t), 'core.data');
  writeFileSync(path, '{"format":"sallyp', { mode: 0o600 });
  await t.resolves(begin(t, path), 'killed at its very first line');
});

const halves: readonly string[] = [
  '{"type":"secret"}',
  '{"type":"key","key":{"keyId":"d-1"}}',
  '{"type":"key","key":{"keyId":"d-1","pem":"x","createdMs":1,"signsFromMs":1}}',
  '{"type":"key","key":{"keyId":"x","pem":"x","createdMs":1,"signsFromMs":1}}',
  '{"type":"session","session":{"handle":"x"}}',
  '{"type":"session","session":{"handle":"x","userId":"y","refreshTokenHash2":"z","timeCreated":1,"expiryMs":"2"}}',
];

t.test("what is damaged, somebody else's or open to others is refused, and left as it is", async (t) => {
  const { path, email } = await fileWithUser(t);
  const good = readFileSync(path, 'utf8');
  const folder = tempDir(t);
  mkdirSync(join(folder, 'folder'));
  symlinkSync(path, join(folder, 'link'));
  const cases = [
    {
      name: 'a line in the middle',
      content: good.replace('{"type":"user"', '{"type":"usr"'),
      says: /:\d+: is damaged/,
    },
    {
      name: 'a line that is no JSON',
      content: good.replace('{"type":"user"', '"type":"user"'),
      says: /:\d+: is damaged/,
    },
    { name: 'a line that lacks its user', content: `${good}{"type":"user"}\n`, says: /:\d+: is damaged/ },
    ...halves.map((change) => ({
      name: `half a change: ${change}`,
      content: `${good}${change}\n`,
      says: /:\d+: is damaged/,
    })),
    { name: 'a text', content: 'dear diary\n', says: /is no data file/ },
    { name: 'a text without an end', content: 'dear diary', says: /is no data file/ },
    { name: 'a later format', content: good.replace('"version":1', '"version":2'), says: /is no data file/ },
  ];
  for (const { name, content, says } of cases) {
    const file = join(folder, 'data');
    writeFileSync(file, content, { mode: 0o600 });
    await t.rejects(begin(t, file), { name: 'DataFileError', kind: 'unusable', message: says }, name);
    t.equal(readFileSync(file, 'utf8'), content, `${name} is left`);
    t.notOk(existsSync(`${file}.lock`));
  }
  await t.rejects(begin(t, join(folder, 'folder')), { kind: 'unusable', message: /no regular file/ });
  await t.rejects(begin(t, join(folder, 'link')), { kind: 'unusable', message: /no regular file/ });
  await t.rejects(begin(t, join(folder, 'none', 'data')), { code: 'ENOENT' });
  chmodSync(path, 0o640);
  await t.rejects(begin(t, path), { kind: 'unusable', message: /0640.*chmod 600/ });
  chmodSync(path, 0o600);
  t.equal(await signIn((await begin(t, path)).core, email), 'OK');
});

t.test('a link in the place of the next file is not followed', async (t) => {
  const { path } = await fileWithUser(t);
  const other = join(tempDir(t), 'other');
  writeFileSync(other, 'dear diary');
  symlinkSync(other, `${path}.new`);
  await begin(t, path);
  t.equal(readFileSync(other, 'utf8'), 'dear diary');
  t.ok(lstatSync(path).isFile());
});

t.test('two Cores on one file: the second is refused, until the first ends', async (t) => {
  const { path } = await fileWithUser(t);
  const { end } = await begin(t, path);
  await t.rejects(begin(t, path), { name: 'DataFileError', kind: 'in_use' });
  await end();
  const started = await Promise.allSettled([begin(t, path), begin(t, path), begin(t, path)]);
  t.equal(started.filter(({ status }) => status === 'fulfilled').length, 1, 'of three at once, one');
});

t.test('codes and sessions that are over are not kept for ever', async (t) => {
  let nowMs = 1_700_000_000_000;
  const path = join(tempDir(t), 'core.data');
  const first = await begin(t, path, { now: () => nowMs });
  await first.core.post('/recipe/signinup/code', { email: 'a@b.c' }, importing);
  await first.core.post('/recipe/session', {
    userId: 'u',
    enableAntiCsrf: false,
    userDataInJWT: {},
    userDataInDatabase: {},
  });
  await first.end();
  t.match(readFileSync(path, 'utf8'), /"device"[^]*"session"/);
  nowMs += 100 * 24 * 60 * 60 * 1000;
  const second = await begin(t, path, { now: () => nowMs });
  await second.end();
  t.notMatch(readFileSync(path, 'utf8'), /"type":"(?:device|session)"/);
});
