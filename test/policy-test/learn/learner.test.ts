/** What is learnt from which lines, as rows; and what is not, whoever would like it to be. */
import t from 'tap';
import { doubtWords } from '../../../src/policy-test/learn/evidence.js';
import { unclearWords } from '../../../src/policy-test/learn/generalize.js';
import { defaultCaps, defaultTerms } from '../../../src/policy-test/learn/terms.js';
import { configOf, learnFrom, lineOf, often, type LineMembers } from './log-lines.js';

const uuid = (at: number): string => `0b9c2f0e-1111-4222-a333-${String(at).padStart(12, '0')}`;
const spread = (path: (at: number) => string, members: LineMembers = {}, count = 20): readonly string[] =>
  Array.from({ length: count }, (_, at) => lineOf(path(at), members, at % 4));
const by = (subject: string, permissions: readonly string[] = ['orders:read']): LineMembers => ({
  subject,
  permissions,
});
const words =
  'red blue tall wide soft warm cold dark pale flat long thin calm bold gold grey pink jade rose lime teal ruby'.split(
    ' ',
  );

const learnt: readonly {
  readonly name: string;
  readonly lines: readonly string[];
  readonly routes: readonly string[];
}[] = [
  { name: 'a path', lines: often('/orders'), routes: ['GET /orders checkout [orders:read]'] },
  { name: 'the root', lines: often('/'), routes: ['GET / checkout [orders:read]'] },
  {
    name: 'a trailing slash is another path',
    lines: often('/orders/'),
    routes: ['GET /orders/ checkout [orders:read]'],
  },
  { name: 'numbers', lines: often('/orders/#'), routes: ['GET /orders/{id} checkout [orders:read]'] },
  { name: 'UUIDs', lines: spread((at) => `/o/${uuid(at)}`), routes: ['GET /o/{id} checkout [orders:read]'] },
  {
    name: 'hexadecimal',
    lines: spread((at) => `/o/${String(at)}abcdef0123`),
    routes: ['GET /o/{id} checkout [orders:read]'],
  },
  {
    name: 'keys with a prefix',
    lines: spread((at) => `/o/ORD-${String(100 + at * 3)}`),
    routes: ['GET /o/{id} checkout [orders:read]'],
  },
  {
    name: 'base64',
    lines: spread((at) => `/o/aGVsbG8${String(at)}gd29ybGQ5`),
    routes: ['GET /o/{id} checkout [orders:read]'],
  },
  {
    name: 'dates',
    lines: spread((at) => `/o/2026-01-${String(10 + at)}`),
    routes: ['GET /o/{id} checkout [orders:read]'],
  },
  {
    name: 'addresses of mail',
    lines: spread((at) => `/o/a${String(at)}@b.c`),
    routes: ['GET /o/{id} checkout [orders:read]'],
  },
  {
    name: 'values of several shapes are one parameter',
    lines: [...often('/o/#'), ...spread((at) => `/o/${uuid(at)}`)],
    routes: ['GET /o/{id} checkout [orders:read]'],
  },
  {
    name: 'two parameters',
    lines: spread((at) => `/o/${String(100 + at * 3)}/i/${String(at * 5 + 7)}`),
    routes: ['GET /o/{id}/i/{id2} checkout [orders:read]'],
  },
  {
    name: 'a number that never changes is a name',
    lines: often('/api/2/orders'),
    routes: ['GET /api/2/orders checkout [orders:read]'],
  },
  { name: 'a version is a name', lines: often('/v1/orders/#'), routes: ['GET /v1/orders/{id} checkout [orders:read]'] },
  {
    name: 'a word beside values stays of its own',
    lines: [...often('/orders/#'), ...often('/orders/export', by('reporting', ['orders:export']))],
    routes: ['GET /orders/export reporting [orders:export]', 'GET /orders/{id} checkout [orders:read]'],
  },
  {
    name: 'methods are apart',
    lines: [...often('/orders/#'), ...often('/orders/#', { method: 'DELETE', permissions: ['orders:delete'] })],
    routes: ['DELETE /orders/{id} checkout [orders:delete]', 'GET /orders/{id} checkout [orders:read]'],
  },
  {
    name: 'what all callers hold is asked for',
    lines: [...often('/orders', by('a', ['x', 'y'])), ...often('/orders', by('b', ['y', 'z']))],
    routes: ['GET /orders a, b [y]'],
  },
  {
    name: 'what every token of a caller had is asked for',
    lines: [...often('/orders', by('a', ['x', 'y'])), ...often('/orders', by('a', ['y', 'z']))],
    routes: ['GET /orders a [y]'],
  },
  {
    name: 'callers that have nothing in common are apart',
    lines: [
      ...often('/orders', by('a', ['x'])),
      ...often('/orders', by('b', ['z'])),
      ...often('/orders', by('c', ['x'])),
    ],
    routes: ['GET /orders a, c [x] or b [z]'],
  },
  {
    name: 'who holds nothing does not take from the others what they need',
    lines: [...often('/orders', by('a', ['x'])), ...often('/orders', by('b', []))],
    routes: ['GET /orders a [x] or b []'],
  },
  {
    name: 'many words of several callers are values',
    lines: ['a', 'b'].flatMap((subject) => words.flatMap((word) => often(`/tags/${word}`, by(subject), 4))),
    routes: ['GET /tags/{id} a, b [orders:read]'],
  },
  {
    name: 'one of them that others use is another operation',
    lines: [
      ...['a', 'b'].flatMap((subject) => words.flatMap((word) => often(`/tags/${word}`, by(subject), 4))),
      ...often('/tags/export', by('c', ['tags:export']), 40),
    ],
    routes: ['GET /tags/export c [tags:export]', 'GET /tags/{id} a, b [orders:read]'],
  },
  {
    name: 'one that only one of its callers uses, and often, is another operation',
    lines: [
      ...['a', 'b'].flatMap((subject) => words.flatMap((word) => often(`/tags/${word}`, by(subject), 4))),
      ...often('/tags/export', by('a', ['orders:read']), 80),
    ],
    routes: ['GET /tags/export a [orders:read]', 'GET /tags/{id} a, b [orders:read]'],
  },
  {
    name: 'a few numbers, near each other, over and over',
    lines: [...spread((at) => `/shops/${String(1 + ((at * 7) % 12))}`, {}, 80), lineOf('/shops/900')],
    routes: ['GET /shops/{id} checkout [orders:read]'],
  },
  {
    name: 'a few words are names',
    lines: ['open', 'closed'].flatMap((word) => often(`/tags/${word}`)),
    routes: ['GET /tags/closed checkout [orders:read]', 'GET /tags/open checkout [orders:read]'],
  },
  {
    name: 'a word beside values that was seen rarely is kept apart from who may use them',
    lines: [...often('/orders/#'), ...often('/orders/#', by('support')), lineOf('/orders/purge', by('support'))],
    routes: ['GET /orders/{id} checkout, support [orders:read]', 'GET /orders/purge support [orders:read]'],
  },
];

