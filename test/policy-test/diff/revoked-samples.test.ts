import t from 'tap';
import { comparePolicies } from '../../../src/policy-test/diff/policy-diff.js';
import { decideOnly } from '../../../src/policy-test/simulate/offline-config.js';
import { assumedSessions, createAssumedKeys } from '../../../src/policy-test/simulate/test-keys.js';
import type { ActiveConfig } from '../../../src/proxy/auth/active-config.js';
import { compiled } from '../../proxy/harness.js';
import type { ConfigTree } from '../../support/proxy-process.js';

const keys = createAssumedKeys();
const sessions = { core_url: 'http://127.0.0.1:3567', api_domain: 'https://api.example.com' };
const orders = {
  name: 'orders',
  methods: ['GET'],
  path: '/orders/{id}',
  subjects: [{ prefix: 'jobs/' }],
  permissions: ['read'],
};

function policy(overrides: ConfigTree): ActiveConfig {
  const config = compiled(overrides);
  return decideOnly(config, keys.sourceOf, assumedSessions(config, keys));
}

t.test('what is revoked under the names of samples hides nobody else', async (t) => {
  const revoked = {
    subjects: ['jobs/example', 'user'],
    token_ids: ['sallyport-diff'],
    key_ids: ['d-assumed'],
  };
  const user = { name: 'user', methods: ['GET'], path: '/user', accept: ['session'], session: { claims: {} } };
  const to = { revoked, sessions, routes: [orders, user] };
  const from = { revoked, sessions, routes: [{ ...orders, path: '/x' }] };
  const { operations } = await comparePolicies({ from: policy(from), to: policy(to), keys, nowMs: Date.now() });
  t.same(
    operations.flatMap(({ path, gains }) => (path === '/x' ? [] : [`${path}: ${gains.join(' ')}`])),
    ['/orders/{any}: jobs/examplex with read', '/user: any session'],
  );
});
