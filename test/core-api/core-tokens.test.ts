import { renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { localFiles } from '../../src/adapters/files/files.js';
import { systemClock } from '../../src/adapters/system/clock.js';
import type { CoreTokenSettings } from '../../src/config/types.js';
import { createCoreTokens } from '../../src/core-api/core-tokens.js';
import { startCoreEmulator } from '../../src/core-emulator/server.js';
import type { Clock } from '../../src/ports/system.js';
import type { TokenFetcher } from '../../src/ports/tokens.js';
import { certificates } from '../support/certificates.js';
import { startFakeCore } from '../support/fake-core.js';
import { rsaKey } from '../support/keys.js';
import type { Scope } from '../support/scope.js';
import { tempDir } from '../support/temp-dir.js';
import { mintToken } from '../support/tokens.js';

const apiKey = 'k3y-of-twenty-and-more-characters';
const claims = { aud: 'orders', sub: 'checkout', source: 'microservice', token_type: 'service', permissions: ['a:b'] };

interface Made {
  readonly fetcher: TokenFetcher;
  readonly path: string;
  /** Lets this many milliseconds pass. */
  readonly advance: (ms: number) => void;
}

function make(t: Scope, curl: string | null, settings: Partial<CoreTokenSettings> = {}): Made {
  const path = join(tempDir(t), 'core.curl');
  if (curl !== null) writeFileSync(path, curl, { mode: 0o600 });
  let laterMs = 0;
  const clock: Clock = { now: systemClock.now, monotonic: () => systemClock.monotonic() + laterMs };
  const whole: CoreTokenSettings = {
    kind: 'core',
    name: 'orders',
    curlConfigFile: path,
    issuer: 'https://API.example.com',
    claims,
    validityS: 60,
    dpop: false,
    singleUse: false,
    allowHttp: false,
    allowPublicCore: false,
    ...settings,
  };
  const fetcher = createCoreTokens(whole, { clock, files: localFiles, proofs: null });
  t.teardown(() => fetcher.close());
  return {
    fetcher,
    path,
    advance: (ms) => {
      laterMs += ms;
    },
  };
}

async function startCore(t: Scope, apiKeys = [apiKey]): Promise<string> {
  const core = await startCoreEmulator({ host: '127.0.0.1', port: 0, rotateEveryMs: 3_600_000, apiKeys });
  t.teardown(() => core.close());
  return core.url;
}

async function tokenOf(fetcher: TokenFetcher): Promise<string> {
  const fetched = await fetcher.fetch(null);
  if (!fetched.ok) throw new Error(fetched.error.reason);
  return fetched.value.token;
}

function payloadOf(token: string): Readonly<Record<string, unknown>> {
  return JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()) as Record<string, unknown>;
}

t.test('a token as the settings have it, with the key of the curl config file', async (t) => {
  const url = await startCore(t);
  const { fetcher } = make(t, `url = "${url}"\nheader = "api-key: ${apiKey}"\n`);
  const fetched = await fetcher.fetch(null);
  t.match(fetched, { ok: true, value: { lifetimeMs: 60_000 } });
  const { iat, exp, ...others } = payloadOf(fetched.ok ? fetched.value.token : '');
  t.strictSame(others, { iss: 'https://api.example.com', ...claims });
  t.equal(Number(exp) - Number(iat), 60);
});

t.test('single-use: each has a jti of its own, and sixteen are made at once at most', async (t) => {
  const core = await startFakeCore(t);
  let [now, most] = [0, 0];
  core.answer(({ body }, response) => {
    most = Math.max(most, (now += 1));
    const { payload } = JSON.parse(body) as { payload: object };
    const nowS = Math.floor(Date.now() / 1_000);
    const jwt = mintToken({ key: rsaKey(), claims: { ...payload, iat: nowS, exp: nowS + 60 } });
    setTimeout(() => {
      now -= 1;
      response.end(JSON.stringify({ status: 'OK', jwt }));
    }, 20);
  });
  const { fetcher } = make(t, `url = "${core.url}"\n`, { singleUse: true });
  const tokens = await Promise.all(Array.from({ length: 60 }, () => tokenOf(fetcher)));
  t.equal(new Set(tokens.map((token) => payloadOf(token)['jti'])).size, 60);
  t.ok(most > 1 && most <= 16, `${String(most)} at once`);
});