for (const { name, lines, routes } of learnt) {
  t.test(`learnt: ${name}`, (t) => {
    t.same(learnFrom(lines).routes, routes);
    t.same(learnFrom(lines.toReversed()).routes, routes, 'whatever the order of the lines');
    t.end();
  });
}

/** The numbers from 500 on, in this order, asked for by one caller. */
const walkOf = (order: readonly number[]): readonly string[] =>
  order.map((at, count) => lineOf(`/customers/${String(500 + at)}`, by('mallory'), count % 5));
const upTo = (count: number): readonly number[] => Array.from({ length: count }, (_, at) => at);
const walk = Array.from({ length: 60 }, (_, at) => lineOf(`/customers/${String(500 + at)}`, by('mallory'), at % 5));

const notLearnt: readonly { readonly name: string; readonly lines: readonly string[]; readonly why?: string }[] = [
  { name: 'too few requests', lines: often('/orders', {}, 9), why: `GET /orders checkout: ${doubtWords.too_few}` },
  {
    name: 'requests of one day',
    lines: often('/orders', {}, 50, 1),
    why: `GET /orders checkout: ${doubtWords.too_few_days}`,
  },
  { name: 'what the upstream does not have', lines: often('/orders', { status: 404 }) },
  {
    name: 'what the upstream refuses',
    lines: [...often('/orders', { status: 403 }, 15), ...often('/orders')].toSorted(),
    why: '',
  },
  {
    name: 'mostly refused by the upstream',
    lines: [...often('/orders'), ...often('/orders', { status: 403 }, 30)],
    why: `GET /orders checkout: ${doubtWords.mostly_missing}`,
  },
  { name: 'one subject that walks ids', lines: walk, why: `GET /customers/{id} mallory: ${doubtWords.walked}` },
  {
    name: 'and for a few steps only',
    lines: walk.slice(0, 12),
    why: `GET /customers/{id} mallory: ${doubtWords.walked}`,
  },
  {
    name: 'and walks them backwards',
    lines: walk.toReversed(),
    why: `GET /customers/{id} mallory: ${doubtWords.walked}`,
  },
  ...(
    [
      ['several at a time', upTo(60).map((at) => at ^ 1)],
      ['again and again', Array.from({ length: 5 }, () => upTo(60).map((at) => at ^ 1)).flat()],
      ['every third number', upTo(60).map((at) => at * 3)],
      ['through two proxies, of which each has a log', upTo(60).toSorted((one, other) => (one % 2) - (other % 2))],
    ] as const
  ).map(([name, order]) => ({
    name: `and walks them: ${name}`,
    lines: walkOf(order),
    why: `GET /customers/{id} mallory: ${doubtWords.walked}`,
  })),
  {
    name: 'requests of one night, about midnight',
    lines: often('/orders', {}, 50, 2).map((line, at) =>
      line.replace(/T00:00:00\.000Z/, at % 2 === 0 ? 'T23:59:00.000Z' : 'T00:01:00.000Z'),
    ),
    why: `GET /orders checkout: ${doubtWords.too_few_days}`,
  },
  { name: 'a caller of an issuer that the config does not have', lines: often('/orders', { issuer: 'other' }) },
  { name: 'no route, and its name', lines: often('/orders', { route: 'egress:orders' }) },
  { name: 'no name of a route that refused', lines: often('/orders', { reason: 'subject_not_approved' }) },
  { name: 'a path with a query', lines: often('/orders?x=1') },
  {
    name: 'two values of a segment',
    lines: [...often(`/o/${uuid(1)}`), ...often(`/o/${uuid(2)}`)],
    why: `GET /o/{id} checkout: ${unclearWords.few_values}`,
  },
  {
    name: 'a value and a verb in one segment',
    lines: often('/orders/#:cancel'),
    why: `GET /orders/{id} checkout: ${unclearWords.odd_value}`,
  },
  {
    name: 'a caller nobody verified',
    lines: often('/orders', {
      kind: null,
      issuer: null,
      subject: null,
      permissions: null,
      reason: 'signature_invalid',
    }),
  },
  { name: 'a subject without an issuer', lines: often('/orders', { issuer: null }) },
  { name: 'a session of a user', lines: often('/orders', { kind: 'session' }) },
  { name: 'what was refused', lines: often('/orders', { decision: 'denied', reason: 'token_revoked' }) },
  { name: 'what failed', lines: often('/orders', { decision: 'failed', reason: 'upstream_unreachable' }) },
  { name: 'another reason than the policy', lines: often('/orders', { reason: 'token_replayed' }) },
  { name: 'a reason that is none', lines: often('/orders', { reason: 'because' }) },
  {
    name: 'permissions that nobody knows',
    lines: often('/orders', { permissions: null }),
    why: `GET /orders checkout: ${doubtWords.permissions_unknown}`,
  },
  { name: 'a subject of another form', lines: often('/orders', by('a b')) },
  { name: 'dot segments', lines: often('/orders/../admin') },
  { name: 'escaped dot segments', lines: often('/orders/%2e%2e/admin') },
  { name: 'two slashes', lines: often('//orders') },
  { name: 'an escaped slash', lines: often('/a%2Fb') },
  { name: 'path parameters', lines: often('/a;b=c') },
  { name: 'a path without its secret', lines: often('/reset/[redacted]') },
  { name: 'another host', lines: often('other.example/orders') },
  { name: 'a method in lower case', lines: often('/orders', { method: 'get' }) },
  { name: 'TRACE', lines: often('/orders', { method: 'TRACE' }) },
  { name: 'a time that is none', lines: often('/orders', { time: '2026-99-99T00:00:00.000Z' }) },
  { name: 'a member twice', lines: often('/orders').map((line) => line.replace('{', '{"level":"info",')) },
  { name: 'a line that goes on', lines: often('/orders').map((line) => `${line} and more`) },
  { name: 'a line within another', lines: often('/orders').map((line) => `GET ${line}`) },
  {
    name: 'a line in the text of another program',
    lines: often('/orders').map((line) => JSON.stringify({ level: 'info', msg: line })),
  },
  { name: 'a line that is cut off', lines: often('/orders').map((line) => line.slice(0, -1)) },
  { name: 'no lines', lines: [] },
];

