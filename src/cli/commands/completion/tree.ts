import type { Command, Option } from 'commander';

export const shells = ['bash', 'zsh', 'fish'] as const;

export type Shell = (typeof shells)[number];

/** What may be typed where a value is expected. */
export type Value =
  | { readonly kind: 'choices'; readonly choices: readonly string[] }
  | { readonly kind: 'file' }
  | { readonly kind: 'free' };

export interface CompletedOption {
  readonly short: string | null;
  readonly long: string;
  readonly about: string;
  /** `null` where it takes none. */
  readonly value: Value | null;
  readonly isValueOptional: boolean;
}

/** One command as completion knows it. */
export interface CompletedCommand {
  /** The words that lead here: `sallyport record show`. */
  readonly path: string;
  readonly name: string;
  readonly about: string;
  readonly options: readonly CompletedOption[];
  readonly values: readonly { readonly name: string; readonly value: Value; readonly isRepeated: boolean }[];
  readonly commands: readonly CompletedCommand[];
}

/** Arguments and options whose values are files have such names. */
const fileNames = new Set(['file', 'files', 'old', 'new', 'config']);

/** Reads what can be typed from the commands themselves. */
export function completionTree(command: Command, above = ''): CompletedCommand {
  const path = above === '' ? command.name() : `${above} ${command.name()}`;
  const help = command.createHelp();
  const children = help.visibleCommands(command);
  return {
    path,
    name: command.name(),
    about: firstLine(command.summary() === '' ? command.description() : command.summary()),
    options: help.visibleOptions(command).map(completedOption),
    values: command.registeredArguments.map((argument) => ({
      name: argument.name(),
      value: valueOf(argument.name(), argument.argChoices),
      isRepeated: argument.variadic,
    })),
    commands: children.map((child) =>
      child.name() === 'help' ? helpOn(child, path, children) : completionTree(child, path),
    ),
  };
}

/** What help says more about. */
function helpOn(command: Command, above: string, commands: readonly Command[]): CompletedCommand {
  const names = commands.map((one) => one.name()).filter((name) => name !== command.name());
  const value: Value = { kind: 'choices', choices: names };
  return { ...completionTree(command, above), values: [{ name: 'command', value, isRepeated: false }] };
}

/** The command and all below it. */
export function everyCommand(command: CompletedCommand): readonly CompletedCommand[] {
  return [command, ...command.commands.flatMap(everyCommand)];
}

function completedOption(option: Option): CompletedOption {
  const placeholder = /[<[]([a-z]+)/.exec(option.flags)?.[1];
  return {
    short: option.short ?? null,
    long: option.long ?? option.flags,
    about: firstLine(option.description),
    value: placeholder === undefined ? null : valueOf(placeholder, option.argChoices),
    isValueOptional: option.optional,
  };
}

function valueOf(name: string, choices: readonly string[] | undefined): Value {
  if (choices !== undefined) return { kind: 'choices', choices };
  return { kind: fileNames.has(name) ? 'file' : 'free' };
}

function firstLine(text: string): string {
  return text.split('\n')[0] ?? '';
}
