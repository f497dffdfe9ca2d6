/** Tokens that are bound to a key, with proofs (RFC 9449): docs/bound-tokens.md. */
import { once } from 'node:events';
import { connect as connectHttp2 } from 'node:http2';
import t from 'tap';
import { createMemoryStore } from '../../../src/adapters/memory/reservation-store.js';
import { systemClock } from '../../../src/adapters/system/clock.js';
import { refuse } from '../../../src/lib/result.js';
import type { ReservationStore } from '../../../src/ports/idempotency.js';
import { createUsedProofs } from '../../../src/proxy/auth/used-proofs.js';
import { makeProof, proofKey, type ProofInput } from '../../support/dpop.js';
import type { ConfigTree } from '../../support/proxy-process.js';
import { request, sendRaw, type RawResponse } from '../../support/raw-client.js';
import type { Scope } from '../../support/scope.js';
import { mintToken, type Claims } from '../../support/tokens.js';
import { startProxy, type Harness } from '../harness.js';

const origin = 'https://orders.example';
const own = proofKey();
const thief = proofKey();
const bound = { cnf: { jkt: own.thumbprint } };

interface Client {
  readonly proxy: Harness;
  readonly token: (claims?: Claims) => string;
  readonly ask: (headers: Readonly<Record<string, string>>, path?: string, method?: string) => Promise<RawResponse>;
  readonly reasonOf: (response: RawResponse) => Promise<string | null>;
}

async function start(t: Scope, config: ConfigTree = {}, store?: ReservationStore): Promise<Client> {
  const used = store ?? createMemoryStore(systemClock);
  t.teardown(async () => used.close());
  const proxy = await startProxy(t, {
    config: { ...config, store: { memory: {} }, listen: { dpop: { origins: [origin] }, http2: true } },
    proofs: { use: createUsedProofs({ store: used, replicas: 0 }, 5_000), isNonce: null },
  });
  return {
    proxy,
    token: (claims = bound) => mintToken({ key: proxy.key, claims }),
    ask: async (headers, path = '/orders', method = 'GET') => request(proxy.port, { method, path, headers }),
    reasonOf: async (response) => (await proxy.recordOf(response.field('x-request-id') ?? '')).reason,
  };
}

const proofOf = (token: string, input: Partial<ProofInput> = {}): string =>
  makeProof(own, { uri: `${origin}/orders`, token, ...input });

t.test('a bound token passes with a proof for each request, and a proof passes once', async (t) => {
  const { proxy, token, ask, reasonOf } = await start(t);
  const bearer = token();
  const Authorization = `DPoP ${bearer}`;
  const DPoP = proofOf(bearer);
  t.equal((await ask({ Authorization, DPoP })).status, 200);
  const again = await ask({ Authorization, DPoP });
  t.same([again.status, await reasonOf(again)], [401, 'proof_replayed']);
  t.equal((await ask({ Authorization, DPoP: proofOf(bearer) })).status, 200, 'remembered, with another proof');
  t.equal(proxy.activeConfig().verified?.size(), 1);
  t.equal((await ask({ Authorization: `dpop ${bearer}`, DPoP: proofOf(bearer) })).status, 200, 'in any case');
  t.equal((await ask({ Authorization, DPoP: proofOf(bearer) }, '/orders?a=b')).status, 200, 'a query is not proved');
  const [first] = proxy.receiver.requests;
  t.same(first?.field('dpop'), [], 'the proof ends here, as the token does');
  t.same(first?.field('x-auth-subject'), ['checkout']);
});

