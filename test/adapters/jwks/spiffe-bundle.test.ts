import t, { type Test } from 'tap';
import type { LoadedKeySet, RefreshLimits } from '../../../src/adapters/jwks/fetch-url.js';
import { localFiles } from '../../../src/adapters/files/files.js';
import { createUrlOrigin } from '../../../src/adapters/jwks/fetch-url.js';
import { createBundleOrigin } from '../../../src/adapters/jwks/spiffe-bundle.js';
import type { Result } from '../../../src/lib/result.js';
import { startMetadataServer, type MetadataServer } from '../../support/metadata-server.js';
import { manualTime, type ManualTime } from '../manual-time.js';

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
  readonly load: () => Promise<Result<LoadedKeySet, string>>;
}

async function bundle(t: Test): Promise<Bundle> {
  const server = await startMetadataServer(t);
  const time = manualTime();
  const access = { caFile: null, tokenFile: null, files: localFiles };
  const origin = createBundleOrigin(createUrlOrigin(`${server.origin}/bundle`, access), time.clock);
  return { server, time, load: () => origin.load(limits, new AbortController().signal) };
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
