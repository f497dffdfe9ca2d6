import t from 'tap';
import { parse } from 'yaml';
import { comparePolicies } from '../../../src/policy-test/diff/policy-diff.js';
import { explanationData, explanationLines } from '../../../src/policy-test/explain/format.js';
import { decideOnly } from '../../../src/policy-test/simulate/offline-config.js';
import { assumedSessions, createAssumedKeys } from '../../../src/policy-test/simulate/test-keys.js';
import { draftSuite } from '../../../src/policy-test/suite/draft-suite.js';
import { runCase, type CaseResult } from '../../../src/policy-test/suite/run.js';
import { forms } from '../../../src/decision/decide/forms.js';
import { readSuite } from '../../../src/policy-test/suite/suite.js';
import type { ActiveConfig } from '../../../src/proxy/auth/active-config.js';
import { compiled } from '../../proxy/harness.js';
import type { ConfigTree } from '../../support/proxy-process.js';

const keys = createAssumedKeys();
const nowMs = Date.now();
const store = { redis: { url: 'redis://127.0.0.1' } };
const caller = { subjects: ['checkout'], permissions: [] };
const write = { name: 'w', methods: ['POST'], path: '/w', ...caller, idempotency: 'required' };
const key = 'headers: { Idempotency-Key: k }';
const writes = `request: { method: POST, path: /w, ${key} }, claims: { sub: checkout, jti: t }`;

function policy(overrides: ConfigTree): ActiveConfig {
  const config = compiled({ store, routes: [write], ...overrides });
  return decideOnly(config, keys.sourceOf, assumedSessions(config, keys));
}

/** Nothing serves callers: proxies alone ask. */
function asked(decide: object, overrides: ConfigTree = {}): ActiveConfig {
  return policy({ listen: { host: undefined, port: undefined }, upstream: undefined, decide, ...overrides });
}

const nginx = (...accept: readonly string[]): object => ({ port: 9_000, form: 'nginx', accept });
const envoy = (...accept: readonly string[]): object => ({ port: 9_001, form: 'envoy', accept });

async function run(activeConfig: ActiveConfig, text: string): Promise<CaseResult> {
  const { suite, problems } = readSuite(`config: c.yaml\ncases: [{ name: a, ${text} }]\n`, 'suite.yaml');
  const [policyCase] = suite?.cases ?? [];
  if (policyCase === undefined) throw new Error(JSON.stringify(problems));
  return runCase(policyCase, activeConfig, keys, nowMs);
}

async function mismatches(activeConfig: ActiveConfig, text: string): Promise<readonly string[]> {
  return (await run(activeConfig, text)).mismatches;
}

t.test('where proxies alone ask, nothing is reserved', async (t) => {
  const accepting = asked(nginx('unreserved'));
  t.same(await mismatches(accepting, `${writes}, expect: { status: 200, reservation: required }`), [
    'reservation: expected "required", got "none"',
  ]);
  t.same(await mismatches(accepting, `${writes}, expect: { status: 200, route: w, reservation: none }`), []);
  t.same(
    await mismatches(
      accepting,
      'request: { method: POST, path: /w }, claims: { sub: checkout }, expect: { reason: idempotency_key_missing }',
    ),
    [],
  );
  const { explained } = await run(accepting, `${writes}, expect: { status: 200 }`);
  const lines = explanationLines(explained).join('\n');
  t.match(lines, /nothing is reserved: decide only decides, so that the request may run more than once/);
  t.notMatch(lines, /would reserve|Idempotency-Record|otherwise/);
  t.match(explanationData(explained), { listener: 'decide', elsewhere: [], reservation: null });
});

t.test('what only the sidecar can see to is refused as the listener refuses it', async (t) => {
  const unsupported = 'expect: { status: 403, reason: decide_unsupported }';
  const once = { name: 'o', methods: ['GET'], path: '/o', ...caller, single_use: true };
  const live = { name: 'l', methods: ['GET'], path: '/l', ...caller, websocket: true };
  const calls = { name: 'g', grpc: ['shop.v1.Orders/List'], ...caller, idempotency: 'none' };
  const routes = [write, once, live, calls];
  const handshake =
    'headers: { Connection: Upgrade, Upgrade: websocket, Sec-WebSocket-Version: "13", Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ== }';
  const rows: readonly (readonly [accept: string, text: string])[] = [
    ['unreserved', writes],
    ['reused_tokens', 'request: { method: GET, path: /o }, claims: { sub: checkout, jti: t }'],
    ['connections', `request: { method: GET, path: /l, ${handshake} }, claims: { sub: checkout }`],
    ['connections', 'request: { grpc: shop.v1.Orders/List }, claims: { sub: checkout }'],
  ];
  for (const [accept, text] of rows) {
    t.same(await mismatches(asked(envoy(), { routes }), `${text}, ${unsupported}`), [], text);
    t.same(await mismatches(asked(envoy(accept), { routes }), `${text}, expect: { status: 200 }`), [], text);
  }
  const { explained } = await run(asked(nginx()), `${writes}, ${unsupported}`);
  const lines = explanationLines(explained).join('\n');
  t.match(lines, /reservation REFUSED 403 decide_unsupported/);
  t.match(lines, /accept of decide does not name that/);
});

