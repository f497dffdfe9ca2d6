/** docs/introspection.md: tokens that only their issuer can read, held to that page row by row. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import type { ServerResponse } from 'node:http';
import t, { type Test } from 'tap';
import { sayJson, startIntrospection } from '../../support/introspection-server.js';
import { startMetadataServer } from '../../support/metadata-server.js';
import { keyFor } from '../../support/profile-tokens.js';
import { startProxyProcess } from '../../support/proxy-process.js';
import { tempDir } from '../../support/temp-dir.js';
import type { Claims } from '../../support/tokens.js';
import { checkRefusal, comparable, refusals } from '../refusals.js';
import { checkSilence } from '../silence.js';
import {
  changed,
  confusionRows,
  deepClaims,
  doubledMembers,
  doubledRows,
  malformedRows,
  missingClaims,
  missingRows,
  oddTimes,
  otherTypes,
  refusedMemberRows,
  suiteOf,
  type Row,
  type Sound,
} from './issuer-suite.js';

const secret = 'by which the issuer knows this proxy';
const secretFile = join(tempDir(t), 'client-secret');
writeFileSync(secretFile, secret, { mode: 0o600 });
const keys = (['RS256', 'PS256', 'ES256', 'EdDSA'] as const).map((algorithm) => keyFor(algorithm));
const keyServer = await startMetadataServer(t);
keyServer.at('/jwks', { keys: keys.map(({ jwk }) => jwk) });
const idp = await startIntrospection(t);

const issuer = 'https://idp.example';
const signedIssuer = 'https://signed.example';
// Nobody is held back here for asking much, nor remembered for longer than a row.
const introspection = {
  url: idp.url,
  client_id: 'sallyport',
  client_secret_file: secretFile,
  unknown_per_second: 10_000,
  unknown_per_address: 10_000,
  max_negative_age: '0s',
};
const profile = {
  profile: 'oauth',
  audience: ['orders', 'https://orders.example.com'],
  algorithms: keys.map(({ algorithm }) => algorithm),
  jwks_url: `${keyServer.origin}/jwks`,
  jwks_url_because: 'a test',
  jwks: { cooldown: '0ms' },
};
const common = { methods: ['GET'], permissions: [] };
const proxy = await startProxyProcess(t, {
  config: {
    issuers: {
      idp: {
        ...profile,
        issuer,
        claims: { subject: 'client_id', require: { 'act.tenant': ['acme', 7] } },
        introspection: { ...introspection, token_prefix: 'v1.' },
      },
      lax: {
        ...profile,
        issuer: 'https://lax.example',
        key_ids: { accept: ['lax-*'] },
        introspection: { ...introspection, token_prefix: 'lax_', require_aud: false },
      },
      strict: {
        ...profile,
        issuer: 'https://strict.example',
        key_ids: { accept: ['strict-*'] },
        introspection: { ...introspection, token_prefix: 'strict_', has_jti: true },
      },
      signed: {
        ...profile,
        issuer: signedIssuer,
        introspection: { ...introspection, token_prefix: 'signed_', answer: 'jwt' },
      },
    },
    routes: [
      { ...common, name: 'all', path: '/all', subjects: ['checkout', { prefix: 'team/' }] },
      { ...common, name: 'write', path: '/write', subjects: ['checkout'], permissions: ['orders:write'] },
      { ...common, name: 'signed', path: '/signed', subjects: ['checkout'], issuers: ['signed'] },
    ],
  },
});
proxy.markSecret(secret);
const suite = suiteOf(proxy);

const nowS = Math.floor(Date.now() / 1000);
const sound = {
  active: true,
  iss: issuer,
  aud: 'orders',
  token_type: 'Bearer',
  exp: nowS + 300,
  client_id: 'checkout',
  scope: 'orders:read',
  jti: 'j-1',
  act: { tenant: 'acme' },
};
const who = { subject: 'checkout', issuer, permissions: 'orders:read', tokenId: 'j-1' };

type Say = (res: ServerResponse) => unknown;

const says = new Map<string, Say>();
idp.behave(({ form }, res) => {
  const say = says.get(form.get('token') ?? '');
  if (say === undefined) sayJson(res, { active: false });
  else say(res);
});

/** A new token, about which the issuer says this. */
function tokenFor(say: Say, prefix = 'v1.'): string {
  const token = `${prefix}~${String(says.size)}/+-_`;
  says.set(token, say);
  return token;
}

