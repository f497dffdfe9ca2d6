import { Command, type Help } from 'commander';
import type { ExitCode, Io } from './io.js';

/** What help, `docs/cli.md` and completion say of a command besides its arguments and options. */
export interface CommandText {
  readonly name: string;
  /** What it does, in a sentence or two. */
  readonly about: string;
  /** What it is for, and the line to type. */
  readonly examples: readonly (readonly [purpose: string, line: string])[];
  /** What has to be known besides, a paragraph each. */
  readonly notes?: readonly string[];
  readonly exitCodes: Readonly<Partial<Record<ExitCode, string>>>;
  /** The page to read on, from the project's folder. */
  readonly page: string;
}

/** Width of help that no terminal shows. */
const plainWidth = 80;
/** Narrower than this nothing can be read. */
const leastWidth = 40;
/** Columns beside the names of options that are enough for their text. */
const leastText = 15;

const texts = new WeakMap<Command, CommandText>();

/** Begins a command. It is given its arguments, options and action next. */
export function defineCommand(text: CommandText): Command {
  const command = new Command(text.name).description(text.about);
  texts.set(command, text);
  return command;
}

export function textOf(command: Command): CommandText | undefined {
  return texts.get(command);
}

/**
 * Says which options a command cannot do without. Commander's own mandatory options are looked for before unknown ones
 * are told, so that somebody who mistyped one is told that it is missing.
 */
export function requireOptions(command: Command, ...names: readonly string[]): Command {
  const required = command.options.filter((option) => names.includes(option.attributeName()));
  for (const option of required) option.description += ' (required)';
  return command.hook('preAction', (_parent, asked) => {
    const missing = required.find((option) => asked.getOptionValue(option.attributeName()) === undefined);
    if (missing !== undefined) {
      asked.error(`error: required option '${missing.flags}' not specified`, { code: 'sallyport.missingOption' });
    }
  });
}

/** Makes a command and those below it print through `io`, at its width, and throw where they would end the process. */
export function settle(command: Command, io: Io, path = command.name()): Command {
  command
    .exitOverride()
    .configureOutput({
      writeOut: io.stdout,
      writeErr: io.stderr,
      outputError: (text, write) => {
        write(inOurWords(text));
      },
      getOutHelpWidth: () => widthOf(io, 'stdout'),
      getErrHelpWidth: () => widthOf(io, 'stderr'),
      getOutHasColors: () => false,
      getErrHasColors: () => false,
    })
    .configureHelp({ minWidthToWrap: leastText })
    .helpOption('-h, --help', 'print this help')
    .showHelpAfterError(`see ${path} --help`);
  const text = texts.get(command);
  if (text !== undefined) {
    command.addHelpText('after', ({ error }) =>
      footer(text, command.createHelp(), widthOf(io, error ? 'stderr' : 'stdout')),
    );
  }
  for (const child of command.commands) settle(child, io, `${path} ${child.name()}`);
  return command;
}

/**
 * Commander speaks of a `command-argument`, which is no word of help or docs; and for a token it would have the id of
 * one given, while arguments are seen by everybody on the machine.
 */
function inOurWords(text: string): string {
  return text
    .replace(/^error: command-argument value /, 'error: ')
    .replace(/^(error: unknown option '--token'\n)\(Did you mean --token-id\?\)/, '$1(Did you mean --token-stdin?)');
}

function widthOf(io: Io, stream: 'stdout' | 'stderr'): number {
  return Math.max(leastWidth, io.columns?.(stream) ?? plainWidth);
}

function footer({ notes = [], examples, exitCodes, page }: CommandText, help: Help, width: number): string {
  const parts = [
    ...notes.map((note) => help.boxWrap(note, width)),
    section('Examples', examples.map(([purpose, line]) => `  # ${purpose}\n  ${line}`).join('\n\n')),
    section('Exit codes', exitCodeLines(exitCodes, help, width)),
    `More: ${page}`,
  ];
  return parts
    .map((part) => `\n${part}\n`)
    .join('')
    .trimEnd();
}

function section(title: string, body: string): string {
  return `${title}:\n${body}`;
}

function exitCodeLines(exitCodes: CommandText['exitCodes'], help: Help, width: number): string {
  return Object.entries(exitCodes)
    .map(([code, meaning]) => `  ${code}  ${help.boxWrap(meaning, width - 5).replaceAll('\n', '\n     ')}`)
    .join('\n');
}
