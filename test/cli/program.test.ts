import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { textOf } from '../../src/cli/definition.js';
import { commandNames, run } from '../../src/cli/program.js';
import { version } from '../../src/version.js';
import { projectDir } from '../support/project-dir.js';
import { captureIo } from './captured-io.js';
import { pathOf, wholeProgram, withChildren } from './whole-program.js';

t.test('help, version, and wrong usage of the program', async (t) => {
  const rows: readonly { name: string; argv: readonly string[]; code: number; out?: RegExp; err?: RegExp }[] = [
    { name: 'nothing', argv: [], code: 2, err: /Usage: sallyport/ },
    {
      name: '--help',
      argv: ['--help'],
      code: 0,
      out: /Run it:\n {2}serve [^]*Policy:\n {2}check [^]*Operate:\n {2}doctor [^]*\nThe Core[^]*mint /,
    },
    { name: 'help', argv: ['help'], code: 0, out: /Usage: sallyport/ },
    {
      name: '--version',
      argv: ['--version'],
      code: 0,
      out: /^sallyport \d+\.\d+\.\d+(?:-dev)? \(.+, Node v\d+\.\d+\.\d+\)\n$/,
    },
    { name: '-V', argv: ['-V'], code: 0, out: /^sallyport \d/ },
    {
      name: 'an unknown command',
      argv: ['server'],
      code: 2,
      err: /^error: unknown command 'server'\n\(Did you mean serve\?\)\nsee sallyport --help\n$/,
    },
    {
      name: 'an unknown command that asks for help',
      argv: ['server', '--help'],
      code: 2,
      err: /^error: unknown command 'server'\n/,
    },
    {
      name: 'help of an unknown command',
      argv: ['help', 'chekc'],
      code: 2,
      err: /^error: unknown command 'chekc'\n\(Did you mean check\?\)\nsee sallyport --help\n$/,
    },
    {
      name: 'help of what is like no command',
      argv: ['help', 'nothing'],
      code: 2,
      err: /^error: unknown command 'nothing'\nsee sallyport --help\n$/,
    },
    {
      name: 'help of a command of a command',
      argv: ['help', 'record', 'show'],
      code: 0,
      out: /^Usage: sallyport record show /,
    },
    {
      name: 'an unknown option',
      argv: ['--verbose'],
      code: 2,
      err: /^error: unknown option '--verbose'\n(?:.*\n)?see sallyport --help\n$/,
    },
    {
      name: 'an unknown option of a command',
      argv: ['check', 'x', '--verbose'],
      code: 2,
      err: /^error: unknown option '--verbose'\nsee sallyport check --help\n$/,
    },
    {
      name: 'an option that is nearly right',
      argv: ['serve', '--cfg', 'x'],
      code: 2,
      err: /^error: unknown option '--cfg'\n\(Did you mean --config\?\)\nsee sallyport serve --help\n$/,
    },
    {
      name: 'an unknown option before one that is missing',
      argv: ['explain', '--methd', 'GET', '--path', '/'],
      code: 2,
      err: /^error: unknown option '--methd'\n\(Did you mean --method\?\)\nsee sallyport explain --help\n$/,
    },
    {
      name: 'a missing option',
      argv: ['explain', '--path', '/'],
      code: 2,
      err: /^error: required option '--method <method>' not specified\nsee sallyport explain --help\n$/,
    },
    {
      name: 'a missing argument',
      argv: ['diff', 'a'],
      code: 2,
      err: /^error: missing required argument 'new'\nsee sallyport diff --help\n$/,
    },
    {
      name: 'an argument too many',
      argv: ['check', 'a', 'b'],
      code: 2,
      err: /^error: too many arguments.*\nsee sallyport check --help\n$/,
    },
    {
      name: 'an option without its value',
      argv: ['serve', '--config'],
      code: 2,
      err: /^error: option '--config <file>' argument missing\nsee sallyport serve --help\n$/,
    },
    {
      name: 'an unknown command of a command',
      argv: ['record', 'shwo'],
      code: 2,
      err: /^error: unknown command 'shwo'\n\(Did you mean show\?\)\nsee sallyport record --help\n$/,
    },
    {
      name: 'a value that is none',
      argv: ['dev', '--port', '70000'],
      code: 2,
      err: /^error: option '--port <number>' argument '70000' is invalid\. Allowed: .* 65535\.\nsee sallyport dev --help\n$/,
    },
    {
      name: 'an argument that is none of those there are',
      argv: ['completion', 'tcsh'],
      code: 2,
      err: /^error: 'tcsh' is invalid for argument 'shell'\. Allowed choices are bash, zsh, fish\.\nsee sallyport completion --help\n$/,
    },
    ...['explain', 'revoke'].map((command) => ({
      name: `a token as an argument of ${command}`,
      argv: [command, '--token', 'abc'],
      code: 2 as const,
      err: new RegExp(
        `^error: unknown option '--token'\\n\\(Did you mean --token-stdin\\?\\)\\nsee sallyport ${command} --help\\n$`,
      ),
    })),
    {
      name: 'arguments that do not go together',
      argv: ['test'],
      code: 2,
      err: /^error: test needs either .*\nsee sallyport test --help\n$/,
    },
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

t.test('every command has --help', async (t) => {
  for (const name of commandNames) {
    const asked = captureIo();
    await run([name, '--help'], asked);
    t.equal(asked.code(), 0, name);
    t.match(asked.out(), new RegExp(`^Usage: sallyport ${name} `), name);
    t.match(asked.out(), /\nExamples:\n {2}# .+\n {2}\S/, `${name} has examples`);
    t.match(asked.out(), /\nExit codes:\n {2}0 {2}/, `${name} says what its exit codes mean`);
    t.match(asked.out(), /\nMore: \S+\.md(?:#\S+)?\n$/, `${name} names its page`);
    const told = captureIo();
    await run(['help', name], told);
    t.equal(told.out(), asked.out(), `help ${name} says the same`);
    t.equal(told.code(), 0, name);
  }
});

t.test('help is as wide as the terminal, 80 columns where there is none, and in ASCII', async (t) => {
  const widthOf = (text: string): number => Math.max(...text.split('\n').map((line) => line.length));
  for (const argv of [['--help'], ...commandNames.map((name) => [name, '--help'])]) {
    const io = captureIo();
    await run(argv, io);
    t.ok(widthOf(io.out()) <= 80, `${argv.join(' ')}: ${String(widthOf(io.out()))} columns`);
    t.match(io.out(), /^[\n -~]*$/, argv.join(' '));
    const narrow = captureIo();
    await run(argv, { ...narrow, columns: () => 60 });
    const [examples = ''] = /\nExamples:\n[^]*?\n\n(?=Exit codes)/.exec(narrow.out()) ?? [];
    t.ok(widthOf(narrow.out().replace(examples, '')) <= 60, `${argv.join(' ')}: all but what is there to be copied`);
  }
});

/** Words of a command line as a shell would split it, up to what it does with files and other programs. */
function wordsOf(line: string): readonly string[] {
  return [...line.replaceAll('\\\n', ' ').matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map(
    ([, double, single, bare]) => double ?? single ?? bare ?? '',
  );
}

t.test('the command lines of the examples are command lines', async (t) => {
  const program = await wholeProgram();
  let seen = 0;
  for (const command of withChildren(program)) {
    for (const [, lines] of textOf(command)?.examples ?? []) {
      for (const line of lines.replaceAll('\\\n', ' ').split(/\n|\| | && /)) {
        const called = /(?:^|[('] ?)sallyport ([^>)]*)/.exec(line.trim());
        if (called === null) continue;
        const words = wordsOf(called[1]?.replace(/ [<>].*$/, '') ?? '').map((word) =>
          word === 'ID' ? `${'a'.repeat(43)}.${'b'.repeat(43)}` : word,
        );
        const fresh = await wholeProgram();
        let ran = '';
        for (const leaf of withChildren(fresh).filter(({ commands }) => commands.length === 0)) {
          leaf.action(() => {
            ran = pathOf(leaf);
          });
        }
        await t.resolves(fresh.parseAsync(words, { from: 'user' }), line);
        t.ok(ran.startsWith('sallyport '), line);
        seen += 1;
      }
    }
  }
  t.ok(seen > commandNames.length, 'all commands have some');
});

t.test('the pages that help names are there, with their headings', async (t) => {
  for (const command of withChildren(await wholeProgram())) {
    const [page = '', anchor] = textOf(command)?.page.split('#') ?? [];
    if (page === '') continue;
    const headings = readFileSync(join(projectDir, page), 'utf8')
      .split('\n')
      .filter((line) => line.startsWith('#'))
      .map((line) =>
        line
          .replace(/^#+ /, '')
          .toLowerCase()
          .replace(/[^a-z0-9 -]/g, '')
          .replaceAll(' ', '-'),
      );
    t.ok(anchor === undefined || headings.includes(anchor), `${pathOf(command)}: ${page}#${anchor ?? ''}`);
  }
});

t.test('the version is that of package.json', (t) => {
  const manifest: unknown = JSON.parse(readFileSync(join(projectDir, 'package.json'), 'utf8'));
  t.match(manifest, { version });
  t.end();
});
