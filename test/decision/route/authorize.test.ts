import t from 'tap';
import { acceptedKinds, acceptsIssuer, authorize } from '../../../src/decision/route/authorize.js';
import type { Denial } from '../../../src/decision/denial.js';
import type { Approval } from '../../../src/decision/route/policy.js';
import type { SessionPolicy } from '../../../src/decision/session/claim-rules.js';
import { approval, principal, route } from '../samples.js';

const many = Array.from({ length: 20 }, (_, i) => `p${String(i)}`);

interface Case {
  readonly name: string;
  readonly approvals: readonly Approval[];
  readonly subject?: string;
  readonly permissions?: readonly string[];
  readonly expected: Denial | null;
}

const notApproved: Denial = { reason: 'subject_not_approved' };

const pairs = [approval(['checkout'], ['orders:write']), approval(['migration'], ['orders:import'])];

const cases: readonly Case[] = [
  { name: 'subject and permission', approvals: [approval(['checkout'], ['orders:read'])], expected: null },
  {
    name: 'one of several subjects',
    approvals: [approval(['reporting', 'checkout'], ['orders:read'])],
    expected: null,
  },
  { name: 'no permission asked for', approvals: [approval(['checkout'], [])], permissions: [], expected: null },
  { name: 'another subject', approvals: [approval(['checkout'], [])], subject: 'billing', expected: notApproved },
  {
    name: 'a subject that begins alike',
    approvals: [approval(['checkout'], [])],
    subject: 'checkout2',
    expected: notApproved,
  },
  { name: 'another case', approvals: [approval(['checkout'], [])], subject: 'Checkout', expected: notApproved },
  { name: 'patterns mean nothing', approvals: [approval(['*', 'check*', '.*'], [])], expected: notApproved },
  { name: 'a dot is a dot', approvals: [approval(['a.b'], [])], subject: 'axb', expected: notApproved },
  { name: 'nobody approved', approvals: [], expected: notApproved },
  {
    name: 'a beginning',
    approvals: [approval([], ['orders:read'], ['billing/', 'orders/'])],
    subject: 'orders/checkout',
    expected: null,
  },
  {
    name: 'a beginning, and a permission that is missing',
    approvals: [approval([], ['x'], ['orders/'])],
    subject: 'orders/checkout',
    expected: { reason: 'permission_missing', missing: ['x'] },
  },
  {
    name: 'a subject beside a beginning',
    approvals: [approval(['checkout'], [], ['orders/'])],
    expected: null,
  },
  {
    name: 'what has it further on',
    approvals: [approval([], [], ['orders/'])],
    subject: 'my-orders/checkout',
    expected: notApproved,
  },
  {
    name: 'a beginning in another case',
    approvals: [approval([], [], ['orders/'])],
    subject: 'Orders/checkout',
    expected: notApproved,
  },
  {
    name: 'less than the beginning',
    approvals: [approval([], [], ['orders/'])],
    subject: 'orders',
    expected: notApproved,
  },
  {
    name: 'subject first, then permissions',
    approvals: [approval(['checkout'], ['x'])],
    subject: 'billing',
    permissions: [],
    expected: notApproved,
  },
  {
    name: 'all permissions are needed',
    approvals: [approval(['checkout'], ['orders:read', 'orders:import', 'orders:delete'])],
    expected: { reason: 'permission_missing', missing: ['orders:import', 'orders:delete'] },
  },
  {
    name: 'a permission that begins alike',
    approvals: [approval(['checkout'], ['orders:rea', 'orders:read:all', 'Orders:read'])],
    expected: { reason: 'permission_missing', missing: ['orders:rea', 'orders:read:all', 'Orders:read'] },
  },
  {
    name: 'a star in the token grants nothing',
    approvals: [approval(['checkout'], ['orders:read'])],
    permissions: ['*', 'orders:*'],
    expected: { reason: 'permission_missing', missing: ['orders:read'] },
  },
  {
    name: 'of many that are held',
    approvals: [approval(['checkout'], ['orders:read', 'p19'])],
    permissions: [...many, 'orders:read'],
    expected: null,
  },
  {
    name: 'beside many that are held',
    approvals: [approval(['checkout'], ['orders:read', 'p19', 'p1'])],
    permissions: many,
    expected: { reason: 'permission_missing', missing: ['orders:read'] },
  },
  { name: 'any_of: the first pair', approvals: pairs, permissions: ['orders:write'], expected: null },
  {
    name: 'any_of: the second pair',
    approvals: pairs,
    subject: 'migration',
    permissions: ['orders:import'],
    expected: null,
  },
  {
    name: 'any_of: the subject of one, the permission of the other',
    approvals: pairs,
    permissions: ['orders:import'],
    expected: { reason: 'permission_missing', missing: ['orders:write'] },
  },
  {
    name: 'any_of: neither subject',
    approvals: pairs,
    subject: 'billing',
    permissions: ['orders:write', 'orders:import'],
    expected: notApproved,
  },
  {
    name: 'any_of: a subject twice, the second pair holds',
    approvals: [approval(['checkout'], ['a', 'b']), approval(['checkout'], ['c'])],
    permissions: ['c'],
    expected: null,
  },
  {
    name: 'any_of: the pair that comes nearest is named',
    approvals: [approval(['checkout'], ['a', 'b']), approval(['checkout'], ['c'])],
    permissions: [],
    expected: { reason: 'permission_missing', missing: ['c'] },
  },
  {
    name: 'any_of: the first where several are as near',
    approvals: [approval(['checkout'], ['c']), approval(['checkout'], ['d'])],
    permissions: [],
    expected: { reason: 'permission_missing', missing: ['c'] },
  },
  {
    name: '__proto__ as subject and permission',
    approvals: [approval(['__proto__'], ['constructor'])],
    subject: '__proto__',
    permissions: ['constructor'],
    expected: null,
  },
  {
    name: 'constructor is nobody',
    approvals: [approval(['checkout'], [])],
    subject: 'constructor',
    expected: notApproved,
  },
  {
    name: 'toString is no permission',
    approvals: [approval(['checkout'], ['toString', '__proto__'])],
    permissions: [],
    expected: { reason: 'permission_missing', missing: ['toString', '__proto__'] },
  },
];

