import type { IncomingMessage, ServerResponse } from 'node:http';
import { getGlobalDispatcher } from 'undici';
import t from 'tap';
import { systemClock, systemTimers } from '../../../src/adapters/system/clock.js';
import { loadSessionSdk, type SessionSdk } from '../../../src/adapters/session/session-sdk.js';
import {
  createSessionVerifier,
  type OpenSessionVerifier,
  type SessionVerifierLimits,
} from '../../../src/adapters/session/session-verifier.js';
import type { SessionSettings } from '../../../src/config/types.js';
import type { SessionAsker } from '../../../src/ports/auth.js';
import type { LogFields } from '../../../src/ports/system.js';
import { rsaKey } from '../../support/keys.js';
import type { Scope } from '../../support/scope.js';
import { goodSession, startSessionCore } from '../../support/session-core.js';
import { mintSession } from '../../support/sessions.js';
import type { Claims } from '../../support/tokens.js';
import { until } from '../../support/until.js';
import { coreKeyRules } from '../../../src/decision/token/profiles.js';

const key = rsaKey();
const core = await startSessionCore(t, { keys: [key] });
const apiKey = 'aaaaaaaaaaaaaaaaaaaaaaaa';
const settings: SessionSettings = {
  coreUrl: core.url,
  apiKey,
  apiDomain: 'https://api.example.com',
  apiBasePath: '/auth',
  issuer: 'https://api.example.com/auth',
  keys: {
    source: { kind: 'url', url: `${core.url}/.well-known/jwks.json` },
    rules: coreKeyRules,
    caFile: null,
    tokenFile: null,
    minAgeMs: 1,
    maxAgeMs: 1,
    maxStaleMs: 1,
    cooldownMs: 1,
    timeoutMs: 1,
    maxBytes: 1,
  },
  checkDatabase: false,
  cookie: { domain: null, sameSite: 'lax', secure: true },
};

async function load(over: Partial<SessionSettings> = {}): Promise<SessionSdk> {
  const sdk = await loadSessionSdk({ ...settings, ...over });
  if (!sdk.ok) throw new Error(sdk.error);
  return sdk.value;
}

interface Opened {
  readonly verifier: OpenSessionVerifier;
  readonly logged: { readonly message: string; readonly fields: LogFields }[];
}

async function open(t: Scope, over: Partial<SessionSettings> = {}, limits?: SessionVerifierLimits): Promise<Opened> {
  const logged: { message: string; fields: LogFields }[] = [];
  const write = (message: string, fields: LogFields = {}): void => {
    logged.push({ message, fields });
  };
  const log = { debug: write, info: write, warn: write, error: write };
  const verifier = createSessionVerifier(
    await load(over),
    { ...settings, ...over },
    { log, clock: systemClock, timers: systemTimers },
    limits,
  );
  t.teardown(verifier.close);
  return { verifier, logged };
}

const asker: SessionAsker = { user: 'user-1', expiresAtMs: Infinity, again: null };
const again = { isGone: () => false };
const limits = { maxAsking: 64, maxOfUser: 64, maxAgain: 16, maxUnderWay: 64 };

const fresh = (): string => mintSession({ key });
const unconfirmed = (): string => mintSession({ key, claims: { parentRefreshTokenHash1: 'cd'.repeat(32) } });

const sessionOf = (hash: string, claims: Claims = {}): string =>
  mintSession({ key, claims: { parentRefreshTokenHash1: hash.repeat(32), ...claims } });

t.test('an SDK that somebody else has initialised is refused, for its settings are not ours', async (t) => {
  const theirs = async (): Promise<SessionSdk> => ({
    core: { init: () => undefined },
    session: await import('supertokens-node/recipe/session'),
  });
  for (const attempt of ['first', 'second']) {
    t.match(await loadSessionSdk(settings, theirs), { ok: false, error: /calls SuperTokens\.init itself/ }, attempt);
  }
});

t.test('a session is told from its token alone, where that is enough', async (t) => {
  const { verifier } = await open(t);
  const before = core.asked.length;
  const vouched = await verifier.verify(fresh(), false, asker);
  t.match(vouched, { ok: true, value: { userId: 'user-1', claims: { 'st-role': { v: ['support'] } }, renewed: null } });
  t.equal(vouched.ok && Object.getPrototypeOf(vouched.value.claims), null, 'claims without a prototype');
  t.equal(core.asked.length, before);
});

