import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import t from 'tap';
import { run } from '../../../src/cli/program.js';
import type { Scope } from '../../support/scope.js';
import { tempDir } from '../../support/temp-dir.js';
import { baseConfig } from '../../support/proxy-process.js';
import { captureIo, type CapturedIo } from '../captured-io.js';

/** A config that says which one it is where its error is told. */
const wrong = 'nothing: here\n';

const id = `${'a'.repeat(43)}.${'b'.repeat(43)}`;

/** Every command that reads a config, with what else it needs. Each fails on a wrong one before it does anything. */
const readers: readonly (readonly string[])[] = [
  ['serve'],
  ['check'],
  ['doctor'],
  ['store', 'failover'],
  ['explain', '--method', 'GET', '--path', '/'],
  ['record', 'show', id],
  ['record', 'resolve', id, '--outcome', 'committed', '--reason', 'x'],
  ['revoke', '--list'],
  ['revoke', '--subject', 'x', '--for', '1h', '--reason', 'x'],
];

function folder(t: Scope, files: readonly string[]): string {
  const cwd = tempDir(t);
  for (const file of files) writeFileSync(join(cwd, file), wrong);
  return cwd;
}

/** The file of which the command told an error. */
async function readBy(
  argv: readonly string[],
  cwd: string,
  env: Readonly<Record<string, string>> = {},
): Promise<string | null> {
  const io = captureIo({ cwd, env });
  await run(argv, io);
  return /^(\S+?):\d+:\d+: error: /m.exec(io.out() + io.err())?.[1] ?? null;
}

t.test(
  'a config is named by an argument or an option, else by SALLYPORT_CONFIG, else it is ./sallyport.yaml',
  async (t) => {
    const cwd = folder(t, ['a.yaml', 'b.yaml', 'sallyport.yaml']);
    for (const argv of readers) {
      const name = argv.join(' ');
      t.equal(await readBy([...argv, 'a.yaml'], cwd, { SALLYPORT_CONFIG: 'b.yaml' }), 'a.yaml', `${name} FILE`);
      t.equal(
        await readBy([...argv, '--config', 'a.yaml'], cwd, { SALLYPORT_CONFIG: 'b.yaml' }),
        'a.yaml',
        `${name} --config FILE`,
      );
      t.equal(await readBy([...argv, '--config=a.yaml'], cwd), 'a.yaml', `${name} --config=FILE`);
      t.equal(await readBy(argv, cwd, { SALLYPORT_CONFIG: 'b.yaml' }), 'b.yaml', `${name} with the variable`);
      t.equal(await readBy(argv, cwd, { SALLYPORT_CONFIG: '' }), 'sallyport.yaml', `${name} with the variable empty`);
      t.equal(await readBy(argv, cwd), 'sallyport.yaml', `${name} alone`);
    }
    t.equal(await readBy(['record', '--config', 'a.yaml', 'show', id], cwd), 'a.yaml', 'before the action, too');
    t.equal(await readBy(['test', '--init'], cwd), 'sallyport.yaml');
    t.equal(await readBy(['test', '--init', 'a.yaml'], cwd), 'a.yaml');
  },
);

t.test('a config named twice is wrong usage; where none is named, all four ways to name one are shown', async (t) => {
  const cwd = folder(t, ['a.yaml']);
  for (const argv of readers) {
    const twice = captureIo({ cwd });
    await run([...argv, 'a.yaml', '--config', 'a.yaml'], twice);
    t.equal(twice.code(), 2, argv.join(' '));
    t.match(twice.err(), /^error: the config is named twice, by a\.yaml and by --config a\.yaml; name one$/m);
    const none = captureIo({ cwd });
    await run(argv, none);
    t.equal(none.code(), 2, argv.join(' '));
    t.match(
      none.err(),
      /^error: there is no config to read: name it as FILE or with --config FILE, set SALLYPORT_CONFIG, or put sallyport\.yaml into this folder$/m,
    );
    const gone = captureIo({ cwd, env: { SALLYPORT_CONFIG: 'gone.yaml' } });
    await run(argv, gone);
    t.equal(gone.code(), 2, argv.join(' '));
    t.match(gone.err(), /^error: gone\.yaml: does not exist \(SALLYPORT_CONFIG names it\)$/m);
  }
});

