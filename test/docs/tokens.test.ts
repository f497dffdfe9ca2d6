/**
 * docs/tokens.md: what a token is held to, tried one part at a time on a real `serve`, and the example of a key of
 * one's own.
 */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import t from 'tap';
import { parse, stringify } from 'yaml';
import { run } from '../../src/cli/program.js';
import { captureIo } from '../cli/captured-io.js';
import '../support/curl.js';
import { startJwksServer } from '../support/jwks-server.js';
import { rsaKey } from '../support/keys.js';
import { freePort } from '../support/listening.js';
import { projectDir } from '../support/project-dir.js';
import { startUpstreamServer } from '../support/upstream-server.js';
import type { Scope } from '../support/scope.js';
import { startServe } from '../support/serve-process.js';
import { sh } from '../support/sh.js';
import { tempDir } from '../support/temp-dir.js';
import { base64url, mintToken, serviceClaims, signToken, type Claims } from '../support/tokens.js';
import { startProxyProcess, type ProxyProcess } from '../support/proxy-process.js';
import { blockThatBegins } from './fenced-blocks.js';
import { codeSpans, tableBelow } from './pages.js';

const page = 'docs/tokens.md';
const key = rsaKey();
const nowS = Math.floor(Date.now() / 1000);

t.setTimeout(120_000);

interface Trial {
  readonly claims?: Claims;
  readonly header?: Claims;
  /** The token itself, in the place of one of claims and header. */
  readonly token?: string;
  /** What the log says; `null` where it is let through. */
  readonly reason: string | null;
}

const header = { alg: 'RS256', kid: key.keyId, typ: 'JWT' };
const text = (length: number): string => 'x'.repeat(length);

/** By the first cell of the row that is tried. */
const trials: Readonly<Record<string, readonly Trial[]>> = {
  'the whole': [
    { token: mintToken({ key }).split('.').slice(0, 2).join('.'), reason: 'token_malformed' },
    {
      token: signToken(
        JSON.stringify(header),
        JSON.stringify(serviceClaims()).replace('{', '{"aud":"x",'),
        key.privateKey,
      ),
      reason: 'token_malformed',
    },
    { claims: { more: text(9000) }, reason: 'credential_malformed' },
  ],
  '`alg`': ['PS256', 'ES256', 'EdDSA', 'HS256', 'none'].map((alg) => ({
    header: { alg },
    reason: 'algorithm_refused',
  })),
  '`kid`': [
    { header: { kid: undefined }, reason: 'key_id_refused' },
    { header: { kid: 's-1' }, reason: 'key_id_refused' },
    { header: { kid: 'my-key' }, reason: 'key_id_refused' },
    { header: { kid: `d-${text(255)}` }, reason: 'key_id_refused' },
  ],
  '`typ`': [
    { header: { typ: 'at+jwt' }, reason: 'token_malformed' },
    { header: { typ: 'jwt' }, reason: 'token_malformed' },
    { header: { typ: undefined }, reason: null },
  ],
  'other header members': [
    { header: { x5t: 'x' }, reason: 'token_malformed' },
    { header: { cty: 'JWT' }, reason: 'token_malformed' },
  ],
  signature: [
    { token: mintToken({ key: { ...rsaKey('d-2'), keyId: 'd-1' } }), reason: 'signature_invalid' },
    { header: { kid: 'd-9' }, reason: 'key_unknown' },
  ],
  '`sessionHandle`, `refreshTokenHash1`, `stt`': ['sessionHandle', 'refreshTokenHash1', 'stt'].map((name) => ({
    claims: { [name]: 'x' },
    reason: 'session_claim_present',
  })),
  '`iss`': [{ claims: { iss: 'https://api.example.com/' }, reason: 'issuer_mismatch' }],
  '`aud`': [
    { claims: { aud: 'invoices' }, reason: 'audience_mismatch' },
    { claims: { aud: ['orders'] }, reason: 'audience_mismatch' },
  ],
  '`source`': [
    { claims: { source: undefined }, reason: 'source_mismatch' },
    { claims: { source: 'x' }, reason: 'source_mismatch' },
  ],
  '`token_type`': [
    { claims: { token_type: undefined }, reason: 'token_type_mismatch' },
    { claims: { token_type: 'x' }, reason: 'token_type_mismatch' },
  ],
  '`exp`, and `nbf` and `iat` where present': [
    { claims: { exp: undefined }, reason: 'claim_malformed' },
    { claims: { exp: String(nowS + 60) }, reason: 'claim_malformed' },
    { claims: { exp: nowS + 60.5 }, reason: 'claim_malformed' },
    { claims: { nbf: 'x' }, reason: 'claim_malformed' },
    { claims: { iat: null }, reason: 'claim_malformed' },
    { claims: { iat: undefined }, reason: null },
  ],
  '`exp`': [{ claims: { exp: nowS - 60, iat: nowS - 120 }, reason: 'token_expired' }],
  '`nbf`, `iat`': [
    { claims: { nbf: nowS + 120 }, reason: 'token_not_yet_valid' },
    { claims: { iat: nowS + 120 }, reason: 'token_not_yet_valid' },
  ],
  life: [
    { claims: { exp: nowS + 2 * 3600 + 60, iat: undefined }, reason: 'lifetime_too_long' },
    { claims: { exp: nowS + 60, iat: nowS - 2 * 3600 }, reason: 'lifetime_too_long' },
    { claims: { exp: nowS + 7200, iat: nowS }, reason: null },
  ],
  '`sub`': [
    { claims: { sub: undefined }, reason: 'claim_malformed' },
    { claims: { sub: 'a b' }, reason: 'claim_malformed' },
    { claims: { sub: text(1025) }, reason: 'claim_malformed' },
    { claims: { sub: text(1024) }, reason: 'subject_not_approved' },
  ],
  '`permissions`': [
    { claims: { permissions: undefined }, reason: 'claim_malformed' },
    { claims: { permissions: 'orders:read' }, reason: 'claim_malformed' },
    { claims: { permissions: undefined, scope: 'orders:read' }, reason: 'claim_malformed' },
    { claims: { permissions: ['a"b'] }, reason: 'permission_missing' },
    { claims: { permissions: Array.from({ length: 1001 }, () => 'x') }, reason: 'claim_malformed' },
    { claims: { permissions: [...Array.from({ length: 999 }, () => 'x'), 'orders:read'] }, reason: null },
    { claims: { permissions: [] }, reason: 'permission_missing' },
  ],
  '`jti`': [
    { claims: { jti: 7 }, reason: 'claim_malformed' },
    { claims: { jti: text(257) }, reason: 'claim_malformed' },
    { claims: { jti: text(256) }, reason: null },
  ],
  'other claims': [{ claims: { scope: 'x', nonce: [1] }, reason: null }],
};