t.test('all else is the same 401, whatever is wrong, and says nothing of the token', async (t) => {
  const { proxy, token, ask, reasonOf } = await start(t);
  const bearer = token();
  const unbound = token({});
  const dpop = `DPoP ${bearer}`;
  const used = proofOf(bearer);
  await ask({ Authorization: dpop, DPoP: used });
  const rows: readonly (readonly [string, Readonly<Record<string, string>>, string])[] = [
    ['nothing', {}, 'credential_missing'],
    ['a bearer', { Authorization: `Bearer ${bearer}` }, 'proof_missing'],
    ['a bearer with its proof', { Authorization: `Bearer ${bearer}`, DPoP: proofOf(bearer) }, 'proof_missing'],
    ['no proof', { Authorization: dpop }, 'proof_missing'],
    ['an empty proof', { Authorization: dpop, DPoP: '' }, 'proof_malformed'],
    ['two proofs in one', { Authorization: dpop, DPoP: `${proofOf(bearer)}, ${proofOf(bearer)}` }, 'proof_malformed'],
    ['a used proof', { Authorization: dpop, DPoP: used }, 'proof_replayed'],
    [
      'a thief’s proof',
      { Authorization: dpop, DPoP: makeProof(thief, { uri: `${origin}/orders`, token: bearer }) },
      'proof_mismatch',
    ],
    ['for another method', { Authorization: dpop, DPoP: proofOf(bearer, { method: 'POST' }) }, 'proof_mismatch'],
    ['for another path', { Authorization: dpop, DPoP: proofOf(bearer, { uri: `${origin}/order` }) }, 'proof_mismatch'],
    ['for another host', { Authorization: dpop, DPoP: proofOf(bearer, { uri: 'https://a/orders' }) }, 'proof_mismatch'],
    [
      'for the Host',
      { Authorization: dpop, Host: 'a', DPoP: proofOf(bearer, { uri: 'http://a/orders' }) },
      'proof_mismatch',
    ],
    ['old', { Authorization: dpop, DPoP: proofOf(bearer, { nowMs: Date.now() - 70_000 }) }, 'proof_untimely'],
    ['of tomorrow', { Authorization: dpop, DPoP: proofOf(bearer, { nowMs: Date.now() + 10_000 }) }, 'proof_untimely'],
    ['a token that is not bound', { Authorization: `DPoP ${unbound}`, DPoP: proofOf(unbound) }, 'proof_mismatch'],
    ['a forged token', { Authorization: `${dpop.slice(0, -4)}AAAA`, DPoP: proofOf(bearer) }, 'signature_invalid'],
  ];
  const answers = new Set<string>();
  for (const [name, headers, reason] of rows) {
    const response = await ask(headers);
    t.same([response.status, await reasonOf(response)], [401, reason], name);
    const fields = response.fields.filter(([field]) => !['date', 'x-request-id'].includes(field.toLowerCase()));
    answers.add(JSON.stringify([fields, response.text]));
  }
  const proofs = `DPoP: ${proofOf(bearer)}\r\n`.repeat(2);
  const [twice] = await sendRaw(
    proxy.port,
    `GET /orders HTTP/1.1\r\nHost: a\r\nAuthorization: ${dpop}\r\n${proofs}Connection: close\r\n\r\n`,
  );
  t.equal(twice?.status, 401, 'two DPoP fields');
  t.equal(answers.size, 1);
  t.match(
    [...answers][0],
    'Bearer realm=\\"sallyport\\"\"],[\"WWW-Authenticate\",\"DPoP realm=\\"sallyport\\", algs=\\"ES256 Ed25519',
  );
  t.equal((await ask({ Authorization: `Bearer ${unbound}` })).status, 200, 'a bearer token stays one');
  t.equal((await ask({ Authorization: `Bearer ${unbound}`, DPoP: 'x' })).status, 200, 'whatever stands beside it');
});

t.test('without listen.dpop a token that is bound to a key is refused', async (t) => {
  const proxy = await startProxy(t);
  const bearer = mintToken({ key: proxy.key, claims: bound });
  const headers = { Authorization: `DPoP ${bearer}`, DPoP: proofOf(bearer) };
  const response = await request(proxy.port, { path: '/orders', headers });
  t.equal(response.status, 401);
  t.equal(response.field('www-authenticate'), 'Bearer realm="sallyport"');
});

t.test('with binding: none the scheme and the proof say nothing', async (t) => {
  const issuer = {
    issuer: 'https://api.example.com',
    audience: 'orders',
    source: 'microservice',
    token_type: 'service',
  };
  const { token, ask } = await start(t, { issuers: { core: { ...issuer, binding: 'none' } } });
  t.equal((await ask({ Authorization: `DPoP ${token()}`, DPoP: 'x' })).status, 200);
  t.equal((await ask({ Authorization: `Bearer ${token()}` })).status, 200);
});

