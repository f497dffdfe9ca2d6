import { Command, CommanderError } from 'commander';
import { parseRecordId } from '../decision/reservation-scope.js';
import { versionLine } from '../version.js';
import type { Io } from './io.js';

interface Entry {
  readonly summary: string;
  readonly load: () => Promise<(io: Io) => Command>;
}

/** Every command. Each is loaded when it is asked for: `health` runs every few seconds and must not load the proxy. */
const entries: Readonly<Record<string, Entry>> = {
  serve: { summary: 'run the proxy', load: async () => (await import('./serve.js')).createServeCommand },
  dev: { summary: 'run everything on loopback, to try it out', load: async () => (await import('./dev.js')).createDevCommand },
  check: { summary: 'say what is wrong with a config, all at once', load: async () => (await import('./check.js')).createCheckCommand },
  explain: { summary: 'explain one decision, step by step', load: async () => (await import('./explain.js')).createExplainCommand },
  test: { summary: 'run policy tests', load: async () => (await import('./test.js')).createTestCommand },
  diff: { summary: 'say what an edit of the config changes in effect', load: async () => (await import('./diff.js')).createDiffCommand },
  doctor: { summary: 'look at what a config needs: keys, clock, receiver, Redis, certificates',
    load: async () => (await import('./doctor.js')).createDoctorCommand },
  mint: { summary: 'mint a service token through the Core', load: async () => (await import('./mint.js')).createMintCommand },
  record: { summary: 'read or resolve a reservation in doubt', load: async () => (await import('./record.js')).createRecordCommand },
  revoke: { summary: 'withdraw keys, subjects or tokens on every proxy', load: async () => (await import('./revoke.js')).createRevokeCommand },
  import: { summary: 'import existing users into the Core', load: async () => (await import('./import.js')).createImportCommand },
  health: { summary: 'ask the running proxy whether it is ready', load: async () => (await import('./health.js')).createHealthCommand },
  core: { summary: 'run the Core emulator alone', load: async () => (await import('./core.js')).createCoreCommand },
};

/** Names of the commands, as the help lists them. */
export const commandNames: readonly string[] = Object.keys(entries);

/** Runs one command line, without the program's own name. Sets the exit code; never throws. */
export async function run(argv: readonly string[], io: Io): Promise<void> {
  try {
    const words = idsLast(argv);
    const program = await createProgram(askedFor(words), io);
    await program.parseAsync(words, { from: 'user' });
  } catch (error) {
    if (error instanceof CommanderError) {
      io.exit(error.exitCode === 0 ? 0 : 2);
      return;
    }
    io.stderr(`sallyport: ${error instanceof Error ? error.message : 'unknown error'}\n`);
    io.exit(1);
  }
}

/** One id of a record in 64 begins with a dash, and would be taken for an option. */
function idsLast(argv: readonly string[]): readonly string[] {
  const isDashedId = (word: string): boolean => word.startsWith('-') && parseRecordId(word) !== null;
  if (argv.includes('--') || !argv.some(isDashedId)) return argv;
  return [...argv.filter((word) => !isDashedId(word)), '--', ...argv.filter(isDashedId)];
}

/** `serve --help` and `help serve` both ask for `serve`. */
function askedFor(argv: readonly string[]): string | undefined {
  return argv[0] === 'help' ? argv[1] : argv[0];
}

async function createProgram(asked: string | undefined, io: Io): Promise<Command> {
  const program = settle(new Command('sallyport'), io)
    .description('Auth sidecar in front of one receiving service.')
    .version(versionLine, '--version', 'print the version, the commit and the release of Node.js')
    .showHelpAfterError('(sallyport --help lists the commands)');
  for (const [name, entry] of Object.entries(entries)) {
    if (name === asked) program.addCommand(settle((await entry.load())(io), io).summary(entry.summary));
    else program.command(name).summary(entry.summary);
  }
  return program;
}

/** Makes a command print through `io` and throw where it would end the process. */
function settle(command: Command, io: Io): Command {
  command.exitOverride().configureOutput({ writeOut: io.stdout, writeErr: io.stderr });
  for (const child of command.commands) settle(child, io);
  return command;
}
