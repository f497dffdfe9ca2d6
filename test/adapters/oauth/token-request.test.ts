import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import t from 'tap';
import { localFiles } from '../../../src/adapters/files/files.js';
import { createTokenRequests } from '../../../src/adapters/oauth/token-request.js';
import { systemClock } from '../../../src/adapters/system/clock.js';
import type { OAuthTokenSettings } from '../../../src/config/types.js';
import { accept, refuse } from '../../../src/lib/result.js';
import type { ProofSigner, TokenFetcher } from '../../../src/ports/tokens.js';
import { startFakeCore, type FakeAnswer, type FakeCore } from '../../support/fake-core.js';
import type { Scope } from '../../support/scope.js';
import { tempDir } from '../../support/temp-dir.js';
import { until } from '../../support/until.js';

const secret = 's3cret-of-the-client';

interface Made {
  readonly server: FakeCore;
  readonly fetcher: TokenFetcher;
  readonly secretFile: string;
  /** How often it was to be looked for anew where tokens are asked for. */
  readonly forgotten: () => number;
}

async function make(
  t: Scope,
  more: Partial<OAuthTokenSettings> = {},
  proofs: ProofSigner | null = null,
): Promise<Made> {
  const server = await startFakeCore(t);
  const secretFile = join(tempDir(t), 'secret');
  writeFileSync(secretFile, secret);
  let forgotten = 0;
  const settings: OAuthTokenSettings = { ...settingsFor(server, secretFile), ...more };
  const endpoint = {
    find: () => Promise.resolve(refuse('nobody knows where')),
    forget: () => {
      forgotten += 1;
    },
  };
  const fetcher = createTokenRequests(settings, { clock: systemClock, files: localFiles, proofs, endpoint });
  t.teardown(() => fetcher.close());
  return { server, fetcher, secretFile, forgotten: () => forgotten };
}

function settingsFor(server: FakeCore, secretFile: string): OAuthTokenSettings {
  return {
    kind: 'oauth',
    name: 'billing',
    issuer: server.url,
    tokenUrl: `${server.url}/token?tenant=1`,
    metadataUrls: [],
    caFile: null,
    clientId: 'checkout',
    auth: { method: 'client_secret_post', secretFile },
    grant: 'client_credentials',
    scope: null,
    audience: null,
    resource: null,
    dpop: false,
    timeoutMs: 300,
  };
}

const good: FakeAnswer = (_, response) =>
  response.end('{"access_token":"given","token_type":"Bearer","expires_in":300}');

