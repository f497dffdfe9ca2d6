import type { Result } from '../decision/result.js';
import type { CompiledConfig } from './compiled.js';
import type { Problem } from './problems.js';

/** What a config is read with. */
export interface InspectionInput {
  /** Name of the file, for problems. */
  readonly file: string;
  /** Environment for `${env:NAME}`. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Reads a file for `${file:/path}`; a refusal says why in words, without the content. */
  readonly readFile: (path: string) => Result<string, string>;
}

/** What an inspection found. */
export interface Inspection {
  /** The config, or `null` where a problem is an error. */
  readonly config: CompiledConfig | null;
  /** Every error and warning, in the order of the file. */
  readonly problems: readonly Problem[];
}

/** Reads, checks and compiles a config: all of its problems at once. */
export function inspectConfig(text: string, input: InspectionInput): Inspection {
  throw new Error(`not built yet: ${text.length} ${Object.keys(input.env).length}`);
}
