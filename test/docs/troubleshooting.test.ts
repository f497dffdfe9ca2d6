import t from 'tap';
import { responses, type Reason } from '../../src/decision/denial.js';
import { explain, get } from '../cli/commands/run-explain.js';
import { readProjectFile } from '../support/source-files.js';
import { codeSpans } from './pages.js';

const page = readProjectFile('docs/troubleshooting.md');

function isReason(text: string): text is Reason {
  return text in responses;
}

/** The reasons of the table below a heading: the first cell of each row names some. */
function reasonsBelow(heading: string): readonly Reason[] {
  const [, text = ''] = page.split(`\n## ${heading}\n`);
  const [section = ''] = text.split('\n## ');
  const named = [...section.matchAll(/^\| (`[^|]*`) \|/gm)]
    .flatMap(([, cell = '']) => codeSpans(cell))
    .filter((name) => name !== 'reason');
  return named.filter((name): name is Reason => {
    t.ok(isReason(name), `${heading}: ${name} is a reason`);
    return isReason(name);
  });
}

const sections: readonly (readonly [string, (status: number) => boolean])[] = [
  ['401', (status) => status === 401],
  ['403', (status) => status === 403],
  ['400', (status) => status === 400],
  ['502, 503 and 504', (status) => status >= 502 && status <= 504],
];

t.test('docs/troubleshooting.md names reasons where their status is', (t) => {
  for (const [heading, holds] of sections) {
    const reasons = reasonsBelow(heading);
    t.ok(reasons.length > 3, heading);
    for (const reason of reasons) t.ok(holds(responses[reason].status), `${heading}: ${reason}`);
  }
  t.end();
});

t.test('it has what callers of any profile and of opaque tokens come upon first', (t) => {
  for (const reason of ['token_inactive', 'claim_mismatch', 'token_type_mismatch', 'token_malformed'] as const) {
    t.ok(reasonsBelow('401').includes(reason), reason);
  }
  for (const reason of ['introspection_unavailable', 'introspection_limited', 'keys_unavailable'] as const) {
    t.ok(reasonsBelow('502, 503 and 504').includes(reason), reason);
  }
  t.end();
});

t.test('what it says of permissions and subjects of other profiles is so', async (t) => {
  const issuers = {
    cluster: { profile: 'kubernetes', issuer: 'https://cluster.example.com', audience: 'orders' },
    spire: {
      profile: 'spiffe',
      trust_domain: 'shop.example',
      audience: 'spiffe://shop.example/orders',
      bundle_file: '/bundle',
    },
    idp: { profile: 'oauth', issuer: 'https://idp.example.com', audience: 'orders' },
  };
  const outcome = async (issuer: keyof typeof issuers, subject: string, route: object): Promise<string | undefined> => {
    const routes = [{ name: 'list', methods: ['GET'], path: '/orders', ...route }];
    const words = [...get('/orders'), '--issuer', issuer, '--subject', subject];
    const io = await explain(t, words, { config: { routes, issuers } });
    t.equal(io.err(), '');
    return io.out().trimEnd().split('\n').at(-1);
  };
  const [allowed, stranger] = ['allowed: route list', 'denied: 403 subject_not_approved (route list)'];
  const poor = 'denied: 403 permission_missing (route list)';
  const api = 'spiffe://shop.example/ns/orders/api';
  for (const [issuer, subject, subjects, permissions, expected] of [
    ['cluster', 'shop/api', ['shop/api'], ['orders:read'], poor],
    ['cluster', 'shop/api', ['shop/api'], [], allowed],
    ['cluster', 'shop/api', ['api'], [], stranger],
    ['spire', api, [api], ['orders:read'], poor],
    ['spire', api, [api], [], allowed],
    ['spire', api, ['api'], [], stranger],
    ['spire', api, [{ prefix: 'spiffe://shop.example/ns/orders/' }], [], allowed],
    ['idp', 'checkout', ['checkout'], ['orders:read'], poor],
    ['idp', 'checkout', ['checkout'], [], allowed],
  ] as const) {
    t.equal(await outcome(issuer, subject, { subjects, permissions }), expected, `${issuer}: ${subject}`);
  }
});
