import t, { type Test } from 'tap';
import type { LoadedKeySet, RefreshLimits } from '../../../src/adapters/jwks/fetch-url.js';
import { localFiles } from '../../../src/adapters/files/files.js';
import { createUrlOrigin } from '../../../src/adapters/jwks/fetch-url.js';
import { createBundleOrigin } from '../../../src/adapters/jwks/spiffe-bundle.js';
import type { Result } from '../../../src/lib/result.js';
import { startMetadataServer, type MetadataServer } from '../../support/metadata-server.js';
import { rsaKey } from '../../support/keys.js';
import { until } from '../../support/until.js';
import { manualTime, type ManualTime } from '../manual-time.js';
import { dynamicKeys, startKeySourceHarness } from './key-source-harness.js';
import { coreKeyRules } from '../../../src/decision/token/profiles.js';

const limits: RefreshLimits = {
  maxBytes: 1024,
  timeoutMs: 20_000,
  minAgeMs: 10_000,
  maxAgeMs: 600_000,
  maxStaleMs: null,
  cooldownMs: 5_000,
  isAwaited: false,
};

interface Bundle {
  readonly server: MetadataServer;
  readonly time: ManualTime;
  /** Loads a bundle, and takes it. */
  readonly load: () => Promise<Result<LoadedKeySet, string>>;
}

async function bundle(t: Test): Promise<Bundle> {
  const server = await startMetadataServer(t);
  const time = manualTime();
  const access = { caFile: null, tokenFile: null, files: localFiles };
  const origin = createBundleOrigin(createUrlOrigin(`${server.origin}/bundle`, access), time.clock);
  return {
    server,
    time,
    load: async () => {
      const loaded = await origin.load(limits, new AbortController().signal);
      if (loaded.ok) loaded.value.onTaken?.();
      return loaded;
    },
  };
}

t.test('the refresh hint shortens the time for which a bundle is kept', async (t) => {
  const { server, load } = await bundle(t);
  const rows: { hint: unknown; cache?: string; expected: number | null }[] = [
    { hint: 60, expected: 60_000 },
    { hint: 60, cache: 'max-age=30', expected: 30_000 },
    { hint: 60, cache: 'max-age=300', expected: 60_000 },
    { hint: undefined, cache: 'max-age=300', expected: 300_000 },
    { hint: undefined, expected: null },
    { hint: Number.MAX_SAFE_INTEGER, expected: 604_800_000 },
    { hint: 0, expected: null },
    { hint: -1, expected: null },
    { hint: 1.5, expected: null },
    { hint: '60', expected: null },
  ];
  for (const { hint, cache, expected } of rows) {
    server.at('/bundle', (_req, res) =>
      res
        .writeHead(200, cache === undefined ? {} : { 'cache-control': cache })
        .end(JSON.stringify({ keys: [], spiffe_refresh_hint: hint })),
    );
    t.match(await load(), { ok: true, value: { freshnessMs: expected } }, JSON.stringify({ hint, cache }));
  }
});

t.test('an older bundle does not take the place of a newer one within its lifetime', async (t) => {
  const { server, time, load } = await bundle(t);
  const serve = (sequence: unknown): void => server.at('/bundle', { keys: [], spiffe_sequence: sequence });
  serve(7);
  t.match(await load(), { ok: true });
  serve(7);
  t.match(await load(), { ok: true }, 'the same again');
  serve(6);
  t.match(await load(), { ok: false, error: 'the bundle is older than the one in hand: its spiffe_sequence is 6' });
  time.advance(599_999);
  t.match(await load(), { ok: false });
  time.advance(1);
  t.match(await load(), { ok: true }, 'a server that lost its data counts from the beginning');
  serve('5');
  t.match(await load(), { ok: true }, 'what is no number says nothing');
  serve(8);
  t.match(await load(), { ok: true });
});

t.test('a bundle that was not taken keeps no older one out', async (t) => {
  const good = [{ ...rsaKey('d-1').jwk, use: 'jwt-svid' }];
  const rows: { name: string; keys: unknown; result: string; problem: RegExp | null }[] = [
    { name: 'broken', keys: ['oops'], result: 'core failed', problem: /^keys\[0\] is not an object$/ },
    { name: 'empty, and not said again yet', keys: [], result: 'core empty', problem: null },
  ];
  for (const { name, keys, result, problem } of rows) {
    const server = await startMetadataServer(t);
    const serve = (sequence: number, listed: unknown): void =>
      server.at('/bundle', { keys: listed, spiffe_sequence: sequence });
    serve(9, good);
    const { source, time, refreshes } = await startKeySourceHarness(t, `${server.origin}/bundle`, {
      settings: { rules: { ...coreKeyRules, use: 'jwt-svid' } },
      keyIds: dynamicKeys,
    });
    serve(10, keys);
    time.advance(480_000);
    await until(`it was asked for: ${name}`, () => refreshes.length === 2);
    t.match([refreshes, source.state().lastError], [['core ok', result], problem], name);
    serve(8, good);
    time.advance(5_000);
    await until(`an older one than that in hand: ${name}`, () => refreshes.length === 3);
    t.match(source.state().lastError, /^the bundle is older than the one in hand: its spiffe_sequence is 8$/, name);
    serve(9, good);
    time.advance(5_000);
    await until(`the one in hand was asked for again: ${name}`, () => refreshes.length === 4);
    t.match([refreshes.at(-1), source.state().lastError], ['core ok', null], name);
  }
});
