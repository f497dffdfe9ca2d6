import fc from 'fast-check';
import t from 'tap';
import type { Approval, ReservationRules, Route } from '../../../../src/decision/route/policy.js';
import { isLessRestrictive, keepsKeysApart } from '../../../../src/decision/route/conflicts/compare-access.js';
import { rememberedComparison } from '../../../../src/decision/route/conflicts/remembered-comparison.js';
import type { SessionPolicy } from '../../../../src/decision/session/claim-rules.js';
import { approval, route } from '../../samples.js';

const a = ['a'];
const ab = ['a', 'b'];

const role: SessionPolicy = { claims: [{ path: ['st-role', 'v'], value: 'support' }], forwardsTokens: false };
const any: SessionPolicy = { claims: [], forwardsTokens: false };
const sessionsAlone = { acceptsService: false, approvals: [] };
const keyed: ReservationRules = {
  key: 'required',
  singleUse: false,
  operation: 'o',
  retentionMs: 1,
  fields: [],
  storeHeaders: new Set(),
  releaseOn: new Set(),
  receiver: 'plain',
  maxBodyBytes: 1,
  maxStoredResponseBytes: 1,
};

const cases = [
  {
    name: 'the same',
    one: { approvals: [approval(a, ['p'])] },
    other: { approvals: [approval(a, ['p'])] },
    expected: false,
  },
  {
    name: 'another subject',
    one: { approvals: [approval(a, ['p'])] },
    other: { approvals: [approval(['b'], ['p'])] },
    expected: true,
  },
  {
    name: 'fewer subjects',
    one: { approvals: [approval(a, ['p'])] },
    other: { approvals: [approval(ab, ['p'])] },
    expected: false,
  },
  {
    name: 'more subjects',
    one: { approvals: [approval(ab, ['p'])] },
    other: { approvals: [approval(a, ['p'])] },
    expected: true,
  },
  {
    name: 'fewer permissions',
    one: { approvals: [approval(a, ['p'])] },
    other: { approvals: [approval(a, ['p', 'q'])] },
    expected: true,
  },
  {
    name: 'more permissions',
    one: { approvals: [approval(a, ['p', 'q'])] },
    other: { approvals: [approval(a, ['q'])] },
    expected: false,
  },
  {
    name: 'other permissions',
    one: { approvals: [approval(a, ['p'])] },
    other: { approvals: [approval(a, ['q'])] },
    expected: true,
  },
  {
    name: 'no permissions',
    one: { approvals: [approval(a, [])] },
    other: { approvals: [approval(a, ['q'])] },
    expected: true,
  },
  {
    name: 'covered by two pairs together',
    one: { approvals: [approval(ab, ['p', 'q'])] },
    other: { approvals: [approval(a, ['p']), approval(['b'], ['q'])] },
    expected: false,
  },
  {
    name: 'one pair more',
    one: { approvals: [approval(a, ['p']), approval(['b'], [])] },
    other: { approvals: [approval(a, ['p'])] },
    expected: true,
  },
  { name: 'public against protected', one: { access: 'public', approvals: [] }, other: {}, expected: true },
  { name: 'protected against public', one: {}, other: { access: 'public', approvals: [] }, expected: false },
  {
    name: 'both public',
    one: { access: 'public', approvals: [] },
    other: { access: 'public', approvals: [] },
    expected: false,
  },
  { name: 'every issuer against one', one: { issuers: null }, other: { issuers: new Set(['core']) }, expected: true },
  {
    name: 'every issuer against all of them',
    one: { issuers: null },
    other: { issuers: new Set(['core', 'old']) },
    expected: false,
  },
  { name: 'one issuer against every', one: { issuers: new Set(['core']) }, other: { issuers: null }, expected: false },
  { name: 'an issuer that is gone', one: { issuers: new Set(['gone']) }, other: { approvals: [] }, expected: false },
  { name: 'another issuer', one: { issuers: new Set(['core']) }, other: { issuers: new Set(['old']) }, expected: true },
  { name: 'sessions against none', one: { session: role }, other: {}, expected: true },
  { name: 'none against sessions', one: {}, other: { session: role }, expected: false },
  { name: 'the same sessions', one: { session: role }, other: { session: role }, expected: false },
  { name: 'any session against a role', one: { session: any }, other: { session: role }, expected: true },
  { name: 'a role against any session', one: { session: role }, other: { session: any }, expected: false },
  {
    name: 'sessions alone against services alone',
    one: { ...sessionsAlone, session: role },
    other: {},
    expected: true,
  },
  {
    name: 'services alone against sessions alone',
    one: {},
    other: { ...sessionsAlone, session: role },
    expected: true,
  },
  {
    name: 'sessions without a key that the other insists on',
    one: { session: role },
    other: { session: role, reservation: keyed },
    expected: true,
  },
  {
    name: 'an issuer that is gone, and sessions',
    one: { issuers: new Set(['gone']), session: any },
    other: { approvals: [], session: role },
    expected: true,
  },
  { name: 'shadow against enforced', one: { mode: 'shadow' }, other: {}, expected: true },
  { name: 'enforced against shadow', one: {}, other: { mode: 'shadow' }, expected: false },
  { name: 'shadow against shadow', one: { mode: 'shadow' }, other: { mode: 'shadow' }, expected: false },
  {
    name: 'approvals that no token can have',
    one: { acceptsService: false, approvals: [approval(ab, [])], session: role },
    other: { approvals: [], session: role },
    expected: false,
  },
  {
    name: 'approvals that tokens can have, against such',
    one: { approvals: [approval(a, [])], session: role },
    other: { acceptsService: false, approvals: [approval(a, [])], session: role },
    expected: true,
  },
  {
    name: 'nobody approved against sessions alone',
    one: { approvals: [] },
    other: { ...sessionsAlone, session: role },
    expected: false,
  },
  {
    name: 'nobody approved, of every issuer',
    one: { approvals: [] },
    other: { approvals: [], issuers: new Set(['core']) },
    expected: false,
  },
  { name: 'nobody approved, without a key', one: { approvals: [] }, other: { reservation: keyed }, expected: false },
  { name: 'without the key that the other insists on', one: {}, other: { reservation: keyed }, expected: true },
  { name: 'with it', one: { reservation: keyed }, other: { reservation: keyed }, expected: false },
  {
    name: 'with a key that may be left out',
    one: { reservation: { ...keyed, key: 'optional' } },
    other: { reservation: keyed },
    expected: true,
  },
  {
    name: 'against one that may be left out',
    one: {},
    other: { reservation: { ...keyed, key: 'optional' } },
    expected: false,
  },
  { name: 'with a key, against none', one: { reservation: keyed }, other: {}, expected: false },
  {
    name: 'used tokens, against single use',
    one: {},
    other: { reservation: { ...keyed, key: null, singleUse: true } },
    expected: true,
  },
  {
    name: 'used tokens with a key, against single use',
    one: { reservation: keyed },
    other: { reservation: { ...keyed, singleUse: true } },
    expected: true,
  },
  {
    name: 'single use without a key, against both',
    one: { reservation: { ...keyed, key: null, singleUse: true } },
    other: { reservation: { ...keyed, singleUse: true } },
    expected: true,
  },
  {
    name: 'single use, against the same',
    one: { reservation: { ...keyed, key: null, singleUse: true } },
    other: { reservation: { ...keyed, key: null, singleUse: true } },
    expected: false,
  },
] as const;