t.test('where the upstream gets the token, it gets the proof', async (t) => {
  const { proxy, token, ask } = await start(t, { identity: { forward_authorization: true } });
  const bearer = token();
  const headers = { Authorization: `DPoP ${bearer}`, DPoP: proofOf(bearer) };
  t.equal((await ask(headers)).status, 200);
  t.same(proxy.receiver.requests[0]?.field('dpop'), [headers.DPoP]);
  t.same(proxy.receiver.requests[0]?.field('authorization'), [headers.Authorization]);
});

t.test('a proof that cannot be remembered is a 503, and one that two send at once passes once', async (t) => {
  const memory = createMemoryStore(systemClock);
  const state = { floorS: null as number | null, isDown: false };
  const { token, ask, reasonOf } = await start(
    t,
    {},
    {
      ...memory,
      reserve: async (scope, command) =>
        state.isDown
          ? refuse({ kind: 'unreachable', reason: 'down', mayHaveRun: false })
          : memory.reserve(scope, command),
      issuedBeforeFloorS: () => state.floorS,
    },
  );
  const bearer = token();
  const Authorization = `DPoP ${bearer}`;
  const DPoP = proofOf(bearer);
  const both = await Promise.all([1, 2, 3, 4].map(async () => ask({ Authorization, DPoP })));
  t.same(both.map(({ status }) => status).sort(), [200, 401, 401, 401]);
  state.isDown = true;
  const down = await ask({ Authorization, DPoP: proofOf(bearer) });
  t.same([down.status, await reasonOf(down)], [503, 'store_unavailable']);
  t.equal(
    (await ask({ Authorization, DPoP: proofOf(bearer, { method: 'PUT' }) })).status,
    401,
    'a wrong one asks nobody',
  );
  state.isDown = false;
  state.floorS = Math.floor(Date.now() / 1_000) + 1;
  t.equal((await ask({ Authorization, DPoP: proofOf(bearer) })).status, 503, 'made before a fail-over');
  state.floorS = Math.floor(Date.now() / 1_000) - 4;
  t.equal(
    (await ask({ Authorization, DPoP: proofOf(bearer) })).status,
    503,
    'or, by a clock that is ahead, just before',
  );
  state.floorS -= 2;
  t.equal((await ask({ Authorization, DPoP: proofOf(bearer) })).status, 200);
});

t.test('over HTTP/2 as well', async (t) => {
  const { proxy, token } = await start(t);
  const bearer = token();
  const session = connectHttp2(`http://127.0.0.1:${proxy.port}`);
  t.teardown(() => session.destroy());
  const ask = async (headers: Record<string, string>): Promise<Record<string, unknown>> => {
    const stream = session.request({ ':path': '/orders', ...headers });
    const [answer] = (await once(stream, 'response')) as [Record<string, unknown>];
    stream.resume();
    return answer;
  };
  const proof = proofOf(bearer);
  t.equal((await ask({ authorization: `DPoP ${bearer}`, dpop: proof }))[':status'], 200);
  const refused = await ask({ authorization: `DPoP ${bearer}`, dpop: proof });
  t.equal(refused[':status'], 401);
  t.match(String(refused['www-authenticate']), /^Bearer realm="sallyport", DPoP realm="sallyport", algs=/);
});

t.test('in shadow mode it goes on, as nobody, and is written down', async (t) => {
  const { proxy, token, ask } = await start(t, { mode: 'shadow' });
  const response = await ask({ Authorization: `Bearer ${token()}` });
  t.equal(response.status, 200);
  const record = await proxy.recordOf(response.field('x-request-id') ?? '');
  t.same([record.decision, record.reason, record.subject], ['shadow', 'proof_missing', null]);
  t.same(proxy.receiver.requests[0]?.field('x-auth-subject'), []);
});

t.test('a token that is revoked is refused with its proof', async (t) => {
  const { token, ask, reasonOf } = await start(t, { revoked: { subjects: ['checkout'] } });
  const bearer = token();
  const response = await ask({ Authorization: `DPoP ${bearer}`, DPoP: proofOf(bearer) });
  t.same([response.status, await reasonOf(response)], [401, 'subject_revoked']);
});

t.test('a key and a certificate have both to be proved', async (t) => {
  const { token, ask, reasonOf } = await start(t);
  const bearer = token({ cnf: { jkt: own.thumbprint, 'x5t#S256': own.thumbprint } });
  const response = await ask({ Authorization: `DPoP ${bearer}`, DPoP: proofOf(bearer) });
  t.same([response.status, await reasonOf(response)], [401, 'certificate_missing']);
});
