import { readFileSync } from 'node:fs';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import t from 'tap';
import { startFakeCore, type FakeAnswer } from '../../support/fake-core.js';
import { rsaKey, withKeyId } from '../../support/keys.js';
import { processFolders } from '../../support/linux.js';
import { listen } from '../../support/listening.js';
import { projectDir } from '../../support/project-dir.js';
import { mintToken, type TokenInput } from '../../support/tokens.js';
import { until } from '../../support/until.js';
import { apiKey, claims, curlFile, runMint } from './mint-setup.js';

/** A token as it was asked for, but for the overrides. */
function token(input: Partial<TokenInput> = {}): string {
  return mintToken({ key: rsaKey(), ...input });
}

function signs(jwt: string): FakeAnswer {
  return (_, response) => response.end(JSON.stringify({ status: 'OK', jwt }));
}

function says(status: number, body: string): FakeAnswer {
  return (_, response) => response.writeHead(status, { 'content-type': 'text/html; charset=UTF-8' }).end(body);
}

t.test('whatever else the Core answers, no token is printed, and it is said what came', async (t) => {
  const core = await startFakeCore(t);
  const file = curlFile(t, core.url);
  core.answer(signs(token()));
  t.equal((await runMint(file)).code(), 0, 'the fake Core signs what is taken');
  const cases: readonly {
    readonly name: string;
    readonly answer: FakeAnswer;
    readonly code: number;
    readonly says: RegExp;
  }[] = [
    {
      name: 'static key',
      answer: signs(token({ key: withKeyId(rsaKey(), 's-0f8fad5b') })),
      code: 1,
      says: /thrown away: it is signed with a key that is not dynamic/,
    },
    {
      name: 'another subject',
      answer: signs(token({ claims: { sub: 'admin' } })),
      code: 1,
      says: /thrown away: its sub is not what was asked for/,
    },
    {
      name: 'more permissions',
      answer: signs(token({ claims: { permissions: ['*'] } })),
      code: 1,
      says: /its permissions are not/,
    },
    {
      name: 'another issuer',
      answer: signs(token({ claims: { iss: 'https://other.example' } })),
      code: 1,
      says: /its iss is not/,
    },
    {
      name: 'a hundred years',
      answer: signs(token({ claims: { exp: 4_900_000_000 } })),
      code: 1,
      says: /it lives for \d+ s, and 300 s were asked for/,
    },
    {
      name: 'another algorithm',
      answer: signs(token({ header: { alg: 'RS512' } })),
      code: 1,
      says: /another algorithm than RS256/,
    },
    { name: 'no token', answer: signs('x'), code: 1, says: /no well-formed token/ },
    { name: 'OK alone', answer: says(200, '{"status":"OK"}'), code: 1, says: /OK without a token/ },
    {
      name: 'unsupported algorithm',
      answer: says(200, '{"status":"UNSUPPORTED_ALGORITHM_ERROR"}'),
      code: 1,
      says: /does not sign with RS256 \(UNSUPPORTED_ALGORITHM_ERROR\)/,
    },
    {
      name: 'another status',
      answer: says(200, '{"status":"SOME_ERROR"}'),
      code: 1,
      says: /another status than OK: SOME_ERROR/,
    },
    { name: 'no status', answer: says(200, '{"jwt":"x"}'), code: 1, says: /another status than OK: none/ },
    {
      name: 'a status with a key',
      answer: says(200, `{"status":"${apiKey}"}`),
      code: 1,
      says: /another status than OK: none/,
    },
    { name: 'a page', answer: says(200, '<h1>Welcome</h1>'), code: 1, says: /something else than JSON: Welcome/ },
    { name: 'nothing', answer: says(200, ''), code: 1, says: /something else than JSON\n/ },
    {
      name: 'wrong key',
      answer: says(401, 'Invalid API key'),
      code: 1,
      says: /the Core refused the API key: 401: Invalid API key\n/,
    },
    {
      name: 'wrong key, as a page',
      answer: says(401, `<html><body><h1>401</h1><p>${apiKey}?</p></body></html>`),
      code: 1,
      says: /refused the API key: 401: 401 \[hidden\]\?/,
    },
    {
      name: 'wrong field',
      answer: says(400, "Field name 'validity' is invalid in JSON input"),
      code: 1,
      says: /answered 400: Field name 'validity' is invalid in JSON input/,
    },
    {
      name: 'no such call',
      answer: says(404, 'Not found'),
      code: 1,
      says: /no POST \/recipe\/jwt at this address.*404: Not found/,
    },
    { name: 'another method', answer: says(405, 'Method not supported'), code: 1, says: /405: Method not supported/ },
    { name: 'too many', answer: says(429, ''), code: 3, says: /too many calls: 429\n/ },
    { name: 'failed', answer: says(500, 'Internal Error'), code: 3, says: /the Core failed: 500: Internal Error/ },
    {
      name: 'a redirect',
      answer: (_, response) => response.writeHead(302, { location: 'https://198.51.100.7' }).end(),
      code: 3,
      says: /redirect \(status 302\)/,
    },
    {
      name: 'broken off',
      answer: (_, response) => response.socket?.destroy(),
      code: 3,
      says: /the Core gave no answer: the connection broke/,
    },
  ];
  for (const { name, answer, code, says } of cases) {
    core.answer(answer);
    const io = await runMint(file);
    t.equal(io.code(), code, name);
    t.match(io.err(), says, name);
    t.equal(io.out(), '', `${name}: nothing on standard output`);
    t.notMatch(io.err(), new RegExp(`${apiKey}|eyJ`), `${name}: neither key nor token`);
  }
  const single = await runMint(file, ['--single-use']);
  t.equal(single.code(), 3);
  core.answer(signs(token({ claims: { jti: 'chosen-by-the-core' } })));
  t.match(await runMint(file, ['--single-use']).then((io) => [io.code(), io.err()]), [
    1,
    /its jti is not what was asked for/,
  ]);
});

