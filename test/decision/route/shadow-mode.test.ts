import t from 'tap';
import { lackedPermissions } from '../../../src/decision/route/authorize.js';
import { responseOf, denial, reasons } from '../../../src/decision/denial.js';
import { createFoldedTable } from '../../../src/decision/route/conflicts/folded-table.js';
import { passesInShadow, shadowPass, unjudged, unmatchedRoute } from '../../../src/decision/route/shadow-mode.js';
import { approval, principal, route } from '../samples.js';

t.test('what would be a 401 or 403 passes, and nothing else', (t) => {
  for (const reason of reasons) {
    t.equal(passesInShadow(denial(reason)), [401, 403].includes(responseOf(reason).status), reason);
  }
  t.end();
});

t.test('unjudged it goes on as nobody, with its Authorization and without a reservation', (t) => {
  const before = route({ maxBodyBytes: 7, responseTimeoutMs: 8, mode: 'shadow' });
  t.same(unjudged(before), {
    ...before,
    access: 'public',
    acceptsService: false,
    approvals: [],
    forwardsAuthorization: true,
    reservation: null,
  });
  t.end();
});

t.test('permissions that are missing, by the approval that comes nearest', (t) => {
  const pairs = [
    approval(['checkout'], ['a', 'b']),
    approval(['checkout'], ['a', 'c', 'd']),
    approval(['other'], ['e']),
  ];
  const cases = [
    { name: 'none', subject: 'checkout', permissions: ['a', 'b'], expected: [] },
    { name: 'one', subject: 'checkout', permissions: ['a'], expected: ['b'] },
    { name: 'the nearer one', subject: 'checkout', permissions: ['c', 'd'], expected: ['a'] },
    { name: 'only its own approvals count', subject: 'checkout', permissions: ['e'], expected: ['a', 'b'] },
    { name: 'any, where none names the subject', subject: 'stranger', permissions: [], expected: ['e'] },
  ];
  for (const { name, expected, ...caller } of cases) {
    t.same(lackedPermissions(route({ approvals: pairs }), principal(caller)), expected, name);
  }
  t.same(lackedPermissions(route({ approvals: [] }), principal()), []);
  t.end();
});

t.test('what is written down comes from a verified token', (t) => {
  const caller = principal({ permissions: [] });
  const guarded = route({ approvals: [approval(['checkout'], ['orders:read'])] });
  t.same(shadowPass(denial('permission_missing'), caller, guarded), {
    denial: denial('permission_missing'),
    principal: caller,
    missing: ['orders:read'],
  });
  t.same(shadowPass(denial('route_unknown'), caller, null), {
    denial: denial('route_unknown'),
    principal: caller,
    missing: null,
  });
  t.same(shadowPass(denial('signature_invalid'), null, guarded), {
    denial: denial('signature_invalid'),
    principal: null,
    missing: null,
  });
  t.end();
});

t.test('without a route: what the upstream may take for an enforced route does not pass', (t) => {
  const literal = (text: string) => ({ kind: 'literal', text }) as const;
  const at = (name: string, segments: ReturnType<typeof literal>[], over = {}) =>
    route({ name, paths: [{ text: `/${name}`, segments }], ...over });
  const routes = [
    at('admin', [literal('admin')]),
    at('probe', [literal('probe')], { methods: new Set(['HEAD']) }),
    at('tried', [literal('tried')], { mode: 'shadow' }),
    at('open', [literal('open')], { access: 'public' }),
  ];
  const standIn = route({ name: 'none' });
  const passes = (lax: boolean, method: string, ...segments: string[]): boolean => {
    const unmatched = {
      route: standIn,
      readings: createFoldedTable(routes, { case: lax, slash: lax, dots: false, suffix: false, pathInfo: lax }),
      ranForOptions: lax ? ['GET'] : [],
    };
    return (
      unmatchedRoute(unmatched, method, {
        segments,
        literalSegments: null,
        encodedSlash: false,
        pathParameters: false,
      }) === standIn
    );
  };
  const cases = [
    { method: 'GET', segments: ['elsewhere'], lax: true, strict: true },
    { method: 'GET', segments: ['Admin'], lax: false, strict: true },
    { method: 'GET', segments: ['adm\u0130n'], lax: false, strict: true },
    { method: 'GET', segments: ['adm\u0131n'], lax: false, strict: true },
    { method: 'GET', segments: ['admin', ''], lax: false, strict: true },
    { method: 'HEAD', segments: ['admin'], lax: false, strict: false },
    { method: 'HEAD', segments: ['ADMIN'], lax: false, strict: true },
    { method: 'HEAD', segments: ['probe'], lax: false, strict: false },
    { method: 'GET', segments: ['probe'], lax: true, strict: true },
    { method: 'POST', segments: ['admin'], lax: true, strict: true },
    { method: 'GET', segments: ['Tried'], lax: true, strict: true },
    { method: 'GET', segments: ['Open'], lax: true, strict: true },
    { method: 'GET', segments: ['index.php', 'admin'], lax: false, strict: true },
    { method: 'HEAD', segments: ['index.php', 'Admin', ''], lax: false, strict: true },
    { method: 'GET', segments: ['index.php', 'open'], lax: true, strict: true },
    { method: 'GET', segments: ['index.php', ''], lax: true, strict: true },
    { method: 'GET', segments: ['index.html', 'admin'], lax: true, strict: true },
    { method: 'OPTIONS', segments: ['admin'], lax: false, strict: true },
    { method: 'OPTIONS', segments: ['index.php', 'admin'], lax: false, strict: true },
    { method: 'OPTIONS', segments: ['probe'], lax: true, strict: true },
    { method: 'OPTIONS', segments: ['open'], lax: true, strict: true },
  ];
  for (const { method, segments, lax, strict } of cases) {
    t.same(
      [passes(true, method, ...segments), passes(false, method, ...segments)],
      [lax, strict],
      `${method} ${segments.join('/')}`,
    );
  }
  t.end();
});