t.test('the Core is asked about the first token after a refresh, and its new token is handed on', async (t) => {
  const { verifier } = await open(t);
  const renewed = mintSession({ key, claims: { sub: 'user-1', more: 'new' } });
  core.verify({
    ...goodSession(),
    accessToken: { token: renewed, expiry: Date.now() + 60_000, createdTime: Date.now() },
  });
  const vouched = await verifier.verify(unconfirmed(), true, asker);
  t.match(vouched, {
    ok: true,
    value: { userId: 'user-1', claims: { more: 'new' }, renewed: { accessToken: renewed } },
  });
  const front = vouched.ok ? (vouched.value.renewed?.frontToken ?? '') : '';
  t.match(JSON.parse(Buffer.from(front, 'base64').toString()), { uid: 'user-1', up: { more: 'new' } });
  t.match(core.asked.at(-1), { apiKey, body: { checkDatabase: false, doAntiCsrfCheck: false } });
});

t.test('a new token that could not be sent is not', async (t) => {
  const { verifier } = await open(t);
  const [head, body] = fresh().split('.');
  core.verify({
    ...goodSession(),
    accessToken: { token: `${head ?? ''}.${body ?? ''}.x\r\nX-Admin: 1`, expiry: 1, createdTime: 1 },
  });
  t.match(await verifier.verify(unconfirmed(), true, asker), { ok: true, value: { renewed: null } });
});

t.test('check_database: the Core is asked about every session', async (t) => {
  const { verifier } = await open(t, { checkDatabase: true });
  core.verify(goodSession());
  const before = core.asked.length;
  t.match(await verifier.verify(fresh(), true, asker), { ok: true, value: { userId: 'user-1', renewed: null } });
  t.equal(core.asked.length, before + 1);
  t.match(core.asked.at(-1), { body: { checkDatabase: true } });
});

t.test('what the SDK or the Core refuses', async (t) => {
  const { verifier } = await open(t);
  core.verify({ status: 'UNAUTHORISED', message: 'gone' });
  t.same(await verifier.verify(unconfirmed(), true, asker), { ok: false, error: 'refused' });
  core.verify({ status: 'TRY_REFRESH_TOKEN', message: 'again' });
  t.same(await verifier.verify(unconfirmed(), true, asker), { ok: false, error: 'refresh' });
  t.same(await verifier.verify('garbage', false, asker), { ok: false, error: 'refused' });
});

const ends: readonly (readonly [string, (req: IncomingMessage, res: ServerResponse) => unknown, RegExp])[] = [
  ['500', (_req, res) => res.writeHead(500).end('Internal Error'), /the Core answered with status 500/],
  [
    '401, for its key is wrong',
    (_req, res) => res.writeHead(401).end('Invalid API key'),
    /the Core answered with status 401/,
  ],
  [
    'a redirect',
    (_req, res) => res.writeHead(302, { location: 'http://127.0.0.1:1/' }).end(),
    /the Core answered with status 302/,
  ],
  [
    'no JSON',
    (_req, res) => res.writeHead(200, { 'content-type': 'application/json' }).end('{'),
    /the call of the Core failed/,
  ],
  ['nothing', () => undefined, /no answer within 300 ms/],
  [
    'half a body',
    (_req, res) => res.writeHead(200, { 'content-length': '10' }).write('{'),
    /no answer within 300 ms|the call of the Core failed/,
  ],
  ['a reset', (req) => req.socket.destroy(), /the Core cannot be reached|the call of the Core failed/],
  ['too many requests, again and again', (_req, res) => res.writeHead(429).end('slow'), /no answer within 300 ms/],
];

t.test('whatever the Core does, nobody is vouched for, and the log has one line for each outage', async (t) => {
  const { verifier, logged } = await open(t, {}, { ...limits, timeoutMs: 300 });
  for (const [name, behaviour, reason] of ends) {
    core.verify(behaviour);
    t.same(await verifier.verify(unconfirmed(), true, asker), { ok: false, error: 'unavailable' }, name);
    if (name === '500') {
      t.same(await verifier.verify(unconfirmed(), true, asker), { ok: false, error: 'unavailable' }, 'again');
    }
    t.match(logged.splice(0), [{ message: /sessions cannot be verified/, fields: { core: core.url, reason } }], name);
    core.verify(goodSession());
    await until(`recovery from ${name}`, async () => (await verifier.verify(unconfirmed(), true, asker)).ok);
    logged.splice(0);
  }
});

