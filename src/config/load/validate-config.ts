import { createHash } from 'node:crypto';
import { compileConfig, type ConfigOrigin } from './compile-config.js';
import { checkEndMarker } from './end-marker.js';
import { createExcerpts } from './excerpt.js';
import { type ParsedConfig, parseSections } from './parse-sections.js';
import type { PlaceholderSources } from './placeholders.js';
import { createReport, formatProblem, mayShowValue, type Note, type Problem, type Report } from './report.js';
import type { SourceNode } from './source-tree.js';
import { readYaml } from './yaml.js';
import { valueKeysOf } from './zod-issues.js';
import { configSchema, sectionNames, sections } from '../sections/index.js';
import { checkApplication, withApplication, type ApplicationRoutes } from '../checks/application-routes.js';
import { checkEmptyKeys } from '../checks/empty-keys.js';
import { checkGrpcApi, type GrpcApi } from '../checks/grpc-api.js';
import { checkLikelyMistakes } from '../checks/likely-mistakes.js';
import { checkTable } from '../checks/route-conflicts.js';
import { compileRoutes } from '../sections/routes/routes.js';
import { checkSecretFiles, type FileExposure } from '../checks/secret-files.js';
import type { CompiledConfig } from '../types.js';

/**
 * What a config is read with: the environment for `${env:NAME}`, and a reader for `${file:PATH}` whose refusal says why
 * in words, without the content.
 */
interface ValidationInput extends PlaceholderSources {
  /** Name of the file, for problems. */
  readonly file: string;
  /** Absolute path of the folder that relative paths start from. */
  readonly folder: string;
  /** Who may look into the files of secrets, by the path that the config has; not looked at unless given. */
  readonly exposureOf?: FileExposure;
  /** Who asks for the line that ends a whole config, whatever the config says of it; nobody unless given. */
  readonly endMarkerFor?: string | null;
  /** The services that the upstream has, to hold the routes to; they are not unless given. */
  readonly grpcApi?: GrpcApi | null;
  /** The application in whose process it is decided; nothing of it listens then. None unless given. */
  readonly application?: ApplicationRoutes | null;
}

/** What an inspection found. */
export interface ConfigValidation {
  /** The config, or `null` where a problem is an error. */
  readonly config: CompiledConfig | null;
  /** Every error and warning, in the order of the file. */
  readonly problems: readonly Problem[];
  /** What is right and worth a look, in the order of the file. */
  readonly notes: readonly Note[];
  /**
   * The line that a problem is about, with a caret beneath: a few lines of text, without what may be secret in them.
   */
  readonly excerptOf: (problem: Problem) => readonly string[];
}

/**
 * Reads, checks and compiles a config: all of its problems at once. Files that the config names (certificates, keys)
 * are not read here; those that need them read them at start.
 */
export function validateConfig(text: string, input: ValidationInput): ConfigValidation {
  let root: SourceNode | null = null;
  const report = createReport(input.file, () => root);
  root = readYaml(text, input, report);
  const { application = null } = input;
  if (root !== null && application !== null) root = withApplication(root, application, report);
  const parts = root === null ? null : parseSections(root, report, application?.verifiesCertificates ?? null);
  checkEndMarker(text, { asking: input.endMarkerFor ?? null, root, parts }, report);
  const origin = { sha256: createHash('sha256').update(text).digest('hex'), folder: input.folder };
  const config = root === null || parts === null ? null : read(root, parts, origin, report, input);
  return { config, problems: report.problems(), notes: report.notes(), excerptOf: createExcerpts(text, mayShow) };
}

/** Of keys that the schema does not know, nobody knows what they hold. */
function mayShow(key: string, value: string): boolean {
  valueKeys ??= valueKeysOf(configSchema);
  return valueKeys.has(key) && mayShowValue(key, value);
}

let valueKeys: ReadonlySet<string> | null = null;

function read(
  root: SourceNode,
  parts: ParsedConfig,
  origin: ConfigOrigin,
  report: Report,
  {
    exposureOf = () => null,
    grpcApi = null,
    application = null,
  }: Pick<ValidationInput, 'exposureOf' | 'grpcApi' | 'application'>,
): CompiledConfig | null {
  checkEmptyKeys(root, report);
  for (const name of sectionNames) sections[name].check?.(parts, report);
  checkSecretFiles(root, exposureOf, report);
  checkLikelyMistakes(root, parts, report);
  const routes = compileRoutes(parts);
  const table = checkTable(routes, parts, report, application !== null);
  if (grpcApi !== null) checkGrpcApi(grpcApi, routes, table, report);
  if (application !== null) checkApplication(application, routes, table, report);
  const problems = report.problems();
  if (problems.some(({ severity }) => severity === 'error')) return null;
  return compileConfig(parts, table, origin, problems.map(formatProblem));
}