const tokenOf = (claim: Claims, prefix?: string): string =>
  tokenFor((res) => {
    sayJson(res, { ...sound, ...claim });
  }, prefix);

const rowsOf = (claims: readonly Claims[]): readonly Row[] =>
  claims.map((claim) => ({ name: JSON.stringify(claim).slice(0, 80), token: tokenOf(claim) }));

const unavailable = new Set<string>();

/** Nobody knows what these are worth: each is the same 503, and none is sent on. */
async function cannotTell(t: Test, rows: readonly Row[]): Promise<void> {
  const before = proxy.receiver.requests.length;
  for (const { name, token } of rows) {
    const response = await suite.send(token);
    checkRefusal(t, response, refusals.keysUnavailable, name);
    unavailable.add(comparable(response));
  }
  t.equal(proxy.receiver.requests.length, before, 'none reached the receiver');
}

t.test('an opaque token passes by what its issuer says, and the upstream learns whose it is', async (t) => {
  await suite.passes(
    t,
    rowsOf([
      {},
      { iss: undefined },
      { aud: ['stranger', 'https://orders.example.com'] },
      { aud: [...Array.from({ length: 99 }, () => 'x'), 'orders'] },
      { token_type: undefined },
      { token_type: 'BEARER' },
      { scope: ['orders:read'] },
      { scope: ' orders:read  caf\u00e9 ' },
      { nbf: nowS, iat: nowS - 10, sub: 'f81d4fae', username: 'x', extra: { deep: [1] } },
      { act: { tenant: 7 } },
      deepClaims(15),
    ]),
    who,
  );
  await suite.passes(t, rowsOf([{ client_id: 'team/a' }]), { ...who, subject: 'team/a' });
  await suite.passes(t, rowsOf([{ jti: undefined }]), { subject: 'checkout', issuer, permissions: 'orders:read' });
  await suite.passes(t, rowsOf([{ scope: undefined }, { scope: '' }]), { ...who, permissions: '' });
  const lax = { iss: 'https://lax.example', sub: 'checkout', aud: undefined };
  await suite.passes(t, [{ name: 'no aud, where none is asked for', token: tokenOf(lax, 'lax_') }], {
    ...who,
    issuer: 'https://lax.example',
  });
});

t.test('what is not active, and what the response may not say, is the same 401', async (t) => {
  await suite.refuses(t, rowsOf([{ active: false }]));
  await suite.refuses(t, [{ name: 'made up', token: 'v1.nobody-has-issued-it' }]);
  const asRows = (changes: readonly { readonly name: string; readonly claim: Claims }[]): readonly Row[] =>
    changes.map(({ name, claim }) => ({ name, token: tokenOf(claim) }));
  await suite.refuses(t, asRows(missingClaims(['aud', 'exp', 'client_id', 'act'])));
  const names = ['iss', 'aud', 'exp', 'token_type', 'client_id', 'scope', 'jti', 'act'];
  await suite.refuses(t, asRows(otherTypes(sound, names, ['aud is a list', 'scope is a list', 'scope is a text'])));
  await suite.refuses(t, asRows(oddTimes(nowS)));
  await suite.refuses(
    t,
    rowsOf([
      { iss: `${issuer}/` },
      { iss: signedIssuer },
      { aud: 'Orders' },
      { aud: [] },
      { aud: ['stranger'] },
      { aud: ['orders', 5] },
      { aud: [...Array.from({ length: 100 }, () => 'x'), 'orders'] },
      { token_type: 'refresh_token' },
      { token_type: 'DPoP' },
      { client_id: 'check out' },
      { client_id: 'caf\u00e9' },
      { client_id: 'x'.repeat(1025) },
      { client_id: undefined, sub: 'checkout' },
      { act: { tenant: 'ACME' } },
      { act: { tenant: '7' } },
      { act: { tenant: ['acme'] } },
      { act: undefined, 'act.tenant': 'acme' },
      { scope: ['orders:read', 5] },
      { scope: Array.from({ length: 1001 }, () => 'a') },
      { scope: 'x'.repeat(8193) },
      { jti: 'a b' },
      { jti: 'x'.repeat(257) },
      { cnf: {} },
      { cnf: null },
      { cnf: { jkt: 'A'.repeat(43) } },
      { cnf: { 'x5t#S256': 'A'.repeat(43), kid: 'x' } },
    ]),
  );
  const lax = { iss: 'https://lax.example', sub: 'checkout', aud: 'stranger' };
  await suite.refuses(t, [{ name: 'another audience, where none is asked for', token: tokenOf(lax, 'lax_') }]);
  const strict = { iss: 'https://strict.example', sub: 'checkout' };
  await suite.passes(t, [{ name: 'a jti, where one is asked for', token: tokenOf(strict, 'strict_') }], {
    ...who,
    issuer: 'https://strict.example',
  });
  const none = tokenOf({ ...strict, jti: undefined }, 'strict_');
  await suite.refuses(t, [{ name: 'no jti, where one is asked for', token: none }]);
});

