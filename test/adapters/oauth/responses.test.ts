import t from 'tap';
import type { Question } from '../../support/introspection-server.js';
import { sayJson } from '../../support/introspection-server.js';
import { rsaKey } from '../../support/keys.js';
import { signToken } from '../../support/tokens.js';
import { clientId, startIntrospector, type IntrospectorHarness } from './introspector-harness.js';

type Answer = (res: Parameters<typeof sayJson>[0], question: Question) => unknown;

/** Answers over a real socket, and the words for the operator. */
const lies: readonly { readonly name: string; readonly answer: Answer; readonly why: RegExp | string }[] = [
  { name: 'a truth value as text', answer: (res) => sayJson(res, { active: 'true' }), why: /does not say in `active`/ },
  { name: 'a number', answer: (res) => sayJson(res, { active: 1 }), why: /does not say in `active`/ },
  { name: 'null', answer: (res) => sayJson(res, { active: null }), why: /does not say in `active`/ },
  { name: 'nothing of active', answer: (res) => sayJson(res, {}), why: /does not say in `active`/ },
  { name: 'both', answer: (res) => sayJson(res, '{"active":false,"active":true}'), why: /names a member twice/ },
  { name: 'a list', answer: (res) => sayJson(res, [{ active: true }]), why: /no JSON object/ },
  { name: 'half an answer', answer: (res) => sayJson(res, '{"active":true'), why: /no JSON object/ },
  { name: 'nothing', answer: (res) => sayJson(res, ''), why: /no JSON object/ },
  { name: 'a deep one', answer: (res) => sayJson(res, `{"active":${'['.repeat(5_000)}`), why: /no JSON object/ },
  {
    name: 'a page of HTML',
    answer: (res) => sayJson(res, '<html>sign in</html>', 'text/html; charset=utf-8'),
    why: 'the response is text/html, and no application/json',
  },
  { name: 'no type', answer: (res) => res.writeHead(200).end('{"active":true}'), why: /of no known type/ },
  { name: 'an odd type', answer: (res) => sayJson(res, { active: true }, 'a b<script>'), why: /of no known type/ },
  {
    name: 'a JWT that was not asked for',
    answer: (res) => sayJson(res, 'e30.e30.e30', 'application/token-introspection+jwt'),
    why: /and no application\/json/,
  },
  {
    name: 'a redirect',
    answer: (res, { path }) => res.writeHead(301, { location: `${path}/elsewhere` }).end(),
    why: /is a redirect \(status 301\), which is not followed/,
  },
  {
    name: 'a redirect with the method kept',
    answer: (res) => res.writeHead(307, { location: '/x' }).end(),
    why: /redirect/,
  },
  { name: 'status 204', answer: (res) => res.writeHead(204).end(), why: 'the response has status 204' },
  { name: 'status 429', answer: (res) => res.writeHead(429).end(), why: 'the response has status 429' },
  {
    name: 'a compressed one',
    answer: (res) => res.writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' }).end('x'),
    why: /compressed/,
  },
  {
    name: 'a large one',
    answer: (res) => sayJson(res, { active: true, x: 'x'.repeat(70_000) }),
    why: /larger than 65536/,
  },
  {
    name: 'an endless one',
    answer: (res) => {
      res.writeHead(200, { 'content-type': 'application/json' });
      const timer = setInterval(() => res.write('{"a":'.repeat(1_000)), 1);
      res.on('close', () => clearInterval(timer));
    },
    why: /larger than 65536/,
  },
  {
    name: 'a slow one',
    answer: (res) => {
      res.writeHead(200, { 'content-type': 'application/json' });
      res.write('{"active":');
    },
    why: 'no complete response within 500 ms',
  },
  {
    name: 'a large header',
    answer: (res) => res.writeHead(200, { 'x-large': 'x'.repeat(20_000) }).end(),
    why: /header of the response is too large/,
  },
  { name: 'a broken connection', answer: (res) => res.destroy(), why: /the connection broke/ },
];

t.test('a response that is none is 503 for who waits, and said to operators without what it holds', async (t) => {
  for (const { name, answer, why } of lies) {
    const { ask, server, lines } = await startIntrospector(t, { settings: { timeoutMs: 500 } });
    server.behave((question, res) => answer(res, question));
    t.equal(await ask('token'), 'unavailable', name);
    t.match(lines, [{ error: why }], name);
    t.equal(server.questions.length, 1, name);
    server.behave(null);
    t.equal(await ask('token'), 'inactive', `${name}: nothing of it is remembered`);
  }
});

const key = rsaKey('d-1');
const otherKey = rsaKey('d-2');

interface Signed {
  readonly header?: object;
  readonly claims?: object;
  readonly by?: typeof key.privateKey;
}

