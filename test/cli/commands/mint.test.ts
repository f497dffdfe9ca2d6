import { execFile } from 'node:child_process';
import { createPublicKey } from 'node:crypto';
import { chmodSync, chownSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import t from 'tap';
import { run } from '../../../src/cli/program.js';
import { createProofKey } from '../../../src/client/token/source.js';
import { startCoreEmulator } from '../../../src/core-emulator/server.js';
import { certificateDigest } from '../../support/certificate-digest.js';
import { certificates } from '../../support/certificates.js';
import { curl } from '../../support/curl.js';
import { startFakeCore } from '../../support/fake-core.js';
import { rsaKey } from '../../support/keys.js';
import { mintToken } from '../../support/tokens.js';
import { projectDir } from '../../support/project-dir.js';
import { sh } from '../../support/sh.js';
import { tempDir } from '../../support/temp-dir.js';
import { startProxyProcess } from '../../support/proxy-process.js';
import { captureIo } from '../captured-io.js';
import { apiKey, claims, curlFile, decoded, issuer, runMint } from './mint-setup.js';

const exec = promisify(execFile);

/** One for all: making its keys takes longer than each of the tests. */
const core = await startCoreEmulator({ host: '127.0.0.1', port: 0, rotateEveryMs: 3_600_000, apiKeys: [apiKey] });
t.teardown(() => core.close());

t.test('the token that was asked for, alone on standard output', async (t) => {
  const file = curlFile(t, core.url);
  const io = await runMint(file);
  t.equal(io.err(), '');
  t.equal(io.code(), 0);
  t.match(io.out(), /^eyJ[\w-]+\.[\w-]+\.[\w-]+\n$/);
  const { header, payload } = decoded(io.out());
  t.match(header, { alg: 'RS256', kid: /^d-\d+$/ });
  const { iat, exp, ...others } = payload;
  t.strictSame(others, { iss: issuer, ...claims });
  t.equal(Number(exp) - Number(iat), 300, 'five minutes unless told otherwise');

  const longest = await runMint(file, ['--validity', '2h', '--issuer', 'API.Example.com/auth/']);
  const long = decoded(longest.out()).payload;
  t.equal(Number(long['exp']) - Number(long['iat']), 7_200);
  t.equal(long['iss'], issuer, 'the issuer is normalised as the SDK does');

  const asData = await runMint(file, ['--json', '--single-use']);
  const data = JSON.parse(asData.out()) as Readonly<Record<string, unknown>>;
  const single = decoded(String(data['token']));
  t.strictSame(data, {
    token: data['token'],
    key_id: single.header['kid'],
    token_id: single.payload['jti'],
    issued_at: single.payload['iat'],
    expires_at: single.payload['exp'],
  });
});

t.test('a token is bound to the certificate or the key of a file', async (t) => {
  const file = curlFile(t, core.url);
  const { client } = certificates(t);
  const dir = tempDir(t);
  const key = createProofKey(client.key);
  const publicKey = join(dir, 'public.pem');
  writeFileSync(publicKey, createPublicKey(client.key).export({ format: 'pem', type: 'spki' }).toString());
  const digest = certificateDigest(client.cert);
  for (const [path, cnf] of [
    [client.certFile, { 'x5t#S256': digest }],
    [client.keyFile, { jkt: key.thumbprint }],
    [publicKey, { jkt: key.thumbprint }],
  ] as const) {
    t.same(decoded((await runMint(file, ['--bound-to', path])).out()).payload['cnf'], cnf);
  }
  const other = join(dir, 'other.pem');
  writeFileSync(other, 'not a key');
  for (const path of [other, join(dir, 'absent')]) {
    const io = await runMint(file, ['--bound-to', path]);
    t.same([io.code(), io.out()], [2, '']);
    t.match(io.err(), path);
  }
});

t.test('a core that binds a token otherwise than asked for is not believed', async (t) => {
  const fake = await startFakeCore(t);
  const file = curlFile(t, fake.url);
  const { client } = certificates(t);
  for (const [args, changed, problem] of [
    [[], { cnf: { jkt: 'A'.repeat(43) } }, /it has a cnf, which was not asked for/],
    [['--bound-to', client.keyFile], { cnf: { jkt: 'A'.repeat(43) } }, /its cnf is not what was asked for/],
    [['--bound-to', client.keyFile], { cnf: undefined }, /its cnf is not what was asked for/],
    [['--bound-to', client.keyFile], { cnf: null }, /its cnf is not what was asked for/],
  ] as const) {
    fake.answer(({ body }, response) => {
      const { payload } = JSON.parse(body) as { payload: object };
      const claims = { iss: issuer, ...payload, ...changed };
      response.end(JSON.stringify({ status: 'OK', jwt: mintToken({ key: rsaKey(), claims }) }));
    });
    const io = await runMint(file, args);
    t.same([io.code(), io.out()], [1, '']);
    t.match(io.err(), problem);
  }
});

t.test('a single-use token has a jti of 128 random bits and more, another each time', async (t) => {
  const file = curlFile(t, core.url);
  const ids = await Promise.all(
    [1, 2, 3].map(async () => String(decoded((await runMint(file, ['--single-use'])).out()).payload['jti'])),
  );
  t.equal(new Set(ids).size, 3);
  for (const id of ids) t.match(id, /^[\w-]{24}$/);
});

t.test('the same file gives curl -K the same token', async (t) => {
  const file = curlFile(t, core.url, '# as in the runbook\nheader = "rid: jwt"\nsilent\nshow-error\n--fail\n');
  const body = JSON.stringify({
    payload: claims,
    useStaticSigningKey: false,
    algorithm: 'RS256',
    jwksDomain: issuer,
    validity: 300,
  });
  const { stdout } = await exec(sh, [
    '-c',
    `printf %s "$1" | ${curl} -q -K "$0" -H "Content-Type: application/json" --data-binary @-`,
    file,
    body,
  ]);
  const byCurl = decoded((JSON.parse(stdout) as { jwt: string }).jwt);
  const ours = decoded((await runMint(file)).out());
  t.same(ours.header, byCurl.header);
  t.same({ ...ours.payload, iat: 0, exp: 0 }, { ...byCurl.payload, iat: 0, exp: 0 });
});

t.test('one call, with what the Core needs and nothing left to a default', async (t) => {
  const fake = await startFakeCore(t);
  await runMint(curlFile(t, fake.url, 'header = "cdi-version: 5.4"\nheader = "rid: other"\n'), ['--validity', '90s']);
  t.equal(fake.calls.length, 1);
  t.match(fake.calls[0], { method: 'POST', target: '/recipe/jwt' });
  t.match(Object.fromEntries(fake.calls[0]?.headers ?? []), {
    rid: 'jwt',
    'api-key': apiKey,
    'cdi-version': '5.4',
    'content-type': /^application\/json/,
  });
  t.strictSame(JSON.parse(fake.calls[0]?.body ?? ''), {
    payload: claims,
    useStaticSigningKey: false,
    algorithm: 'RS256',
    jwksDomain: issuer,
    validity: 90,
  });
});

t.test('what cannot be asked for is refused before the Core hears of it', async (t) => {
  const fake = await startFakeCore(t);
  const good = curlFile(t, fake.url);
  const mode = (bits: number): string => curlFile(t, fake.url, '', bits);
  const link = join(tempDir(t), 'link');
  symlinkSync(good, link);
  const withClaims = (more: object): string => JSON.stringify({ ...claims, ...more });
  interface Case {
    readonly name: string;
    readonly file?: string;
    readonly args?: readonly string[];
    readonly stdin?: string;
    readonly says: RegExp;
  }
  const cases: readonly Case[] = [
    { name: 'mode 0644', file: mode(0o644), says: /core\.curl has mode 0644.*chmod 600/ },
    { name: 'mode 0640', file: mode(0o640), says: /mode 0640/ },
    { name: 'a link', file: link, says: /symbolic link/ },
    { name: 'no file', file: '/nonexistent/core.curl', says: /does not exist/ },
    {
      name: 'a proxy',
      file: curlFile(t, fake.url, 'proxy = http://127.0.0.1:1\n'),
      says: /core\.curl:3: `proxy` is not supported/,
    },
    {
      name: 'cdi-version 2.20',
      file: curlFile(t, fake.url, 'header = "cdi-version: 2.20"\n'),
      says: /cdi-version is older than 2\.21.*static key/,
    },
    {
      name: 'cdi-version 2.16',
      file: curlFile(t, fake.url, 'header = "CDI-Version: 2.16"\n'),
      says: /cdi-version is older/,
    },
    ...['jti', 'iss', 'iat', 'exp', 'nbf'].map((name) => ({
      name,
      stdin: withClaims({ [name]: 'x' }),
      says: new RegExp(`standard input: ${name} cannot be chosen`),
    })),
    { name: 'another claim', stdin: withClaims({ role: 'admin' }), says: /role is not part of a service token/ },
    { name: 'a claim twice', stdin: `{"sub":"a",${JSON.stringify(claims).slice(1)}`, says: /twice/ },
    { name: 'a missing claim', stdin: '{"aud":"orders"}', says: /sub must be/ },
    { name: 'no JSON', stdin: 'sub=checkout', says: /not JSON/ },
    { name: 'nothing', stdin: '', says: /not JSON/ },
    { name: 'a list', stdin: '[]', says: /not a JSON object/ },
    { name: 'too much', stdin: ' '.repeat(65_537), says: /larger than 65536/ },
    { name: 'validity 0', args: ['--validity', '0s'], says: /from 1s to 2h/ },
    { name: 'validity above the cap', args: ['--validity', '7201s'], says: /from 1s to 2h/ },
    { name: 'half seconds', args: ['--validity', '1500ms'], says: /whole seconds/ },
    { name: 'no issuer', args: ['--issuer', 'example'], says: /API domain/ },
    {
      name: 'a log of other people',
      args: ['--issuance-log', '/dev/null'],
      says: /issuance log \/dev\/null is no regular file/,
    },
    { name: 'a log in the curl config file', args: ['--issuance-log', good], says: /names the curl config file/ },
    { name: 'a log in no folder', args: ['--issuance-log', '/nonexistent/log'], says: /cannot be opened \(ENOENT\)/ },
    { name: 'a key as an argument', args: ['--api-key', apiKey], says: /unknown option '--api-key'/ },
    { name: 'a public Core', file: curlFile(t, 'https://198.51.100.7'), says: /public address.*--allow-public-core/ },
    { name: 'a key in the clear', file: curlFile(t, 'http://10.255.255.1'), says: /in the clear.*--allow-http/ },
  ];
  for (const { name, file = good, args = [], stdin = JSON.stringify(claims), says } of cases) {
    const io = await runMint(file, args, stdin);
    t.equal(io.code(), 2, name);
    t.match(io.err(), says, name);
    t.equal(io.out(), '', `${name}: nothing on standard output`);
    t.notMatch(io.err(), apiKey, `${name}: no key`);
  }
  if (process.geteuid?.() === 0) {
    chownSync(good, 12_345, 12_345);
    const io = await runMint(good);
    t.match([io.code(), io.err()], [2, /belongs to another user/]);
  }
  t.equal(fake.calls.length, 0);
});

t.test('options: the issuer and the file have to be named', async (t) => {
  for (const [args, says] of [
    [['--issuer', issuer], /--curl-config/],
    [['--curl-config', '/x'], /--issuer/],
  ] as const) {
    const io = captureIo();
    await run(['mint', ...args], io);
    t.match([io.code(), io.err()], [2, says]);
  }
});

t.test('each issued token leaves a line, and without the line there is no token', async (t) => {
  const file = curlFile(t, core.url);
  const folder = tempDir(t);
  const log = join(folder, 'issued.jsonl');
  const tokens: string[] = [];
  for (const args of [[], ['--single-use']]) {
    const io = await runMint(file, ['--issuance-log', 'issued.jsonl', ...args], JSON.stringify(claims), folder);
    tokens.push(io.out().trim());
  }
  t.equal(statSync(log).mode & 0o777, 0o600);
  const text = readFileSync(log, 'utf8');
  const lines = text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Readonly<Record<string, unknown>>);
  for (const [index, token] of tokens.entries()) {
    const { header, payload } = decoded(token);
    const { time, ...line } = lines[index] ?? {};
    t.match(time, /^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
    t.strictSame(line, {
      iss: issuer,
      sub: 'checkout',
      aud: 'orders',
      permissions: claims.permissions,
      jti: payload['jti'] ?? null,
      kid: header['kid'],
      exp: payload['exp'],
    });
    t.notMatch(text, token.split('.')[2] ?? '', 'never the token');
  }
  t.notMatch(text, apiKey);
  const many = join(folder, 'many.jsonl');
  await Promise.all(Array.from({ length: 10 }, () => runMint(file, ['--single-use', '--issuance-log', many])));
  const ids = readFileSync(many, 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => (JSON.parse(line) as { jti: string }).jti);
  t.equal(new Set(ids).size, 10, 'several at once: each its own line');

  chmodSync(log, 0o640);
  t.match(await runMint(file, ['--issuance-log', log]).then((io) => [io.code(), io.err(), io.out()]), [
    2,
    /mode 0640; chmod 600/,
    '',
  ]);
  const link = join(folder, 'link');
  symlinkSync(log, link);
  t.match(await runMint(file, ['--issuance-log', link]).then((io) => [io.code(), io.out()]), [2, '']);
  mkdirSync(join(folder, 'below'));
  t.match(await runMint(file, ['--issuance-log', join(folder, 'below')]).then((io) => io.code()), 2);
  t.equal(readFileSync(log, 'utf8'), text);
});

t.test('a disk that is full: the token is thrown away', async (t) => {
  const file = curlFile(t, core.url);
  const log = join(tempDir(t), 'issued.jsonl');
  writeFileSync(log, '{"cut":"of', { mode: 0o600 });
  const script =
    'trap "" XFSZ; ulimit -f 0; printf %s "$2" | exec env -i "$3" "$4" mint --curl-config "$0" --issuer "$5" --issuance-log "$1"';
  const args = [
    '-c',
    script,
    file,
    log,
    JSON.stringify(claims),
    process.execPath,
    join(projectDir, 'dist/main.js'),
    issuer,
  ];
  // `env -i`: what a test runner has Node write at its end would fail as well.
  const failed: unknown = await exec(sh, args).catch((error: unknown) => error);
  t.match(failed, {
    code: 3,
    stdout: '',
    stderr: /issuance log .* cannot be written \(EFBIG\); the token is not printed/,
  });
  t.equal((await runMint(file, ['--issuance-log', log])).code(), 0);
  t.match(readFileSync(log, 'utf8'), /^\{"cut":"of\n\{"time":.*\}\n$/, 'the next line begins a line');
});

t.test('a minted token passes the real proxy', async (t) => {
  const proxy = await startProxyProcess(t, {
    config: { issuers: { core: { jwks_url: `${core.url}/auth/jwt/jwks.json` } } },
  });
  const token = (await runMint(curlFile(t, core.url))).out().trim();
  proxy.markSecret(token);
  const answer = await proxy.request({ path: '/orders', headers: { authorization: `Bearer ${token}` } });
  t.equal(answer.status, 200);
  const other = (await runMint(curlFile(t, core.url), ['--issuer', 'https://other.example'])).out().trim();
  t.equal(
    (await proxy.request({ path: '/orders', headers: { authorization: `Bearer ${other}` } })).status,
    401,
    'and one of another issuer does not',
  );
});
