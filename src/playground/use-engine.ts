/** Asks the engine again when a text changed, a moment after the last key. */
import { useEffect, useMemo, useState } from 'preact/hooks';
import type { CompiledConfig } from '../config/types.js';
import {
  checkConfig,
  compareConfigs,
  runTests,
  type CheckedConfig,
  type Comparison,
  type PlaceholderValues,
  type TestRun,
} from './engine.js';

/** What came of the cases. */
export interface Run extends TestRun {
  /** Whether there is a config to run them on. */
  readonly isDecided: boolean;
}

const settleMs = 120;

const nothing: Run = { isDecided: false, problems: [], cases: [], coverage: { percent: 0, points: [] } };

/** The same value, once it has not changed for a moment. The first counts at once. */
function useSettled<T>(value: T): T {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), settleMs);
    return () => clearTimeout(timer);
  }, [value]);
  return settled;
}

export function useConfig(text: string, values: PlaceholderValues): CheckedConfig {
  const [settled, given] = [useSettled(text), useSettled(values)];
  return useMemo(() => checkConfig(settled, given), [settled, given]);
}

/** Runs the cases. Those of the config before are shown no longer where the new one has errors. */
export function useRun(config: CompiledConfig | null, text: string): Run {
  const settled = useSettled(text);
  const [run, setRun] = useState(nothing);
  useEffect(
    () =>
      lastOf(
        async () =>
          config === null || settled.trim() === ''
            ? { ...nothing, isDecided: config !== null }
            : { ...(await runTests(config, settled, Date.now())), isDecided: true },
        setRun,
      ),
    [config, settled],
  );
  return run;
}

/** What an edit changes in effect; `null` until it is known, and where one of the two has errors. */
export function useComparison(from: CompiledConfig | null, to: CompiledConfig | null): Comparison | null {
  const [found, setFound] = useState<Comparison | null>(null);
  useEffect(
    () => lastOf(async () => (from === null || to === null ? null : compareConfigs(from, to, Date.now())), setFound),
    [from, to],
  );
  return found;
}

/** Hands on what was found, unless something else was asked for meanwhile. Returns what an effect ends with. */
function lastOf<T>(find: () => Promise<T>, found: (value: T) => void): () => void {
  let isWanted = true;
  find().then(
    (value) => {
      if (isWanted) found(value);
    },
    (error: unknown) => {
      // Seen in the browser's console: deciding does not fail.
      reportError(error);
    },
  );
  return () => {
    isWanted = false;
  };
}