for (const { name, lines, why } of notLearnt) {
  t.test(`not learnt: ${name}`, (t) => {
    const { routes, leftOut } = learnFrom(lines);
    if (why === '') t.same(routes, ['GET /orders checkout [orders:read]'], 'what also worked, and mostly, is');
    else t.same(routes, []);
    if (why !== undefined && why !== '') t.same(leftOut, [why]);
    t.end();
  });
}

t.test('a verified caller that walks, tries or is rare adds nothing to what others do', (t) => {
  const honest = [...often('/customers/#', by('support')), ...often('/orders')];
  const { routes } = learnFrom([
    ...honest,
    ...walk,
    ...often('/orders', by('mallory'), 3),
    ...words.flatMap((word) => often(`/orders/${word}`, { ...by('mallory'), status: 404 })),
    ...often('/customers/7', by('mallory')),
  ]);
  t.same(routes, learnFrom(honest).routes);
  t.end();
});

t.test('callers of two issuers on one operation: a route cannot keep their subjects apart', (t) => {
  const issuer = { audience: 'orders', source: 'microservice', token_type: 'service' };
  const config = configOf({
    issuers: { core: { ...issuer, issuer: 'https://a.example' }, other: { ...issuer, issuer: 'https://b.example' } },
  });
  const { proposal, leftOut } = learnFrom(
    [...often('/orders', {}, 30), ...often('/orders', { issuer: 'other', subject: 'x' })],
    config,
  );
  t.match(proposal.routes, [{ issuer: 'core', approvals: [{ subjects: ['checkout'] }] }]);
  t.match(leftOut, [/^GET \/orders x: another issuer calls it more/]);
  t.end();
});