t.test('a certificate or an origin that the other route insists on', (t) => {
  const [one, both] = [new Set(['CN=a']), new Set(['CN=a', 'CN=b'])];
  const rows = [
    { name: 'no certificate, against one', one: null, other: one, expected: true },
    { name: 'a certificate, against none', one, other: null, expected: false },
    { name: 'the same', one, other: one, expected: false },
    { name: 'one more', one: both, other: one, expected: true },
    { name: 'one less', one, other: both, expected: false },
  ];
  for (const { name, one, other, expected } of rows) {
    const certificates = [route({ clientCertificates: one }), route({ clientCertificates: other })] as const;
    t.equal(isLessRestrictive(...certificates, ['core']), expected, name);
    const users = { ...sessionsAlone, session: any };
    const sessions = [
      route({ ...users, clientCertificates: one }),
      route({ ...users, clientCertificates: other }),
    ] as const;
    t.equal(isLessRestrictive(...sessions, []), expected, `${name}, of users`);
    const nobody = [
      route({ approvals: [], clientCertificates: one }),
      route({ approvals: [], clientCertificates: other }),
    ] as const;
    t.equal(isLessRestrictive(...nobody, ['core']), false, `${name}, of nobody`);
    for (const access of ['public', 'protected'] as const) {
      const pages = (allowsWebSocket: boolean): readonly [Route, Route] => [
        route({ access, allowsWebSocket, origins: one }),
        route({ access, allowsWebSocket: true, origins: other }),
      ];
      t.equal(isLessRestrictive(...pages(true), ['core']), expected, `${name}, of ${access} pages`);
      t.equal(isLessRestrictive(...pages(false), ['core']), false, `${name}, without WebSockets`);
    }
  }
  t.end();
});