t.test('what is asked for, by grant', async (t) => {
  const client = { client_id: 'checkout', client_secret: secret };
  const subject = {
    subject_token: 'own',
    subject_token_type: 'urn:ietf:params:oauth:token-type:access_token',
    requested_token_type: 'urn:ietf:params:oauth:token-type:access_token',
  };
  const cases = [
    { more: {}, own: null, form: { grant_type: 'client_credentials', ...client } },
    {
      more: { scope: 'a b&c', audience: 'orders', resource: 'urn:x' },
      own: null,
      form: { grant_type: 'client_credentials', scope: 'a b&c', audience: 'orders', resource: 'urn:x', ...client },
    },
    {
      more: { grant: 'exchange', audience: 'orders' },
      own: 'own',
      form: {
        grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
        ...subject,
        audience: 'orders',
        ...client,
      },
    },
    {
      more: { grant: 'jwt_bearer', scope: 's' },
      own: 'own',
      form: { grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer', assertion: 'own', scope: 's', ...client },
    },
  ] as const;
  for (const { more, own, form } of cases) {
    const { server, fetcher } = await make(t, more);
    server.answer(good);
    t.strictSame(await fetcher.fetch(own), { ok: true, value: { token: 'given', lifetimeMs: 300_000 } });
    const [call] = server.calls;
    t.match(call, { method: 'POST', target: '/token?tenant=1' });
    t.strictSame(Object.fromEntries(new URLSearchParams(call?.body)), form);
  }
});

t.test('a response that is no token: refused, and nothing of it is told', async (t) => {
  const token = '"access_token":"from-the-issuer"';
  const cases: readonly (readonly [FakeAnswer, object])[] = [
    [(_, res) => res.end('no JSON from-the-issuer'), { problem: 'bad_response', reason: /no duplicate-free JSON/ }],
    [(_, res) => res.end(`{${token},${token}}`), { problem: 'bad_response', reason: /no duplicate-free JSON/ }],
    [(_, res) => res.end(`{${token},"token_type":"DPoP"}`), { problem: 'bad_response', reason: /token_type/ }],
    [(_, res) => res.end(`{${token},"token_type":"bearer","expires_in":-1}`), { reason: /expires_in/ }],
    [(_, res) => res.end(`{${token},"x":"${'x'.repeat(70_000)}"}`), { reason: /larger than 65536 bytes/ }],
    [(_, res) => res.writeHead(302, { location: '/elsewhere' }).end(), { reason: /redirect .*not followed/ }],
    [
      (_, res) => res.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync('{}')),
      { problem: 'bad_response', reason: /compressed/ },
    ],
    [(_, res) => res.socket?.destroy(), { problem: 'away', reason: /connection broke/ }],
    [() => undefined, { problem: 'away', reason: /no complete response within 300 ms/ }],
    [(_, res) => res.write('{'), { problem: 'away', reason: /no complete response within 300 ms/ }],
    [(_, res) => res.writeHead(500).end(), { problem: 'away', retryAfterMs: null }],
    [(_, res) => res.writeHead(503, { 'retry-after': '9' }).end(), { problem: 'away', retryAfterMs: 9_000 }],
    [(_, res) => res.writeHead(429, { 'retry-after': 'soon' }).end(), { problem: 'away', retryAfterMs: null }],
    [
      (_, res) => res.writeHead(401).end('{"error":"invalid_client"}'),
      { problem: 'refused', reason: /invalid_client/ },
    ],
    [(_, res) => res.writeHead(400).end('{"error":"from-the-issuer"}'), { problem: 'refused' }],
  ];
  const { server, fetcher, forgotten } = await make(t);
  for (const [index, [answer, error]] of cases.entries()) {
    server.answer(answer);
    const fetched = await fetcher.fetch(null);
    t.match(fetched, { ok: false, error }, JSON.stringify(fetched));
    t.notMatch(JSON.stringify(fetched), new RegExp(`from-the-issuer|${secret}`));
    t.equal(forgotten(), index + 1);
  }
  t.notOk(server.calls.some(({ target }) => target === '/elsewhere'));
  server.answer(good);
  t.match(await fetcher.fetch(null), { ok: true });
});

t.test('a caller’s own token that is not taken says nothing of the issuer', async (t) => {
  const { server, fetcher, forgotten } = await make(t, { grant: 'exchange' });
  server.answer((_, res) => res.writeHead(400).end('{"error":"invalid_request"}'));
  t.match(await fetcher.fetch('own'), { ok: false, error: { problem: 'subject' } });
  t.equal(forgotten(), 0);
});

