import { execFile } from 'node:child_process';
import { existsSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import t from 'tap';
import { run } from '../../../../src/cli/program.js';
import { curl } from '../../../support/curl.js';
import { startUpstreamServer } from '../../../support/upstream-server.js';
import type { Scope } from '../../../support/scope.js';
import { sh } from '../../../support/sh.js';
import { tempDir } from '../../../support/temp-dir.js';
import { until } from '../../../support/until.js';
import { captureIo, type CapturedIo } from '../../captured-io.js';
import { startCommand } from '../../started-command.js';

interface Shown {
  readonly proxy: string;
  readonly core: string;
  readonly token: string;
  readonly examples: readonly { readonly command: string; readonly expect: number }[];
}

interface Running {
  readonly io: CapturedIo;
  readonly shown: Shown;
  readonly stop: () => Promise<void>;
}

const execute = promisify(execFile);

/** Runs a printed line in a shell, with the real curl. */
async function answerTo(command: string): Promise<{ readonly status: number; readonly body: string }> {
  const { stdout } = await execute(sh, ['-c', command]);
  return {
    status: Number(/^HTTP\/1\.1 (\d{3}) /.exec(stdout)?.[1]),
    body: stdout.slice(stdout.indexOf('\r\n\r\n') + 4),
  };
}

interface WriteAnswer {
  readonly status: number;
  readonly replayed: boolean;
  readonly body: string;
}

/** The answers to a line that sends twice. */
async function answersTo(command: string): Promise<readonly WriteAnswer[]> {
  const { stdout } = await execute(sh, ['-c', command]);
  return stdout.split(/^(?=HTTP\/1\.1 \d)/m).map((answer) => ({
    status: Number(/^HTTP\/1\.1 (\d{3}) /.exec(answer)?.[1]),
    replayed: /^idempotent-replayed: true\r$/im.test(answer),
    body: answer.slice(answer.indexOf('\r\n\r\n') + 4),
  }));
}

/** Runs `dev --json` in this process until `stop`, or until the test ends. */
async function runDev(t: Scope, args: readonly string[]): Promise<Running> {
  const io = captureIo();
  const over = run(['dev', '--json', '--port', '0', ...args], io);
  const stop = (): Promise<void> => {
    io.signal('SIGTERM');
    return over;
  };
  t.teardown(stop);
  const line = await until('dev says where everything is', () => {
    if (io.code() !== null) throw new Error(`dev ended before: ${io.err()}`);
    return /^\{.*\}$/m.exec(io.out())?.[0];
  });
  return { io, shown: JSON.parse(line) as Shown, stop };
}

function configFile(t: Scope, text: string): string {
  const path = join(tempDir(t), 'sallyport.yaml');
  writeFileSync(path, text);
  return path;
}

t.test('every printed line is answered as it says, and Ctrl-C ends all of it with 0', async (t) => {
  const dev = startCommand(t, ['dev', '--port', '0']);
  await dev.says(/Ctrl-C/);
  const lines = dev.stdout().split('\n');
  const examples = lines.flatMap((line, index) =>
    line.startsWith(`${curl} `) ? [{ command: line, above: lines[index - 1] ?? '' }] : [],
  );
  t.same(
    examples.map(({ above }) => above),
    ['# expect 200', '# expect 401', '# expect 403', '# expect 200'],
  );
  for (const { command, above } of examples.slice(0, 3)) t.equal(`# expect ${(await answerTo(command)).status}`, above);
  t.match((await answerTo(examples[0]?.command ?? '')).body, /"x-auth-subject":"checkout"/);
  t.match(await answersTo(examples[3]?.command ?? ''), [
    { status: 200, replayed: false, body: /"path":"\/orders"/ },
    { status: 200, replayed: true },
  ]);
  const [first, second] = await answersTo(examples[3]?.command ?? '');
  t.same(
    [first?.replayed, second?.replayed, first?.body],
    [true, true, second?.body],
    'sent again, it has run once all the same',
  );
  await until('a line for each request', () => (dev.stderr().match(/^\d{3} GET \/orders /gm)?.length ?? 0) >= 4);
  t.match(dev.stderr(), /^401 GET \/orders .*denied credential_missing$/m);
  t.match(dev.stderr(), /^403 GET \/orders .*by stranger denied subject_not_approved$/m);
  t.notMatch(dev.stderr(), /eyJ/, 'no token is logged');
  const files = examples.flatMap(({ command }) => /-H @(\S+)/.exec(command)?.[1] ?? []);
  t.equal(files.length, 3, 'the tokens are in files');
  for (const file of files) t.equal(statSync(file).mode & 0o777, 0o600, 'which nobody else may read');
  t.equal(statSync(dirname(files[0] ?? '')).mode & 0o777, 0o700);
  t.notMatch(dev.stdout(), /eyJ/, 'so that none is on the screen');
  t.ok(
    examples.slice(0, 3).every(({ command }) => command.length <= 100),
    'and each command is a short line',
  );
  dev.signal('SIGINT');
  t.same(await dev.exited, { code: 0, signal: null });
  t.notOk(existsSync(dirname(files[0] ?? '')), 'they go when it ends');
});

t.test('--json says the same as data', async (t) => {
  const { shown, io, stop } = await runDev(t, []);
  t.same(Object.keys(shown), ['proxy', 'core', 'token', 'examples', 'config', 'console']);
  t.same(
    shown.examples.map((example) => Object.keys(example)),
    Array(4).fill(['command', 'expect']),
  );
  for (const { command, expect } of shown.examples) t.equal((await answerTo(command)).status, expect, String(expect));
  t.equal(io.out().trim().split('\n').length, 1, 'nothing else is on standard output');
  const payload = JSON.parse(Buffer.from(shown.token.split('.')[1] ?? '', 'base64url').toString()) as {
    iat: number;
    exp: number;
  };
  t.equal(payload.exp - payload.iat, 7200, 'the token is good for two hours');
  const headers = { authorization: `Bearer ${shown.token}`, 'idempotency-key': 'x' };
  const created = await fetch(`${shown.proxy}/orders`, { method: 'POST', body: '{"item":1}', headers });
  t.match(
    await created.json(),
    { method: 'POST', path: '/orders', body: '{"item":1}' },
    'it is good for the other routes of its subject too',
  );
  t.equal((await fetch(`${shown.core}/hello`)).status, 200);
  await stop();
  for (const url of [shown.proxy, shown.core]) await t.rejects(fetch(url), `${url} is closed`);
});

t.test('--upstream puts the proxy in front of a service of yours', async (t) => {
  const receiver = await startUpstreamServer(t);
  const { shown } = await runDev(t, ['--upstream', receiver.url]);
  for (const { command, expect } of shown.examples) t.equal((await answerTo(command)).status, expect, String(expect));
  t.same(
    receiver.requests.map(({ method, target }) => `${method} ${target}`),
    ['GET /'],
    'only what is let through arrives',
  );
  const anywhere = await fetch(`${shown.proxy}/deep/down?x=1`, {
    method: 'DELETE',
    headers: { authorization: `Bearer ${shown.token}` },
  });
  t.equal(anywhere.status, 200);
  t.equal(receiver.requests.at(-1)?.target, '/deep/down?x=1');
});

const foreign = `
listen: { host: 0.0.0.0, port: 8443, tls: { cert_file: /nowhere/tls.crt, key_file: /nowhere/tls.key } }
upstream: { url: "http://192.0.2.1:3000" }
issuers:
  partner: { issuer: "https://partner.example", audience: orders, source: microservice, token_type: service }
  core: { issuer: "\${env:NOT_SET}", audience: orders, source: microservice, token_type: service }
revoked: { subjects: [reporting] }
identity: { headers: { subject: X-Caller } }
routes:
  - { name: health, methods: [GET], path: /healthz, access: public }
  - { name: odd, methods: [GET], path: "/it's/{which}/(a)&b/**", subjects: [reporting], permissions: [odd:read], issuers: [core] }
`;

t.test('--config gives routes and identity only', async (t) => {
  const receiver = await startUpstreamServer(t);
  const { shown } = await runDev(t, [configFile(t, foreign), '--upstream', receiver.url]);
  for (const { command, expect } of shown.examples) t.equal((await answerTo(command)).status, expect, command);
  const [request] = receiver.requests;
  t.equal(request?.target, "/it's/1/(a)&b/1");
  t.match(request?.rawHeaders.join('\n'), /X-Caller\nreporting/i);
});

t.test('an edit of the config takes effect while it runs', async (t) => {
  const file = configFile(t, foreign);
  const { shown } = await runDev(t, ['--config', file]);
  t.equal((await fetch(`${shown.proxy}/healthz`)).status, 200);
  writeFileSync(file, foreign.replace('path: /healthz', 'path: /alive'));
  await until('the new path is public', async () => (await fetch(`${shown.proxy}/alive`)).status === 200);
  t.equal((await fetch(`${shown.proxy}/healthz`)).status, 401);
});

t.test('what cannot be started says why, with its exit code, and leaves nothing running', async (t) => {
  const taken = await startUpstreamServer(t);
  const broken = configFile(t, 'routes:\n  - { name: a, methods: [GET], path: a, subjects: [x], permissions: [] }\n');
  const cases = [
    {
      name: 'port in use',
      args: ['--port', String(taken.port)],
      code: 3,
      says: new RegExp(
        `^error: .*${taken.port}.*in use[^]*\nchoose another port with --port; --port 0 takes a free one\n$`,
      ),
    },
    { name: 'no such port', args: ['--port', '-1'], code: 2, says: /65535/ },
    { name: 'an upstream with a path', args: ['--upstream', 'http://127.0.0.1:1/x'], code: 2, says: /without a path/ },
    {
      name: 'a config with an error',
      args: ['--config', broken, '--port', '0'],
      code: 1,
      says: /sallyport\.yaml:2:\d+: error: /,
    },
    {
      name: 'no such config',
      args: ['--config', '/nowhere/sallyport.yaml', '--port', '0'],
      code: 2,
      says: /\/nowhere\/sallyport\.yaml/,
    },
  ];
  for (const { name, args, code, says } of cases) {
    const io = captureIo();
    await run(['dev', ...args], io);
    t.equal(io.code(), code, name);
    t.match(io.err(), says, name);
    t.equal(io.out(), '', name);
  }
});
