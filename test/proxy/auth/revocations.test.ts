/** Revocations through the store, as the data path honours them: at once, and wherever a decision is still open. */
import t from 'tap';
import type { Revocations } from '../../../src/decision/route/policy.js';
import { tokenDigest } from '../../../src/decision/revocation/match.js';
import { revocations } from '../../decision/samples.js';
import { rsaKey } from '../../support/keys.js';
import { request } from '../../support/raw-client.js';
import { mintSession } from '../../support/sessions.js';
import { mintToken, type Claims } from '../../support/tokens.js';
import { until } from '../../support/until.js';
import { startProxy } from '../harness.js';
import { startReservingProxy } from '../idempotency/reserving-proxy.js';
import { startWebSocketProxy, webSocketRoutes } from '../websocket/websocket-proxy.js';
import { sessionConfig, sessionsOf, userRoute } from '../websocket/stand-in-sessions.js';

const routes = [
  { name: 'list', methods: ['GET'], path: '/orders', subjects: ['checkout', 'reporting'], permissions: [] },
  { name: 'health', methods: ['GET'], path: '/healthz', access: 'public' },
];

const issuer = 'https://api.example.com';

t.test('each kind, at once, for tokens that were verified before', async (t) => {
  let listed: readonly Revocations[] = [];
  const proxy = await startProxy(t, { config: { routes, token_cache: '1MiB' }, listed: () => listed });
  const nowS = Math.floor(Date.now() / 1_000);
  const token = mintToken({ key: proxy.key, claims: { jti: 'one', iat: nowS } });
  const ask = async (path = '/orders'): Promise<number> =>
    (await request(proxy.port, { path, headers: { Authorization: `Bearer ${token}` } })).status;
  const rows: readonly { readonly rules: Partial<Revocations>; readonly reason: string | null }[] = [
    { rules: { keyIds: new Set([proxy.key.keyId]) }, reason: 'key_revoked' },
    { rules: { subjects: new Set(['checkout']) }, reason: 'subject_revoked' },
    { rules: { tokenIds: new Set(['one']) }, reason: 'token_revoked' },
    { rules: { tokenDigests: new Set([tokenDigest(token)]) }, reason: 'token_revoked' },
    { rules: { issuedBeforeS: nowS + 1 }, reason: 'issue_time_revoked' },
    { rules: { issuer, subjects: new Set(['checkout']) }, reason: 'subject_revoked' },
    {
      rules: {
        issuer: 'https://other.example.com',
        subjects: new Set(['checkout']),
        keyIds: new Set([proxy.key.keyId]),
      },
      reason: null,
    },
    {
      rules: {
        tokenIds: new Set(['two']),
        tokenDigests: new Set([tokenDigest(`${token}x`.replace('.', '.x'))]),
        issuedBeforeS: nowS,
      },
      reason: null,
    },
  ];
  for (const { rules, reason } of rows) {
    listed = [];
    t.equal(await ask(), 200, 'let through, and remembered');
    listed = [revocations(), revocations(rules)];
    t.equal(await ask(), reason === null ? 200 : 401, String(reason));
    t.equal(proxy.records.at(-1)?.reason ?? null, reason);
    t.equal(await ask('/healthz'), 200, 'public routes ask nobody');
  }
});

t.test('what is revoked holds in shadow mode, also where the token is refused for something else', async (t) => {
  let listed: readonly Revocations[] = [];
  const proxy = await startProxy(t, { config: { mode: 'shadow', routes }, listed: () => listed });
  const ask = async (token: string): Promise<number> =>
    (await request(proxy.port, { path: '/orders', headers: { Authorization: `Bearer ${token}` } })).status;
  const expired = (claims: Claims = {}): string =>
    mintToken({ key: proxy.key, claims: { exp: 1_000, iat: 900, ...claims } });
  const [one, other] = [expired({ jti: 'one' }), expired({ jti: 'other' })];
  t.same([await ask(one), await ask(other)], [200, 200]);
  listed = [revocations({ tokenDigests: new Set([tokenDigest(one)]) })];
  t.same([await ask(one), await ask(other)], [401, 200], 'by its digest');
  listed = [revocations({ issuer, tokenIds: new Set(['one']) })];
  t.same([await ask(one), await ask(other)], [401, 200], 'by its id, of this issuer');
  listed = [revocations({ issuer: 'https://other.example.com', tokenIds: new Set(['one']) })];
  t.same([await ask(one), await ask(other)], [200, 200], 'of another issuer');
  listed = [revocations({ subjects: new Set(['checkout']) })];
  t.equal(await ask(mintToken({ key: proxy.key })), 401);
});

