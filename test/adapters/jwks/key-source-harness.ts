import { localFiles } from '../../../src/adapters/files/files.js';
import { createKeySource, type RefreshedKeySource } from '../../../src/adapters/jwks/key-source.js';
import type { KeySourceSettings } from '../../../src/config/types.js';
import type { KeyIdRules } from '../../../src/decision/route/policy.js';
import type { Files, LogFields } from '../../../src/ports/system.js';
import type { KeyAsker, KeyLookup, LookupWait } from '../../../src/ports/auth.js';
import type { Scope } from '../../support/scope.js';
import { manualTime, type ManualTime } from '../manual-time.js';
import { coreKeyRules } from '../../../src/decision/token/profiles.js';

export interface Line extends LogFields {
  readonly level: string;
  readonly msg: string;
}

/** A key source whose time stands still until the test moves it. */
export interface KeySourceHarness {
  readonly source: RefreshedKeySource;
  readonly time: ManualTime;
  /** What was logged. */
  readonly lines: Line[];
  /** Results that were counted, in order. */
  readonly refreshes: string[];
  /** How waits ended, in order. */
  readonly waits: string[];
  /** Whether the answer came at once, and what it was. */
  readonly lookUp: (keyId: string, wait?: LookupWait) => Promise<string>;
  /** The settings, for `update`. */
  readonly settings: KeySourceSettings;
}

export interface KeySourceHarnessOptions {
  readonly settings?: Partial<KeySourceSettings>;
  readonly keyIds?: KeyIdRules;
  readonly issuer?: string;
  readonly random?: () => number;
  readonly files?: Files;
}

export const dynamicKeys: KeyIdRules = { accept: ['d-*'], reject: [] };

/** The defaults of the config. */
const defaults = {
  rules: coreKeyRules,
  caFile: null,
  tokenFile: null,
  minAgeMs: 10_000,
  maxAgeMs: 600_000,
  maxStaleMs: null,
  cooldownMs: 5_000,
  timeoutMs: 5_000,
  maxBytes: 256 * 1024,
};

/**
 * Makes a source of the URL or file, not yet started. Its refreshes come at 0.8 of a lifetime, unless `random` says
 * otherwise.
 */
export function createKeySourceHarness(
  t: Scope,
  source: KeySourceSettings['source'],
  options: KeySourceHarnessOptions = {},
): KeySourceHarness {
  const settings: KeySourceSettings = { source, ...defaults, ...options.settings };
  const time = manualTime();
  const lines: Line[] = [];
  const refreshes: string[] = [];
  const waits: string[] = [];
  const write =
    (level: string) =>
    (msg: string, fields?: LogFields): void => {
      lines.push({ ...fields, level, msg });
    };
  const keys = createKeySource(settings, options.issuer ?? 'core', options.keyIds ?? dynamicKeys, {
    clock: time.clock,
    timers: time.timers,
    files: options.files ?? localFiles,
    log: { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') },
    metrics: {
      jwksRefresh: (issuer, result) => refreshes.push(`${issuer} ${result}`),
      discoveryRefresh: (issuer, result) => refreshes.push(`${issuer} metadata ${result}`),
      jwksWait: (_issuer, result) => waits.push(result),
    },
    random: options.random ?? (() => 0),
  });
  t.teardown(() => keys.close());
  const lookUp = async (keyId: string, wait?: LookupWait): Promise<string> => {
    const answer: KeyLookup | Promise<KeyLookup> = keys.find(keyId, wait);
    return answer instanceof Promise ? `waited: ${(await answer).kind}` : answer.kind;
  };
  return { source: keys, time, lines, refreshes, waits, lookUp, settings };
}

/** Somebody who asks from that address. */
export function asker(
  address = '192.0.2.1',
  { hasAuthenticated = false, isGone }: { hasAuthenticated?: boolean; isGone?: () => boolean } = {},
): KeyAsker {
  return {
    address: () => address,
    hasAuthenticated: () => hasAuthenticated,
    isGone: isGone ?? (() => false),
    now: () => 0,
  };
}

/** A source of the URL whose first attempt is over. */
export async function startKeySourceHarness(
  t: Scope,
  url: string,
  options: KeySourceHarnessOptions = {},
): Promise<KeySourceHarness> {
  const harness = createKeySourceHarness(t, { kind: 'url', url }, options);
  await harness.source.start();
  return harness;
}