t.test('a header that the proxy cannot be told to remove is refused', async (t) => {
  const routes = [{ name: 'r', methods: ['GET'], path: '/r', ...caller }];
  const request = 'request: { method: GET, path: /r, headers: { X_Auth_Subject: root } }, claims: { sub: checkout }';
  t.same(await mismatches(asked(envoy(), { routes }), `${request}, expect: { status: 200 }`), []);
  const { explained, mismatches: found } = await run(
    asked(nginx(), { routes }),
    `${request}, expect: { status: 400, reason: field_refused }`,
  );
  t.same(found, []);
  t.match(
    explanationLines(explained).join('\n'),
    /fields +REFUSED[^]*X_Auth_Subject: .* nginx cannot be told to remove it/,
  );
});

t.test('of the body, and of the connection, a listener is told nothing but by the gRPC of Envoy', async (t) => {
  const small = { name: 's', methods: ['POST'], path: '/s', ...caller, idempotency: 'none', max_body: '10B' };
  const get = { name: 'r', methods: ['GET'], path: '/r', ...caller };
  const rows: readonly (readonly [request: string, refused: number])[] = [
    ['{ method: POST, path: /s, body: 0123456789abcdef }', 413],
    ['{ method: POST, path: /s, headers: { Content-Length: one } }', 400],
    ['{ method: GET, path: /r, body: x }', 400],
    ['{ method: GET, path: /r, headers: { Transfer-Encoding: gzip } }', 400],
    ['{ method: GET, path: /r, headers: { Expect: nonsense } }', 417],
  ];
  for (const form of forms) {
    const activeConfig = asked({ port: 9_000, form }, { routes: [small, get] });
    for (const [request, refused] of rows) {
      const status = form === 'envoy' ? refused : 200;
      const text = `request: ${request}, claims: { sub: checkout }, expect: { status: ${String(status)} }`;
      t.same(await mismatches(activeConfig, text), [], `${form}: ${request}`);
    }
  }
});

t.test('of certificates a listener that is asked knows nothing', async (t) => {
  const name = 'CN=checkout';
  const request = `request: { method: POST, path: /w, ${key}, client_certificate: { name: "${name}" } }`;
  const text = `${request}, claims: { sub: checkout, cnf: { "x5t#S256": ${'A'.repeat(43)} } }`;
  const { explained } = await run(asked(nginx('unreserved')), `${text}, expect: { status: 401 }`);
  t.match(explained.ruling, { decision: 'denied', status: 401, reason: 'certificate_missing' });
  const lines = explanationLines(explained).join('\n');
  t.match(lines, /and decide is told nothing of certificates/);
  t.notMatch(lines, /its sender shows none|client_certificate:|--client-certificate/);
  t.equal(explanationData(explained).client_certificate, null);
});

t.test('what is expected has to hold at each listener, unless the case names one', async (t) => {
  const two = asked([nginx('unreserved'), envoy()]);
  t.same(await mismatches(two, `${writes}, expect: { status: 200 }`), ['decide[1]: status: expected 200, got 403']);
  t.same(await mismatches(two, `${writes}, expect: { status: 403 }`), ['decide[0]: status: expected 403, got 200']);
  t.same(await mismatches(two, `${writes}, listener: "decide[0]", expect: { status: 200, reservation: none }`), []);
  t.same(await mismatches(two, `${writes}, listener: "decide[1]", expect: { reason: decide_unsupported }`), []);
  t.same(await mismatches(two, `${writes}, listener: "decide[2]", expect: { status: 200 }`), [
    'listener: the config has no decide[2]; it has: decide[0], decide[1]',
  ]);
  t.same(await mismatches(policy({}), `${writes}, listener: decide, expect: { status: 200 }`), [
    'listener: the config has no decide; it has: none',
  ]);
  await t.rejects(mismatches(two, `${writes}, listener: listen, expect: { status: 200 }`), /decide, or one of several/);
  const { explained } = await run(two, `${writes}, expect: { status: 200 }`);
  t.equal(explained.ruling.decision, 'denied', 'who asks for a decision is told the worse');
  t.match(
    explanationLines(explained).join('\n'),
    /decide\[0\] would answer otherwise: allowed: route w; nothing is reserved/,
  );
});

