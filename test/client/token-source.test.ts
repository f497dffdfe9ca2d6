import t from 'tap';
import {
  createTokenSource,
  TokenError,
  type TokenSource,
  type TokenSourceOptions,
} from '../../src/client/token/source.js';
import { systemClock } from '../../src/adapters/system/clock.js';
import type { IssuanceRecord } from '../../src/core-api/issuance-log.js';
import { startCoreEmulator } from '../../src/core-emulator/server.js';
import { certificates } from '../support/certificates.js';
import { startFakeCore, type FakeCore } from '../support/fake-core.js';
import { rsaKey, withKeyId } from '../support/keys.js';
import type { Scope } from '../support/scope.js';
import { mintToken } from '../support/tokens.js';
import { until } from '../support/until.js';

const apiKey = 'k3y-of-twenty-and-more-characters';
const claims = {
  aud: 'orders',
  sub: 'checkout',
  source: 'microservice',
  token_type: 'service',
  permissions: ['orders:read', 'orders:write'],
};

function source(
  t: Scope,
  url: string,
  options: Partial<TokenSourceOptions> = {},
  core: Partial<TokenSourceOptions['core']> = {},
): TokenSource {
  const made = createTokenSource({
    core: { url, apiKey, ...core },
    issuer: 'https://api.example.com',
    claims,
    ...options,
  });
  t.teardown(() => made.close());
  return made;
}

function payloadOf(token: string): Readonly<Record<string, unknown>> {
  return JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()) as Record<string, unknown>;
}

async function startCore(t: Scope): Promise<string> {
  const core = await startCoreEmulator({ host: '127.0.0.1', port: 0, rotateEveryMs: 3_600_000, apiKeys: [apiKey] });
  t.teardown(() => core.close());
  return core.url;
}

async function failure(promise: Promise<unknown>): Promise<TokenError> {
  const error: unknown = await promise.then(
    () => 'a token',
    (reason: unknown) => reason,
  );
  if (error instanceof TokenError) return error;
  throw new Error(String(error));
}

/** Signs whatever is asked for, a part of it in another way. */
function signing(core: FakeCore, changed: { readonly claims?: object; readonly keyId?: string } = {}): void {
  core.answer(({ body }, response) => {
    const { payload } = JSON.parse(body) as { payload: object };
    const key = changed.keyId === undefined ? rsaKey() : withKeyId(rsaKey(), changed.keyId);
    response.end(JSON.stringify({ status: 'OK', jwt: mintToken({ key, claims: { ...payload, ...changed.claims } }) }));
  });
}

t.test('a token as asked for, minted once for many calls', async (t) => {
  const issued: IssuanceRecord[] = [];
  const tokens = source(t, await startCore(t), { validitySeconds: 60, onIssued: (record) => void issued.push(record) });
  const [first, second] = await Promise.all([tokens.getToken(), tokens.getToken()]);
  t.equal(first, second);
  t.equal(await tokens.getToken(), first);
  const { iat, exp, ...others } = payloadOf(first);
  t.strictSame(others, { iss: 'https://api.example.com', ...claims });
  t.equal(Number(exp) - Number(iat), 60);
  t.match(issued, [{ sub: 'checkout', aud: 'orders', permissions: claims.permissions, jti: null, kid: /^d-/, exp }]);
  t.equal(issued.length, 1);
  t.notMatch(JSON.stringify(issued), first);
  tokens.invalidate(first);
  await tokens.getToken();
  t.equal(issued.length, 2);
});

t.test('validity always passed, dynamic key always, five minutes unless told otherwise', async (t) => {
  const core = await startFakeCore(t);
  signing(core);
  await source(t, `${core.url}/base`, {}, { cdiVersion: '5.4' }).getToken();
  t.strictSame(JSON.parse(core.calls[0]?.body ?? ''), {
    payload: claims,
    useStaticSigningKey: false,
    algorithm: 'RS256',
    jwksDomain: 'https://api.example.com',
    validity: 300,
  });
  t.equal(core.calls[0]?.target, '/base/recipe/jwt');
  t.match(Object.fromEntries(core.calls[0]?.headers ?? []), { rid: 'jwt', 'api-key': apiKey, 'cdi-version': '5.4' });
});

