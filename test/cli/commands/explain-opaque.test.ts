/** `explain --token-stdin` of opaque tokens: of a real provider, and of one that says what a row wants. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { startIntrospection } from '../../support/introspection-server.js';
import { startJwksServer } from '../../support/jwks-server.js';
import { startOidcProvider } from '../../support/oidc-provider.js';
import type { ConfigTree } from '../../support/proxy-process.js';
import { tempDir } from '../../support/temp-dir.js';
import type { CapturedIo } from '../captured-io.js';
import { explain, get } from './run-explain.js';

const dir = tempDir(t);
const secret = 'what nobody may read';
const [secretFile, wrongFile] = [join(dir, 'secret'), join(dir, 'wrong')];
writeFileSync(secretFile, secret, { mode: 0o600 });
writeFileSync(wrongFile, 'hunter2', { mode: 0o600 });

const routes = [
  { name: 'list', methods: ['GET'], path: '/orders', subjects: ['checkout'], permissions: ['orders:read'] },
];
const last = (io: CapturedIo): string | undefined => io.out().trimEnd().split('\n').at(-1);
const words = [...get('/orders'), '--token-stdin'];

t.test('a token of a real provider: whom it speaks for, and what became of it', async (t) => {
  const idp = await startOidcProvider(t, [{ client_id: 'sallyport', client_secret: secret }]);
  const ask = async (token: string, introspection: ConfigTree = {}): Promise<CapturedIo> => {
    const issuer = {
      profile: 'oauth',
      issuer: idp.issuer,
      audience: 'orders',
      ca_file: idp.caFile,
      claims: { subject: 'client_id' },
      introspection: { client_id: 'sallyport', client_secret_file: secretFile, ...introspection },
    };
    const io = await explain(t, words, { config: { routes, issuers: { idp: issuer } }, stdin: token });
    t.notOk(`${io.out()}${io.err()}`.includes(token), 'the token is not shown');
    t.notOk(/hunter2|what nobody may read/.test(io.out() + io.err()), 'nor is the secret');
    return io;
  };
  const token = await idp.token('opaque');
  const allowed = await ask(token);
  t.equal(last(allowed), 'allowed: route list', allowed.err());
  t.match(
    allowed.out(),
    /an opaque token from standard input, which the issuer that may have issued it is asked about/,
  );
  t.match(allowed.out(), /service of issuer idp \(https:.*\), by its word on an opaque token/);
  t.match(allowed.out(), /subject checkout, permissions orders:read/);
  t.equal(allowed.code(), 0);

  const poor = await ask(await idp.token('opaque', 'orders:write'));
  t.equal(last(poor), 'denied: 403 permission_missing (route list)');
  t.match(poor.out(), /the token grants orders:write; it lacks orders:read/);

  const refused = await ask(token, { client_secret_file: wrongFile });
  t.equal(last(refused), 'denied: 503 introspection_unavailable (route list)');
  t.match(refused.out(), /issuer idp could not be asked: the issuer refuses this client \(status 40[01]\)/);
  t.equal(refused.code(), 3);

  await idp.revoke(token);
  const revoked = await ask(token);
  t.equal(last(revoked), 'denied: 401 token_inactive (route list)');
  t.match(revoked.out(), /an opaque token, of which issuer idp says that it is not active: expired, revoked or never/);
  t.equal(revoked.code(), 1);
});

t.test('what in a response is not as it has to be is shown beside what would be', async (t) => {
  const [server, jwks] = await Promise.all([startIntrospection(t), startJwksServer(t)]);
  const issuer = {
    profile: 'oauth',
    issuer: 'https://idp.example.com',
    audience: 'orders',
    jwks_url: jwks.url,
    introspection: { url: server.url, client_id: 'sallyport', client_secret_file: secretFile, token_prefix: 'v1.' },
  };
  const ask = async (token: string, changes: ConfigTree = {}): Promise<CapturedIo> =>
    explain(t, words, { config: { routes, issuers: { idp: { ...issuer, ...changes } } }, stdin: token });
  const nowS = Math.floor(Date.now() / 1_000);
  const active = { active: true, aud: 'orders', sub: 'checkout', scope: 'orders:read', exp: nowS + 300 };
  const { aud: _aud, ...withoutAud } = active;
  const { sub: _sub, ...withoutSub } = active;
  const { exp: _exp, ...withoutExp } = active;
  const rows: readonly (readonly [answer: object, ends: string, says: RegExp, changes?: ConfigTree])[] = [
    [{ ...active, aud: 'billing' }, 'audience_mismatch', /aud is "billing"; idp asks for "orders"/],
    [
      withoutAud,
      'audience_mismatch',
      /aud is missing; .*[^]*where the issuer never says it: introspection\.require_aud/,
    ],
    [
      { ...active, iss: 'https://x' },
      'issuer_mismatch',
      /iss is "https:\/\/x"; idp asks for "https:\/\/idp\.example\.com"/,
    ],
    [
      { ...active, token_type: 'DPoP' },
      'token_type_mismatch',
      /token_type is "DPoP"; accepted: "Bearer", "DPoP" beside cnf.jkt, or none/,
    ],
    [{ ...active, cnf: { jkt: 'x' } }, 'binding_unknown', /its cnf has to have x5t#S256 or jkt/],
    [withoutExp, 'claim_malformed', /exp is missing; it has to be a whole number/],
    [
      { ...withoutSub, client_id: 'checkout' },
      'claim_malformed',
      /sub is missing; [^]*client_id is "checkout": claims: \{ subject: client_id \} names callers by it/,
    ],
    [{ ...active, scope: 7 }, 'claim_malformed', /scope is 7; it has to be a text with blanks between/],
    [{ ...active, exp: nowS - 100 }, 'token_expired', /the token says exp \d+ \(20.*[^]*idp allows 7200 s of life/],
    [{ ...active, exp: nowS + 90_000 }, 'lifetime_too_long', /idp allows 7200 s of life/],
    [{ ...active, nbf: nowS + 900 }, 'token_not_yet_valid', /the token says nbf \d+/],
    [active, 'claim_mismatch', /kind is missing; idp asks for "access"/, { claims: { require: { kind: 'access' } } }],
    [
      active,
      'claim_malformed',
      /jti is missing; introspection\.has_jti asks for one/,
      { introspection: { ...issuer.introspection, has_jti: true } },
    ],
  ];
  for (const [index, [answer, reason, says, changes]] of rows.entries()) {
    const token = `v1.${String(index)}`;
    server.tokens.set(token, answer);
    const io = await ask(token, changes);
    t.equal(last(io), `denied: 401 ${reason} (route list)`, JSON.stringify(answer));
    t.match(io.out(), /an opaque token, of which issuer idp says that it is active/);
    t.match(io.out(), says);
    t.equal(io.code(), 1);
  }
  const asked = server.questions.length;
  const other = await ask('v2.abc');
  t.equal(last(other), 'denied: 401 token_malformed (route list)');
  t.match(other.out(), /it is no JWT, and does not begin as opaque tokens of an issuer do \(token_prefix\): "v1\."/);
  const none = await ask('v1.abc', { introspection: null });
  t.equal(last(none), 'denied: 401 token_malformed (route list)');
  t.match(
    none.out(),
    /it has 2 parts; a signed token has three.*[^]*opaque tokens are taken where an issuer of the config has introspection/,
  );
  t.equal(server.questions.length, asked, 'nobody is asked about these');
  await server.close();
  const away = await ask('v1.abc');
  t.equal(last(away), 'denied: 503 introspection_unavailable (route list)');
  t.match(away.out(), /issuer idp could not be asked: the connection was refused/);
  t.equal(away.code(), 3);
});
