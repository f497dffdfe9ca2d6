import t from 'tap';
import { compiled, configText, problemsOf, withRoutes } from '../inspection.js';

const who = 'subjects: [s], permissions: [p]';
const route = (name: string, rest: string): string => `name: ${name}, methods: [GET], path: /${name}, ${rest}`;

t.test('mode of the file and of routes', (t) => {
  const modes = (file: string | null, ...routes: string[]): unknown => {
    const { routes: read, unmatched } = compiled(withRoutes(routes, file === null ? {} : { mode: file }));
    return { routes: read.map(({ mode }) => mode), unmatched: unmatched === null ? null : unmatched.route.name };
  };
  const routes = [
    route('a', who),
    route('b', `mode: shadow, ${who}`),
    route('c', `mode: enforce, ${who}`),
    route('d', 'access: public'),
  ];
  t.same(modes(null, ...routes), { routes: ['enforce', 'shadow', 'enforce', 'enforce'], unmatched: null });
  t.same(modes('enforce', ...routes), { routes: ['enforce', 'shadow', 'enforce', 'enforce'], unmatched: null });
  t.same(modes('shadow', ...routes), { routes: ['shadow', 'shadow', 'enforce', 'enforce'], unmatched: 'none' });
  t.end();
});

t.test('requests without a route have no limit to their body but that of time', (t) => {
  const { unmatched } = compiled(
    configText({
      mode: 'shadow',
      upstream: '{ url: "http://127.0.0.1:3000", response_timeout: 7s }',
    }),
  );
  t.match(unmatched?.route, {
    maxBodyBytes: Number.MAX_SAFE_INTEGER,
    responseTimeoutMs: 7_000,
    forwardsAuthorization: true,
    reservation: null,
  });
  t.end();
});

t.test('check warns of what is in shadow mode', (t) => {
  t.same(problemsOf(withRoutes([route('a', who)], { mode: 'shadow' })), [
    'c.yaml:4:7: warning: mode is shadow: routes without a mode of their own and requests without a route let everybody through; ' +
      'allowed: enforce, once the log shows nothing that should pass',
  ]);
  t.same(problemsOf(withRoutes([route('a', `${who}, mode: shadow`)])), [
    'c.yaml:5:79: warning: route "a" is in shadow mode: it lets everybody through; allowed: enforce, once the log shows nothing that should pass',
  ]);
  t.match(problemsOf(withRoutes([route('a', 'access: public, mode: shadow')])), [
    /error: route "a" is public: there is nothing that shadow mode/,
  ]);
  t.match(problemsOf(configText({ mode: 'audit' })), [/error: mode is "audit"; allowed: enforce, shadow$/]);
  t.end();
});

t.test('a route in shadow mode is less restrictive than one that enforces', (t) => {
  const pair = (below: string, leaf: string): string =>
    withRoutes([
      `name: below, methods: [GET], path: "/tree/{leaf}", mode: ${below}, ${who}`,
      `name: oak, methods: [GET], path: /tree/oak, mode: ${leaf}, ${who}`,
    ]);
  t.match(problemsOf(pair('shadow', 'enforce')).join('\n'), 'is less restrictive than');
  t.notMatch(problemsOf(pair('enforce', 'shadow')).join('\n'), 'is less restrictive than');
  t.notMatch(problemsOf(pair('shadow', 'shadow')).join('\n'), 'is less restrictive than');
  t.end();
});