t.test('single-use: a token with a fresh jti for each call, several at once', async (t) => {
  const tokens = source(t, await startCore(t), { singleUse: true });
  const given = await Promise.all(Array.from({ length: 10 }, () => tokens.getToken()));
  const ids = given.map((token) => String(payloadOf(token)['jti']));
  t.equal(new Set(ids).size, 10);
  for (const id of ids) t.match(id, /^[\w-]{24}$/);
});

t.test('what the Core signs is held to what was asked for', async (t) => {
  const core = await startFakeCore(t);
  const cases = [
    { changed: { keyId: 's-1' }, says: /not dynamic/ },
    { changed: { claims: { sub: 'admin' } }, says: /sub is not/ },
    { changed: { claims: { exp: 4_900_000_000 } }, says: /lives for/ },
  ];
  for (const { changed, says } of cases) {
    signing(core, changed);
    t.match(await failure(source(t, core.url).getToken()), { code: 'not_as_asked', message: says, status: 200 });
  }
});

t.test('errors have a code, and nothing secret', async (t) => {
  const core = await startFakeCore(t);
  const gone = await startFakeCore(t);
  await gone.close();
  const cases = [
    { answer: [401, 'Invalid API key'], code: 'unauthorized' },
    { answer: [404, 'Not found'], code: 'rejected' },
    { answer: [429, ''], code: 'rate_limited' },
    { answer: [503, `${apiKey} ${apiKey}`], code: 'core_error' },
    { answer: [200, '{"status":"UNSUPPORTED_ALGORITHM_ERROR"}'], code: 'unsupported_algorithm' },
    { answer: [302, ''], code: 'broken' },
  ] as const;
  for (const {
    answer: [status, body],
    code,
  } of cases) {
    core.answer((_, response) => response.writeHead(status).end(body));
    const error = await failure(source(t, core.url).getToken());
    t.match(error, { code, status: code === 'broken' ? null : status });
    t.notMatch(`${String(error.stack)}${JSON.stringify(error)}`, apiKey);
  }
  t.match(await failure(source(t, gone.url).getToken()), { code: 'unreachable' });
  core.answer(() => undefined);
  t.match(await failure(source(t, core.url, {}, { timeoutMs: 50 }).getToken()), { code: 'timeout' });
  t.match(await failure(source(t, 'https://198.51.100.7').getToken()), {
    code: 'refused_address',
    message: /allowPublicCore/,
  });
});

t.test('a key that is read for each call, and one that cannot be read', async (t) => {
  const core = await startFakeCore(t);
  signing(core);
  const keys = ['first-key', 'second-key'];
  const tokens = source(t, core.url, {}, { apiKey: () => keys.shift() ?? '' });
  tokens.invalidate(await tokens.getToken());
  const second = await tokens.getToken();
  t.same(
    core.calls.map(({ headers }) => Object.fromEntries(headers)['api-key']),
    ['first-key', 'second-key'],
  );
  tokens.invalidate(second);
  t.match(await failure(tokens.getToken()), { code: 'api_key_unavailable' }, 'nothing is no key');
  const failing = source(t, core.url, {}, { apiKey: () => Promise.reject(new Error(apiKey)) });
  const error = await failure(failing.getToken());
  t.match(error, { code: 'api_key_unavailable' });
  t.notMatch(String(error.stack), apiKey);
  await createTokenSource({ core: { url: core.url }, issuer: 'https://api.example.com', claims }).getToken();
  t.equal(
    core.calls.at(-1)?.headers.some(([name]) => name === 'api-key'),
    false,
    'a Core without keys',
  );
});