t.test('where no origins are named, a session counts only on a page of the same host', (t) => {
  const origins = new Set(['https://partner.example']);
  const rows: { name: string; session?: null; than?: null; allowsWebSocket?: boolean; expected: boolean }[] = [
    { name: 'sessions on both', expected: true },
    { name: 'no sessions on the route', session: null, expected: false },
    { name: 'no sessions on the other', session: null, than: null, expected: false },
    { name: 'no WebSockets', allowsWebSocket: false, expected: false },
  ];
  for (const { name, session = any, than = any, allowsWebSocket = true, expected } of rows) {
    const pair = [
      route({ allowsWebSocket, session, origins }),
      route({ allowsWebSocket: true, session: than, origins: null }),
    ] as const;
    t.equal(isLessRestrictive(...pair, ['core']), expected, name);
  }
  const none = [
    route({ allowsWebSocket: true, session: any, origins: null }),
    route({ allowsWebSocket: true, session: any, origins: null }),
  ] as const;
  t.equal(isLessRestrictive(...none, ['core']), false, 'none on either');
  const noUsers = [
    route({ allowsWebSocket: true, session: any, access: 'public', approvals: [], origins }),
    route({ allowsWebSocket: true, access: 'public', approvals: [], origins: null }),
  ] as const;
  t.equal(isLessRestrictive(...noUsers, ['core']), false, 'a public route asks no user');
  t.end();
});

/**
 * For each field of a route a pair of values of which the first is less restrictive; or why it restricts nobody who may
 * use both routes.
 */
const fields: Readonly<Record<keyof Route, readonly [Partial<Route>, Partial<Route>] | string>> = {
  name: 'a name',
  methods: 'says which requests it is for',
  paths: 'says which requests it is for',
  isGrpc: 'the form of requests: whoever sends them may send that form to the other',
  access: [{ access: 'public', approvals: [] }, {}],
  mode: [{ mode: 'shadow' }, {}],
  acceptsService: [{ session: any }, { acceptsService: false, session: any }],
  session: [{ session: any }, { session: role }],
  approvals: [{ approvals: [approval(ab, [])] }, { approvals: [approval(a, [])] }],
  clientCertificates: [{ clientCertificates: null }, { clientCertificates: new Set(['CN=a']) }],
  issuers: [{ issuers: null }, { issuers: new Set(['old']) }],
  allowsWebSocket: 'the form of requests: a page that may open one is asked for its origin',
  origins: [
    { allowsWebSocket: true, origins: null },
    { allowsWebSocket: true, origins: new Set(['https://a.example']) },
  ],
  allowsBody: 'the form of requests',
  encodedSlashes: 'the form of requests; what it lets through is a fold of its own',
  pathParameters: 'the form of requests; what it lets through is a fold of its own',
  forwardsAuthorization: 'what the upstream is told of the caller',
  maxBodyBytes: 'how large requests are',
  responseTimeoutMs: 'how long the upstream may take',
  reservation: [{ reservation: null }, { reservation: keyed }],
  unreservedBecause: 'words',
  limits: 'how often: who passes by the one may pass by the other, and is counted at both',
};