t.test('a slow Core is asked about so many sessions and no more, and requests beyond need not wait', async (t) => {
  const { verifier, logged } = await open(t, {}, { ...limits, timeoutMs: 60_000, maxAsking: 3, maxOfUser: 2 });
  const held: ServerResponse[] = [];
  const ours = ['e1', 'e2', 'e3', 'e4'].map((hash) => sessionOf(hash));
  core.verify((_req, res) => {
    // The SDK may still be asking again for the sake of the test before.
    if (ours.includes(String(core.asked.at(-1)?.body['accessToken']))) held.push(res);
    else res.writeHead(500).end();
  });
  const [one = '', two = '', three = '', four = ''] = ours;
  const first = [one, two, two].map((token) => verifier.verify(token, true, asker));
  await until('both are asked about', () => held.length === 2);
  t.same(await verifier.verify(three, true, asker), { ok: false, error: 'unavailable' }, 'the third of one user');
  t.match(logged.splice(0), [{ message: /sessions are refused/, fields: { reason: /2 of one user/ } }]);
  first.push(verifier.verify(three, true, { ...asker, user: 'user-2' }));
  await until('another user is asked about', () => held.length === 3);
  t.same(await verifier.verify(four, true, { ...asker, user: 'user-3' }), { ok: false, error: 'unavailable' });
  t.match(logged.splice(0), [{ message: /sessions are refused/, fields: { reason: /about 3 at once/ } }], 'each limit');
  t.same(await verifier.verify(four, true, { ...asker, user: 'user-3' }), { ok: false, error: 'unavailable' });
  t.same(logged, [], 'the log has it once a minute');
  t.match(await verifier.verify(fresh(), false, asker), { ok: true }, 'those that need no Core go on');
  const later = verifier.verify(four, true, { ...asker, user: 'user-3', again });
  const answer = JSON.stringify(goodSession());
  for (const res of held.splice(0)) res.writeHead(200, { 'content-type': 'application/json' }).end(answer);
  t.match(await Promise.all(first), [{ ok: true }, { ok: true }, { ok: true }, { ok: true }]);
  await until('what is asked again had waited', () => held.length === 1);
  for (const res of held) res.writeHead(200, { 'content-type': 'application/json' }).end(answer);
  t.match(await later, { ok: true });
  core.verify(goodSession());
  t.match(await verifier.verify(unconfirmed(), true, asker), { ok: true }, 'the places are free again');
});

/** Answers each question so long after it came. */
function answerAfter(ms: number): void {
  const answer = JSON.stringify(goodSession());
  core.verify((_req, res) => {
    setTimeout(() => res.writeHead(200, { 'content-type': 'application/json' }).end(answer), ms);
  });
}

/** How often the Core was asked about these. */
function askedAbout(tokens: readonly string[]): number {
  return core.asked.filter(({ body }) => tokens.includes(String(body['accessToken']))).length;
}

t.test('a token that ends while it waits for its turn is to be refreshed, and is no outage', async (t) => {
  const { verifier, logged } = await open(t, {}, { ...limits, timeoutMs: 5_000, maxAgain: 1 });
  answerAfter(2_500);
  const one = sessionOf('a1');
  const first = verifier.verify(one, true, { ...asker, again });
  const exp = Math.floor(Date.now() / 1_000) + 2;
  const asking = { user: 'user-2', expiresAtMs: exp * 1_000, again };
  const two = sessionOf('a2', { exp });
  const second = verifier.verify(two, true, asking);
  t.match(await first, { ok: true });
  const began = performance.now();
  t.same(await second, { ok: false, error: 'refresh' });
  t.ok(performance.now() - began < 400, 'at once');
  t.equal(askedAbout([one, two]), 1);
  t.same(logged, []);
});

t.test('who shares the answer to the next question has its time from when that is asked', async (t) => {
  const { verifier, logged } = await open(t, { checkDatabase: true }, { ...limits, timeoutMs: 1_000 });
  answerAfter(700);
  const token = fresh();
  const all = await Promise.all([1, 2, 3].map(async () => verifier.verify(token, true, asker)));
  t.match(all, [{ ok: true }, { ok: true }, { ok: true }]);
  t.same(logged, []);
  core.verify(() => undefined);
  const began = performance.now();
  t.match(await Promise.all([1, 2, 3].map(async () => verifier.verify(token, true, asker))), [
    { error: 'unavailable' },
    { error: 'unavailable' },
    { error: 'unavailable' },
  ]);
  t.ok(performance.now() - began < 3_000, 'for twice that time at most');
});

