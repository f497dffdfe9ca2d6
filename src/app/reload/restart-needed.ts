import { keyChanges, sectionNames, type SectionName } from '../../config/sections/index.js';
import type { CompiledConfig } from '../../config/types.js';

/** The sections that are opened at start and stay as they are until the end. */
const openedAtStart = sectionNames.filter((name) => Object.values(keyChanges[name]).some(({ restart }) => restart));

/**
 * The keys in which a config asks for something else than what is open. Compared with the start, not with the last
 * reload.
 */
export function restartNeeded(opened: CompiledConfig, wanted: CompiledConfig): readonly string[] {
  return openedAtStart.flatMap((name) => changedAtStart(name, opened, wanted));
}

function changedAtStart(name: SectionName, opened: CompiledConfig, wanted: CompiledConfig): readonly string[] {
  return Object.entries(keyChanges[name]).flatMap(([key, change]) => {
    if (change.restart !== true) return [];
    const [before, after] = [change.of?.(opened), change.of?.(wanted)];
    const isOther = before !== undefined && after !== undefined && before !== after;
    return isOther ? [key === '' ? name : `${name}.${key}`] : [];
  });
}

/**
 * A new config with what is open in the place of what it asks for, so that no half of a section that is opened at start
 * takes effect. `workers` and `egress.listen` are read once, from the config of the start.
 */
export function withOpened(wanted: CompiledConfig, opened: CompiledConfig): CompiledConfig {
  const { listen, admin, probes, store, sessions, decide } = opened;
  const { ratio, followedPerSecond } = wanted.telemetry;
  const telemetry = { ...opened.telemetry, ratio, followedPerSecond };
  return { ...wanted, listen, admin, probes, store, sessions, decide, telemetry };
}

/**
 * Why a config cannot be put in force beside what is open: it needs a part that is opened at start only, or does
 * without one that serves. `null` where it can.
 */
export function neverOpened(opened: CompiledConfig, wanted: CompiledConfig): string | null {
  if (opened.store === null && reserves(wanted)) {
    // Put in force it would answer 503 to each of those writes, which the old config lets through.
    return 'a route reserves its writes, and the store is opened at start only: restart to put this config in force';
  }
  if (opened.sessions === null && wanted.sessions !== null) {
    return 'a route accepts sessions, and what verifies them is opened at start only: restart to put this config in force';
  }
  if ((opened.egress === null) !== (wanted.egress === null)) {
    return 'egress comes or goes, and its listener is opened at start only: restart to put this config in force';
  }
  if (opened.servesCallers !== wanted.servesCallers) {
    return 'listen and upstream come or go, and a listener is opened at start only: restart to put this config in force';
  }
  return null;
}

type Routes = Pick<CompiledConfig, 'routes'>;

/** Whether any route needs a store. */
export function reserves({ routes }: Routes): boolean {
  return routes.some(({ reservation }) => reservation !== null);
}