t.test('the form of a token says whom to ask, and nobody is asked about others', async (t) => {
  const questions = idp.questions.length;
  const jwt: Sound = {
    key: keyFor('ES256'),
    header: { alg: 'ES256', kid: keyFor('ES256').keyId, typ: 'at+jwt' },
    claims: { ...sound, sub: 'checkout', iat: nowS, act: { tenant: 'acme' } },
  };
  await suite.passes(t, [{ name: 'a JWT, by its key', token: changed(jwt, {}) }], who);
  await suite.refuses(
    t,
    malformedRows(jwt).filter(({ token }) => token.split('.').length === 3),
  );
  await suite.refuses(t, [
    { name: 'a JWT whose signature does not hold', token: `${changed(jwt, {}).slice(0, -9)}AAAAAAAAA` },
    { name: 'a JWT that is for others', token: changed(jwt, { aud: 'stranger' }) },
    { name: 'no prefix of anybody', token: 'v2.opaque' },
    { name: 'a prefix in capitals', token: 'V1.opaque' },
    { name: 'beyond 8 KiB', token: `v1.${'x'.repeat(8192)}` },
  ]);
  t.equal(idp.questions.length, questions);
  await suite.passes(t, [{ name: 'on a route for another: the 401 is not for this one', token: tokenOf({}) }], who);
  await suite.refuses(t, rowsOf([{}]), '/signed');
});

t.test('the issuer hears who asks, and what is needed to tell', async (t) => {
  const token = tokenOf({});
  t.equal((await suite.send(token)).status, 200);
  const question = idp.questions.at(-1);
  t.same(Object.fromEntries(question?.form ?? []), { token, token_type_hint: 'access_token' });
  const { authorization, accept, cookie, 'content-type': type } = question?.headers ?? {};
  t.same(
    { authorization, accept, cookie, type },
    {
      authorization: `Basic ${Buffer.from(`sallyport:${encodeURIComponent(secret).replaceAll('%20', '+')}`).toString('base64')}`,
      accept: 'application/json',
      cookie: undefined,
      type: 'application/x-www-form-urlencoded',
    },
  );
});

t.test('a good token without the right is 403', async (t) => {
  for (const [path, claim] of [
    ['/write', {}],
    ['/write', { scope: 'orders:read\torders:write' }],
    ['/all', { client_id: 'team' }],
    ['/nowhere', {}],
  ] as const) {
    checkRefusal(t, await suite.send(tokenOf(claim), path), refusals.forbidden, `${path} ${JSON.stringify(claim)}`);
  }
});

t.test('what is no response is 503: nobody knows what the token is worth', async (t) => {
  const text = JSON.stringify(sound);
  const bodies: readonly (readonly [string, string])[] = [
    ...doubledMembers(sound),
    ['17 levels', JSON.stringify({ ...sound, ...deepClaims(17) })],
    ['half of a surrogate pair', `${text.slice(0, -1)},"x":"\\ud800"}`],
    ...[`${text}{}`, `\ufeff${text}`, `[${text}]`, '""', 'null', '', text.slice(0, -1)].map(
      (body) => [`body ${body.slice(0, 10)}`, body] as const,
    ),
    ...[undefined, null, 'true', 'false', 1, 0, [true], {}].map(
      (active) => [`active ${JSON.stringify(active)}`, JSON.stringify({ ...sound, active })] as const,
    ),
    ['more than 64 KiB', JSON.stringify({ ...sound, extra: 'x'.repeat(70_000) })],
  ];
  const json = { 'content-type': 'application/json' };
  const heads: readonly (readonly [string, Say])[] = [
    ...[201, 204, 400, 403, 404, 429, 500, 503].map(
      (status) => [`status ${String(status)}`, (res: ServerResponse) => res.writeHead(status, json).end(text)] as const,
    ),
    ...[302, 307].map(
      (status) =>
        [
          `a redirect, ${String(status)}`,
          (res: ServerResponse) => res.writeHead(status, { ...json, location: idp.url }).end(text),
        ] as const,
    ),
    ['compressed', (res) => res.writeHead(200, { ...json, 'content-encoding': 'gzip' }).end(gzipSync(text))],
    ...['text/html', 'text/json', 'application/token-introspection+jwt', ''].map(
      (type) =>
        [`type ${type}`, (res: ServerResponse) => res.writeHead(200, { 'content-type': type }).end(text)] as const,
    ),
  ];
  const asked = idp.questions.length;
  const rows = [
    ...bodies.map(([name, body]) => ({ name, token: tokenFor((res) => res.writeHead(200, json).end(body)) })),
    ...heads.map(([name, say]) => ({ name, token: tokenFor(say) })),
  ];
  await cannotTell(t, rows);
  t.equal(idp.questions.length, asked + rows.length, 'each is asked about once, and no redirect is followed');
  await suite.passes(t, [{ name: 'and good ones pass as before', token: tokenOf({}) }], who);
});

