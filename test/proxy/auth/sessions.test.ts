/** The data path with a verifier that says what the test wants: what the real SDK says is asked in test/conformance. */
import t from 'tap';
import type { Reason } from '../../../src/decision/denial.js';
import { accept, refuse, type Result } from '../../../src/lib/result.js';
import type {
  KeyLookup,
  KeySource,
  SessionRefusal,
  SessionVerifier,
  VerifiedSession,
} from '../../../src/ports/auth.js';
import type { ActiveSessions } from '../../../src/proxy/auth/credentials/session.js';
import { rsaKey } from '../../support/keys.js';
import { request } from '../../support/raw-client.js';
import type { Scope } from '../../support/scope.js';
import { mintSession } from '../../support/sessions.js';
import type { ConfigTree } from '../../support/proxy-process.js';
import { startProxy, type Harness } from '../harness.js';

const key = rsaKey('d-1');
const other = rsaKey('d-2');
const config: ConfigTree = {
  sessions: { core_url: 'http://127.0.0.1:3567', api_domain: 'https://api.example.com' },
  routes: [
    {
      name: 'users',
      methods: ['GET', 'POST'],
      path: '/users',
      accept: ['session'],
      session: { claims: { tId: 'public' } },
      idempotency: 'none',
    },
    { name: 'services', methods: ['GET'], path: '/services', subjects: ['checkout'], permissions: [] },
  ],
};

type Vouched = Result<VerifiedSession, SessionRefusal>;

interface Asked {
  readonly token: string;
  readonly asksCore: boolean;
  readonly user: string;
  readonly isAgain: boolean;
  readonly expiresAtMs: number;
}

interface Started {
  readonly proxy: Harness;
  readonly asked: Asked[];
}

async function start(
  t: Scope,
  vouched: Vouched,
  find: (keyId: string) => KeyLookup | Promise<KeyLookup> = found,
  over: ConfigTree = {},
): Promise<Started> {
  const asked: Asked[] = [];
  const verifier: SessionVerifier = {
    verify: (token, asksCore, { user, expiresAtMs, again }) => {
      asked.push({ token, asksCore, user, isAgain: again !== null, expiresAtMs });
      return Promise.resolve(vouched);
    },
  };
  const keys: KeySource = {
    find,
    state: () => {
      throw new Error('not asked here');
    },
  };
  const sessions = ({
    sessions: settings,
  }: {
    readonly sessions: ActiveSessions['settings'] | null;
  }): ActiveSessions | null => (settings === null ? null : { settings, keys, verifier });
  return { proxy: await startProxy(t, { config: { ...config, ...over }, sessions }), asked };
}

const found = (keyId: string): KeyLookup =>
  keyId === 'd-1' ? { kind: 'found', key: { keyId, algorithm: 'RS256', key: key.publicKey } } : { kind: 'unknown' };
const good: VerifiedSession = { userId: 'user-1', claims: { tId: 'public' }, renewed: null };

interface Told {
  readonly status: number;
  readonly text: string;
  readonly reason: Reason | null;
}

async function ask({ proxy }: Started, token: string, fields: Readonly<Record<string, string>> = {}): Promise<Told> {
  const response = await request(proxy.port, {
    path: '/users',
    headers: { Authorization: `Bearer ${token}`, ...fields },
  });
  const record = await proxy.recordOf(response.field('x-request-id') ?? '');
  return { status: response.status, text: response.text, reason: record.reason };
}

const problem = '{"type":"about:blank","title":"Unauthorized","status":401}';

interface Case extends Omit<Told, 'text'> {
  readonly vouched: Vouched;
  readonly text: RegExp;
}

