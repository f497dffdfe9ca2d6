import { resolve } from 'node:path';
import { fileExposure } from '../../adapters/files/files.js';
import type { ApplicationRoutes } from '../../config/checks/application-routes.js';
import type { GrpcApi } from '../../config/checks/grpc-api.js';
import { validateConfig, type ConfigValidation } from '../../config/load/validate-config.js';
import type { CompiledConfig } from '../../config/types.js';
import { countProblems, formatProblem } from '../../config/load/report.js';
import { escapeControls } from '../../lib/text.js';
import { accept, refuse, type Result } from '../../lib/result.js';
import { placeholderReader, type ConfigSource } from './config-source.js';
import type { FileSnapshot, OnFile } from './file-snapshot.js';
import { startFailure, type StartFailure } from '../start-failure.js';

export type Environment = Readonly<Record<string, string | undefined>>;

/** As much of a source as it takes to read it once. */
export type ReadSource = Pick<ConfigSource, 'name' | 'folder' | 'read'>;

/** How a config is read. */
export interface ConfigReading {
  readonly env: Environment;
  /** Who asks for the line that ends a whole config, whatever the config says of it; nobody unless given. */
  readonly endMarkerFor?: string | null;
  /** The services that the upstream has, to hold the routes to; they are not unless given. */
  readonly grpcApi?: GrpcApi | null;
  /** The application in whose process it is decided; none unless given. */
  readonly application?: ApplicationRoutes | null;
  /** Texts of files of placeholders that count whatever the files say by now; none unless given. */
  readonly held?: FileSnapshot;
  /** Is told of each file that a placeholder names. */
  readonly onFile?: OnFile;
}

/** Reads and checks the config; refuses with the reason why it cannot be read. */
export async function readConfig(
  source: ReadSource,
  { env, endMarkerFor = null, grpcApi = null, application = null, held, onFile }: ConfigReading,
): Promise<Result<ConfigValidation, string>> {
  const text = await source.read();
  if (!text.ok) return refuse(`${source.name}: ${text.error}`);
  return accept(
    validateConfig(text.value, {
      file: source.name,
      folder: source.folder,
      env,
      endMarkerFor,
      grpcApi,
      application,
      readFile: placeholderReader(source, onFile, held),
      exposureOf: (path) => fileExposure(resolve(source.folder, path)),
    }),
  );
}

/** Reads the config; refuses one with errors, all of them named. */
export async function loadConfig(
  source: ReadSource,
  reading: ConfigReading,
): Promise<Result<CompiledConfig, StartFailure>> {
  const read = await readConfig(source, reading);
  if (!read.ok) return refuse(startFailure('unreadable', read.error));
  const { config } = read.value;
  return config === null ? refuse(configFailure(source.name, read.value)) : accept(config);
}

/** Says why a config with errors is refused. Warnings are no reason to; among the errors they would hide them. */
export function configFailure(name: string, { problems, excerptOf }: ConfigValidation): StartFailure {
  const errors = problems.filter(({ severity }) => severity === 'error');
  const shown = errors.flatMap((problem) => [formatProblem(problem), ...excerptOf(problem)]);
  return {
    ...startFailure('invalid', ...errors.map(formatProblem)),
    shown: [...shown, escapeControls(`${name}: ${countProblems(errors)}`)],
  };
}
