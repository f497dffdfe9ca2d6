import t from 'tap';
import { decideOnly } from '../../src/policy-test/simulate/offline-config.js';
import { responses } from '../../src/decision/denial.js';
import type { JsonObject } from '../../src/lib/strict-json.js';
import { createAssumedKeys } from '../../src/policy-test/simulate/test-keys.js';
import { stepNames } from '../../src/policy-test/explain/steps.js';
import { explain } from '../../src/policy-test/explain/explanation.js';
import { headOf, type PolicyRequest, rule } from '../../src/policy-test/simulate/decide.js';
import { compiled } from '../proxy/harness.js';
import { blockThatBegins } from './fenced-blocks.js';
import { tableOf } from './pages.js';

const page = 'docs/http.md';
const keys = createAssumedKeys();

t.test('docs/http.md has each type of refusal with its statuses', (t) => {
  const statuses = new Map<string, Set<number>>();
  const entries = Object.entries(responses)
    .filter(([reason]) => reason !== 'caller_gone')
    .map(([, answer]) => answer);
  for (const { type, status } of entries) {
    const name = type === null ? 'about:blank' : `urn:sallyport:${type}`;
    statuses.set(name, (statuses.get(name) ?? new Set()).add(status));
  }
  const written = tableOf(page, 'types').map(([type = '', status = '']) => [
    type.replaceAll('`', ''),
    status.match(/\d{3}/g)?.map(Number),
  ]);
  const expected = [...statuses].map(([type, set]) => [type, [...set].sort((a, b) => a - b)]);
  t.same([...written].sort(), [...expected].sort());
  const waits = new Set(entries.flatMap((answer) => ('retryAfterS' in answer ? [`urn:sallyport:${answer.type}`] : [])));
  for (const [type = '', status = ''] of tableOf(page, 'types')) {
    if (waits.has(type.replaceAll('`', ''))) t.match(status, /Retry-After/, type);
  }
  t.end();
});

t.test('the order of the checks is the one in which a request that is wrong in everything is mended', async (t) => {
  const table = tableOf(page, 'order').map(([step = '', , status = '']) => ({
    step: step.replaceAll('`', ''),
    statuses: status.split(', ').map(Number),
  }));
  t.same(
    table.map(({ step }) => step),
    stepNames,
  );
  const activeConfig = decideOnly(
    compiled({
      store: { memory: {} },
      revoked: { token_ids: ['stolen'] },
      routes: [
        {
          name: 'write',
          methods: ['POST'],
          path: '/a',
          subjects: ['checkout'],
          permissions: ['write'],
          max_body: '1B',
          idempotency: 'required',
        },
      ],
    }),
    keys.sourceOf,
    null,
  );
  const nowS = Math.floor(Date.now() / 1_000);
  const claims = {
    iss: 'https://api.example.com',
    aud: 'orders',
    source: 'microservice',
    token_type: 'service',
    exp: nowS + 60,
    permissions: [],
  };
  const bearer = (more: JsonObject): readonly [string, string] => [
    'Authorization',
    `Bearer ${keys.token('d-1', { ...claims, ...more })}`,
  ];
  const tooLong: readonly [string, string] = ['Content-Length', '99'];
  /** Each has one thing less that is wrong than the one before. */
  const requests: readonly {
    readonly step: string;
    readonly method?: string;
    readonly path?: string;
    readonly headers: PolicyRequest['headers'];
  }[] = [
    { step: 'request', method: 'TRACE', path: '//', headers: [['Expect', 'x'], tooLong] },
    { step: 'target', path: '//', headers: [['Expect', 'x'], tooLong] },
    { step: 'fields', path: '/b', headers: [['Expect', 'x'], tooLong] },
    { step: 'credential', path: '/b', headers: [tooLong] },
    { step: 'token', path: '/b', headers: [bearer({ aud: 'x', sub: 'eve', jti: 'stolen' }), tooLong] },
    { step: 'revocation', path: '/b', headers: [bearer({ sub: 'eve', jti: 'stolen' }), tooLong] },
    { step: 'route', path: '/b', headers: [bearer({ sub: 'eve' }), tooLong] },
    { step: 'policy', headers: [bearer({ sub: 'eve' }), tooLong] },
    { step: 'body', headers: [bearer({ sub: 'checkout', permissions: ['write'] }), tooLong] },
    { step: 'reservation', headers: [bearer({ sub: 'checkout', permissions: ['write'] })] },
  ];
  for (const { step, method = 'POST', path = '/a', headers } of requests) {
    const head = headOf({ method, path, headers, body: null });
    const explained = {
      head,
      activeConfig,
      nowMs: Date.now(),
      ruling: await rule(head, 0, activeConfig, Date.now()),
      credentialNotes: [],
    };
    t.equal(
      explain(explained).steps.find(({ outcome }) => outcome === 'refused')?.step,
      step,
      `${step}: ${explained.ruling.reason ?? 'let through'}`,
    );
    t.ok(
      table.find((row) => row.step === step)?.statuses.includes(explained.ruling.status),
      `${step}: ${String(explained.ruling.status)}`,
    );
  }
});

t.test('the refusal that it shows is one', (t) => {
  const { type, title, status } = responses.body_too_large;
  t.same(JSON.parse(blockThatBegins(page, '{ "type"').text), { type: `urn:sallyport:${type}`, title, status });
  t.end();
});
