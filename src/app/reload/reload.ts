import { isDeepStrictEqual } from 'node:util';
import type { CompiledConfig } from '../../config/types.js';
import { changedSettings } from '../../config/load/setting-names.js';
import { messageOf } from '../../lib/errors.js';
import { refuse, type Result } from '../../lib/result.js';
import type { Clock, Files, FileWatch, Log } from '../../ports/system.js';
import type { Metrics } from '../../ports/observability.js';
import type { ConfigActivator } from './activate-config.js';
import type { Assertions } from '../keys/assertion-keys.js';
import { coalesce } from '../../lib/promises.js';
import { loadComplete, type CompleteConfig } from '../config/load-complete.js';
import type { ConfigSource, ConfigWatch } from '../config/config-source.js';
import type { AskedFiles } from '../config/file-snapshot.js';
import type { ConfigReading } from '../config/read-config.js';
import { droppedOperations, movedOperations, movedScopes } from '../../config/moved-scopes.js';
import { halfInForce } from './half-in-force.js';
import { neverOpened, restartNeeded, withOpened } from './restart-needed.js';

interface ReloaderDeps {
  readonly assertions: Pick<Assertions, 'use'>;
  readonly source: ConfigSource;
  /** How it was read at start. */
  readonly reading: Pick<ConfigReading, 'env' | 'application'>;
  readonly files: Files;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Pick<Metrics, 'configReload'>;
  /** Milliseconds between two looks at files that the config names. */
  readonly watchIntervalMs: number | undefined;
  /** Called when another config is in force. */
  readonly onReplaced: (
    activeConfig: Pick<CompleteConfig, 'config' | 'upstreamCa' | 'targetAuthorities' | 'targetCertificates'>,
  ) => void;
  readonly useLog: (settings: CompiledConfig['log']) => void;
}

export interface Reloader {
  /** Begins to watch the config. */
  readonly start: () => void;
  /**
   * Takes the config again, changed or not, once it has been left unchanged for long enough to count. One reload runs
   * at a time; settles when it is over, good or bad.
   */
  readonly reload: () => Promise<void>;
  readonly state: () => ReloadState;
  /** Ends the watch; a reload under way ends without effect. */
  readonly close: () => void;
}

/** One reload. */
interface Attempt {
  readonly text: Result<string, string>;
  /** Whether this text was refused before, and nobody but a file asks for it again. */
  readonly isRetry: boolean;
  /** Files that changed since the reload before. */
  readonly changed: readonly string[];
}

interface ReloadState {
  readonly loadedAtMs: number;
  readonly lastError: { readonly atMs: number; readonly problems: readonly string[] } | null;
  readonly restartNeeded: readonly string[];
}

