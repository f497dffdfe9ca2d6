/** A config may leave keys behind that earlier writes were reserved under. */
import t from 'tap';
import { diffLines } from '../../../src/policy-test/diff/format.js';
import { comparePolicies, isWider, type PolicyDiff } from '../../../src/policy-test/diff/policy-diff.js';
import { decideOnly } from '../../../src/policy-test/simulate/offline-config.js';
import { assumedSessions, createAssumedKeys } from '../../../src/policy-test/simulate/test-keys.js';
import type { ActiveConfig } from '../../../src/proxy/auth/active-config.js';
import { compiled } from '../../proxy/harness.js';
import type { ConfigTree } from '../../support/proxy-process.js';

const keys = createAssumedKeys();

function policy(tree: ConfigTree): ActiveConfig {
  const config = compiled(tree);
  return decideOnly(config, keys.sourceOf, assumedSessions(config, keys));
}

async function compare(from: ConfigTree, to: ConfigTree): Promise<PolicyDiff> {
  return comparePolicies({ from: policy(from), to: policy(to), keys, nowMs: Date.now() });
}

const store = { memory: {} };
const sessions = { core_url: 'http://127.0.0.1:3567', api_domain: 'https://api.example.com' };
const core = { issuer: 'https://api.example.com', audience: 'orders', source: 'microservice', token_type: 'service' };
const byServices = {
  name: 'write',
  methods: ['POST'],
  path: '/orders',
  subjects: ['checkout'],
  permissions: ['write'],
  idempotency: 'required',
};

t.test('callers whose idempotency keys count no more', async (t) => {
  const eu = { ...core, issuer: 'https://eu.example.com', audience: 'stock' };
  const byUsers = {
    name: 'write',
    methods: ['POST'],
    path: '/orders',
    accept: ['session'],
    session: { claims: {} },
    idempotency: 'required',
  };
  // Without the issuer that comes first otherwise.
  const one = { store, sessions, issuers: { core: undefined, de: core, eu }, routes: [byUsers] };
  const two = { store, sessions, issuers: { core: undefined, eu, de: core }, routes: [byUsers] };
  const diff = await compare(one, two);
  t.same(diff.settings, [{ setting: 'idempotency keys of users', from: 'known', to: 'none', widens: true }]);
  t.ok(isWider(diff));
  t.ok(diffLines(diff).includes('! idempotency keys of users: known -> none'));

  const issuers = (audience: string): ConfigTree => ({
    store,
    issuers: { core: { ...core, audience } },
    routes: [byServices],
  });
  t.match((await compare(issuers('orders'), issuers('stock'))).settings, [
    { setting: 'issuers.core.audience' },
    { setting: 'idempotency keys of callers of issuers.core', widens: true },
  ]);
  t.same((await compare(one, one)).settings, []);
});
