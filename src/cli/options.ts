import { resolve } from 'node:path';
import { Option } from 'commander';
import { fileSource, type ConfigSource } from '../app/config-source.js';
import type { StartFailure } from '../app/start-failure.js';
import type { ExitCode, Io } from './io.js';

/** `--config FILE`, which commands that look at a running or coming proxy cannot do without. */
export function configOption(): Option {
  return new Option('--config <file>', 'the config').makeOptionMandatory();
}

/** `--json`: data for programs instead of lines for people. */
export function jsonOption(): Option {
  return new Option('--json', 'print JSON');
}

/** The config file that an argument names, under the name it was given. */
export function sourceOf(file: string, io: Io): ConfigSource {
  return fileSource(resolve(io.cwd, file), file);
}

const exitCodes: Readonly<Record<StartFailure['kind'], ExitCode>> = { invalid: 1, unreadable: 2, unavailable: 3 };

/** Says why something cannot be done, and with which exit code. */
export function fail(failure: StartFailure, io: Io): void {
  for (const message of failure.shown ?? failure.messages) io.stderr(`${message}\n`);
  io.exit(exitCodes[failure.kind]);
}
