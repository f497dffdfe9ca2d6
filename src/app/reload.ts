import type { CompiledConfig } from '../config/compiled.js';
import type { Clock, Files, Log, Metrics } from '../ports.js';
import type { Assembly } from './assembly.js';
import type { Assertions } from './assertions.js';
import { coalesce } from './coalesce.js';
import { loadComplete, type CompleteConfig } from './complete-config.js';
import type { ConfigSource } from './config-file.js';
import type { Environment } from './config-source.js';
import { droppedOperations, movedScopes, reserves } from './operations.js';
import { restartNeeded, withOpened } from './restart-needed.js';

export interface ReloaderDeps {
  readonly assertions: Pick<Assertions, 'use'>;
  readonly source: ConfigSource;
  readonly env: Environment;
  readonly files: Files;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Pick<Metrics, 'configReload'>;
  /** Called when another config is in force. */
  readonly onReplaced: (inForce: Pick<CompleteConfig, 'upstreamCa'>) => void;
  readonly useLog: (settings: CompiledConfig['log']) => void;
}

export interface Reloader {
  /** Begins to watch the config. */
  readonly start: () => void;
  /** Reads the config again, whatever the watch saw. One reload runs at a time; settles when it is over, good or bad. */
  readonly reload: () => Promise<void>;
  readonly state: () => ReloadState;
  /** Ends the watch; a reload under way ends without effect. */
  readonly close: () => void;
}

export interface ReloadState {
  readonly loadedAtMs: number;
  readonly lastError: { readonly atMs: number; readonly problems: readonly string[] } | null;
  readonly restartNeeded: readonly string[];
}

/** Replaces the config in force when its source changes: whole or not at all. */
export function createReloader(first: CompleteConfig, assembly: Assembly, deps: ReloaderDeps): Reloader {
  const { source, env, files, clock, log, metrics } = deps;
  const opened = first.config;
  let state: ReloadState = { loadedAtMs: clock.now(), lastError: null, restartNeeded: [] };
  let watch = { close: (): void => undefined };
  let closed = false;
  const isClosed = (): boolean => closed;

  const reload = coalesce(async () => {
    const loaded = await loadComplete(source, env, files);
    if (isClosed()) return;
    if (!loaded.ok) {
      fail(loaded.error.messages);
      return;
    }
    const { config, upstreamCa, assertion } = loaded.value;
    if (opened.store === null && reserves(config)) {
      // Put in force it would answer 503 to each of those writes, which the old config lets through.
      fail(['a route reserves its writes, and the store is opened at start only: restart to put this config in force']);
      return;
    }
    if (opened.sessions === null && config.sessions !== null) {
      fail(['a route accepts sessions, and what verifies them is opened at start only: restart to put this config in force']);
      return;
    }
    // In this order no request under a config with assertions goes out without one.
    if (assertion !== null) deps.assertions.use(assertion);
    const dropped = droppedOperations(assembly.inForce().config, config);
    const moved = movedScopes(assembly.inForce().config, config);
    try {
      await assembly.replace(withOpened(config, opened), upstreamCa);
    } catch (error) {
      // A bug, but no reason to end a proxy that can go on with the config it has.
      fail([`it cannot be put in force: ${error instanceof Error ? error.message : 'unknown error'}`]);
      return;
    }
    if (assertion === null) deps.assertions.use(null);
    deps.onReplaced(loaded.value);
    if (isClosed()) return;
    succeed(config);
    if (dropped.length > 0) {
      log.warn('keys of these operations count no more: a retry of an earlier write would run it again', { operations: dropped });
    }
    if (moved.length > 0) log.warn('the idempotency keys of these callers count no more: a retry of an earlier write would run it again', { of: moved });
  });

  function fail(problems: readonly string[]): void {
    state = { ...state, lastError: { atMs: clock.now(), problems } };
    metrics.configReload('failed');
    log.error('the config was not reloaded; the old one stays in force', { config: source.name, problems });
  }

  function succeed(config: CompiledConfig): void {
    state = { loadedAtMs: clock.now(), lastError: null, restartNeeded: restartNeeded(opened, config) };
    deps.useLog(config.log);
    metrics.configReload('ok');
    log.info('the config was reloaded', { config: source.name, sha256: config.sha256 });
    logWarnings(config, log);
    if (state.restartNeeded.length > 0) log.warn('a restart is needed for part of the config', { keys: state.restartNeeded });
  }

  return {
    start: () => {
      watch = source.watch(() => void reload());
    },
    reload,
    state: () => state,
    close: () => {
      closed = true;
      watch.close();
    },
  };
}

/** Says what `check` would warn of. */
export function logWarnings(config: CompiledConfig, log: Log): void {
  for (const warning of config.warnings) log.warn('the config has a warning', { warning });
}