t.test('routes of the config: who is not approved is proposed, and nobody that lacks what is asked for', (t) => {
  const config = configOf({
    routes: [
      {
        name: 'read',
        methods: ['GET'],
        path: '/orders/{id}',
        any_of: [
          { subjects: ['z'], permissions: [] },
          { subjects: ['y'], permissions: ['orders:read'] },
        ],
      },
    ],
  });
  const on = (members: LineMembers): LineMembers => ({ route: 'read', reason: 'subject_not_approved', ...members });
  const { proposal, findings, leftOut } = learnFrom(
    [
      ...often('/orders/#', on(by('good'))),
      ...often('/orders/7', on(by('narrow'))),
      ...often(
        '/orders/#',
        on({ subject: 'lacks', reason: 'permission_missing', missing_permissions: ['orders:read'] }),
      ),
      ...often('/orders/#', on({ route: 'gone' })),
      ...often('/orders/#', { decision: 'forwarded', route: 'read', reason: null }),
      ...often('/orders/#'),
    ],
    config,
  );
  t.match(proposal, {
    routes: [],
    subjects: [{ route: 'read', approval: 1, seen: { subject: 'good', count: 20, days: 4 } }],
  });
  t.same(leftOut, [`GET /orders/{id} narrow: ${doubtWords.too_few_values}`]);
  t.equal(findings.inForce, 20);
  t.same(
    [...findings.others],
    [
      ['route read, lacks: permission_missing (orders:read)', 20],
      ['the config has no route gone any more', 20],
      ['route read of the config takes it now', 20],
    ],
  );
  t.end();
});

t.test('memory is bounded, what is cut is counted, and who crowds leaves room for others', (t) => {
  const caps = {
    ...defaultCaps,
    places: 200,
    placesOfCaller: 50,
    words: 30,
    pairs: 100,
    callers: 5,
    permissionSets: 5,
  };
  const flood = Array.from({ length: 400 }, (_, at) => lineOf(`/flood${String(at)}/x`, by('mallory')));
  const { routes, findings } = learnFrom([...flood, ...often('/orders')], configOf(), defaultTerms, caps);
  t.ok(findings.cut.placesOfCaller > 300, 'places of one caller');
  t.same(routes, ['GET /orders checkout [orders:read]']);
  const crowd = Array.from({ length: 40 }, (_, at) => lineOf('/orders', by(`c${String(at)}`, [`p${String(at)}`])));
  const { cut } = learnFrom(crowd, configOf(), defaultTerms, caps).findings;
  t.equal(cut.callers, 35);
  const sets = Array.from({ length: 40 }, (_, at) => lineOf('/orders', by('a', [`p${String(at)}`])));
  t.equal(learnFrom(sets, configOf(), defaultTerms, caps).findings.cut.permissionSets, 35);
  t.end();
});