t.test('where JWTs are asked for, the signature tells whose response it is', async (t) => {
  const key = keys[0] ?? keyFor('RS256');
  const said: Claims = { ...sound, iss: signedIssuer, sub: 'checkout' };
  const answer: Sound = {
    key,
    header: { alg: key.algorithm, kid: key.keyId, typ: 'token-introspection+jwt' },
    claims: { iss: signedIssuer, aud: 'sallyport', iat: nowS, token_introspection: said },
  };
  const saying = (rows: readonly Row[]): readonly Row[] =>
    rows.map(({ name, token: jwt }) => ({
      name,
      token: tokenFor((res) => {
        sayJson(res, jwt, 'application/token-introspection+jwt');
      }, 'signed_'),
    }));
  // A second too old is not yet another time.
  const now = (): Claims => ({ iat: Math.floor(Date.now() / 1000) });
  const signedBy = keys.map((other) => ({
    name: other.algorithm,
    token: changed({ ...answer, key: other }, now(), { alg: other.algorithm, kid: other.keyId }),
  }));
  const passing = [
    ...signedBy,
    { name: 'several clients', token: changed(answer, { ...now(), aud: ['other', 'sallyport'] }) },
    { name: 'the whole type', token: changed(answer, now(), { typ: 'application/Token-Introspection+JWT' }) },
    { name: 'another member', token: changed(answer, now(), { x5t: 'x' }) },
  ];
  await suite.passes(t, saying(passing), { ...who, issuer: signedIssuer });
  await suite.refuses(
    t,
    saying([
      { name: 'not active', token: changed(answer, { ...now(), token_introspection: { active: false } }) },
      { name: 'for others', token: changed(answer, { ...now(), token_introspection: { ...said, aud: 'other' } }) },
      { name: 'of others', token: changed(answer, { ...now(), token_introspection: { ...said, iss: issuer } }) },
    ]),
  );
  const fresh = { ...answer, claims: { ...answer.claims, ...now() } };
  await cannotTell(t, saying(confusionRows(fresh, keys)));
  await cannotTell(t, saying(refusedMemberRows(fresh)));
  await cannotTell(t, saying(missingRows(fresh, ['iss', 'aud', 'iat', 'token_introspection'])));
  await cannotTell(t, saying(doubledRows(fresh)));
  await cannotTell(t, saying(malformedRows(fresh)));
  const claims: readonly Claims[] = [
    { iss: issuer },
    { aud: 'other' },
    { aud: [] },
    { iat: nowS - 3600 },
    { iat: nowS + 3600 },
    { iat: String(nowS) },
    { token_introspection: [said] },
    { token_introspection: { ...said, active: 'true' } },
    { token_introspection: undefined, ...said },
  ];
  await cannotTell(
    t,
    saying(claims.map((claim) => ({ name: JSON.stringify(claim).slice(0, 60), token: changed(fresh, claim) }))),
  );
  await cannotTell(
    t,
    saying(
      ['at+jwt', 'JWT', undefined].map((typ) => ({
        name: `typ ${String(typ)}`,
        token: changed(fresh, {}, { typ }),
      })),
    ),
  );
  await cannotTell(t, [{ name: 'JSON', token: tokenOf(said, 'signed_') }]);
});

t.test('every 401 of an opaque token is the same answer, and every 503', (t) => {
  t.equal(suite.answers.size, 1);
  t.equal(unavailable.size, 1);
  t.end();
});

checkSilence(t, proxy);