t.test('a Core that is away, or says nothing in the time that the file allows', async (t) => {
  const gone = await startFakeCore(t);
  await gone.close();
  t.match(await runMint(curlFile(t, gone.url)).then((io) => [io.code(), io.err()]), [
    3,
    /the Core gave no answer: the connection was refused/,
  ]);
  const silent = await startFakeCore(t);
  silent.answer(() => undefined);
  t.match(await runMint(curlFile(t, silent.url, 'max-time = 0.1\n')).then((io) => [io.code(), io.err()]), [
    3,
    /no complete response within 100 ms/,
  ]);
  const sockets: Socket[] = [];
  const noTls = createServer((socket) => sockets.push(socket));
  const { port } = await listen(t, noTls);
  t.match(
    await runMint(curlFile(t, `https://127.0.0.1:${String(port)}`, 'connect-timeout = 0.1\n')).then((io) => [
      io.code(),
      io.err(),
    ]),
    [3, /timed out/],
  );
});

/** Everything that a user of this machine may read of its processes, and what root may. */
function processFiles(): string {
  const read = (path: string): string => {
    try {
      return readFileSync(path, 'latin1');
    } catch {
      return '';
    }
  };
  return processFolders()
    .flatMap((folder) => ['cmdline', 'environ', 'comm', 'status'].map((file) => read(join(folder, file))))
    .join('\n');
}

t.test('while it runs and after, the key is in no argument, no environment and no output', async (t) => {
  const core = await startFakeCore(t);
  let answer = (): void => undefined;
  core.answer((_, response) => {
    answer = () => signs(token())({ method: '', target: '', headers: [], body: '' }, response);
  });
  const file = curlFile(t, core.url);
  const args = [join(projectDir, 'dist/main.js'), 'mint', '--curl-config', file, '--issuer', 'https://api.example.com'];
  const child = spawn(process.execPath, args, { stdio: 'pipe', env: { ...process.env, MARK_OF_THIS_TEST: file } });
  t.teardown(() => child.kill('SIGKILL'));
  let output = '';
  let errors = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (errors += text));
  child.stdin.end(JSON.stringify(claims));
  await until('the Core is asked', () => core.calls.length === 1);
  t.match(Object.fromEntries(core.calls[0]?.headers ?? []), { 'api-key': apiKey }, 'it holds the key now');
  const seen = processFiles();
  t.ok(seen.includes(file) && seen.includes('MARK_OF_THIS_TEST'), 'arguments and environment of the command were read');
  t.notOk(seen.includes(apiKey));
  answer();
  const [code] = (await once(child, 'close')) as [number];
  t.equal(code, 0);
  t.match(output, /^eyJ[\w.-]+\n$/);
  t.notMatch(output + errors, apiKey);
});