/** An answer as RFC 9701 §5 has it. */
function signed({ time, active }: IntrospectorHarness, { header, claims, by = key.privateKey }: Signed): string {
  const iat = Math.floor(time.clock.now() / 1_000);
  return signToken(
    JSON.stringify({ typ: 'token-introspection+jwt', alg: 'RS256', kid: 'd-1', ...header }),
    JSON.stringify({
      iss: 'https://api.example.com',
      aud: clientId,
      iat,
      token_introspection: active(),
      ...claims,
    }),
    by,
  );
}

/** Of the harness, whose clock stands at 1,000 s. */
const skewS = 5;

const jwtRows: readonly (Signed & { readonly name: string; readonly why?: RegExp })[] = [
  { name: 'as it should be' },
  { name: 'the whole type', header: { typ: 'application/Token-Introspection+JWT' } },
  { name: 'a list of clients', claims: { aud: ['other', clientId] } },
  { name: 'an access token', header: { typ: 'at+jwt' }, why: /token_malformed/ },
  { name: 'no type', header: { typ: undefined }, why: /token_malformed/ },
  { name: 'crit', header: { crit: ['x'] }, why: /token_malformed/ },
  { name: 'a key of its own', header: { jwk: otherKey.jwk }, why: /token_malformed/ },
  { name: 'compressed', header: { zip: 'DEF' }, why: /token_malformed/ },
  { name: 'a member that says nothing', header: { x5t: 'x' } },
  { name: 'no algorithm', header: { alg: 'none' }, why: /algorithm_refused/ },
  { name: 'a shared secret', header: { alg: 'HS256' }, why: /algorithm_refused/ },
  { name: 'a key that does not count', header: { kid: 's-1' }, why: /key_id_refused/ },
  { name: 'an unknown key', header: { kid: 'd-9' }, why: /not among the issuer’s/ },
  { name: 'signed by another', by: otherKey.privateKey, why: /does not hold/ },
  { name: 'another issuer', claims: { iss: 'https://evil.example.com' }, why: /another issuer/ },
  { name: 'for another client', claims: { aud: 'other' }, why: /another client/ },
  { name: 'for nobody', claims: { aud: undefined }, why: /another client/ },
  { name: 'kept since yesterday', claims: { iat: 900 }, why: /not made when it was asked for/ },
  { name: 'made tomorrow', claims: { iat: 2_000 }, why: /not made when it was asked for/ },
  { name: 'made at no time', claims: { iat: undefined }, why: /not made when it was asked for/ },
  { name: 'made in the second before', claims: { iat: 999 - skewS }, why: /not made when it was asked for/ },
  { name: 'made in this second, by a clock behind ours', claims: { iat: 1_000 - skewS } },
  { name: 'with a time until it counts', claims: { exp: 1_001, nbf: 1_000 } },
  { name: 'which counts no more', claims: { exp: 1_000 - skewS }, why: /does not count now/ },
  { name: 'which counts until some text', claims: { exp: 'soon' }, why: /does not count now/ },
  { name: 'which does not count yet', claims: { nbf: 1_001 + skewS }, why: /does not count now/ },
  { name: 'which counts from no time', claims: { nbf: null }, why: /does not count now/ },
  { name: 'for us and what is no client', claims: { aud: [clientId, 5] }, why: /another client/ },
  {
    name: 'with its claims outside',
    claims: { token_introspection: undefined, active: true },
    why: /no token_introspection/,
  },
  { name: 'active as text', claims: { token_introspection: { active: 'true' } }, why: /does not say in `active`/ },
];

t.test('a response that is a JWT counts by its signature, for us and for now', async (t) => {
  for (const { name, why, ...how } of jwtRows) {
    const harness = await startIntrospector(t, {
      settings: { answer: 'jwt' },
      keys: {
        find: (keyId) =>
          keyId === 'd-1'
            ? { kind: 'found', key: { keyId, algorithm: 'RS256', key: key.publicKey } }
            : { kind: 'unknown' },
      },
    });
    const { ask, server, lines } = harness;
    server.behave((_question, res) => sayJson(res, signed(harness, how), 'application/token-introspection+jwt'));
    t.equal(await ask('token'), why === undefined ? 'active' : 'unavailable', name);
    t.match(lines, why === undefined ? [] : [{ error: why }], name);
    t.equal(server.questions[0]?.headers.accept, 'application/token-introspection+jwt');
  }
});

t.test('where a JWT is asked for, JSON is none', async (t) => {
  const { ask, server, lines, active } = await startIntrospector(t, { settings: { answer: 'jwt' } });
  server.behave((_question, res) => sayJson(res, active()));
  t.equal(await ask('token'), 'unavailable');
  t.match(lines, [{ error: 'the response is application/json, and no application/token-introspection+jwt' }]);
});