t.test('each field of a route is compared, or restricts nobody', (t) => {
  t.same(Object.keys(fields).sort(), Object.keys(route()).sort(), 'no field is forgotten');
  for (const [name, pair] of Object.entries(fields)) {
    if (typeof pair === 'string') continue;
    const [lax, strict] = pair;
    t.equal(isLessRestrictive(route(lax), route(strict), ['core', 'old']), true, name);
    t.equal(isLessRestrictive(route(strict), route(lax), ['core', 'old']), false, `${name}, the other way`);
    const remembered = rememberedComparison(['core', 'old']);
    t.equal(remembered(route(lax), route(strict)), true, `${name}, where comparisons are kept`);
    t.equal(remembered(route(lax), route(strict)), true, `${name}, again`);
    t.equal(remembered(route(lax), route({ ...lax, name: 'other' })), false, `${name}, the same`);
  }
  t.end();
});

t.test('a key is another one at a route with an operation of its own', (t) => {
  const other = { ...keyed, operation: 'other' };
  const rows = [
    { name: 'two operations', one: keyed, other, expected: true },
    { name: 'one operation', one: keyed, other: keyed, expected: false },
    { name: 'no reservation at one', one: null, other, expected: false },
    { name: 'nor at the other', one: keyed, other: null, expected: false },
    { name: 'no keys at one', one: { ...keyed, key: null }, other, expected: false },
    { name: 'nor at the other, but used tokens', one: keyed, other: { ...other, key: null }, expected: false },
  ] as const;
  for (const { name, one, other, expected } of rows) {
    t.equal(keepsKeysApart(route({ reservation: one }), route({ reservation: other })), expected, name);
  }
  t.end();
});

t.test('a route is less restrictive when somebody gets through it whom the other refuses', (t) => {
  for (const { name, one, other, expected } of cases) {
    t.equal(isLessRestrictive(route(one), route(other), ['core', 'old']), expected, name);
  }
  t.end();
});

const names = fc.subarray(['a', 'b', 'x/1', 'x/y/1']);
const beginnings = fc.subarray(['x/', 'x/y/', 'z/']);
const held = fc.subarray(['p', 'q', 'r']);
const approvals = fc.array(
  fc
    .tuple(names, held, beginnings)
    .map(([subjects, permissions, prefixes]) => approval(subjects, permissions, prefixes)),
  { maxLength: 3 },
);

function admits(all: readonly Approval[], subject: string, permissions: readonly string[]): boolean {
  return all.some(
    (one) =>
      (one.subjects.has(subject) || one.prefixes.some((prefix) => subject.startsWith(prefix))) &&
      one.permissions.every((permission) => permissions.includes(permission)),
  );
}

t.test('the answer is that of trying every caller', (t) => {
  const sets = [[], ['p'], ['q'], ['r'], ['p', 'q'], ['p', 'r'], ['q', 'r'], ['p', 'q', 'r']];
  const everybody = ['a', 'b', 'x/1', 'x/2', 'x/y/1', 'x/y/2', 'z/1'];
  const callers = everybody.flatMap((subject) => sets.map((held) => ({ subject, held })));
  fc.assert(
    fc.property(approvals, approvals, (one, other) => {
      const expected = callers.some(({ subject, held }) => admits(one, subject, held) && !admits(other, subject, held));
      return isLessRestrictive(route({ approvals: one }), route({ approvals: other }), ['core']) === expected;
    }),
    { numRuns: 1_000 },
  );
  t.end();
});
