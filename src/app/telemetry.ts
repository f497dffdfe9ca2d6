/** What is sent to a collector: decided by config and environment, and loaded where it is on. */
import { hostname } from 'node:os';
import { systemClock, systemTimers } from '../adapters/system/clock.js';
import { localFiles } from '../adapters/files/files.js';
import type { Telemetry } from '../adapters/telemetry/telemetry.js';
import type { TelemetrySection } from '../config/types.js';
import { effectiveTelemetry, type TelemetrySettings } from '../decision/telemetry/otel-variables.js';
import { accept, refuse, type Result } from '../lib/result.js';
import { randomHex } from '../proxy/exchange/ids.js';
import { node, version } from '../version.js';
import { readAuthorities } from './config/named-files.js';
import type { Environment } from './config/read-config.js';
import { startFailure, type StartFailure } from './start-failure.js';

/** Telemetry that is on, and nothing of it sent yet. */
export interface LoadedTelemetry {
  readonly open: () => Telemetry;
  /** What of the environment does not count. */
  readonly warnings: readonly string[];
}

/** The longest time that an end waits for a collector, milliseconds. */
export const lastExportMs = 2_000;

/** Reads what is asked for, and loads what sends it; `null` where nothing is sent. */
export async function loadTelemetry(
  config: TelemetrySection,
  env: Environment,
): Promise<Result<LoadedTelemetry | null, StartFailure>> {
  const { settings, warnings } = effectiveTelemetry(config, env);
  if (settings === null) return accept(null);
  const { openTelemetry } = await import('../adapters/telemetry/telemetry.js');
  const { readHeadersFile } = await import('../adapters/telemetry/otlp-sender.js');
  const { caFile, headersFile } = settings;
  // Read again for each export; looked at here so that a wrong one is found now.
  const ca = caFile === null ? null : await readAuthorities(caFile, localFiles);
  if (ca?.ok === false) return ca;
  const headers = headersFile === null ? null : await readHeadersFile(headersFile, localFiles);
  if (headers?.ok === false) return refuse(startFailure('invalid', headers.error));
  return accept({
    warnings,
    open: () =>
      openTelemetry(settings, config.followedPerSecond, {
        clock: systemClock,
        timers: systemTimers,
        files: localFiles,
        random: Math.random,
        randomHex,
        resource: {
          'service.name': 'sallyport',
          'service.version': version,
          'service.instance.id': `${hostname()}:${String(process.pid)}`,
          'telemetry.sdk.language': 'nodejs',
          'telemetry.sdk.name': 'sallyport',
          'telemetry.sdk.version': version,
          'process.runtime.version': node,
        },
      }),
  });
}

/** What a reload replaces: which requests are traced. */
export function replaceSampling(telemetry: Telemetry, config: TelemetrySection, env: Environment): void {
  const sampling: TelemetrySettings['sampling'] | undefined = effectiveTelemetry(config, env).settings?.sampling;
  if (sampling !== undefined) telemetry.tracer.use(sampling, config.followedPerSecond);
}
