import t from 'tap';
import { decideOnly } from '../../../src/policy-test/simulate/offline-config.js';
import { createAssumedKeys } from '../../../src/policy-test/simulate/test-keys.js';
import { draftSuite } from '../../../src/policy-test/suite/draft-suite.js';
import { readSuite } from '../../../src/policy-test/suite/suite.js';
import { compiled } from '../../proxy/harness.js';

const keys = createAssumedKeys();

async function namesFor(issuer: object, subjects: readonly unknown[]): Promise<readonly string[]> {
  const routes = [{ name: 'r', methods: ['GET'], path: '/r', subjects, permissions: [] }];
  const core = { source: undefined, token_type: undefined, ...issuer };
  const activeConfig = decideOnly(compiled({ issuers: { core }, routes }), keys.sourceOf, null);
  const { text } = await draftSuite('c.yaml', activeConfig, keys, Date.now());
  const cases = readSuite(text, 'suite.yaml').suite?.cases ?? [];
  return cases.map(({ name, credential, expect }) => {
    const subject = 'claims' in credential ? credential.claims['sub'] : '';
    return [name, ...(typeof subject === 'string' ? [subject] : []), String(expect.status)].join(' ').trim();
  });
}

t.test('somebody whom nobody approved is none whom a beginning names, or there is nobody', async (t) => {
  const spiffe = {
    profile: 'spiffe',
    issuer: undefined,
    jwks_url: undefined,
    trust_domain: 'a.example',
    bundle_file: '/b',
  };
  const of = (names: readonly string[]): string | undefined =>
    names.find((name) => name.startsWith('r: somebody else'));
  t.equal(of(await namesFor(spiffe, [{ prefix: 'spiffe://a.example/' }])), undefined);
  t.equal(
    of(await namesFor(spiffe, ['spiffe://a.example/somebody-else', { prefix: 'spiffe://a.example/ns/' }])),
    'r: somebody else spiffe://a.example/somebody-2-else 403',
  );
  const kubernetes = { profile: 'kubernetes', jwks_url: undefined, discovery: true };
  t.match(of(await namesFor(kubernetes, [{ prefix: 'somebody/' }])), /somebody-2:else/);
});