t.test('those that need no Core have a limit of their own, and the log says so', async (t) => {
  const { verifier, logged } = await open(t, {}, { ...limits, timeoutMs: 5_000, maxUnderWay: 1 });
  const first = verifier.verify(fresh(), false, asker);
  t.same(await verifier.verify(fresh(), false, asker), { ok: false, error: 'unavailable' });
  t.match(await first, { ok: true });
  t.match(logged, [{ message: /too many are verified/, fields: { reason: /^1 are verified without it/ } }]);
});

t.test('once it is closed, nothing is asked', async (t) => {
  const { verifier, logged } = await open(t, {}, { ...limits, timeoutMs: 5_000, maxAgain: 1 });
  answerAfter(200);
  const ours = ['d1', 'd2', 'd3'].map((hash) => sessionOf(hash));
  const all = ours.map(async (token) => verifier.verify(token, true, { ...asker, again }));
  await until('the first is asked', () => askedAbout(ours) === 1);
  await verifier.close();
  t.match((await Promise.all(all)).slice(1), [{ error: 'unavailable' }, { error: 'unavailable' }]);
  t.equal(askedAbout(ours), 1);
  t.ok(logged.length <= 1, 'the log has that of the first at most');
});

t.test('a call that was given up ends, and gives its place back', async (t) => {
  const { verifier } = await open(t, {}, { ...limits, timeoutMs: 300, maxAsking: 1 });
  const gone = new Set<IncomingMessage>();
  core.verify((req) => req.socket.on('close', () => gone.add(req)));
  t.same(await verifier.verify(unconfirmed(), true, asker), { ok: false, error: 'unavailable' });
  await until('the connection is closed', () => gone.size > 0);
  core.verify(goodSession());
  await until('the place is free', async () => (await verifier.verify(unconfirmed(), true, asker)).ok);
});

t.test(
  'keys that the SDK has not seen yet are waited for, and keys that cannot be had refuse nobody for good',
  async (t) => {
    const { verifier } = await open(t);
    const next = rsaKey('d-2');
    core.setKeys([key, next]);
    t.match(await verifier.verify(mintSession({ key: next }), false, asker), { ok: true });
    const third = rsaKey('d-3');
    t.same(
      await verifier.verify(mintSession({ key: third }), false, asker),
      { ok: false, error: 'unavailable' },
      'we hold its key, the SDK cannot get it',
    );
    core.setKeys([key, next, third]);
    t.match(await verifier.verify(mintSession({ key: third }), false, asker), { ok: true });
  },
);

t.test('nothing is left of it', async (t) => {
  const before = getGlobalDispatcher();
  const { verifier } = await open(t);
  t.not(getGlobalDispatcher(), before);
  await verifier.close();
  t.equal(getGlobalDispatcher(), before);
});

t.test('the SDK is loaded or the config refused with what to do', async (t) => {
  const missing = Object.assign(new Error('Cannot find package'), { code: 'ERR_MODULE_NOT_FOUND' });
  const refusals: readonly (readonly [string, () => Promise<SessionSdk>, RegExp])[] = [
    [
      'absent',
      () => Promise.reject(missing),
      /^sessions need the package supertokens-node, which is not installed: npm install supertokens-node@24$/,
    ],
    [
      'broken',
      () => Promise.reject(new Error('secret path')),
      /^sessions need the package supertokens-node, which cannot be loaded: npm install /,
    ],
    [
      'old',
      async () => ({ ...(await load()), session: { init: undefined } }) as unknown as SessionSdk,
      /^sessions need another version of supertokens-node: npm install /,
    ],
  ];
  for (const [name, importSdk, expected] of refusals) {
    t.match(await loadSessionSdk(settings, importSdk), { ok: false, error: expected }, name);
  }
  t.match(await loadSessionSdk({ ...settings, coreUrl: 'http://127.0.0.1:1' }), {
    ok: false,
    error: /opened with other settings in this process: restart/,
  });
  t.match(await loadSessionSdk(settings), { ok: true });
});
