/** Tokens of the calling side from a real issuer, by each way to show it who asks, and from a Core. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { localFiles } from '../../src/adapters/files/files.js';
import { systemClock } from '../../src/adapters/system/clock.js';
import { createTokenSource } from '../../src/app/token-sources.js';
import { compileTokens, tokensSchema } from '../../src/config/sections/egress/tokens.js';
import { startCoreEmulator } from '../../src/core-emulator/server.js';
import type { Clock } from '../../src/ports/system.js';
import type { TokenOutcome, TokenSource } from '../../src/ports/tokens.js';
import { oauthClient } from '../support/oauth-client.js';
import { startOidcProvider } from '../support/oidc-provider.js';
import type { Scope } from '../support/scope.js';
import { tempDir } from '../support/temp-dir.js';

const { secret, secretFile, keyFile, certificate, registered } = oauthClient(t);

const exchange = 'urn:ietf:params:oauth:grant-type:token-exchange';
const jwtBearer = 'urn:ietf:params:oauth:grant-type:jwt-bearer';
const everyGrant = { grant_types: ['client_credentials', exchange, jwtBearer] };

/** What the config says of a client, by the way that it shows who it is, which is its name. */
const ways = {
  basic: { secret_file: secretFile },
  post: { secret_file: secretFile, secret_in: 'body' },
  key: { private_key_file: keyFile, key_id: 'k' },
  certificate: { certificate_file: certificate.certFile, key_file: certificate.keyFile },
} as const;

const idp = await startOidcProvider(
  t,
  Object.entries(registered).map(([id, known]) => ({ ...known, ...everyGrant, client_id: id })),
);

interface Made {
  readonly source: TokenSource;
  readonly lines: string[];
  /** Lets this many milliseconds pass, on both clocks. */
  readonly advance: (ms: number) => void;
  /** From now on no other time passes. */
  readonly stop: () => void;
}

/** Paths as they stand. */
function unchanged<Path extends string | null>(path: Path): Path {
  return path;
}

/** A source as a config describes it. */
function make(t: Scope, file: object, maxWaiting?: number): Made {
  const [settings] = compileTokens(tokensSchema.parse({ it: file }), unchanged);
  if (settings === undefined) throw new Error('no settings');
  const lines: string[] = [];
  const log = (message: string, fields?: object): void => void lines.push(`${message} ${JSON.stringify(fields)}`);
  let laterMs = 0;
  let running: Clock = systemClock;
  const clock: Clock = {
    now: () => running.now() + laterMs,
    monotonic: () => running.monotonic() + laterMs,
  };
  const source = createTokenSource(settings, {
    clock,
    random: Math.random,
    files: localFiles,
    log: { info: log, warn: log },
    ...(maxWaiting === undefined ? {} : { maxWaiting }),
  });
  t.teardown(() => source.close());
  return {
    source,
    lines,
    advance: (ms) => {
      laterMs += ms;
    },
    stop: () => {
      const [now, monotonic] = [systemClock.now(), systemClock.monotonic()];
      running = { now: () => now, monotonic: () => monotonic };
    },
  };
}

function oauth(id: string, auth: object, more: object = {}): object {
  return {
    oauth: { issuer: idp.issuer, ca_file: idp.caFile, client_id: id, auth, resource: 'urn:orders:RS256', ...more },
  };
}

async function tokenOf(outcome: TokenOutcome | Promise<TokenOutcome>): Promise<string> {
  const told = await outcome;
  if (told.kind !== 'token') throw new Error(told.reason);
  return told.token;
}

function payloadOf(token: string): Readonly<Record<string, unknown>> {
  return JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()) as Record<string, unknown>;
}

t.test('client credentials, by each way to show who asks', async (t) => {
  for (const [id, auth] of Object.entries(ways)) {
    const { source, lines } = make(t, oauth(id, auth, { scope: 'orders:read' }));
    const herd = await Promise.all(Array.from({ length: 20 }, () => tokenOf(source.get(null))));
    t.equal(new Set(herd).size, 1, id);
    t.match(payloadOf(herd[0] ?? ''), { iss: idp.issuer, aud: 'orders', client_id: id, scope: 'orders:read' });
    t.match(source.status(), { kind: 'oauth', kept: true, fetches: 1, lastError: null });
    source.invalidate(herd[0] ?? '');
    t.not(await tokenOf(source.get(null)), herd[0], `${id}: another one`);
    t.equal(source.status().fetches, 2);
    t.strictSame(lines, []);
  }
});

t.test('the caller’s own token is exchanged, or is the assertion, by each way to show who asks', async (t) => {
  const [opaque, jwt] = [await idp.token('opaque'), await idp.token('RS256')];
  for (const [id, auth] of Object.entries(ways)) {
    for (const [grant, subject] of [
      ['exchange', opaque],
      ['jwt_bearer', jwt],
    ] as const) {
      const { source } = make(t, oauth(id, auth, { grant, audience: 'orders' }));
      const tokens = await Promise.all([subject, subject, subject].map((own) => tokenOf(source.get(own))));
      t.equal(new Set(tokens).size, 1, `${id} ${grant}`);
      t.match(payloadOf(tokens[0] ?? ''), { client_id: id, act_for: 'checkout' });
      t.equal(source.status().fetches, 1);
      t.match(await source.get(`${subject.slice(0, -9)}AAAAAAAAA`), { problem: 'subject', reason: /invalid_grant/ });
      t.match(await source.get(null), { problem: 'subject' });
      t.equal(await tokenOf(source.get(subject)), tokens[0]);
    }
  }
});