t.test('beside the sidecar, a note says where a proxy that asks is answered otherwise', async (t) => {
  const both = policy({ decide: nginx() });
  const { explained, mismatches: found } = await run(both, `${writes}, expect: { status: 200, reservation: required }`);
  t.same(found, []);
  t.match(
    explanationLines(explained).join('\n'),
    /decide would answer otherwise: denied: 403 decide_unsupported \(route w\)\nallowed: route w$/,
  );
  t.match(explanationData(explained), {
    listener: null,
    elsewhere: [{ listener: 'decide', decision: 'denied', status: 403, reason: 'decide_unsupported' }],
  });
  t.same(await mismatches(both, `${writes}, listener: decide, expect: { reason: decide_unsupported }`), []);
});

t.test('an assertion is seen where the listener gives one', async (t) => {
  const identity = { assertion: { key_file: '/k', audience: 'orders', issuer: 'sallyport', header: 'X-Assertion' } };
  const seen = async (...accept: readonly string[]): Promise<string> => {
    const { explained } = await run(
      asked(envoy('unreserved', ...accept), { identity }),
      `${writes}, expect: { status: 200 }`,
    );
    return explanationLines(explained).join('\n');
  };
  t.notMatch(await seen(), /X-Assertion/);
  t.match(await seen('assertion'), /X-Assertion/);
});

t.test('drafted cases pass, one for each listener where they answer differently', async (t) => {
  for (const activeConfig of [asked(nginx()), asked([nginx('unreserved'), envoy()]), policy({ decide: nginx() })]) {
    const { text } = await draftSuite('c.yaml', activeConfig, keys, nowMs);
    const { suite } = readSuite(text, 'suite.yaml');
    t.ok((suite?.cases.length ?? 0) > 3, JSON.stringify(parse(text)));
    for (const policyCase of suite?.cases ?? []) {
      t.same((await runCase(policyCase, activeConfig, keys, nowMs)).mismatches, [], policyCase.name);
    }
  }
});

t.test('diff counts who is let through by one of the listeners', async (t) => {
  const gains = async (from: ActiveConfig, to: ActiveConfig): Promise<readonly string[]> => {
    const { operations } = await comparePolicies({ from, to, keys, nowMs });
    return operations.flatMap((operation) => operation.gains);
  };
  const checkout = ['checkout without permissions'];
  t.same(await gains(asked(nginx()), asked(nginx('unreserved'))), checkout);
  t.same(await gains(asked([nginx(), envoy()]), asked([nginx(), envoy('unreserved')])), checkout);
  t.same(await gains(asked([nginx('unreserved'), envoy()]), asked(nginx('unreserved'))), []);
});

t.test('shadow mode lets a token without an id go on where it would pass once, as with the sidecar', async (t) => {
  const routes = [{ name: 'o', methods: ['GET'], path: '/o', ...caller, single_use: true, mode: 'shadow' }];
  const text = 'request: { method: GET, path: /o }, claims: { sub: checkout }, expect: { status: 200 }';
  for (const activeConfig of [policy({ routes }), asked(nginx(), { routes })]) {
    const { explained } = await run(activeConfig, text);
    t.match(explained.ruling, { decision: 'shadow', status: 200, reason: 'token_id_missing', route: { name: 'o' } });
  }
});

t.test('in shadow mode a listener refuses nobody for what it cannot see to', async (t) => {
  const routes = [
    { ...write, mode: 'shadow' },
    { name: 'o', methods: ['GET'], path: '/o', ...caller, single_use: true, mode: 'shadow' },
    { name: 'l', methods: ['GET'], path: '/l', ...caller, websocket: true, mode: 'shadow' },
    { name: 'g', grpc: ['shop.v1.Orders/List'], ...caller, idempotency: 'none', mode: 'shadow' },
  ];
  const handshake =
    'headers: { Connection: Upgrade, Upgrade: websocket, Sec-WebSocket-Version: "13", Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ== }';
  const rows: readonly (readonly [request: string, accept: string])[] = [
    [`{ method: POST, path: /w, ${key} }`, 'unreserved'],
    ['{ method: GET, path: /o }', 'reused_tokens'],
    [`{ method: GET, path: /l, ${handshake} }`, 'connections'],
    ['{ grpc: shop.v1.Orders/List }', 'connections'],
  ];
  const good = 'claims: { sub: checkout, jti: t }';
  const bad = 'claims: { sub: nobody, jti: t }';
  const passes = 'expect: { status: 200 }';
  for (const [request, accepted] of rows) {
    const ruled = async (who: string, ...accept: readonly string[]): Promise<object> =>
      (await run(asked(envoy(...accept), { routes }), `request: ${request}, ${who}, ${passes}`)).explained.ruling;
    t.match(await ruled(good), { decision: 'shadow', status: 200, reason: 'decide_unsupported' }, request);
    t.match(await ruled(bad), { decision: 'shadow', status: 200, reason: 'subject_not_approved' }, request);
    t.match(await ruled(good, accepted), { decision: 'allowed', status: 200, reason: null }, request);
  }
});