t.test('another key in the file counts within a second, links followed; calls under way are answered', async (t) => {
  const url = await startCore(t);
  const other = 'another-k3y-of-twenty-characters';
  const { fetcher, path, advance } = make(t, null);
  const publish = (key: string): void => {
    const target = join(tempDir(t), 'core.curl');
    writeFileSync(target, `url = "${url}"\nheader = "api-key: ${key}"\n`, { mode: 0o600 });
    symlinkSync(target, `${path}.next`);
    renameSync(`${path}.next`, path);
  };
  publish(other);
  t.match(await fetcher.fetch(null), { ok: false, error: { problem: 'refused', reason: /refused the API key/ } });
  publish(apiKey);
  t.match(await fetcher.fetch(null), { ok: false }, 'not looked at again yet');
  advance(1_000);
  t.match(await fetcher.fetch(null), { ok: true });
  const underWay = fetcher.fetch(null);
  publish(other);
  advance(1_000);
  t.match(await fetcher.fetch(null), { ok: false, error: { problem: 'refused' } });
  t.match(await underWay, { ok: true });
});

t.test('a Core over TLS, by the authority that the file names from its folder', async (t) => {
  const { server, ca, otherCa } = certificates(t);
  const core = await startFakeCore(t, { cert: server.cert, key: server.key });
  core.answer(({ body }, response) => {
    const { payload } = JSON.parse(body) as { payload: object };
    const nowS = Math.floor(Date.now() / 1_000);
    const jwt = mintToken({ key: rsaKey(), claims: { ...payload, iat: nowS, exp: nowS + 60 } });
    response.end(JSON.stringify({ status: 'OK', jwt }));
  });
  const { fetcher, path, advance } = make(t, `url = "${core.url}"\ncacert = "ca.pem"\n`);
  t.match(await fetcher.fetch(null), { ok: false, error: { problem: 'unreadable', reason: /CA file .*ca\.pem/ } });
  writeFileSync(join(path, '..', 'ca.pem'), otherCa.cert);
  t.match(await fetcher.fetch(null), { ok: false, error: { problem: 'away', reason: /authority/ } });
  writeFileSync(join(path, '..', 'ca.pem'), ca.cert);
  advance(1_000);
  t.match(await fetcher.fetch(null), { ok: true });
});

t.test('how long the Core asks to be left alone: in seconds, or until a date', async (t) => {
  const core = await startFakeCore(t);
  const { fetcher } = make(t, `url = "${core.url}"\n`);
  const askedFor = async (retryAfter: string): Promise<number | null> => {
    core.answer((_, response) => response.writeHead(503, { 'retry-after': retryAfter }).end());
    const fetched = await fetcher.fetch(null);
    return fetched.ok ? null : fetched.error.retryAfterMs;
  };
  const inAMinute = await askedFor(new Date(Date.now() + 60_000).toUTCString());
  t.ok(inAMinute !== null && inAMinute > 30_000 && inAMinute <= 60_000, String(inAMinute));
  t.equal(await askedFor('Sun, 06 Nov 1994 08:49:37 GMT'), 0, 'one that is over');
  t.equal(await askedFor('Sunday, 06-Nov-94 08:49:37 GMT'), null, 'the obsolete form is none');
  t.equal(await askedFor('7'), 7_000);
  t.equal(await askedFor('soon'), null);
});

t.test('why there is none, in words without the key', async (t) => {
  const core = await startFakeCore(t);
  core.answer((_, response) => response.writeHead(429, { 'retry-after': '7' }).end(apiKey));
  const with429 = `url = "${core.url}"\nheader = "api-key: ${apiKey}"\n`;
  const cases: readonly (readonly [string | null, object])[] = [
    [null, { problem: 'unreadable', reason: /does not exist/ }],
    ['url\n', { problem: 'unreadable', reason: /core\.curl:1: / }],
    ['url = "http://127.0.0.1:1"\n', { problem: 'away', reason: /refused/ }],
    ['url = "http://127.0.0.1:1"\nheader = "cdi-version: 2.9"\n', { problem: 'unreadable', reason: /cdi-version/ }],
    ['url = "http://10.1.2.3"\n', { problem: 'refused', reason: /another machine/ }],
    ['url = "https://8.8.8.8"\n', { problem: 'refused', reason: /public address/ }],
    [with429, { problem: 'away', reason: /too many calls/, retryAfterMs: 7_000 }],
  ];
  for (const [curl, error] of cases) {
    const fetched = await make(t, curl).fetcher.fetch(null);
    t.match(fetched, { ok: false, error }, curl ?? 'no file');
    t.notMatch(JSON.stringify(fetched), apiKey);
  }
});

t.test('closed, it makes no connection', async (t) => {
  const url = await startCore(t);
  const { fetcher } = make(t, `url = "${url}"\nheader = "api-key: ${apiKey}"\n`);
  fetcher.close();
  t.match(await fetcher.fetch(null), { ok: false, error: { reason: 'the source was closed' } });
});