t.test('a client that the server does not know, or has not that grant: refused, and no secret is told', async (t) => {
  const otherSecretFile = join(tempDir(t), 'checkout');
  const cases = [
    [oauth('nobody', { secret_file: secretFile }), /invalid_client/],
    [oauth('basic', { private_key_file: keyFile }), /invalid_client|invalid_request/],
    [oauth('checkout', { secret_file: otherSecretFile }, { grant: 'exchange' }), /own token|no such token/],
    [oauth('basic', { secret_file: secretFile }, { resource: 'no URI' }), /invalid_target/],
  ] as const;
  writeFileSync(otherSecretFile, 'a secret of the client');
  for (const [file, reason] of cases) {
    const { source, lines } = make(t, file);
    const outcome = await source.get('some-token-of-a-caller');
    t.match(outcome, { kind: 'unavailable', reason }, String(reason));
    t.notMatch(JSON.stringify([outcome, lines]), /a secret|some-token/);
  }
});

t.test('a secret that is replaced counts within a second', async (t) => {
  const file = join(tempDir(t), 'secret');
  writeFileSync(file, 'another');
  const { source, advance } = make(t, oauth('basic', { secret_file: file }));
  t.match(await source.get(null), { problem: 'refused', reason: /invalid_client/ });
  writeFileSync(file, secret);
  advance(1_000);
  await tokenOf(source.get(null));
  writeFileSync(file, '');
  advance(200_000);
  advance(60_000);
  t.match(await source.get(null), { kind: 'token' }, 'the one in hand serves on');
});

t.test(
  'rotation, an outage and the end of tokens under load: no request that could have one goes without',
  async (t) => {
    const { source, advance, stop } = make(t, oauth('basic', { secret_file: secretFile }));
    await tokenOf(source.get(null));
    await idp.kill();
    for (let count = 0; count < 26; count += 1) {
      t.match(await source.get(null), { kind: 'token' }, `${String(count * 10)} s`);
      advance(10_000);
    }
    advance(10_000);
    // A thousand requests take longer on a slow machine than the issuer is left alone.
    stop();
    t.match(await source.get(null), { kind: 'unavailable', problem: 'away', reason: /refused/ });
    const before = source.status().fetches;
    for (let count = 0; count < 1_000; count += 1) t.match(await source.get(null), { problem: 'away' });
    t.equal(source.status().fetches, before, 'and the issuer is left alone');
    await idp.restart('new keys');
    advance(60_000);
    const herd = await Promise.all(Array.from({ length: 200 }, () => tokenOf(source.get(null))));
    t.equal(new Set(herd).size, 1);
    t.equal(source.status().fetches, before + 1);
  },
);

t.test('a Core: 100,000 requests cost a handful of mints, a herd at the end of a token one', async (t) => {
  const apiKey = 'k3y-of-twenty-and-more-characters';
  const core = await startCoreEmulator({ host: '127.0.0.1', port: 0, rotateEveryMs: 3_600_000, apiKeys: [apiKey] });
  t.teardown(() => core.close());
  const curl = join(tempDir(t), 'core.curl');
  writeFileSync(curl, `url = "${core.url}"\nheader = "api-key: ${apiKey}"\n`, { mode: 0o600 });
  const claims = { aud: 'orders', sub: 'checkout', source: 'microservice', token_type: 'service' };
  const file = { core: { curl_config: curl, issuer: 'https://api.example.com' }, claims };
  const { source } = make(t, file);
  for (let count = 0; count < 100_000; count += 1) {
    const outcome = source.get(null);
    if (outcome instanceof Promise) await tokenOf(outcome);
  }
  t.equal(source.status().fetches, 1);
  const { iat, exp, sub, permissions } = payloadOf(await tokenOf(source.get(null)));
  t.strictSame([Number(exp) - Number(iat), sub, permissions], [600, 'checkout', []]);
  const first = await tokenOf(source.get(null));
  for (let count = 0; count < 200; count += 1) source.invalidate(first);
  const herd = await Promise.all(Array.from({ length: 200 }, () => tokenOf(source.get(null))));
  t.equal(new Set(herd).size, 1);
  t.equal(source.status().fetches, 2);

  const each = make(t, { ...file, single_use: true }).source;
  const several = await Promise.all(Array.from({ length: 20 }, () => tokenOf(each.get(null))));
  t.equal(new Set(several.map((token) => payloadOf(token)['jti'])).size, 20);
});

t.test('a file', async (t) => {
  const path = join(tempDir(t), 'token');
  writeFileSync(path, 'projected\n');
  const { source } = make(t, { file: path });
  t.equal(await tokenOf(source.get(null)), 'projected');
});
