import { Option } from 'commander';
import type { StartFailure } from '../app/start-failure.js';
import { escapeControls } from '../lib/text.js';
import type { ExitCode, Io } from './io.js';

/** `--json`: data for programs instead of lines for people. */
export function jsonOption(): Option {
  return new Option('--json', 'print JSON');
}

const exitCodes: Readonly<Record<StartFailure['kind'], ExitCode>> = { invalid: 1, unreadable: 2, unavailable: 3 };

/** Says why something cannot be done, and with which exit code. */
export function fail(failure: StartFailure, io: Io): void {
  for (const line of failureLines(failure)) io.stderr(`${line}\n`);
  io.exit(exitCodes[failure.kind]);
}

/** Every error has the same form: where it is, or nothing, `error:`, and what is wrong. */
export function failureLines({ messages, shown, hints = [] }: StartFailure): readonly string[] {
  return [...(shown ?? messages.map((message) => `error: ${escapeControls(message)}`)), ...hints];
}

/** Says what is wrong with the arguments of a command, where the parser of arguments could not tell. */
export function failUsage(command: string, message: string, io: Io): void {
  fail({ kind: 'unreadable', messages: [message], hints: [`see sallyport ${command} --help`] }, io);
}
