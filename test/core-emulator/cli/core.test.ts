import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { run } from '../../../src/cli/program.js';
import { startUpstreamServer } from '../../support/upstream-server.js';
import { tempDir } from '../../support/temp-dir.js';
import { hostedSample } from '../contract/live-core.js';
import { until } from '../../support/until.js';
import { captureIo, type CapturedIo } from '../../cli/captured-io.js';
import { startCommand } from '../../cli/started-command.js';

const call = JSON.stringify({
  algorithm: 'RS256',
  jwksDomain: 'https://api.example.com',
  payload: {},
  validity: 300,
  useStaticSigningKey: false,
});

function keysFile(t: Parameters<typeof tempDir>[0], content: string, mode = 0o600): string {
  const path = join(tempDir(t), 'api-keys');
  writeFileSync(path, content);
  chmodSync(path, mode);
  return path;
}

t.test('the Core emulator runs until a signal, and ends with 0', async (t) => {
  const core = startCommand(t, ['core', '--port', '0']);
  const [, url = ''] = await core.says(/^core {2}(http:\/\/127\.0\.0\.1:\d+)$/m);
  t.equal((await fetch(`${url}/hello`)).status, 200);
  t.equal((await fetch(`${url}/recipe/jwt`, { method: 'POST', body: call })).status, 200);
  core.signal('SIGINT');
  t.same(await core.exited, { code: 0, signal: null });
});

/** Runs the command in this process until the look at it is over, then ends it as SIGTERM does. */
async function runCore(
  args: readonly string[],
  look: (url: string) => Promise<void>,
  env: Readonly<Record<string, string>> = {},
): Promise<CapturedIo> {
  const io = captureIo({ env });
  const over = run(['core', '--port', '0', ...args], io);
  await look(await until('the emulator says where it is', () => /^core {2}(\S+)$/m.exec(io.out())?.[1]));
  io.signal('SIGTERM');
  await over;
  return io;
}

t.test('keys from a file are asked for, one a line or between commas', async (t) => {
  const file = keysFile(
    t,
    'first-key-of-twenty-characters\nother-key-of-twenty-characters,third-key-of-twenty-characters\n',
  );
  const io = await runCore(['--api-keys-file', file, '--host', '0.0.0.0'], async (url) => {
    const mint = async (headers: Record<string, string>): Promise<number> =>
      (await fetch(`${url.replace('0.0.0.0', '127.0.0.1')}/recipe/jwt`, { method: 'POST', body: call, headers }))
        .status;
    t.equal(await mint({}), 401);
    t.equal(await mint({ 'api-key': 'third-key-of-twenty-characters' }), 200);
  });
  t.notMatch(io.out() + io.err(), 'of-twenty-characters', 'no key is printed');
  t.notMatch(io.err(), /can mint any token/, 'nothing to warn of');
});

t.test(
  'what nobody configured: port 3567, loopback, a new dynamic key after 168 hours, published a minute ahead',
  async (t) => {
    const help = captureIo();
    await run(['core', '--help'], help);
    t.match(help.out(), /--port <number> [^]*?3567/);
    t.match(help.out(), /--host <address> [^]*?127\.0\.0\.1/);
    await runCore([], async (url) => {
      const [, age = ''] =
        /^max-age=(\d+),/.exec((await fetch(`${url}/.well-known/jwks.json`)).headers.get('cache-control') ?? '') ?? [];
      const ahead = 168 * 3600 - 60 - Number(age);
      t.ok(ahead >= 0 && ahead < 600, `${age} s to the next key`);
    });
  },
);

t.test('it says that it is for development, and that it forgets', async (t) => {
  t.match((await runCore([], async () => undefined)).err(), /for development and tests[^]*forgets everything/);
  t.notMatch((await runCore(['--data', join(tempDir(t), 'data')], async () => undefined)).err(), /forgets/);
});

