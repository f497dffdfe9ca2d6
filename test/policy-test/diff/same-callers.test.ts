import t from 'tap';
import { decideOnly } from '../../../src/policy-test/simulate/offline-config.js';
import { createAssumedKeys, assumedSessions } from '../../../src/policy-test/simulate/test-keys.js';
import { comparePolicies, type PolicyDiff } from '../../../src/policy-test/diff/policy-diff.js';
import type { ActiveConfig } from '../../../src/proxy/auth/active-config.js';
import { compiled, configText } from '../../config/inspection.js';

const keys = createAssumedKeys();
const nowMs = Date.now();
const orders = { name: 'orders', methods: ['GET'], path: '/orders', subjects: ['checkout'], permissions: ['read'] };

function policy(sections: Readonly<Record<string, string | null>>): ActiveConfig {
  const config = compiled(configText(sections));
  return decideOnly(config, keys.sourceOf, assumedSessions(config, keys));
}

/** `GET /orders: + who gains - who loses` */
function effects({ operations }: PolicyDiff): readonly string[] {
  return operations.map(({ method, path, gains, loses }) =>
    [`${method} ${path}:`, ...gains.map((who) => `+ ${who}`), ...loses.map((who) => `- ${who}`)].join(' '),
  );
}

t.test('routes whose callers are the same, and of which something else decides', async (t) => {
  const entry = { subjects: ['checkout'], permissions: [] };
  const granted = { ...entry, subjects: ['checkout', 'mallory'] };
  const none = { mode: 'none', because: 'a test' };
  const place = { name: 'place', methods: ['POST'], path: '/a-orders', idempotency: 'required' };
  const list = { name: 'list', methods: ['POST'], path: '/b-orders', idempotency: none };
  // Node's parser does not know the one.
  const brew = { name: 'brew', methods: ['BREW'], path: '/a' };
  const read = { name: 'read', methods: ['GET'], path: '/b' };
  const onlyDecides = (...routes: readonly object[]): ActiveConfig =>
    policy({
      listen: null,
      upstream: null,
      decide: '{ port: 9000, form: nginx }',
      store: '{ memory: {} }',
      routes: JSON.stringify(routes),
    });
  for (const [one, other] of [
    [place, list],
    [list, place],
  ] as const) {
    const from = onlyDecides({ ...one, ...entry }, { ...other, ...entry });
    const to = onlyDecides({ ...one, ...granted }, { ...other, ...granted });
    const diff = await comparePolicies({ from, to, keys, nowMs });
    t.same(effects(diff), ['POST /b-orders: + mallory without permissions'], 'a proxy that asks has nothing reserved');
  }
  for (const [one, other] of [
    [brew, read],
    [read, brew],
  ] as const) {
    const from = policy({ routes: JSON.stringify([one, other].map((each) => ({ ...each, ...entry }))) });
    const to = policy({ routes: JSON.stringify([one, other].map((each) => ({ ...each, ...granted }))) });
    t.same(effects(await comparePolicies({ from, to, keys, nowMs })), ['GET /b: + mallory without permissions']);
  }
});

t.test('what Sallyport answers itself says nothing of other calls', async (t) => {
  const who = { subjects: ['checkout'], permissions: [], idempotency: 'optional' };
  const health = { name: 'health', grpc: 'grpc.health.v1.Health/Check', ...who };
  const calls = { name: 'calls', grpc: 'zoo.v1.Zoo/List', ...who };
  const from = policy({ store: '{ memory: {} }', routes: JSON.stringify([orders, health, calls]) });
  const to = policy({
    store: '{ memory: {} }',
    listen: '{ host: 127.0.0.1, port: 8080, http2: true, grpc_health: answer }',
    routes: JSON.stringify([orders]),
  });
  t.same(effects(await comparePolicies({ from, to, keys, nowMs })), [
    'POST /grpc.health.v1.Health/Check: + anybody, without a credential',
    'POST /zoo.v1.Zoo/List: - checkout without permissions',
  ]);
});