async function fed(argv: readonly string[], stdin: string | Buffer): Promise<CapturedIo> {
  const io = captureIo();
  await run(argv, { ...io, stdin: Readable.from([stdin]) });
  return io;
}

t.test('a dash is standard input', async (t) => {
  for (const argv of readers.filter(([name]) => name !== 'serve')) {
    const io = await fed([...argv, '-'], wrong);
    t.match(io.out() + io.err(), /^<stdin>:1:1: error: /m, argv.join(' '));
    t.equal(io.code(), 1, argv.join(' '));
  }
  const good = await fed(['check', '-'], baseConfig());
  t.equal(good.code(), 0);
  t.match(good.err(), /^<stdin>: ok/m);
  t.match(
    await fed(['check', '--config', '-'], Buffer.from([0xff, 0xfe])).then((io) => io.err()),
    /^error: <stdin>: is not UTF-8 text$/m,
  );
  t.match(
    await fed(['check', '-'], '#'.repeat(5 * 1024 * 1024)).then((io) => io.err()),
    /^error: <stdin>: is larger than \d+ bytes$/m,
  );
});

t.test('diff takes one of its two from standard input', async (t) => {
  const cwd = tempDir(t);
  writeFileSync(join(cwd, 'next.yaml'), baseConfig());
  const io = captureIo({ cwd, stdin: baseConfig() });
  await run(['diff', '-', 'next.yaml'], io);
  t.equal(io.code(), 0, io.err());
  const both = await fed(['diff', '-', '-'], baseConfig());
  t.equal(both.code(), 2);
  t.match(both.err(), /^error: standard input is one config, and cannot be both$/m);
});

t.test('where standard input cannot be the config, that is said', async (t) => {
  const rows: readonly { readonly argv: readonly string[]; readonly says: RegExp }[] = [
    {
      argv: ['serve', '-'],
      says: /^error: the config cannot come from standard input: serve reads it again when it changes, and needs a file\nsee sallyport serve --help$/m,
    },
    {
      argv: ['explain', '-', '--method', 'GET', '--path', '/', '--token-stdin'],
      says: /^error: standard input holds the token, so that the config has to be a file$/m,
    },
    {
      argv: ['revoke', '-', '--token-stdin', '--for', '1h', '--reason', 'x'],
      says: /^error: standard input holds the token/m,
    },
    {
      argv: ['test', '--init', '-'],
      says: /^error: --init needs a file: the cases name the config that they are for$/m,
    },
  ];
  for (const { argv, says } of rows) {
    const io = await fed(argv, baseConfig());
    t.equal(io.code(), 2, argv.join(' '));
    t.match(io.err(), says);
    t.notOk(io.isListening(), 'and it listens for no signal');
  }
});

t.test('a terminal is told what is waited for', async (t) => {
  const rows: readonly { readonly argv: readonly string[]; readonly what: string }[] = [
    { argv: ['check', '-'], what: 'the config' },
    { argv: ['explain', '--method', 'GET', '--path', '/', '--token-stdin'], what: 'a token' },
    { argv: ['revoke', '--token-stdin', '--for', '1h', '--reason', 'x'], what: 'a token' },
    { argv: ['mint', '--curl-config', 'core.curl', '--issuer', 'https://api.example.com'], what: 'claims' },
  ];
  const cwd = tempDir(t);
  writeFileSync(join(cwd, 'core.curl'), 'url = "http://127.0.0.1:1"\n', { mode: 0o600 });
  writeFileSync(join(cwd, 'sallyport.yaml'), baseConfig());
  for (const { argv, what } of rows) {
    const io = captureIo({ cwd });
    await run(argv, { ...io, isInputTerminal: () => true });
    t.match(io.err(), new RegExp(`^reading ${what} from standard input; Ctrl-D ends it$`, 'm'), argv.join(' '));
    const piped = captureIo({ cwd });
    await run(argv, { ...piped, isInputTerminal: () => false });
    t.notMatch(piped.err(), /reading/);
  }
});