/** Reasons of a row that need another proxy than the one below. */
const shownElsewhere: Readonly<Record<string, string>> = {
  keys_unavailable: 'test/conformance/keys.test.ts',
  token_id_missing: 'test/conformance/reservations.test.ts',
};

let asked = 0;

async function reasonOf(proxy: ProxyProcess, { claims, header: changed, token }: Trial): Promise<unknown> {
  const id = `trial-${(asked += 1)}`;
  const sent = token ?? proxy.token(claims, changed);
  const { status } = await proxy.request({
    path: '/orders',
    headers: { Authorization: `Bearer ${sent}`, 'X-Request-Id': id },
  });
  const { reason } = await proxy.logOf(id);
  t.equal(status === 200, reason === null);
  return reason;
}

t.test('what a token is held to, part by part, and the reason in the log', async (t) => {
  const proxy = await startProxyProcess(t, { key });
  const rows = tableBelow(page, '## What it is held to');
  t.same(
    rows.map(([part]) => part),
    Object.keys(trials),
    'each row is tried',
  );
  for (const [part = '', , reasons = ''] of rows) {
    const named = codeSpans(reasons);
    const seen = new Set<unknown>();
    for (const trial of trials[part] ?? []) {
      const reason = await reasonOf(proxy, trial);
      t.equal(reason, trial.reason, `${part}: ${JSON.stringify(trial)}`);
      seen.add(reason);
    }
    for (const reason of named.filter((name) => !(name in shownElsewhere))) {
      t.ok(seen.has(reason), `${part}: ${reason}`);
    }
  }
  t.same(await proxy.exposures(), []);
});

