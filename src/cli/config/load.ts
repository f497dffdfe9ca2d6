import { loadConfig, readConfig, type ConfigReading } from '../../app/config/read-config.js';
import { startFailure, type StartFailure } from '../../app/start-failure.js';
import type { CompiledConfig } from '../../config/types.js';
import type { ConfigValidation } from '../../config/load/validate-config.js';
import { accept, refuse, type Result } from '../../lib/result.js';
import type { ConfigArguments } from './argument.js';
import { chooseConfig, type ChosenConfig } from './choose.js';
import type { Io } from '../io.js';

interface InspectedConfig extends ChosenConfig, ConfigValidation {}

interface LoadedConfig extends ChosenConfig {
  readonly config: CompiledConfig;
}

/** Reads the config that the arguments choose, and says everything that is wrong with it. */
export async function inspectChosen(
  named: ConfigArguments,
  io: Io,
  reading: Pick<ConfigReading, 'endMarkerFor' | 'grpcApi'> = {},
): Promise<Result<InspectedConfig, StartFailure>> {
  const chosen = chooseConfig(named, io);
  if (!chosen.ok) return chosen;
  const read = await readConfig(chosen.value.source, { ...reading, env: io.env });
  return read.ok ? accept({ ...chosen.value, ...read.value }) : refuse(startFailure('unreadable', read.error));
}

/** Reads the config that the arguments choose; refuses one with errors. */
export async function loadChosen(named: ConfigArguments, io: Io): Promise<Result<LoadedConfig, StartFailure>> {
  const chosen = chooseConfig(named, io);
  if (!chosen.ok) return chosen;
  const loaded = await loadConfig(chosen.value.source, io);
  return loaded.ok ? accept({ ...chosen.value, config: loaded.value }) : loaded;
}
