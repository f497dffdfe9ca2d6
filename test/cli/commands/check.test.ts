import { chmodSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { run } from '../../../src/cli/program.js';
import { projectDir } from '../../support/project-dir.js';
import { makeFifo } from '../../support/sh.js';
import { baseConfig } from '../../support/proxy-process.js';
import type { Scope } from '../../support/scope.js';
import { tempDir } from '../../support/temp-dir.js';
import { captureIo, type CapturedIo } from '../captured-io.js';

async function check(t: Scope, text: string, ...options: readonly string[]): Promise<CapturedIo> {
  const cwd = tempDir(t);
  writeFileSync(join(cwd, 'sallyport.yaml'), text);
  const io = captureIo({ cwd, env: { PORT: '8443', SECRET: 'hunter2' } });
  await run(['check', 'sallyport.yaml', ...options], io);
  return io;
}

/** Nothing in it is doubtful. */
const plain = baseConfig({
  routes: [{ name: 'orders', methods: ['GET'], path: '/orders', subjects: ['checkout'], permissions: ['orders:read'] }],
});
const warned = baseConfig({
  routes: [{ name: 'orders', methods: ['GET'], path: '/orders', subjects: ['checkout'], permissions: ['orders:read'] }],
  issuers: { core: { max_lifetime: '12h' } },
});

t.test('a good config is accepted', async (t) => {
  const io = await check(t, plain);
  t.equal(io.code(), 0);
  t.equal(io.out(), '');
  t.equal(io.err(), 'sallyport.yaml: ok\n');
});

t.test('every problem at once, on standard output, with its place', async (t) => {
  const io = await check(
    t,
    baseConfig({ listen: { port: 70_000, colour: 'red' }, upstream: { url: 'ftp://x' }, admin: { host: '0.0.0.0' } }),
  );
  t.equal(io.code(), 1);
  const lines = io.out().trimEnd().split('\n');
  t.equal(lines.length, 12, 'four mistakes, each with its line and a caret');
  for (const [index, line] of lines.entries()) {
    t.match(
      line,
      [/^sallyport\.yaml:\d+:\d+: (error|warning): .+; allowed: ./, /^ +\d+ \| ./, /^ +\| +\^$/][index % 3],
    );
  }
  t.match(lines.slice(0, 3), [
    /^sallyport\.yaml:3:9: error: listen\.port is 70000; /,
    '   3 |   port: 70000',
    '     |         ^',
  ]);
  t.equal(io.err().trimEnd().split('\n').at(-1), 'sallyport.yaml: 3 errors, 1 warning');
});

t.test('--end-marker asks for the line that ends a whole config', async (t) => {
  const cut = await check(t, plain, '--end-marker');
  t.equal(cut.code(), 1);
  t.match(
    cut.out(),
    /: error: the config does not end with a line \.\.\., so it may not be whole; --end-marker asks for it; allowed: \.\.\. as the last line\n/,
  );
  const whole = await check(t, `${plain}...\n`, '--end-marker');
  t.equal(whole.code(), 0);
  t.equal(whole.out(), '');
});

t.test('what lets more through because the config says so is a note, which --strict accepts', async (t) => {
  const routes = [
    { name: 'health', methods: ['GET'], path: '/healthz', access: 'public' },
    { name: 'ping', methods: ['GET'], path: '/ping', subjects: ['checkout'], permissions: [] },
    { name: 'jobs', methods: ['GET'], path: '/jobs', subjects: ['checkout', { prefix: 'jobs/' }], permissions: ['p'] },
    {
      name: 'runs',
      methods: ['GET'],
      path: '/runs',
      any_of: [{ subjects: [{ prefix: 'jobs/' }], permissions: ['p'] }],
      issuers: ['core'],
    },
    { name: 'me', methods: ['GET'], path: '/me', accept: ['session'], session: { claims: {} } },
  ];
  const text = baseConfig({
    routes,
    sessions: { core_url: 'http://127.0.0.1:1', api_domain: 'https://api.example.com' },
  });
  const io = await check(t, text, '--strict');
  t.equal(io.code(), 0);
  t.equal(io.out(), '', 'no problem');
  t.match(io.err().trimEnd().split('\n'), [
    /^sallyport\.yaml:\d+:\d+: note: route "health" is public: no credential is asked for$/,
    /^sallyport\.yaml:\d+:\d+: note: route "ping" asks for no permission: being an approved caller is enough$/,
    /note: route "jobs" lets in every caller of issuers\.core whose subject begins with "jobs\/", whoever gets such a name later too$/,
    /note: route "runs" lets in every caller of issuers\.core whose subject begins with "jobs\/", whoever gets such a name later too$/,
    /^sallyport\.yaml:\d+:\d+: note: route "me" asks for no claim: every user with a session is let through$/,
    /^sallyport\.yaml: ok$/,
  ]);
  t.match(JSON.parse((await check(t, text, '--json')).out()), {
    ok: true,
    problems: [],
    notes: [{ line: Number, column: Number, message: /is public/ }, {}, {}, {}, {}],
  });
});

t.test('config.example.yaml passes --strict', async (t) => {
  const io = captureIo({ cwd: projectDir });
  await run(['check', '--strict', 'config.example.yaml'], io);
  t.equal(io.code(), 0, io.out());
});

t.test('many notes are cut, and said to be', async (t) => {
  const routes = Array.from({ length: 50 }, (_, index) => ({
    name: `r${String(index)}`,
    methods: ['GET'],
    path: `/r${String(index)}`,
    access: 'public',
  }));
  const lines = (await check(t, baseConfig({ routes }))).err().trimEnd().split('\n');
  t.equal(lines.length, 22);
  t.match(lines.slice(-2), [/^sallyport\.yaml: 30 more notes; --json lists them$/, /^sallyport\.yaml: ok$/]);
});

t.test('warnings are accepted, with --strict they are not', async (t) => {
  const io = await check(t, warned);
  t.equal(io.code(), 0);
  t.match(io.out(), /^sallyport\.yaml:\d+:\d+: warning: /);
  t.equal(io.err(), 'sallyport.yaml: ok, 1 warning\n');
  const strict = await check(t, warned, '--strict');
  t.equal(strict.code(), 1);
  t.equal(strict.out(), io.out());
  t.equal(strict.err(), 'sallyport.yaml: 1 warning, which --strict does not accept\n');
  const good = await check(t, plain, '--strict');
  t.equal(good.code(), 0);
});

t.test('a secret that others may read is a warning, and an error with --strict', async (t) => {
  const cwd = tempDir(t);
  const pathOf = (name: string): string => join(cwd, name);
  for (const name of ['tls.crt', 'tls.key', 'redis', 'api-key', 'assertion.pem']) {
    writeFileSync(pathOf(name), 'abcdefghij0123456789\n', { mode: 0o600 });
  }
  // As the volume of a secret has it: links to links.
  mkdirSync(pathOf('..2026'));
  renameSync(pathOf('tls.key'), pathOf('..2026/tls.key'));
  symlinkSync('..2026', pathOf('..data'));
  symlinkSync('..data/tls.key', pathOf('tls.key'));
  const session = { claims: {} };
  writeFileSync(
    pathOf('sallyport.yaml'),
    baseConfig({
      listen: { tls: { cert_file: 'tls.crt', key_file: 'tls.key' } },
      identity: { assertion: { key_file: pathOf('assertion.pem'), audience: 'orders' } },
      store: { redis: { url: 'redis://127.0.0.1', password_file: './redis' } },
      sessions: {
        core_url: 'http://127.0.0.1:3567',
        api_domain: 'https://api.example.com',
        api_key: '${file:api-key}',
      },
      routes: [{ name: 'orders', methods: ['GET'], path: '/orders', accept: ['session'], session }],
    }),
  );
  const checked = async (...options: readonly string[]): Promise<CapturedIo> => {
    const io = captureIo({ cwd });
    await run(['check', 'sallyport.yaml', ...options], io);
    return io;
  };
  const good = await checked('--strict');
  t.equal(good.out(), '');
  t.equal(good.code(), 0);
  for (const name of ['..2026/tls.key', 'redis', 'api-key', 'assertion.pem']) chmodSync(pathOf(name), 0o644);
  const open = await checked();
  t.equal(open.code(), 0);
  const warnings = open
    .out()
    .split('\n')
    .filter((line) => line.includes(' file that every user of this machine may read (mode 0644); allowed: mode 0600'));
  t.same(
    warnings.map((line) => /warning: (\S+)/.exec(line)?.[1]),
    ['listen.tls.key_file', 'identity.assertion.key_file', 'store.redis.password_file', 'sessions.api_key'],
  );
  t.equal((await checked('--strict')).code(), 1);
  for (const name of ['..2026/tls.key', 'redis', 'api-key', 'assertion.pem']) rmSync(pathOf(name));
  t.notMatch((await checked()).out(), /may read/, 'a file that is elsewhere is looked at where it is');
});

t.test('--json', async (t) => {
  const good = await check(t, plain, '--json');
  t.match(JSON.parse(good.out()), { file: 'sallyport.yaml', ok: true, problems: [] });
  const bad = await check(t, 'routes: 1\n', '--json');
  t.equal(bad.code(), 1);
  t.match(JSON.parse(bad.out()), {
    ok: false,
    sha256: null,
    problems: [{ severity: 'error', line: Number, column: Number, message: String }],
  });
  const strict = await check(t, warned, '--json', '--strict');
  t.match(JSON.parse(strict.out()), { ok: false, problems: [{ severity: 'warning' }] });
});

t.test('what is no config is refused', async (t) => {
  const layers = 'bcdefghi'.split('').map(
    (name, index) =>
      `${name}: &${name} [${Array(9)
        .fill(`*${'abcdefgh'.charAt(index)}`)
        .join(',')}]\n`,
  );
  const bomb = `a: &a [x,x,x,x,x,x,x,x,x]\n${layers.join('')}`;
  const rows: readonly { name: string; text: string; problem: RegExp }[] = [
    { name: 'an empty file', text: '', problem: /^sallyport\.yaml:1:1: error: / },
    { name: 'a duplicate key', text: `${baseConfig()}routes: []\n`, problem: /error: / },
    { name: 'a bomb of aliases', text: bomb, problem: /error: / },
    { name: 'broken YAML', text: 'listen: [', problem: /error: / },
    { name: 'two documents', text: `${baseConfig()}---\n${baseConfig()}`, problem: /error: / },
    { name: 'controls of a terminal', text: '"\\e[2Jlisten": 1\n', problem: /error: / },
  ];
  for (const { name, text, problem } of rows) {
    const io = await check(t, text);
    t.equal(io.code(), 1, name);
    t.match(io.out(), problem, name);
    t.notMatch(io.out(), /[\x1b\x07]/, `${name}: no controls`);
  }
});

t.test('a value from a placeholder is used and never shown', async (t) => {
  const good = await check(t, baseConfig({ listen: { port: '${env:PORT}' } }));
  t.equal(good.code(), 0);
  const bad = await check(
    t,
    baseConfig({ listen: { port: '${env:SECRET}' }, upstream: { url: 'http://${env:SECRET}@x/${env:SECRET}' } }),
  );
  t.equal(bad.code(), 1);
  t.notMatch(bad.out(), /hunter2/);
  const missing = await check(t, baseConfig({ listen: { port: '${env:NONE}' } }));
  t.match(missing.out(), /error: .*NONE/);
});

t.test('a file that cannot be read as it is', async (t) => {
  const cwd = tempDir(t);
  mkdirSync(join(cwd, 'folder'));
  makeFifo(join(cwd, 'fifo'));
  writeFileSync(join(cwd, 'large.yaml'), '#'.repeat(5 * 1024 * 1024));
  writeFileSync(join(cwd, 'binary.yaml'), Buffer.from([0xff, 0xfe, 0x00]));
  for (const [file, message] of Object.entries({
    'missing.yaml': /does not exist/,
    folder: /is a directory/,
    fifo: /FIFO/,
    'large.yaml': /larger/,
    'binary.yaml': /not UTF-8/,
  })) {
    for (const argv of [
      ['check', file],
      ['serve', '--config', file],
      ['doctor', '--config', file],
    ]) {
      const io = captureIo({ cwd });
      await run(argv, io);
      t.equal(io.code(), 2, argv.join(' '));
      t.match(io.err(), message, argv.join(' '));
      t.match(io.err(), new RegExp(`^error: ${file}: `), 'the line names the file');
      t.equal(io.out(), '');
      t.notOk(io.isListening(), 'and listens for no signal');
    }
  }
});
