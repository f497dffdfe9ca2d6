import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { run } from '../../../src/cli/program.js';
import { startImportCore, type ImportCore } from '../../support/import-core.js';
import { createUserMaker, userLines } from '../../support/import-users.js';
import { projectDir } from '../../support/project-dir.js';
import type { Scope } from '../../support/scope.js';
import { sh } from '../../support/sh.js';
import { until } from '../../support/until.js';
import { captureIo, type CapturedIo } from '../../cli/captured-io.js';
import { startCommand, type StartedCommand } from '../../cli/started-command.js';

const users = 100;
const lines = [...userLines(users, createUserMaker())].join('');

async function coreWithFile(t: Scope): Promise<ImportCore> {
  const core = await startImportCore(t);
  writeFileSync(join(core.dir, 'users.jsonl'), lines);
  return core;
}

function begin(t: Scope, core: ImportCore, ...args: readonly string[]): StartedCommand {
  return startCommand(t, ['import', join(core.dir, 'users.jsonl'), '--curl-config', core.curlConfig, ...args]);
}

async function journalGrows(core: ImportCore, bytes: number): Promise<void> {
  await until(
    'the journal grows',
    () => (statSync(join(core.dir, 'users.jsonl.import-journal'), { throwIfNoEntry: false })?.size ?? 0) > bytes,
  );
}

async function resume(core: ImportCore, ...args: readonly string[]): Promise<CapturedIo> {
  const io = captureIo({ cwd: core.dir });
  await run(['import', 'users.jsonl', '--curl-config', core.curlConfig, '--resume', ...args], io);
  return io;
}

t.test('Ctrl-C: those under way come to their end, and the rest is left for --resume', async (t) => {
  const core = await coreWithFile(t);
  const command = begin(t, core, '--rate', '100');
  await journalGrows(core, 1_500);
  command.signal('SIGINT');
  t.same(await command.exited, { code: 3, signal: null });
  t.match(command.stderr(), /SIGINT: waiting for the users in flight/);
  t.match(command.stderr(), /^stopped: by SIGINT; go on with --resume$/m);
  const report = JSON.parse(readFileSync(join(core.dir, 'users.jsonl.import-report.json'), 'utf8')) as {
    created: number;
    left: number;
  };
  t.ok(report.created > 0 && report.left > 0 && report.created + report.left === users, JSON.stringify(report));
  t.equal(await core.count(), report.created, 'nobody is half in');
  const again = await resume(core);
  t.equal(again.code(), 0, again.err());
  t.match(again.err(), new RegExp(`^going on after ${String(report.created)} of ${String(users)}$`, 'm'));
  t.equal(await core.count(), users);
});

t.test('a second import of the same file is refused while the first one runs', async (t) => {
  const core = await coreWithFile(t);
  const command = begin(t, core, '--rate', '20');
  await journalGrows(core, 500);
  const second = await resume(core);
  t.equal(second.code(), 2);
  t.match(second.err(), new RegExp(`is of an import that is still running \\(process ${String(command.pid)}\\)`));
  command.signal('SIGKILL');
  await command.exited;
  t.equal((await resume(core)).code(), 0, "a dead one is in nobody's way");
  t.equal(await core.count(), users);
});

t.test('a journal that can grow no more stops the run, and nothing is lost', async (t) => {
  const core = await coreWithFile(t);
  // Node ignores the signal that comes with it, so that the write fails as on a full disk; `env -i`: and has nothing to
  // write at its end.
  const limited = 'ulimit -f 8; exec env -i "$0" "$@"';
  const child = spawn(
    sh,
    [
      '-c',
      limited,
      process.execPath,
      join(projectDir, 'dist/main.js'),
      'import',
      join(core.dir, 'users.jsonl'),
      '--curl-config',
      core.curlConfig,
    ],
    { stdio: ['ignore', 'ignore', 'pipe'] },
  );
  let err = '';
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => (err += chunk));
  const [code] = (await once(child, 'close')) as [number | null];
  t.equal(code, 3, err);
  t.match(err, /^stopped: the journal cannot be written \(EFBIG\); go on with --resume$/m);
  const before = await core.count();
  t.ok(before > 0 && before < users, `${before} users`);
  const again = await resume(core, '--json');
  t.equal(again.code(), 0, again.err());
  t.match(JSON.parse(again.out()), { created: users, existed: 0 });
  t.equal(await core.count(), users);
});

t.test('a Core that ends and comes back while the import runs', async (t) => {
  const core = await coreWithFile(t);
  const command = begin(t, core, '--rate', '200');
  await journalGrows(core, 1_500);
  await core.killAndRestart();
  t.same(await command.exited, { code: 0, signal: null }, command.stderr());
  t.equal(await core.count(), users);
});

t.test('a Core that stays away', async (t) => {
  const core = await coreWithFile(t);
  const command = begin(t, core, '--rate', '200', '--give-up-after', '1s');
  await journalGrows(core, 1_500);
  await core.kill();
  t.same(await command.exited, { code: 3, signal: null });
  t.match(command.stderr(), /^trying again: /m);
  t.match(command.stderr(), /^stopped: the Core has not answered well for 1 s: /m);
  await core.restart();
  t.equal((await resume(core)).code(), 0);
  t.equal(await core.count(), users);
});

t.test('an input that somebody writes to meanwhile, at its header', async (t) => {
  const core = await startImportCore(t);
  const file = join(core.dir, 'users.csv');
  const good = `email,passwordHash\nnone,none\nheader@example.com,$2a$04$${'a'.repeat(53)}\n`;
  const spoil = (): void => writeFileSync(file, good.replace('email', 'emaiL'));
  const went = async (onSignal: () => () => void, ...args: readonly string[]): Promise<CapturedIo> => {
    writeFileSync(file, good);
    const io = captureIo({ cwd: core.dir });
    await run(['import', 'users.csv', '--curl-config', core.curlConfig, ...args], { ...io, onSignal });
    return io;
  };
  const before = await went(() => {
    spoil();
    return () => undefined;
  });
  t.equal(before.code(), 3, before.err());
  t.match(before.err(), /^stopped: the input changed while it was read/m);
  t.equal(await core.count(), 0);
  const after = await went(() => spoil, '--resume');
  t.equal(after.code(), 3, after.err());
  t.match(after.err(), /users\.csv\.import-rejected\.csv cannot be written: the input changed while it was read/);
  t.equal(existsSync(`${file}.import-rejected.csv.new`), false);
  const whole = await went(() => () => undefined, '--resume');
  t.equal(whole.code(), 1, whole.err());
  t.equal(await core.count(), 1);
});
