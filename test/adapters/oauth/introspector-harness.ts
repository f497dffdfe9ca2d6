import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { localFiles } from '../../../src/adapters/files/files.js';
import { createIntrospector, type RunningIntrospection } from '../../../src/adapters/oauth/introspector.js';
import type { IntrospectionSettings } from '../../../src/config/types.js';
import type { IssuerRules } from '../../../src/decision/route/policy.js';
import type { Files, LogFields } from '../../../src/ports/system.js';
import type { KeyAsker, KeySource, MetadataState } from '../../../src/ports/auth.js';
import { keyState } from '../../support/key-state.js';
import { issuerRules } from '../../decision/samples.js';
import { startIntrospection, type IntrospectionServer } from '../../support/introspection-server.js';
import type { Scope } from '../../support/scope.js';
import { tempDir } from '../../support/temp-dir.js';
import { manualTime, type ManualTime } from '../manual-time.js';

export const secret = 'a secret: with + and é';

export const clientId = 'sally port';

export interface IntrospectorHarness {
  readonly server: IntrospectionServer;
  readonly introspection: RunningIntrospection;
  readonly time: ManualTime;
  readonly secretFile: string;
  readonly lines: (LogFields & { readonly level: string; readonly msg: string })[];
  /** How questions ended, and look-ups, in order. */
  readonly asked: string[];
  readonly lookedUp: string[];
  /** What comes of a look-up, and whether it came at once. */
  readonly ask: (token: string, asker?: KeyAsker | null) => Promise<string>;
  /** An answer with `active` that is good for so many seconds. */
  readonly active: (more?: object, lifeS?: number) => object;
}

export interface IntrospectorOptions {
  readonly settings?: Partial<IntrospectionSettings>;
  readonly rules?: Partial<IssuerRules>;
  readonly server?: IntrospectionServer;
  readonly keys?: Pick<KeySource, 'find'>;
  /** Of the metadata. */
  readonly places?: MetadataState['introspection'];
  /** Those of this machine unless given. */
  readonly files?: Files;
}

export const noKeys: Pick<KeySource, 'find'> = { find: () => ({ kind: 'unknown' }) };

export async function startIntrospector(t: Scope, options: IntrospectorOptions = {}): Promise<IntrospectorHarness> {
  const server = options.server ?? (await startIntrospection(t));
  const secretFile = join(tempDir(t), 'client-secret');
  writeFileSync(secretFile, `${secret}\n`);
  chmodSync(secretFile, 0o600);
  const time = manualTime();
  const lines: IntrospectorHarness['lines'] = [];
  const write =
    (level: string) =>
    (msg: string, fields: LogFields = {}): void => {
      lines.push({ ...fields, level, msg });
    };
  const asked: string[] = [];
  const lookedUp: string[] = [];
  const settings: IntrospectionSettings = {
    url: server.url,
    caFile: null,
    clientId,
    auth: { method: 'client_secret_basic', secretFile },
    answer: 'json',
    rules: { tokenPrefix: '', requiresAudience: true, requiresTokenId: false },
    maxAgeMs: 30_000,
    maxNegativeAgeMs: 5_000,
    timeoutMs: 10_000,
    maxBytes: 65_536,
    unknownPerSecond: 20,
    unknownPerAddress: 5,
    ...options.settings,
  };
  const introspection = createIntrospector(settings, issuerRules({ name: 'idp', ...options.rules }), {
    clock: time.clock,
    files: options.files ?? localFiles,
    log: { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') },
    metrics: {
      introspection: (_issuer, result) => asked.push(result),
      introspectionLookup: (_issuer, result) => lookedUp.push(result),
    },
    keys: {
      ...(options.keys ?? noKeys),
      state: () =>
        keyState({
          metadata: {
            ageMs: 0,
            keysUrl: null,
            lastError: null,
            lastProblem: null,
            introspection: options.places ?? { url: null, mtlsUrl: null },
          },
        }),
    },
    watchIntervalMs: 20,
  });
  t.teardown(async () => introspection.close());
  await introspection.start();
  return {
    server,
    introspection,
    time,
    secretFile,
    lines,
    asked,
    lookedUp,
    ask: async (token, asker = null) => {
      const answer = introspection.ask(token, null, asker);
      return answer instanceof Promise ? (await answer).kind : `${answer.kind} at once`;
    },
    active: (more = {}, lifeS = 300) => ({
      active: true,
      exp: Math.floor(time.clock.now() / 1_000) + lifeS,
      ...more,
    }),
  };
}

/** Somebody who waits at this address. */
export function asker(address: string, hasAuthenticated = false): KeyAsker {
  return {
    address: () => address,
    hasAuthenticated: () => hasAuthenticated,
    isGone: () => false,
    now: () => Date.now(),
  };
}