t.test('nobody is let through whom the verifier does not vouch for', async (t) => {
  const cases: readonly Case[] = [
    { vouched: accept(good), status: 200, reason: null, text: /./ },
    { vouched: refuse('refresh'), status: 401, reason: 'session_expired', text: /^\{"message":"try refresh token"\}$/ },
    { vouched: refuse('refused'), status: 401, reason: 'session_refused', text: /^\{"message":"unauthorised"\}$/ },
    { vouched: refuse('unavailable'), status: 503, reason: 'core_unavailable', text: /keys-unavailable/ },
    {
      vouched: accept({ ...good, userId: 'a b' }),
      status: 401,
      reason: 'claim_malformed',
      text: /^\{"message":"unauthorised"\}$/,
    },
    {
      vouched: accept({ ...good, userId: '' }),
      status: 401,
      reason: 'claim_malformed',
      text: /^\{"message":"unauthorised"\}$/,
    },
    {
      vouched: accept({ ...good, claims: { tId: 'other' } }),
      status: 403,
      reason: 'session_claim_missing',
      text: /"id":"tId"/,
    },
  ];
  for (const { vouched, ...expected } of cases) {
    t.match(await ask(await start(t, vouched), mintSession({ key })), expected, JSON.stringify(vouched));
  }
});

t.test('nobody makes the SDK work without a token that the Core signed', async (t) => {
  const started = await start(t, accept(good));
  const nowS = Math.floor(Date.now() / 1000);
  const cases: readonly (readonly [string, string, Reason, string])[] = [
    ['another key’s signature', mintSession({ key: other, header: { kid: 'd-1' } }), 'signature_invalid', problem],
    ['an unknown key', mintSession({ key: other }), 'key_unknown', problem],
    ['a static key', mintSession({ key, header: { kid: 's-1' } }), 'key_id_refused', problem],
    ['a version that there is not', mintSession({ key, header: { version: '9' } }), 'token_malformed', problem],
    ['expired', mintSession({ key, claims: { exp: nowS - 1 } }), 'session_expired', '{"message":"try refresh token"}'],
    [
      'of another API domain',
      mintSession({ key, claims: { iss: 'https://x' } }),
      'issuer_mismatch',
      '{"message":"unauthorised"}',
    ],
    [
      'marked',
      mintSession({ key, claims: { token_type: 'service' } }),
      'service_claim_present',
      '{"message":"unauthorised"}',
    ],
  ];
  for (const [name, token, reason, text] of cases) {
    t.match(await ask(started, token), { status: 401, reason, text }, name);
  }
  t.same(started.asked, []);
});

t.test('what the SDK has to ask the Core is known before it is asked', async (t) => {
  const started = await start(t, accept(good));
  await ask(started, mintSession({ key }));
  await ask(started, mintSession({ key, claims: { parentRefreshTokenHash1: 'ab' } }));
  t.same(
    started.asked.map(({ asksCore }) => asksCore),
    [false, true],
  );
  const checking = await start(t, accept(good), found, {
    sessions: { ...(config['sessions'] as ConfigTree), check_database: true },
  });
  const exp = Math.floor(Date.now() / 1_000) + 60;
  await ask(checking, mintSession({ key, claims: { exp } }));
  t.same(
    checking.asked.map(({ asksCore }) => asksCore),
    [true],
  );
  t.match(checking.asked, [{ user: 'user-1', isAgain: false, expiresAtMs: exp * 1_000 }], 'in whose share it is');
});

t.test('keys that cannot be had are our fault', async (t) => {
  for (const find of [() => ({ kind: 'unavailable' }) as const, () => Promise.reject(new Error('broken source'))]) {
    t.match(await ask(await start(t, accept(good), find), mintSession({ key })), {
      status: 503,
      reason: 'keys_unavailable',
    });
  }
});

