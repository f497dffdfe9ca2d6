import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { pathIn } from '../../lib/files.js';
import { changedSource, fileSource, fixedSource, type ConfigSource } from '../../app/config/config-source.js';
import { maxConfigBytes } from '../../config/load/yaml.js';
import { startFailure, type StartFailure } from '../../app/start-failure.js';
import { accept, refuse, type Result } from '../../lib/result.js';
import { configVariable, defaultConfig, type ConfigArguments } from './argument.js';
import type { Io } from '../io.js';
import { announceInput, readTextInput } from '../stdin.js';

/** Standard input, as an argument. */
export const inputArgument = '-';
/** Standard input, as problems name it. */
const inputName = '<stdin>';

/** The config that a command is to read. */
export interface ChosenConfig {
  readonly source: ConfigSource;
  /** As messages name it. */
  readonly name: string;
  /** The absolute path; `null` where it comes from standard input. */
  readonly path: string | null;
}

/** Finds the config: as an argument or option names it, then the environment, then the folder. */
export function chooseConfig(
  { file, config, tokenStdin }: ConfigArguments,
  io: Io,
): Result<ChosenConfig, StartFailure> {
  if (file !== undefined && config !== undefined) {
    return refuse(
      startFailure('unreadable', `the config is named twice, by ${file} and by --config ${config}; name one`),
    );
  }
  const named = config ?? file;
  if (named === inputArgument && tokenStdin === true) {
    return refuse(startFailure('unreadable', 'standard input holds the token, so that the config has to be a file'));
  }
  if (named !== undefined) return accept(namedConfig(named, io));
  const variable = io.env[configVariable] ?? '';
  if (variable !== '') return accept(fromVariable(variable, io));
  if (existsSync(pathIn(io, defaultConfig))) return accept(fromFile(defaultConfig, io));
  const ways = `name it as FILE or with --config FILE, set ${configVariable}, or put ${defaultConfig} into this folder`;
  return refuse(startFailure('unreadable', `there is no config to read: ${ways}`));
}

/** The config that an argument names. */
export function namedConfig(argument: string, io: Io): ChosenConfig {
  return argument === inputArgument ? fromInput(io) : fromFile(argument, io);
}

function fromFile(file: string, io: Io): ChosenConfig {
  return { source: sourceOf(file, io), name: file, path: pathIn(io, file) };
}

/** Who set the variable may be far away from who reads the message. */
function fromVariable(file: string, io: Io): ChosenConfig {
  const chosen = fromFile(file, io);
  const source = changedSource(chosen.source, (text) =>
    text.ok ? text : refuse(`${text.error} (${configVariable} names it)`),
  );
  return { ...chosen, source };
}

/** Read once, however often it is asked for: nobody writes it again. */
function fromInput(io: Io): ChosenConfig {
  let text: Promise<Result<string, string>> | null = null;
  const read = (): Promise<Result<string, string>> => {
    announceInput('the config', io);
    return readTextInput(io.stdin, maxConfigBytes);
  };
  const source = fixedSource(() => (text ??= read()), { name: inputName, folder: resolve(io.cwd) });
  return { source, name: inputName, path: null };
}

/** A file that an argument or another file names, under the name it was given. */
export function sourceOf(file: string, io: Io): ConfigSource {
  return fileSource(pathIn(io, file), file);
}
