/** What a section of the config is made of. */
import type { z } from 'zod';
import type { RouteTable } from '../../decision/route/route-table.js';
import type { ParsedConfig } from '../load/parse-sections.js';
import type { Report } from '../load/report.js';
import type { KeyChanges } from './key-changes.js';
import type { SectionValues } from '../sections/index.js';

/** What the compilation of a section may use besides its own value. */
export interface CompileContext {
  /** Returns the absolute path of a file that the config names; a relative one starts from the config's folder. */
  readonly absolute: AbsolutePath;
  /** The values of all sections. */
  readonly values: SectionValues;
  /** The routes, compiled and arranged for matching. */
  readonly table: RouteTable;
}

export interface AbsolutePath {
  (path: string): string;
  (path: string | null): string | null;
}

/** One section: everything that is known of it stands in its file. */
export interface Section<Schema extends z.ZodType, Compiled extends object> {
  /** Keys, types, units, defaults and the text of the reference. */
  readonly schema: Schema;
  /** Reports what a value alone does not show: settings that contradict each other, and those that weaken something. */
  readonly check?: (config: ParsedConfig, report: Report) => void;
  /** Returns what the section adds to the compiled config. Only called for a config without errors. */
  readonly compile: (value: z.output<Schema>, context: CompileContext) => Compiled;
  /** What a change of each of its keys means to a reload and to `diff`; of issuers and routes, beside them. */
  readonly keys: KeyChanges<NoInfer<Compiled>>;
}

/** Declares a section, so that the type of what it compiles to follows from its code. */
export function section<Schema extends z.ZodType, Compiled extends object>(
  definition: Section<Schema, Compiled>,
): Section<Schema, Compiled> {
  return definition;
}