t.test(
  'with the signer key, hosted-scrypt hashes are imported; without it that is a 500, as in the Core',
  async (t) => {
    const {
      signer_key: key,
      password_hash: hash,
      salt,
      mem_cost: cost,
      rounds,
      salt_separator: separator,
      password,
    } = hostedSample;
    const passwordHash = `$f_scrypt$${hash}$${salt}$m=${String(cost)}$r=${String(rounds)}$s=${separator}`;
    const ask = async (url: string, path: string, body: object): Promise<string> =>
      (await fetch(url + path, { method: 'POST', body: JSON.stringify(body) })).text();
    const importing = { email: 'a@example.com', passwordHash, hashingAlgorithm: 'hosted_scrypt' };
    const io = await runCore(['--signer-key-file', keysFile(t, `${key}\n`)], async (url) => {
      t.match(await ask(url, '/recipe/user/passwordhash/import', importing), /"OK"/);
      t.match(await ask(url, '/recipe/signin', { email: 'a@example.com', password }), /"OK"/);
    });
    t.notOk((io.out() + io.err()).includes(key));
    await runCore([], async (url) => {
      t.equal(await ask(url, '/recipe/user/passwordhash/import', importing), 'Internal Error');
    });
  },
);

t.test('dialect, lifetimes and faults reach the emulator', async (t) => {
  const put = async (url: string): Promise<string> =>
    (
      await fetch(`${url}/recipe/user`, {
        method: 'PUT',
        headers: { rid: 'passwordless' },
        body: JSON.stringify({ userId: 'x', email: 'a@b.c' }),
      })
    ).text();
  await runCore([], async (url) => {
    t.match(await put(url), /UNKNOWN_USER_ID_ERROR/);
  });
  await runCore(['--dialect', 'supertokens'], async (url) => {
    t.match(await put(url), /Field name 'recipeUserId'/);
  });
  await runCore(['--code-lifetime', '90s'], async (url) => {
    const code = await fetch(`${url}/recipe/signinup/code`, { method: 'POST', body: '{"email":"a@b.c"}' });
    t.match(await code.json(), { codeLifetime: 90_000 });
  });
  await runCore(['--faults', '100%'], async (url) => {
    const answer = await fetch(`${url}/users/count`).then(
      (response) => response.status,
      () => 0,
    );
    t.ok([0, 429, 500].includes(answer), String(answer));
  });
});

t.test('an address that others reach is refused without keys, and warned of where that is meant', async (t) => {
  for (const host of ['0.0.0.0', '::', '192.0.2.1', 'core.example.com']) {
    const io = captureIo();
    await run(['core', '--host', host, '--port', '0'], io);
    t.equal(io.code(), 2, host);
    t.match(
      io.err(),
      /^error: whoever reaches \S+ could mint any token.*allowed: --api-keys-file FILE.*--allow-keyless/,
      host,
    );
    t.equal(io.out(), '', 'nothing listens');
  }
  t.match((await runCore(['--host', '0.0.0.0', '--allow-keyless'], async () => undefined)).err(), /can mint any token/);
  t.notMatch((await runCore(['--host', 'localhost'], async () => undefined)).err(), /can mint any token/);
});

t.test('the signer key of the environment, by the name of the dialect; the file comes first', async (t) => {
  const {
    signer_key: key,
    password_hash: hash,
    salt,
    mem_cost: cost,
    rounds,
    salt_separator: separator,
    password,
  } = hostedSample;
  const passwordHash = `$f_scrypt$${hash}$${salt}$m=${String(cost)}$r=${String(rounds)}$s=${separator}`;
  const ask = async (url: string, path: string, body: object): Promise<string> =>
    (await fetch(url + path, { method: 'POST', body: JSON.stringify(body) })).text();
  const other = Buffer.alloc(64, 7).toString('base64');
  const [hosted, supertokens] = ['HOSTED_PASSWORD_HASHING_SIGNER_KEY', 'FIREBASE_PASSWORD_HASHING_SIGNER_KEY'];
  const cases: readonly {
    name: string;
    env: Record<string, string>;
    args: readonly string[];
    imported: RegExp;
    signedIn: RegExp;
  }[] = [
    { name: 'by the name of the specification', env: { [hosted]: key }, args: [], imported: /"OK"/, signedIn: /"OK"/ },
    {
      name: 'by that of SuperTokens',
      env: { [supertokens]: key },
      args: ['--dialect', 'supertokens'],
      imported: /"OK"/,
      signedIn: /"OK"/,
    },
    {
      name: 'by that of the other',
      env: { [hosted]: key },
      args: ['--dialect', 'supertokens'],
      imported: /^Internal Error/,
      signedIn: /WRONG/,
    },
    {
      name: 'beside a file',
      env: { [hosted]: other },
      args: ['--signer-key-file', keysFile(t, key)],
      imported: /"OK"/,
      signedIn: /"OK"/,
    },
    { name: 'another key', env: { [hosted]: other }, args: [], imported: /"OK"/, signedIn: /WRONG/ },
    { name: 'empty', env: { [hosted]: '' }, args: [], imported: /^Internal Error/, signedIn: /WRONG/ },
  ];
  for (const { name, env, args, imported, signedIn } of cases) {
    const io = await runCore(
      args,
      async (url) => {
        t.match(
          await ask(url, '/recipe/user/passwordhash/import', { email: 'a@example.com', passwordHash }),
          imported,
          name,
        );
        t.match(await ask(url, '/recipe/signin', { email: 'a@example.com', password }), signedIn, name);
      },
      env,
    );
    t.notOk((io.out() + io.err()).includes(key), name);
  }
  const refused = captureIo({ env: { [hosted]: 'not base64!' } });
  await run(['core', '--port', '0'], refused);
  t.equal(refused.code(), 2);
  t.equal(refused.err(), 'error: HOSTED_PASSWORD_HASHING_SIGNER_KEY does not hold a signer key in base64\n');
});