t.test('a token that cannot be recorded is not given out', async (t) => {
  const core = await startFakeCore(t);
  signing(core);
  t.match(await failure(source(t, core.url, { onIssued: () => Promise.reject(new Error(apiKey)) }).getToken()), {
    code: 'not_recorded',
  });
});

t.test('functions of the options that never end are given up, after the time of a call and at the end', async (t) => {
  const core = await startFakeCore(t);
  signing(core);
  let isCalled = false;
  const hangs = async (): Promise<never> => new Promise(() => undefined);
  const tells = async (): Promise<never> => {
    isCalled = true;
    return hangs();
  };
  // The time is that of the Core's own call, too.
  const timeoutMs = 2_000;
  const cases = (hanging: typeof hangs) =>
    [
      ['api_key_unavailable', {}, { apiKey: hanging }],
      ['not_recorded', { onIssued: hanging }, {}],
    ] as const;
  const late = [false, true].flatMap((singleUse) =>
    cases(hangs).map(async ([code, options, own]) => {
      const made = source(t, core.url, { ...options, singleUse }, { ...own, timeoutMs });
      t.match(await failure(made.getToken()), { code, message: /2000 ms/ });
    }),
  );
  for (const singleUse of [false, true]) {
    for (const [code, options, own] of cases(tells)) {
      const closing = source(t, core.url, { ...options, singleUse }, own);
      isCalled = false;
      const waiting = failure(closing.getToken());
      await until('it was called', () => isCalled);
      await closing.close();
      t.match(await waiting, { code: 'closed' }, code);
    }
  }
  await Promise.all(late);
  let fails: ((error: Error) => void) | null = null;
  const apiKeyLater = async (): Promise<string> => new Promise((_, reject) => (fails = reject));
  t.match(await failure(source(t, core.url, {}, { apiKey: apiKeyLater, timeoutMs: 20 }).getToken()), {
    code: 'api_key_unavailable',
  });
  (await until('it was asked', () => fails))(new Error('late'));
});

t.test('a source that ends just before onIssued is called waits for it no longer', async (t) => {
  const core = await startFakeCore(t);
  signing(core);
  let ends: (() => void) | null = null;
  const clock = {
    ...systemClock,
    now: () => {
      if (core.calls.length > 0) ends?.();
      return systemClock.now();
    },
  };
  const made = createTokenSource(
    {
      core: { url: core.url, apiKey, timeoutMs: 20_000 },
      issuer: 'https://api.example.com',
      claims,
      onIssued: async () => new Promise(() => undefined),
    },
    { clock },
  );
  ends = () => void made.close();
  t.teardown(() => made.close());
  const begun = performance.now();
  t.match(await failure(made.getToken()), { code: 'closed' });
  t.ok(performance.now() - begun < 10_000);
});

t.test('many tokens that are minted at once are no leak of listeners', async (t) => {
  const core = await startFakeCore(t);
  signing(core);
  const warnings: string[] = [];
  const heed = ({ name }: Error): void => void warnings.push(name);
  process.on('warning', heed);
  t.teardown(() => process.off('warning', heed));
  let asked = 0;
  const keys: (() => void)[] = [];
  const made = source(
    t,
    core.url,
    { singleUse: true },
    {
      apiKey: async () => {
        asked += 1;
        await new Promise<void>((resolve) => keys.push(resolve));
        return apiKey;
      },
    },
  );
  const tokens = Array.from({ length: 20 }, async () => made.getToken().catch(() => ''));
  await until('all were asked', () => asked === 20);
  keys.forEach((give) => give());
  await Promise.all(tokens);
  t.same(warnings, []);
});