t.test('what is revoked holds in shadow mode, however the token is spelt', async (t) => {
  let listed: readonly Revocations[] = [];
  const proxy = await startProxy(t, { config: { mode: 'shadow', routes }, listed: () => listed });
  const [one, other] = ['one', 'other'].map((jti) => mintToken({ key: proxy.key, claims: { jti } }));
  const ask = async (value: string): Promise<number> =>
    (await request(proxy.port, { path: '/orders', headers: { Authorization: value } })).status;
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
  /** The same bytes for whoever does not look at the bits that are left over. */
  const loose = (token: string): string =>
    `${token.slice(0, -1)}${alphabet[alphabet.indexOf(token.slice(-1)) + 1] ?? ''}`;
  /** The signature in the other alphabet. */
  const standard = (token: string): string => {
    const end = token.lastIndexOf('.') + 1;
    return `${token.slice(0, end)}${token.slice(end).replaceAll('-', '+').replaceAll('_', '/')}`;
  };
  const spellings: readonly ((token: string) => string)[] = [
    (token) => `Bearer  ${token}`,
    (token) => `Bearer\t${token}`,
    (token) => `JWT ${token}`,
    (token) => token,
    (token) => `Bearer "${token}"`,
    (token) => `Bearer ${token}=`,
    (token) => `Bearer ${standard(token)}`,
    (token) => `Bearer ${loose(token)}`,
    (token) => `Bearer a.b.c, Bearer ${token}`,
    (token) => `Bearer ${token}, Basic eDp5`,
  ];
  const rules: readonly Partial<Revocations>[] = [
    { tokenIds: new Set(['one']) },
    { tokenDigests: new Set([tokenDigest(one ?? '')]) },
  ];
  for (const spelling of spellings) {
    listed = [];
    t.equal(await ask(spelling(one ?? '')), 200, `${spelling('TOKEN')}: shadow mode lets it pass`);
    for (const rule of rules) {
      listed = [revocations(rule)];
      t.same([await ask(spelling(one ?? '')), await ask(spelling(other ?? ''))], [401, 200], spelling('TOKEN'));
    }
    listed = [revocations({ keyIds: new Set([proxy.key.keyId]) })];
    t.equal(await ask(spelling(one ?? '')), 401, `${spelling('TOKEN')}: by its key`);
  }
});

t.test('of many tokens in one request no more than four are verified, and one too many is refused', async (t) => {
  let listed: readonly Revocations[] = [revocations({ tokenIds: new Set(['revoked']) })];
  const proxy = await startProxy(t, { config: { mode: 'shadow', routes }, listed: () => listed });
  const ask = async (tokens: readonly string[]): Promise<string> => {
    const headers = { Authorization: `Bearer ${tokens.join(', Bearer ')}` };
    const { status } = await request(proxy.port, { path: '/orders', headers });
    return `${String(status)} ${String(proxy.records.at(-1)?.reason)}`;
  };
  const mint = (jti: string, header: Claims = {}): string => mintToken({ key: proxy.key, claims: { jti }, header });
  const four = ['1', '2', '3', '4'].map((jti) => mint(jti));
  t.equal(await ask(four), '200 credential_malformed');
  t.equal(await ask([...four.slice(1), mint('revoked')]), '401 token_revoked', 'the fourth is looked at');
  t.equal(await ask([...four, mint('5')]), '401 credential_ambiguous', 'nobody knows of a fifth');
  const others = [1, 2, 3, 4, 5].map((id) => mint(String(id), { kid: `s-${String(id)}` }));
  t.equal(await ask([...others, ...four]), '200 credential_malformed', 'those that no issuer has signed do not count');
  t.equal(await ask([...four, ...four]), '200 credential_malformed', 'nor does one that comes twice');
  t.equal(await ask([mint('revoked', { alg: 'RS384' })]), '200 algorithm_refused', 'nor one of another algorithm');
  listed = [revocations({ keyIds: new Set(['d-none']) })];
  t.equal(await ask([...four, mint('5')]), '200 credential_malformed', 'where no claim is revoked nothing is verified');
});

