/** What a config says by the names that it uses, so that two of them can be told apart without showing a value. */
import type { SectionValues } from '../sections/index.js';

/** Sections, `issuers.NAME` and `routes.NAME`, each with what was read. What is left out or `null` is not there. */
export type Settings = ReadonlyMap<string, unknown>;

/** Names of settings, as the config spells them; never what they are set to, which may be secret. */
export interface SettingNames {
  readonly added: readonly string[];
  readonly changed: readonly string[];
  readonly removed: readonly string[];
}

/** Names what was read. */
export function settingsOf({ issuers, routes, ...whole }: SectionValues): Settings {
  const all: readonly (readonly [string, unknown])[] = [
    ...Object.entries(whole),
    ...[...issuers].map(([name, issuer]) => [`issuers.${name}`, issuer] as const),
    ...routes.map((route) => [`routes.${route.name}`, route] as const),
  ];
  return new Map(all.filter(([, value]) => value !== undefined && value !== null));
}

/**
 * Names what is different: a section, issuer or route that is new or gone as a whole, and of the others each setting.
 */
export function changedSettings(from: Settings, to: Settings): SettingNames {
  const changed = [...to].flatMap(([name, value]) => (from.has(name) ? differences(name, from.get(name), value) : []));
  return {
    added: namesOnlyIn(to, from),
    changed: isReordered(from, to) ? [...changed, 'issuers'] : changed,
    removed: namesOnlyIn(from, to),
  };
}

/**
 * Whether the same issuers stand in another order: the audience of the first is part of what users' idempotency keys
 * are counted by.
 */
function isReordered(from: Settings, to: Settings): boolean {
  const [before, after] = [issuersOf(from), issuersOf(to)];
  return before.join(' ') !== after.join(' ') && before.toSorted().join(' ') === after.toSorted().join(' ');
}

function namesOnlyIn(one: Settings, other: Settings): readonly string[] {
  return [...one.keys()].filter((name) => !other.has(name));
}

function issuersOf(settings: Settings): readonly string[] {
  return [...settings.keys()].filter((name) => name.startsWith('issuers.'));
}

function differences(name: string, from: unknown, to: unknown): readonly string[] {
  const [before, after] = [entriesOf(from), entriesOf(to)];
  if (before === null || after === null) {
    return JSON.stringify(from ?? null) === JSON.stringify(to ?? null) ? [] : [name];
  }
  const keys = new Set([...before.keys(), ...after.keys()]);
  return [...keys].flatMap((key) => differences(`${name}.${key}`, before.get(key), after.get(key)));
}

/** The members of a map; `null` of what is a value of its own, as a list is. */
function entriesOf(value: unknown): ReadonlyMap<string, unknown> | null {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? new Map(Object.entries(value)) : null;
}