t.test('what cannot be started says why, with its exit code', async (t) => {
  const taken = await startUpstreamServer(t);
  const cases = [
    { name: 'port in use', args: ['--port', String(taken.port)], code: 3, says: /in use[^]*--port/ },
    {
      name: 'address of another machine',
      args: ['--host', '192.0.2.1', '--port', '0', '--allow-keyless'],
      code: 3,
      says: /192\.0\.2\.1/,
    },
    { name: 'port too large', args: ['--port', '65536'], code: 2, says: /65535/ },
    { name: 'port no number', args: ['--port', '1e3'], code: 2, says: /whole number/ },
    { name: 'no duration', args: ['--rotate-every', '10'], code: 2, says: /duration/ },
    { name: 'duration too short', args: ['--rotate-every', '999ms'], code: 2, says: /1s/ },
    { name: 'no dialect', args: ['--dialect', 'latin'], code: 2, says: /seed, supertokens/ },
    { name: 'a validity too short', args: ['--access-token-validity', '0s'], code: 2, says: /1s/ },
    { name: 'a lifetime that is none', args: ['--code-lifetime', 'x'], code: 2, says: /duration/ },
    { name: 'a share without a sign', args: ['--faults', '2'], code: 2, says: /percentage/ },
    { name: 'more than all', args: ['--faults', '101%'], code: 2, says: /percentage/ },
    { name: 'no signer key there', args: ['--signer-key-file', '/nonexistent/key'], code: 2, says: /does not exist/ },
    {
      name: 'a signer key that others may read',
      args: ['--signer-key-file', keysFile(t, 'AAAA', 0o644)],
      code: 2,
      says: /0644.*chmod 600/,
    },
    {
      name: 'a signer key that is no base64',
      args: ['--signer-key-file', keysFile(t, 'not base64!')],
      code: 2,
      says: /base64/,
    },
    { name: 'an empty signer key', args: ['--signer-key-file', keysFile(t, '\n')], code: 2, says: /base64/ },
    { name: 'no such file', args: ['--api-keys-file', '/nonexistent/keys'], code: 2, says: /does not exist/ },
    {
      name: 'a file that others may read',
      args: ['--api-keys-file', keysFile(t, 'first-key-of-twenty-characters', 0o640)],
      code: 2,
      says: /0640.*chmod 600/,
    },
    { name: 'a file without keys', args: ['--api-keys-file', keysFile(t, ' \n')], code: 2, says: /no key/ },
    {
      name: 'a key of 19 characters',
      args: ['--api-keys-file', keysFile(t, 'a'.repeat(19))],
      code: 2,
      says: /20 or more/,
    },
  ];
  for (const { name, args, code, says } of cases) {
    const io = captureIo();
    await run(['core', ...args], io);
    t.equal(io.code(), code, name);
    t.match(io.err(), says, name);
    t.equal(io.out(), '', name);
  }
});