t.test('how tokens of many other issuers differ, and the reason that each difference has', async (t) => {
  const proxy = await startProxyProcess(t, { key });
  const different: readonly Trial[] = [
    { claims: { source: undefined, token_type: undefined }, reason: 'source_mismatch' },
    { claims: { permissions: undefined, scope: 'orders:read' }, reason: 'claim_malformed' },
    { claims: { aud: ['orders'] }, reason: 'audience_mismatch' },
    { header: { typ: 'at+jwt' }, reason: 'token_malformed' },
    { header: { x5t: 'x' }, reason: 'token_malformed' },
    { header: { alg: 'ES256' }, reason: 'algorithm_refused' },
    { header: { kid: 'x' }, reason: 'key_id_refused' },
  ];
  const rows = tableBelow(page, '## Whose tokens').slice(0, -1);
  t.equal(rows.length, different.length);
  for (const [i, [theirs = '', ours = '']] of rows.entries()) {
    const trial = different[i] ?? { reason: null };
    t.equal(await reasonOf(proxy, trial), trial.reason, theirs);
    t.match(ours, `\`${String(trial.reason)}\``, theirs);
  }
});

t.test('the header and the claims that are shown are let through at their time', async (t) => {
  const [shownHeader, shownClaims] = [blockThatBegins(page, '{ "alg"').text, blockThatBegins(page, '{\n').text];
  const claims = JSON.parse(shownClaims) as { readonly iat: number; readonly exp: number };
  const token = signToken(
    shownHeader,
    JSON.stringify({ ...claims, exp: nowS + claims.exp - claims.iat, iat: nowS }),
    key.privateKey,
  );
  const kid = (JSON.parse(shownHeader) as { readonly kid: string }).kid;
  t.match(token, new RegExp(`^${base64url(shownHeader)}\\.`), 'it begins as the page says of Authorization');
  const jwks = await startJwksServer(t, { keys: [{ ...key.jwk, kid }] });
  const proxy = await startProxyProcess(t, { key, jwks });
  t.equal(await reasonOf(proxy, { token, reason: null }), null);
});

t.test("a key of one's own: the program, the issuer, and the lines that ask", async (t) => {
  const dir = tempDir(t);
  const ports = { keys: await freePort(), proxy: await freePort(), admin: await freePort() };
  const places = (shown: string): string =>
    shown.replaceAll('4000', String(ports.keys)).replaceAll('8080', String(ports.proxy));
  mkdirSync(join(dir, 'node_modules'));
  symlinkSync(join(projectDir, 'node_modules/jose'), join(dir, 'node_modules/jose'));
  writeFileSync(join(dir, 'issuer.mjs'), places(blockThatBegins(page, '// issuer.mjs').text));
  const [start = '', serve = '', ask = ''] = blockThatBegins(page, 'node issuer.mjs').text.split('\n');
  t.equal(start, 'node issuer.mjs > token &');
  writeFileSync(join(dir, 'token'), await firstLineOf(t, process.execPath, [join(dir, 'issuer.mjs')]));

  const upstream = await startUpstreamServer(t);
  const readme = parse(blockThatBegins('README.md', 'listen:').text) as object;
  const issuers = parse(places(blockThatBegins(page, 'issuers:').text)) as object;
  const listen = { host: '127.0.0.1', port: ports.proxy };
  const here = { listen, store: { memory: {} }, admin: { port: ports.admin }, upstream: { url: upstream.url } };
  writeFileSync(join(dir, 'sallyport.yaml'), stringify({ ...readme, ...issuers, ...here }));
  t.equal(serve, 'sallyport serve --config sallyport.yaml &');
  await startServe(t, join(dir, 'sallyport.yaml')).port('proxy');
  const { stdout } = await promisify(execFile)(sh, ['-c', places(ask)], { cwd: dir });
  t.match(stdout, /^HTTP\/1\.1 200 OK\r\n/);
  t.same(upstream.requests[0]?.field('x-auth-subject'), ['checkout']);

  const [explain = '', doctor = ''] = blockThatBegins(page, 'sallyport explain').text.split('\n');
  const main = `'${process.execPath}' '${join(projectDir, 'dist/main.js')}'`;
  const explained = await promisify(execFile)(sh, ['-c', explain.replace('sallyport', main)], { cwd: dir });
  t.match(explained.stdout, /subject checkout, permissions orders:read/);
  const io = captureIo({ cwd: dir });
  await run(doctor.replace(/#.*/, '').trim().split(/\s+/).slice(1), io);
  t.match(io.out(), /^ok: keys core: /m);
});

async function firstLineOf(t: Scope, command: string, args: readonly string[]): Promise<string> {
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  t.teardown(() => child.kill('SIGKILL'));
  const [line] = (await once(child.stdout.setEncoding('utf8'), 'data')) as [string];
  return line;
}