t.test('a renewed token goes back with the response, and with none that is ours', async (t) => {
  const renewed = { accessToken: 'new.access.token', frontToken: 'front' };
  const started = await start(t, accept({ ...good, renewed }));
  const { proxy } = started;
  proxy.receiver.behave((_req, res) =>
    res
      .writeHead(200, { 'Set-Cookie': ['a=1', 'sAccessToken=old'], 'st-access-token': 'old', 'front-token': 'old' })
      .end(),
  );
  const cookie = { Cookie: `sAccessToken=${mintSession({ key })}` };
  const inCookie = await request(proxy.port, { path: '/users', headers: cookie });
  const cookies = inCookie.fields.filter(([name]) => name.toLowerCase() === 'set-cookie').map(([, value]) => value);
  t.match(cookies, ['a=1', /^sAccessToken=new\.access\.token; Path=\/; /]);
  t.equal(inCookie.field('front-token'), 'front');
  const inField = await request(proxy.port, {
    path: '/users',
    headers: { Authorization: `Bearer ${mintSession({ key })}` },
  });
  t.match([inField.field('st-access-token'), inField.field('front-token')], ['new.access.token', 'front']);
  proxy.receiver.behave((req) => req.socket.destroy());
  const broken = await request(proxy.port, { path: '/users', headers: cookie });
  t.same([broken.status, broken.field('set-cookie'), broken.field('front-token')], [502, null, null]);
});

t.test(
  'shadow mode: who would be refused goes on as it came, the session’s cookie included, and as nobody',
  async (t) => {
    const started = await start(t, refuse('refused'), found, { mode: 'shadow' });
    const headers = { Cookie: `sAccessToken=${mintSession({ key })}`, 'st-auth-mode': 'cookie' };
    t.equal((await request(started.proxy.port, { path: '/users', headers })).status, 200);
    const received = started.proxy.receiver.requests.at(-1);
    t.match(
      [received?.field('cookie'), received?.field('st-auth-mode'), received?.field('x-auth-subject')],
      [[/^sAccessToken=/], ['cookie'], []],
    );
  },
);

t.test(
  'in shadow mode an expired session passes as nobody, and not where its user, its key or its time is revoked',
  async (t) => {
    const nowS = Math.floor(Date.now() / 1_000);
    const expired = mintSession({ key, claims: { iat: nowS - 600, exp: nowS - 1 } });
    const cases: readonly (readonly [string, ConfigTree, number, Reason])[] = [
      ['nothing', {}, 200, 'session_expired'],
      ['another', { subjects: ['user-2'] }, 200, 'session_expired'],
      ['the user', { subjects: ['user-1'] }, 401, 'subject_revoked'],
      ['the key', { key_ids: ['d-1'] }, 401, 'key_revoked'],
      ['the time', { issued_before: new Date(nowS * 1_000).toISOString() }, 401, 'issue_time_revoked'],
    ];
    for (const [name, revoked, status, reason] of cases) {
      const started = await start(t, accept(good), found, { mode: 'shadow', revoked });
      for (const headers of [{ Authorization: `Bearer ${expired}` }, { Cookie: `sAccessToken=${expired}` }]) {
        const response = await request(started.proxy.port, { path: '/users', headers });
        t.equal(response.status, status, name);
        t.match(await started.proxy.recordOf(response.field('x-request-id') ?? ''), { reason }, name);
      }
      t.equal(started.proxy.receiver.requests.length, status === 200 ? 2 : 0, name);
    }
  },
);

t.test('keys that break their word while a revocation is looked for say nothing of it', async (t) => {
  let asked = 0;
  const find = (keyId: string): KeyLookup | Promise<KeyLookup> => {
    asked += 1;
    return asked === 1
      ? { kind: 'found', key: { keyId, algorithm: 'RS256', key: other.publicKey } }
      : Promise.reject(new Error('broken source'));
  };
  const started = await start(t, accept(good), find, { mode: 'shadow', revoked: { subjects: ['user-1'] } });
  const expired = mintSession({ key: other, claims: { exp: 1 } });
  t.match(await ask(started, expired), { status: 200, reason: 'session_expired' });
});

t.test('sessions that nothing can verify are refused, whatever the route says', async (t) => {
  const proxy = await startProxy(t, { config });
  const response = await request(proxy.port, {
    path: '/users',
    headers: { Authorization: `Bearer ${mintSession({ key })}` },
  });
  t.equal(response.status, 503);
});