t.test('open WebSockets are judged when more is revoked, and closed with 4401', async (t) => {
  let listed: readonly Revocations[] = [];
  const proxy = await startWebSocketProxy(t, { listed: () => listed });
  const [client, open] = [proxy.connect(), proxy.connect({ path: '/open', anonymous: true })];
  await Promise.all([client.opened, open.opened]);
  listed = [revocations({ subjects: new Set(['somebody']) })];
  await proxy.server.reauthorizeConnections();
  t.equal(proxy.server.openWebSockets(), 2);
  listed = [revocations({ subjects: new Set(['checkout']) })];
  await proxy.server.reauthorizeConnections();
  t.same(await client.closed, { code: 4401, reason: 'unauthorized' });
  await until('it is recorded', () => proxy.records.some(({ reason }) => reason === 'subject_revoked'));
  t.same(proxy.counted.webSocketCloses, ['revoked']);
  t.equal(proxy.server.openWebSockets(), 1, 'on a public route it stays');
  await t.rejects(proxy.connect().opened, /401/);
});

t.test('revoked between the handshake and the switch', async (t) => {
  let listed: readonly Revocations[] = [];
  let asked = false;
  const proxy = await startWebSocketProxy(t, {
    listed: () => listed,
    server: {
      verifyClient: (_info: unknown, done: (verified: boolean) => void) => {
        asked = true;
        listed = [revocations({ subjects: new Set(['checkout']) })];
        done(true);
      },
    },
  });
  const client = proxy.connect();
  t.same(await client.closed, { code: 4401, reason: 'unauthorized' });
  t.equal(asked, true);
});

t.test('sessions of users, by subject, by digest and by their issuer', async (t) => {
  const key = rsaKey();
  let listed: readonly Revocations[] = [];
  const proxy = await startWebSocketProxy(t, {
    config: { ...sessionConfig, routes: [...webSocketRoutes, userRoute] },
    sessions: sessionsOf(key),
    listed: () => listed,
  });
  const session = mintSession({ key });
  const ask = async () => request(proxy.port, { path: '/user', headers: { Authorization: `Bearer ${session}` } });
  t.equal((await ask()).status, 404, 'the receiver has no such page');
  const iss = proxy.activeConfig().config.sessions?.issuer ?? '';
  for (const rules of [
    { subjects: new Set(['user-1']) },
    { tokenDigests: new Set([tokenDigest(session)]) },
    { issuer: iss, keyIds: new Set([key.keyId]) },
  ]) {
    listed = [revocations(rules)];
    const refused = await ask();
    t.equal(refused.status, 401);
    t.same(JSON.parse(refused.text), { message: 'unauthorised' });
  }
  listed = [
    revocations({ subjects: new Set(['checkout']) }),
    revocations({ issuer: `${iss}x`, subjects: new Set(['user-1']) }),
  ];
  t.equal((await ask()).status, 404);
});

t.test('revoked while the body is read or the store is asked: 401, nothing is sent, and the key is free', async (t) => {
  for (const mode of ['enforce', 'shadow']) {
    let listed: readonly Revocations[] = [];
    const proxy = await startReservingProxy(t, { config: { mode }, listed: () => listed });
    proxy.store.behave('reserve', async (run) => {
      listed = [revocations({ subjects: new Set(['checkout']) })];
      return run();
    });
    t.equal((await proxy.write({ key: 'k' })).status, 401, mode);
    t.same(proxy.counted.denials, ['subject_revoked']);
    t.same(proxy.receiver.requests, []);
    await until('the key is free', () => proxy.results.includes('released'));
    proxy.store.behave('reserve', null);
    listed = [];
    t.equal((await proxy.write({ key: 'k' })).status, 200, mode);
  }
});
