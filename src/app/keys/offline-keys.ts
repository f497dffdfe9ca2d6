import { silentLog } from '../../ports/system.js';
import { systemClock, systemTimers } from '../../adapters/system/clock.js';
import { localFiles } from '../../adapters/files/files.js';
import { createIntrospector } from '../../adapters/oauth/introspector.js';
import { createKeySource } from '../../adapters/jwks/key-source.js';
import { loadSessions, openSessions } from '../sessions.js';
import type { StartFailure } from '../start-failure.js';
import type { CompiledConfig, IssuerSettings } from '../../config/types.js';
import { accept, type Result } from '../../lib/result.js';
import type { Introspection, KeySource } from '../../ports/auth.js';
import type { ActiveSessions } from '../../proxy/auth/credentials/session.js';

const uncounted = {
  jwksRefresh: () => undefined,
  discoveryRefresh: () => undefined,
  jwksWait: () => undefined,
  introspection: () => undefined,
  introspectionLookup: () => undefined,
};

/** What verifies credentials, as `serve` would have it after its first fetch. */
interface OpenedKeys {
  readonly of: (issuer: IssuerSettings) => KeySource;
  /** What asks the issuer about its opaque tokens; `null` where it has none. */
  readonly introspectionOf: (issuer: IssuerSettings) => Introspection | null;
  /** `null` where no route accepts sessions. */
  readonly sessions: ActiveSessions | null;
  readonly close: () => Promise<void>;
}

/** Fetches the keys once. A source that cannot be had is no failure: it says so when it is asked. */
export async function openKeys({
  issuers,
  sessions: settings,
}: CompiledConfig): Promise<Result<OpenedKeys, StartFailure>> {
  const deps = { clock: systemClock, timers: systemTimers, files: localFiles, log: silentLog, metrics: uncounted };
  const sdk = await loadSessions(settings);
  if (!sdk.ok) return sdk;
  const sessions = settings === null || sdk.value === null ? null : openSessions(settings, sdk.value, deps);
  const sourceOf = ({ keys, rules }: IssuerSettings): ReturnType<typeof createKeySource> =>
    createKeySource(keys, rules.name, rules.keyIds, deps);
  const sources = new Map(issuers.map((issuer) => [issuer, sourceOf(issuer)]));
  const introspections = new Map(
    [...sources].flatMap(([issuer, keys]) => {
      const { introspection, rules } = issuer;
      if (introspection === null) return [];
      return [[issuer, createIntrospector(introspection, rules, { ...deps, keys })] as const];
    }),
  );
  const started = [...sources.values(), ...introspections.values()];
  await Promise.all(started.map((part) => part.start()));
  return accept({
    sessions: sessions?.activeConfig ?? null,
    introspectionOf: (issuer) => introspections.get(issuer) ?? null,
    of: (issuer) => sources.get(issuer) ?? sourceOf(issuer),
    close: async () => {
      await Promise.all([...started.map((part) => part.close()), sessions?.close()]);
    },
  });
}