/** Replaces the config in force when its source changes: whole or not at all. */
export function createReloader(first: CompleteConfig, activator: Activator, deps: ReloaderDeps): Reloader {
  const { source, reading, files, clock, log, metrics } = deps;
  const opened = first.config;
  /** The last one that was taken, as it was asked for. */
  let last = first;
  let state: ReloadState = { loadedAtMs: clock.now(), lastError: null, restartNeeded: [] };
  let watch: ConfigWatch = { settled: source.read, close: () => undefined };
  /** The text that counted last. It is read from here, so that it is the very text that was seen twice. */
  let text: Result<string, string> = refuse('was not read yet');
  /** Watches on the files that are read only with the config, and on all that a refused one asked for. */
  const watches = new Map<string, { readonly watch: FileWatch; readonly maxBytes: number }>();
  let isWatching = false;
  /** The text that was refused last; `null` where one was taken since. */
  let refused: Result<string, string> | null = null;
  /** Whether somebody asks for the next reload. */
  let isAsked = false;
  /** Files that changed since the last reload began. */
  let changed: string[] = [];
  let closed = false;
  const isClosed = (): boolean => closed;

  const take = coalesce(async () => {
    const attempt: Attempt = { text, isRetry: !isAsked && isDeepStrictEqual(text, refused), changed };
    isAsked = false;
    changed = [];
    const read: ConfigSource['read'] = () => Promise.resolve(attempt.text);
    const endMarkerFor = activator.activeConfig().config.reload.endMarker ? 'the config in force' : null;
    const loaded = await loadComplete({ ...source, read }, { ...reading, endMarkerFor }, files);
    if (isClosed()) return;
    if (!loaded.ok) {
      fail(loaded.error.messages, loaded.error.asked, attempt);
      return;
    }
    const { config, asked } = loaded.value;
    const { config: before } = activator.activeConfig();
    const unopened = neverOpened(opened, config) ?? halfInForce(before, config, reading.application ?? null);
    if (unopened !== null) {
      fail([unopened], asked, attempt);
      return;
    }
    const dropped = droppedOperations(before, config);
    const moved = movedScopes(before, config);
    const elsewhere = movedOperations(before, config);
    const problem = await putInForce(loaded.value, { ...deps, activator, opened });
    if (isClosed()) return;
    if (problem !== null) {
      fail([problem], asked, attempt);
      return;
    }
    succeed(loaded.value);
    if (dropped.length > 0) {
      log.warn('keys of these operations count no more: a retry of an earlier write would run it again', {
        operations: dropped,
      });
    }
    if (elsewhere.length > 0) {
      log.warn('some writes belong to another operation now: a retry of an earlier one would run it again', {
        operations: elsewhere,
      });
    }
    if (moved.length > 0) {
      log.warn('the idempotency keys of these callers count no more: a retry of an earlier write would run it again', {
        of: moved,
      });
    }
  });

  /**
   * A file that was asked for, and becomes another, is a reason to try again: a ConfigMap may be there before the
   * Secret whose files it names. What fails as before is no news, but for what it keeps from the config in force.
   */
  function fail(problems: readonly string[], asked: AskedFiles, attempt: Attempt): void {
    refused = attempt.text;
    const ofConfig = [...watches.keys()].filter((path) => last.digests.has(path));
    watchFiles(asked, new Set([...asked.keys(), ...ofConfig]));
    if (attempt.isRetry && isDeepStrictEqual(state.lastError?.problems, problems)) {
      const held = attempt.changed.filter((path) => last.digests.has(path));
      if (held.length > 0) {
        log.warn('files of the config in force have changed and do not count while the config is refused', {
          config: source.name,
          files: held,
        });
      }
      return;
    }
    state = { ...state, lastError: { atMs: clock.now(), problems } };
    metrics.configReload('failed');
    log.error('the config was not reloaded; the old one stays in force', { config: source.name, problems });
  }

  function succeed(complete: CompleteConfig): void {
    const { config } = complete;
    watchFiles(complete.asked, complete.digests);
    const [before, restartNeededBefore] = [last, state.restartNeeded];
    last = complete;
    refused = null;
    state = { loadedAtMs: clock.now(), lastError: null, restartNeeded: restartNeeded(opened, config) };
    deps.useLog(config.log);
    metrics.configReload('ok');
    const changes = changesOf(before, complete);
    const isSame = Object.values(changes).every(({ length }) => length === 0);
    log.info(isSame ? 'the config was reloaded: nothing in it is different' : 'the config was reloaded', {
      config: source.name,
      sha256: config.sha256,
      ...changes,
    });
    logWarnings(newWarnings(before.config, config), log);
    const isTold = state.restartNeeded.join(' ') === restartNeededBefore.join(' ');
    if (state.restartNeeded.length > 0 && !isTold) {
      log.warn('a restart is needed for part of the config', { keys: state.restartNeeded });
    }
  }

  /** A file that changes is a reason to read the config again, like an edit of it. No other is watched any more. */
  function watchFiles(asked: AskedFiles, wanted: { readonly has: (path: string) => boolean }): void {
    if (!isWatching) return;
    for (const [path, { watch: fileWatch, maxBytes }] of watches) {
      if (wanted.has(path) && (asked.get(path)?.maxBytes ?? maxBytes) === maxBytes) continue;
      fileWatch.close();
      watches.delete(path);
    }
    for (const [path, { digest, maxBytes }] of asked) {
      if (!wanted.has(path)) continue;
      const known = watches.get(path);
      known?.watch.loaded(digest);
      if (known !== undefined) continue;
      const fileWatch = files.watch(
        path,
        () => {
          log.info('a file that the config names has changed', { config: source.name, file: path });
          changed = [...new Set([...changed, path])];
          void takeSettled(false);
        },
        {
          digest: digest.ok ? digest.value : null,
          maxBytes,
          leastAgeMs: () => activator.activeConfig().config.reload.leastAgeMs,
          intervalMs: deps.watchIntervalMs,
        },
      );
      watches.set(path, { watch: fileWatch, maxBytes });
    }
  }

  async function reload(): Promise<void> {
    await takeSettled(true);
  }

  async function takeSettled(isForSomebody: boolean): Promise<void> {
    const settled = await watch.settled(() => {
      const leastAgeMs = activator.activeConfig().config.reload.leastAgeMs;
      if (leastAgeMs === 0) return;
      log.info('the config has changed and counts when it has stayed as it is for a while', {
        config: source.name,
        least_age_ms: leastAgeMs,
      });
    });
    if (settled === null) return;
    text = settled;
    if (isForSomebody) isAsked = true;
    await take();
  }

  return {
    start: () => {
      isWatching = true;
      watchFiles(first.asked, first.digests);
      watch = source.watch(
        (seen) => {
          text = seen;
          void take();
        },
        () => activator.activeConfig().config.reload.leastAgeMs,
      );
    },
    reload,
    state: () => state,
    close: () => {
      closed = true;
      watch.close();
      for (const { watch: fileWatch } of watches.values()) fileWatch.close();
    },
  };
}

