import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { commandNames, run } from '../../src/cli/program.js';
import { version } from '../../src/version.js';
import { projectDir } from '../support/project-dir.js';
import { captureIo } from './captured-io.js';

t.test('contract 1: the command line', async (t) => {
  const rows: readonly { name: string; argv: readonly string[]; code: number; out?: RegExp; err?: RegExp }[] = [
    { name: 'nothing', argv: [], code: 2, err: /Usage: sallyport/ },
    { name: '--help', argv: ['--help'], code: 0, out: /serve[^]*check[^]*doctor[^]*health/ },
    { name: 'help', argv: ['help'], code: 0, out: /Usage: sallyport/ },
    { name: '--version', argv: ['--version'], code: 0, out: /^sallyport \d+\.\d+\.\d+(-dev)? \(.*, Node v\d+\..*\)\n$/ },
    { name: 'an unknown command', argv: ['server'], code: 2, err: /unknown command 'server'[^]*serve/ },
    { name: 'an unknown option', argv: ['--verbose'], code: 2, err: /unknown option '--verbose'/ },
    { name: 'an unknown option of a command', argv: ['check', 'x', '--verbose'], code: 2, err: /unknown option/ },
    { name: 'a missing argument', argv: ['check'], code: 2, err: /missing required argument 'file'/ },
    { name: 'an argument too many', argv: ['check', 'a', 'b'], code: 2, err: /too many arguments/ },
    { name: 'a missing option', argv: ['serve'], code: 2, err: /--config/ },
    { name: 'an option without its value', argv: ['serve', '--config'], code: 2, err: /argument missing/ },
    { name: 'help of an unknown command', argv: ['help', 'server'], code: 2 },
  ];
  for (const { name, argv, code, out, err } of rows) {
    const io = captureIo();
    await run(argv, io);
    t.equal(io.code(), code, `${name}: exit code`);
    if (out !== undefined) t.match(io.out(), out, name);
    if (err !== undefined) t.match(io.err(), err, name);
    t.equal(out === undefined ? io.out() : io.err(), '', `${name}: nothing on the other stream`);
  }
});

t.test('contract 1: every command has --help', async (t) => {
  for (const name of commandNames) {
    const asked = captureIo();
    await run([name, '--help'], asked);
    t.equal(asked.code(), 0, name);
    t.match(asked.out(), new RegExp(`^Usage: sallyport ${name} `), name);
    t.match(asked.out(), /Exit code: 0/, `${name} says what its exit codes mean`);
    const told = captureIo();
    await run(['help', name], told);
    t.equal(told.out(), asked.out(), `help ${name} says the same`);
    t.equal(told.code(), 0, name);
  }
});

t.test('the version is that of package.json', (t) => {
  const manifest: unknown = JSON.parse(readFileSync(join(projectDir, 'package.json'), 'utf8'));
  t.match(manifest, { version });
  t.end();
});