t.test('subject and permissions, or any_of', (t) => {
  for (const { name, approvals, expected, ...caller } of cases) {
    t.same(authorize(route({ approvals }), principal(caller)), expected, name);
  }
  t.end();
});

t.test('a public route approves nobody: it is not asked', (t) => {
  t.same(authorize(route({ access: 'public', approvals: [] }), principal()), notApproved);
  t.end();
});

t.test('a route may name the issuers whose tokens count', (t) => {
  t.equal(acceptsIssuer(route(), principal()), true, 'all by default');
  t.equal(acceptsIssuer(route({ issuers: new Set(['core', 'other']) }), principal()), true);
  t.equal(acceptsIssuer(route({ issuers: new Set(['other']) }), principal()), false);
  t.equal(
    acceptsIssuer(route({ issuers: new Set(['https://api.example.com']) }), principal()),
    false,
    'by its name, not by its iss',
  );
  t.equal(acceptsIssuer(route({ issuers: new Set() }), principal()), false);
  t.end();
});

t.test('a session is held to the policy for sessions and to nothing else', (t) => {
  const claims = { 'st-role': { v: ['support'] }, tId: 'public' };
  const role: SessionPolicy = {
    claims: [
      { path: ['st-role', 'v'], value: 'support' },
      { path: ['st-role', 'v'], value: 'admin' },
    ],
    forwardsTokens: false,
  };
  const user = principal({
    kind: 'session',
    issuerName: 'sessions',
    subject: 'checkout',
    session: { claims, renewed: null },
  });
  t.same(
    authorize(route({ session: null }), user),
    { reason: 'credential_kind_refused' },
    'a subject of the same name is somebody else',
  );
  t.equal(authorize(route({ session: { claims: [], forwardsTokens: false }, approvals: [] }), user), null);
  t.equal(authorize(route({ session: { ...role, claims: role.claims.slice(0, 1) } }), user), null);
  t.same(authorize(route({ session: role }), user), {
    reason: 'session_claim_missing',
    missing: ['st-role.v'],
    session: { message: 'invalid claim', claims: ['st-role'] },
  });
  t.same(
    authorize(route({ session: { claims: [], forwardsTokens: false }, approvals: [] }), principal()),
    notApproved,
    'a service is none of its users',
  );
  t.equal(acceptsIssuer(route({ issuers: new Set(['old']) }), user), true, 'issuers are those of service tokens');
  t.end();
});

t.test('which credentials count: those of the route, and without a route those of any', (t) => {
  const session: SessionPolicy = { claims: [], forwardsTokens: false };
  const rows = [
    { name: 'no route', on: null, takesSessions: false, expected: { service: true, session: false } },
    { name: 'no route, sessions', on: null, takesSessions: true, expected: { service: true, session: true } },
    { name: 'a route', on: route(), takesSessions: true, expected: { service: true, session: false } },
    {
      name: 'a route of sessions',
      on: route({ acceptsService: false, session }),
      takesSessions: true,
      expected: { service: false, session: true },
    },
  ];
  for (const { name, on, takesSessions, expected } of rows) t.same(acceptedKinds(on, takesSessions), expected, name);
  t.end();
});