t.test('a caller that gives up waits no longer; the others do', async (t) => {
  const core = await startFakeCore(t);
  let answer: (() => void) | null = null;
  core.answer((_, response) => {
    answer = () => response.end(JSON.stringify({ status: 'OK', jwt: mintToken({ key: rsaKey() }) }));
  });
  const tokens = source(t, core.url);
  const controller = new AbortController();
  const impatient = tokens.getToken({ signal: controller.signal });
  const patient = tokens.getToken({ signal: new AbortController().signal });
  const end = await until('the Core is asked', () => answer);
  controller.abort();
  await t.rejects(impatient, { name: 'AbortError' });
  await t.rejects(tokens.getToken({ signal: AbortSignal.abort() }), { name: 'AbortError' });
  await t.rejects(tokens.getToken({ signal: AbortSignal.abort('why') }), { message: 'aborted' });
  end();
  t.match(await patient, /^eyJ/);
  t.equal(core.calls.length, 1);
});

t.test('closed: calls under way and later ones are rejected, whatever they wait for', async (t) => {
  const core = await startFakeCore(t);
  core.answer(() => undefined);
  const tokens = source(t, core.url);
  const waiting = failure(tokens.getToken());
  await until('the Core is asked', () => core.calls.length === 1);
  await tokens.close();
  t.match(await waiting, { code: 'closed' });
  t.match(await failure(tokens.getToken()), { code: 'closed' });
  signing(core);
  let recorded: (() => void) | null = null;
  const recording = source(t, core.url, { onIssued: () => new Promise<void>((resolve) => (recorded = resolve)) });
  const late = failure(recording.getToken());
  const record = await until('the token is being recorded', () => recorded);
  await recording.close();
  record();
  t.match(await late, { code: 'closed' });
});

t.test("over TLS with authorities of one's own", async (t) => {
  const { ca, server } = certificates(t);
  const core = await startFakeCore(t, { cert: server.cert, key: server.key });
  signing(core);
  t.match(await source(t, core.url, {}, { ca: ca.cert }).getToken(), /^eyJ/);
  t.match(await failure(source(t, core.url).getToken()), { code: 'unreachable', message: /not trusted/ });
});

t.test('options that are wrong are named at once, without what is secret', async (t) => {
  const cases: readonly {
    readonly options: Partial<TokenSourceOptions>;
    readonly core?: Partial<TokenSourceOptions['core']>;
    readonly says: RegExp;
  }[] = [
    { options: {}, core: { url: `http://u:${apiKey}@core` }, says: /core\.url holds a user/ },
    { options: {}, core: { ca: 'x' }, says: /core\.ca holds no PEM/ },
    { options: {}, core: { cdiVersion: '2.16' }, says: /core\.cdiVersion is older than 2\.21/ },
    { options: {}, core: { timeoutMs: 0 }, says: /core\.timeoutMs/ },
    { options: {}, core: { timeoutMs: 300_001 }, says: /core\.timeoutMs/ },
    { options: {}, core: { apiKey: `${apiKey}\n` }, says: /core\.apiKey is no text/ },
    { options: {}, core: { apiKey: '' }, says: /core\.apiKey/ },
    { options: { issuer: 'example' }, says: /issuer is not the API domain/ },
    { options: { claims: { ...claims, permissions: ['a b'] } }, says: /claims: permissions must/ },
    { options: { claims: { ...claims, jti: 'x' } as typeof claims }, says: /claims: jti cannot be chosen/ },
    { options: { validitySeconds: 9 }, says: /validitySeconds is no whole number from 10 to 7200/ },
    { options: { validitySeconds: 7_201 }, says: /validitySeconds/ },
    { options: { validitySeconds: 60.5 }, says: /validitySeconds/ },
  ];
  for (const { options, core, says } of cases) {
    const make = (): unknown => source(t, 'http://127.0.0.1:1', options, core);
    t.throws(make, { name: 'TypeError', message: says });
    try {
      make();
    } catch (error) {
      t.notMatch(String(error), apiKey);
    }
  }
  for (const validitySeconds of [10, 7_200]) source(t, 'http://127.0.0.1:1', { validitySeconds });
});
