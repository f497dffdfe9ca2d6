/**
 * The one list of sections, and the source of types, defaults, units and reference text. What reads, checks, compiles
 * and compares configs goes through it; `config.schema.json` and `docs/configuration.md` are generated from it.
 */
import type { z } from 'zod';
import type { CompiledConfig } from '../types.js';
import { admin } from './listeners/admin.js';
import { decide } from './listeners/decide.js';
import { egress } from './egress/egress.js';
import { identity } from './identity.js';
import { issuers, type Issuers } from './issuers/issuers.js';
import { limits } from './limits.js';
import { listen } from './listeners/listen.js';
import { log } from './log.js';
import { mode } from './mode.js';
import { probes } from './listeners/probes.js';
import { receiver } from './receiver.js';
import { reload } from './reload.js';
import { revoked } from './revoked.js';
import { routes } from './routes/routes.js';
import type { KeyChanges } from '../schema/key-changes.js';
import { map } from '../schema/scalars.js';
import { sessions } from './sessions.js';
import { shutdown } from './shutdown.js';
import { store } from './store.js';
import { telemetry } from './telemetry.js';
import { tokenCache } from './token-cache.js';
import { upstream } from './upstream.js';
import { workers } from './workers.js';

/** The sections by their keys, in the order of the reference. Checks run in this order. */
export const sections = {
  listen,
  admin,
  probes,
  upstream,
  receiver,
  issuers,
  token_cache: tokenCache,
  sessions,
  identity,
  store,
  revoked,
  shutdown,
  log,
  reload,
  limits,
  mode,
  routes,
  egress,
  decide,
  telemetry,
  workers,
} as const;

type Sections = typeof sections;

export type SectionName = keyof Sections;

/** Sections that are read as a whole: a problem in one issuer or route does not hide those of another. */
export type WholeSectionName = Exclude<SectionName, 'issuers' | 'routes'>;

/** What the file says in a section, defaults filled in. */
export type SectionValue<Name extends SectionName> = z.output<Sections[Name]['schema']>;

/** What a config without errors says, by section. */
export type SectionValues = { readonly [Name in WholeSectionName]: SectionValue<Name> } & {
  readonly issuers: Issuers;
  readonly routes: SectionValue<'routes'>;
};

/** What all sections together compile to. */
export type CompiledSections = UnionToIntersection<ReturnType<Sections[SectionName]['compile']>>;

type UnionToIntersection<Union> = (Union extends unknown ? (one: Union) => void : never) extends (
  all: infer All,
) => void
  ? All
  : never;

export const sectionNames = Object.keys(sections) as readonly SectionName[];

/** A whole config file. */
export const configSchema = map(schemas());

function schemas(): { readonly [Name in SectionName]: Sections[Name]['schema'] } {
  const entries = sectionNames.map((name) => [name, sections[name].schema]);
  return Object.fromEntries(entries) as { readonly [Name in SectionName]: Sections[Name]['schema'] };
}

/** What a change of each key means, by section. They are asked with the whole compiled config. */
export const keyChanges = Object.fromEntries(
  sectionNames.map((name) => [name, sections[name].keys]),
) as unknown as Readonly<Record<SectionName, KeyChanges<CompiledConfig>>>;
