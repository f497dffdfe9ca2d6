import { resolve } from 'node:path';
import type { RouteTable } from '../../decision/route/route-table.js';
import {
  sectionNames,
  sections,
  type CompiledSections,
  type SectionName,
  type SectionValues,
} from '../sections/index.js';
import type { AbsolutePath, CompileContext } from '../schema/section.js';
import type { CompiledConfig } from '../types.js';
import type { ParsedConfig } from './parse-sections.js';
import { settingsOf } from './setting-names.js';

/** What of a config is not in its text. */
export interface ConfigOrigin {
  /** Of the file's bytes. */
  readonly sha256: string;
  /** Absolute path of the folder that relative paths start from. */
  readonly folder: string;
}

type Compile = (value: unknown, context: CompileContext) => object;

/** Compiles every section of a config without errors; `null` where one could not be read. */
export function compileConfig(
  config: ParsedConfig,
  table: RouteTable,
  { sha256, folder }: ConfigOrigin,
  warnings: readonly string[],
): CompiledConfig | null {
  const values = valuesOf(config);
  if (values === null) return null;
  const absolute = ((path: string | null) => (path === null ? null : resolve(folder, path))) as AbsolutePath;
  const compiled = sectionNames.map((name) =>
    // The list keeps each section beside its value, which the compiler cannot see here.
    (sections[name].compile as Compile)(values[name], { absolute, values, table }),
  );
  return {
    ...(Object.assign({}, ...compiled) as CompiledSections),
    sha256,
    settings: settingsOf(values),
    servesCallers: config.servesCallers,
    warnings,
  };
}

function valuesOf(config: ParsedConfig): SectionValues | null {
  const values: Partial<Record<SectionName, unknown>> = {};
  for (const name of sectionNames) {
    if (name === 'issuers' || name === 'routes') continue;
    const parsed = config[name];
    if (parsed === null) return null;
    values[name] = parsed.value;
  }
  const issuers = [...config.issuers].flatMap(([name, { parsed }]) =>
    parsed === null ? [] : [[name, parsed.value] as const],
  );
  const routes = config.routes.flatMap(({ parsed }) => (parsed === null ? [] : [parsed.value]));
  if (issuers.length < config.issuers.size || routes.length < config.routes.length) return null;
  return Object.assign(values, { issuers: new Map(issuers), routes }) as SectionValues;
}