t.test('nor does another answer to it that is no token, but for those that are about the client', async (t) => {
  const cases: readonly (readonly [FakeAnswer, object])[] = [
    [(_, res) => res.writeHead(400).end('{"error":"invalid_token"}'), { problem: 'subject' }],
    [(_, res) => res.writeHead(400).end('no JSON'), { problem: 'subject' }],
    [(_, res) => res.writeHead(431).end(), { problem: 'subject' }],
    [(_, res) => res.end('no JSON'), { problem: 'bad_response', mayBeOfSubject: true, reason: /no duplicate-free/ }],
    [(_, res) => res.writeHead(302).end(), { problem: 'bad_response', mayBeOfSubject: true, reason: /redirect/ }],
    [
      (_, res) => res.end(`{"access_token":"${'x'.repeat(8_193)}","token_type":"Bearer"}`),
      { problem: 'subject', reason: /access_token/ },
    ],
    [
      (_, res) => res.end('{"access_token":"x","token_type":"Bearer","expires_in":0}'),
      { problem: 'subject', reason: /expires_in/ },
    ],
    [
      (_, res) => res.end(`{"x":"${'x'.repeat(70_000)}"}`),
      { problem: 'bad_response', mayBeOfSubject: true, reason: /larger than/ },
    ],
    [(_, res) => res.writeHead(401).end('{"error":"invalid_client"}'), { problem: 'refused', mayBeOfSubject: false }],
    [(_, res) => res.writeHead(429).end(), { problem: 'away', mayBeOfSubject: true }],
    [(_, res) => res.writeHead(502).end(), { problem: 'away', mayBeOfSubject: true }],
    [(_, res) => res.socket?.destroy(), { problem: 'away', mayBeOfSubject: true }],
    [() => undefined, { problem: 'away', mayBeOfSubject: true }],
  ];
  const { server, fetcher, forgotten } = await make(t, { grant: 'exchange' });
  for (const [answer, error] of cases) {
    server.answer(answer);
    const fetched = await fetcher.fetch('own');
    t.match(fetched, { ok: false, error }, JSON.stringify(fetched));
  }
  const before = forgotten();
  server.answer((_, res) => res.writeHead(404).end());
  t.match(await fetcher.fetch('own'), { error: { problem: 'away', mayBeOfSubject: true } });
  t.equal(forgotten(), before + 1, 'the issuer may have moved');
});

t.test('files that cannot be used, an issuer that nobody knows, and a source that is closed', async (t) => {
  const first = await make(t);
  writeFileSync(first.secretFile, '');
  t.match(await first.fetcher.fetch(null), { error: { problem: 'unreadable', reason: /secret: holds no secret/ } });
  const second = await make(t, { tokenUrl: null });
  t.match(await second.fetcher.fetch(null), { error: { problem: 'away', reason: 'nobody knows where' } });
  const third = await make(t);
  third.fetcher.close();
  t.match(await third.fetcher.fetch(null), { ok: false, error: { reason: 'the source was closed' } });
  t.equal(third.server.calls.length, 0);
});

t.test('a secret that changes between two steps of a request is no failure of it', async (t) => {
  const server = await startFakeCore(t);
  server.answer(good);
  const secretFile = join(tempDir(t), 'secret');
  writeFileSync(secretFile, secret);
  let nowMs = 0;
  let find = (): void => undefined;
  const places = [
    new Promise<void>((resolve) => {
      find = resolve;
    }),
    Promise.resolve(),
  ];
  const fetcher = createTokenRequests(
    { ...settingsFor(server, secretFile), tokenUrl: null },
    {
      clock: { ...systemClock, monotonic: () => nowMs },
      files: localFiles,
      proofs: null,
      endpoint: {
        find: async () => {
          await places.shift();
          return accept({ url: `${server.url}/token`, mtlsUrl: null });
        },
        forget: () => undefined,
      },
    },
  );
  t.teardown(() => fetcher.close());
  const first = fetcher.fetch(null);
  await until('it looks for the place', () => places.length === 1);
  writeFileSync(secretFile, 'renewed');
  nowMs = 2_000;
  t.equal((await fetcher.fetch(null)).ok, true, 'another one has looked at the file');
  find();
  t.match(await first, { ok: true });
});

t.test('a nonce of the token endpoint is taken up where it is one, and the last one stays', async (t) => {
  const proved: (string | null)[] = [];
  const proofs: ProofSigner = {
    thumbprint: 'of the key',
    prove: ({ nonce }) => {
      proved.push(nonce);
      return 'a.proof';
    },
  };
  const { server, fetcher } = await make(t, { dpop: true }, proofs);
  const given = ['a b', 'a"b', 'a\\b', 'a'.repeat(257), 'good-1', '\xe4', 'good-2'];
  for (const nonce of given) {
    server.answer((_, res) => res.writeHead(400, { 'DPoP-Nonce': nonce }).end('{"error":"use_dpop_nonce"}'));
    t.match(await fetcher.fetch(null), { ok: false, error: { problem: 'refused' } });
  }
  t.same(proved, [null, null, null, null, null, 'good-1', 'good-1', 'good-1', 'good-2']);
});