/** As much of what holds the config in force as a reload needs. */
export interface Activator {
  readonly activeConfig: () => Pick<ReturnType<ConfigActivator['activeConfig']>, 'config'>;
  /** Rejects where it is not put in force. */
  readonly replace: (complete: CompleteConfig, config: CompiledConfig) => Promise<void>;
}

/** @param mayFollow asked before it is put in force, where others take the config as well. */
export function activatorOf({ activeConfig, replace }: ConfigActivator, mayFollow?: () => Promise<void>): Activator {
  return { activeConfig, replace: async ({ upstreamCa }, config) => replace(config, upstreamCa, mayFollow) };
}

interface PutInForce extends Pick<ReloaderDeps, 'assertions' | 'onReplaced'> {
  readonly activator: Activator;
  readonly opened: CompiledConfig;
}

/** Puts a config in force whose files are good. Returns why it is not; `null` where it is. */
export async function putInForce(
  complete: CompleteConfig,
  { activator, opened, assertions, onReplaced }: PutInForce,
): Promise<string | null> {
  const { config, assertion } = complete;
  // In this order no request under a config with assertions goes out without one.
  if (assertion !== null) assertions.use(assertion);
  try {
    await activator.replace(complete, withOpened(config, opened));
  } catch (error) {
    // A bug, but no reason to end a proxy that can go on with the config it has.
    return `it cannot be put in force: ${messageOf(error)}`;
  }
  if (assertion === null) assertions.use(null);
  onReplaced(complete);
  return null;
}

/** More names are counted: a line of the log is no diff. */
const mostNames = 50;
const longestName = 200;

/** Names of what is different, the files that are read with the config included. */
function changesOf(
  from: CompleteConfig,
  to: CompleteConfig,
): Readonly<Record<'added' | 'changed' | 'removed', readonly string[]>> {
  const { added, changed, removed } = changedSettings(from.config.settings, to.config.settings);
  const files = [
    ...(isOther(from.upstreamCa, to.upstreamCa) ? ['upstream.ca_file'] : []),
    ...(isOther(from.assertion?.digest, to.assertion?.digest) ? ['identity.assertion.key_file'] : []),
    ...(to.config.egress?.targets ?? [])
      .filter(({ upstream: { caFile } }) => isOther(textIn(from, caFile), textIn(to, caFile)))
      .map(({ name }) => `egress.targets.${name}.ca_file`),
  ];
  return { added: bounded(added), changed: bounded([...new Set([...changed, ...files])]), removed: bounded(removed) };
}

function textIn({ targetAuthorities }: CompleteConfig, path: string | null): string | undefined {
  return path === null ? undefined : targetAuthorities.get(path);
}

/** Whether a file that was read before says something else; one that comes or goes is a setting that does. */
function isOther(from: string | null | undefined, to: string | null | undefined): boolean {
  return typeof from === 'string' && typeof to === 'string' && from !== to;
}

function bounded(names: readonly string[]): readonly string[] {
  const shown = names.slice(0, mostNames).map((name) => name.slice(0, longestName));
  return names.length > mostNames ? [...shown, `and ${String(names.length - mostNames)} more`] : shown;
}

/** Warnings that the config before did not have, wherever they stood in it: the others were told. */
function newWarnings(from: CompiledConfig, to: CompiledConfig): readonly string[] {
  const told = new Set(from.warnings.map((warning) => withoutPlace(warning, from)));
  return to.warnings.filter((warning) => !told.has(withoutPlace(warning, to)));
}

/** A problem begins with the name of the file, the line and the column, and counts the routes. */
function withoutPlace(warning: string, { routes }: CompiledConfig): string {
  return warning
    .replace(/:\d{1,7}:\d{1,7}: /, ': ')
    .replace(/\broutes\[(\d{1,6})\]/g, (_, index: string) => `routes.${routes[Number(index)]?.name ?? ''}`);
}

/** Says what `check` would warn of. */
export function logWarnings(warnings: readonly string[], log: Log): void {
  for (const warning of warnings) log.warn('the config has a warning', { warning });
}
