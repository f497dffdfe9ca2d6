import { inspectConfig, type Inspection } from '../config/inspect.js';
import type { CompiledConfig } from '../config/compiled.js';
import { countProblems, escapeControls, formatProblem } from '../config/problems.js';
import { accept, refuse, type Result } from '../decision/result.js';
import type { FileWatch } from '../ports.js';
import { watchFile } from '../adapters/file-watch.js';
import { readText, readTextSync, textDigest } from '../adapters/text-file.js';
import { startFailure, type StartFailure } from './start-failure.js';

export type Environment = Readonly<Record<string, string | undefined>>;

/** Where the config comes from. */
export interface ConfigSource {
  /** As problems and logs name it. */
  readonly name: string;
  /** The text, or why it cannot be had, in words that follow the name. */
  readonly read: () => Promise<Result<string, string>>;
  /** Calls back when the text is no longer the one that was read last, whoever asked for that. */
  readonly watch: (onChange: () => void) => Pick<FileWatch, 'close'>;
}

/** A config of a thousand routes takes some 200 KiB. */
export const maxConfigBytes = 4 * 1024 * 1024;

/** A secret in a placeholder's file: a key of 16384 bits in PEM takes 13 KiB. */
const maxPlaceholderBytes = 64 * 1024;

/** A file, watched. `intervalMs` is how often it is looked at. */
export function fileSource(path: string, name = path, intervalMs?: number): ConfigSource {
  const limits = { maxBytes: maxConfigBytes };
  const pace = intervalMs === undefined ? {} : { intervalMs };
  let digest: string | null = null;
  let watch: FileWatch | null = null;
  return {
    name,
    read: async () => {
      const text = await readText(path, limits);
      const read = text.ok ? accept(textDigest(text.value)) : text;
      digest = read.ok ? read.value : null;
      watch?.loaded(read);
      return text;
    },
    watch: (onChange) => {
      watch = watchFile(path, onChange, { digest, ...limits, ...pace });
      return watch;
    },
  };
}

/** A text that stays as it is. */
export function textSource(text: string, name: string): ConfigSource {
  return { name, read: () => Promise.resolve(accept(text)), watch: () => ({ close: () => undefined }) };
}

/** Reads and checks the config; refuses with the reason why it cannot be read. */
export async function readConfig(source: ConfigSource, env: Environment): Promise<Result<Inspection, string>> {
  const text = await source.read();
  if (!text.ok) return refuse(`${source.name}: ${text.error}`);
  return accept(inspectConfig(text.value, {
    file: source.name,
    env,
    readFile: (path) => readTextSync(path, { maxBytes: maxPlaceholderBytes }),
  }));
}

/** Reads the config; refuses one with errors, all of them named. */
export async function loadConfig(source: ConfigSource, env: Environment): Promise<Result<CompiledConfig, StartFailure>> {
  const read = await readConfig(source, env);
  if (!read.ok) return refuse(startFailure('unreadable', read.error));
  const { config } = read.value;
  return config === null ? refuse(configFailure(source.name, read.value)) : accept(config);
}

/** Says why a config with errors is refused. Warnings are no reason to; among the errors they would hide them. */
export function configFailure(name: string, { problems, excerptOf }: Inspection): StartFailure {
  const errors = problems.filter(({ severity }) => severity === 'error');
  const shown = errors.flatMap((problem) => [formatProblem(problem), ...excerptOf(problem)]);
  return { ...startFailure('invalid', ...errors.map(formatProblem)), shown: [...shown, escapeControls(`${name}: ${countProblems(errors)}`)] };
}
