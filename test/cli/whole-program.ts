import type { Command } from 'commander';
import { commandNames, createProgram } from '../../src/cli/program.js';
import { captureIo } from './captured-io.js';

/** The program with every command in it. */
export function wholeProgram(): Promise<Command> {
  return createProgram(commandNames, captureIo());
}

/** A command and all below it. */
export function withChildren(command: Command): readonly Command[] {
  return [command, ...command.commands.flatMap(withChildren)];
}

/** `sallyport record show`. */
export function pathOf(command: Command): string {
  return command.parent === null ? command.name() : `${pathOf(command.parent)} ${command.name()}`;
}

/** Long names of the options that a command and those below it take, but for help. */
export async function offeredOptions(name: string): Promise<readonly string[]> {
  const program = await wholeProgram();
  const commands = program.commands.filter((command) => command.name() === name).flatMap(withChildren);
  return [...new Set(commands.flatMap(({ options }) => options.map(({ long }) => long ?? '')))];
}
