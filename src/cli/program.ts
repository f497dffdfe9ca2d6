import { Command, CommanderError } from 'commander';
import { parseRecordId } from '../decision/idempotency/scope.js';
import { messageOf } from '../lib/errors.js';
import { versionLine } from '../version.js';
import { defineCommand, settle } from './definition.js';
import { NoWorkingDirectory, type Io } from './io.js';
import { tools, type LoadCommand } from './tools.js';

interface Entry {
  readonly group: string;
  readonly summary: string;
  /** Absent for a tool in an image without tools. */
  readonly load: LoadCommand | undefined;
}

const groups = {
  run: 'Run it:',
  policy: 'Policy:',
  operate: 'Operate:',
  core: 'The Core, which mints tokens and keeps users:',
  shell: 'Shell:',
} as const;

/**
 * Every command. Each is loaded when it is asked for, and what it runs when it runs: help and completion come at once.
 */
const entries: Readonly<Record<string, Entry>> = {
  serve: {
    group: groups.run,
    summary: 'run the proxy',
    load: async () => (await import('./commands/serve/index.js')).createServeCommand,
  },
  dev: {
    group: groups.run,
    summary: 'run everything on loopback, to try it out',
    load: tools.dev,
  },
  check: {
    group: groups.policy,
    summary: 'say what is wrong with a config, all at once',
    load: async () => (await import('./commands/check/index.js')).createCheckCommand,
  },
  schema: {
    group: groups.policy,
    summary: 'print the schema of the config, for editors',
    load: async () => (await import('./commands/schema.js')).createSchemaCommand,
  },
  explain: {
    group: groups.policy,
    summary: 'explain one decision, step by step',
    load: async () => (await import('./commands/explain/index.js')).createExplainCommand,
  },
  test: {
    group: groups.policy,
    summary: 'run policy tests',
    load: async () => (await import('./commands/test/index.js')).createTestCommand,
  },
  diff: {
    group: groups.policy,
    summary: 'say what an edit of the config changes in effect',
    load: async () => (await import('./commands/diff/index.js')).createDiffCommand,
  },
  playground: {
    group: groups.policy,
    summary: 'write a page to try a policy in, without a server',
    load: async () => (await import('./commands/playground/index.js')).createPlaygroundCommand,
  },
  learn: {
    group: groups.policy,
    summary: 'propose a policy from the log of shadow mode',
    load: async () => (await import('./commands/learn/index.js')).createLearnCommand,
  },
  doctor: {
    group: groups.operate,
    summary: 'look at what a config needs: keys, clock, service, Redis',
    load: async () => (await import('./commands/doctor/index.js')).createDoctorCommand,
  },
  health: {
    group: groups.operate,
    summary: 'ask the running proxy whether it is ready',
    load: async () => (await import('./commands/health/index.js')).createHealthCommand,
  },
  revoke: {
    group: groups.operate,
    summary: 'revoke keys, subjects or tokens on every proxy',
    load: async () => (await import('./commands/revoke/index.js')).createRevokeCommand,
  },
  prove: {
    group: groups.operate,
    summary: 'make the headers of one request with a bound token',
    load: async () => (await import('./commands/prove/index.js')).createProveCommand,
  },
  record: {
    group: groups.operate,
    summary: 'list, read or resolve writes in doubt',
    load: async () => (await import('./commands/record/index.js')).createRecordCommand,
  },
  store: {
    group: groups.operate,
    summary: 'replace the primary of Redis without losing writes',
    load: async () => (await import('./commands/store/index.js')).createStoreCommand,
  },
  mint: {
    group: groups.core,
    summary: 'mint a service token through the Core',
    load: async () => (await import('./commands/mint/index.js')).createMintCommand,
  },
  import: {
    group: groups.core,
    summary: 'import existing users into the Core',
    load: tools.import,
  },
  core: {
    group: groups.core,
    summary: 'run the Core emulator alone',
    load: tools.core,
  },
  completion: {
    group: groups.shell,
    summary: 'print completion for bash, zsh or fish',
    load: async () => (await import('./commands/completion/index.js')).createCompletionCommand,
  },
};

/** Names of the commands that are there, as the help lists them. */
export const commandNames: readonly string[] = Object.keys(entries).filter((name) => entries[name]?.load !== undefined);

/** Runs one command line, without the program's own name. Sets the exit code; never throws. */
export async function run(argv: readonly string[], io: Io): Promise<void> {
  try {
    const words = idsLast(helpLast(argv));
    const [asked = ''] = words;
    if (asked in entries && !commandNames.includes(asked)) {
      io.stderr(
        `error: this is the proxy alone, without ${asked}: docker build --target tools makes an image with it\n`,
      );
      io.exit(2);
      return;
    }
    const program = await createProgram(asked === 'completion' ? commandNames : [asked], io);
    await program.parseAsync(words, { from: 'user' });
  } catch (error) {
    if (error instanceof CommanderError) {
      io.exit(error.exitCode === 0 ? 0 : 2);
      return;
    }
    io.stderr(`error: ${messageOf(error)}\n`);
    io.exit(error instanceof NoWorkingDirectory ? 2 : 1);
  }
}

/** `help record show` is `record show --help`; what is no command is told as such, with or without help asked for. */
function helpLast(argv: readonly string[]): readonly string[] {
  const [first, second] = argv;
  const words =
    first === 'help' && second !== undefined && !second.startsWith('-') ? [...argv.slice(1), '--help'] : argv;
  const [name = '-'] = words;
  return name.startsWith('-') || name === 'help' || commandNames.includes(name) ? words : [name];
}

/** One id of a record in 64 begins with a dash, and would be taken for an option. */
function idsLast(argv: readonly string[]): readonly string[] {
  const isDashedId = (word: string): boolean => word.startsWith('-') && parseRecordId(word) !== null;
  if (argv.includes('--') || !argv.some(isDashedId)) return argv;
  return [...argv.filter((word) => !isDashedId(word)), '--', ...argv.filter(isDashedId)];
}

const tryOut = ['try it out: everything on loopback, with commands to type', 'sallyport dev'] as const;

/** The program, with these commands whole and the others by name. */
export async function createProgram(whole: readonly string[], io: Io): Promise<Command> {
  const program = defineCommand({
    name: 'sallyport',
    about:
      'Auth sidecar in front of one upstream: verifies service tokens, authorizes each operation and stops replays.',
    examples: [
      ...(tools.dev === undefined ? [] : [tryOut]),
      ['run it with a config of yours', 'sallyport check sallyport.yaml && sallyport serve sallyport.yaml'],
    ],
    exitCodes: {
      0: 'yes, or done',
      1: 'the answer is no',
      2: 'usage, or a file that cannot be read as it is',
      3: 'something needed is out of reach',
    },
    page: 'docs/cli.md',
  })
    .usage('COMMAND [options]')
    .version(versionLine, '-V, --version', 'print the version, the commit and the release of Node.js')
    .addHelpCommand(
      new Command('help').argument('[command]').summary('say more about a command').helpGroup(groups.shell),
    );
  for (const [name, { group, summary, load }] of Object.entries(entries)) {
    if (load === undefined) continue;
    const command = whole.includes(name) ? (await load())(io) : new Command(name);
    program.addCommand(command.summary(summary).helpGroup(group));
  }
  return settle(program, io);
}
