/**
 * The listener itself: who may ask, what is answered in each form, reloads, status and the end. Traefik's and Envoy's
 * protocols by their documentation.
 */
import t from 'tap';
import { request, type RawResponse } from '../support/raw-client.js';
import { until } from '../support/until.js';
import { identityNames, startDeciding, type Deciding } from './deciding.js';

const open = {
  methods: ['GET', 'POST'],
  subjects: ['checkout'],
  permissions: [],
  idempotency: { mode: 'none', because: 'tests' },
};
const routes = [
  { ...open, name: 'files', path: '/files/**' },
  { ...open, name: 'admin', path: '/admin/**', permissions: ['admin'] },
  { ...open, name: 'kept', path: '/kept', forward_authorization: true },
  { name: 'open', methods: ['GET'], path: '/open/**', access: 'public' },
  { ...open, name: 'shadow', path: '/shadow', permissions: ['admin'], mode: 'shadow' },
  { ...open, name: 'limited', path: '/limited', limits: { requests_per_second: 1, burst: 1 } },
];
/** No sidecar: nothing is forwarded anywhere. */
const alone = { routes };

type Headers = Record<string, string>;

const described = (method: string, target: string): Headers => ({
  'X-Forwarded-Method': method,
  'X-Forwarded-Uri': target,
  'X-Forwarded-Host': 'a.example',
  'X-Forwarded-Proto': 'https',
});

async function ask({ proxy, decidePort }: Deciding, headers: Headers, path = '/'): Promise<RawResponse> {
  return request(decidePort, { path, headers: { Authorization: `Bearer ${proxy.token()}`, ...headers } });
}

t.test('Traefik is answered what to set, and nothing else is asked', async (t) => {
  const deciding = await startDeciding(t, 'traefik', alone);
  t.equal(deciding.proxy.app.listeners.proxy, null, 'no sidecar');
  const allowed = await ask(deciding, {
    ...described('GET', '/files/a'),
    'X-Auth-Subject': 'spoofed',
    'X-Request-Id': 'one',
  });
  t.equal(allowed.status, 200);
  t.equal(allowed.field('x-auth-subject'), 'checkout');
  t.equal(allowed.field('x-request-id'), 'one');
  t.equal(allowed.field('cache-control'), 'no-store');
  for (const name of [...identityNames, 'Authorization']) t.not(allowed.field(name), null, `${name} is always there`);
  t.equal(allowed.field('authorization'), '');
  t.match((await ask(deciding, described('GET', '/kept'))).field('authorization'), /^Bearer /);

  for (const [method, target, status] of [
    ['GET', '/admin/a', 403],
    ['DELETE', '/files/a', 403],
    ['get', '/files/a', 400],
    ['GET', '/files/../admin/a', 400],
    ['GET', '/files/a%2fb', 400],
    ['TRACE', '/files/a', 405],
  ] as const) {
    const refused = await ask(deciding, described(method, target));
    t.equal(refused.status, status, `${method} ${target}`);
    t.match(refused.field('content-type'), 'application/problem+json');
    t.equal(refused.field('x-auth-subject'), null);
  }
  const nobody = await ask(deciding, { ...described('GET', '/files/a'), Authorization: 'Bearer x' });
  t.match([nobody.status, nobody.field('www-authenticate')], [401, 'Bearer realm="sallyport"']);
  t.equal((await ask(deciding, { ...described('GET', '/open/a'), 'X-HTTP-Method-Override': 'PUT' })).status, 400);
  t.equal((await ask(deciding, { ...described('GET', '/files/a'), X_Auth_Subject: 'spoofed' })).status, 400);
  t.equal((await ask(deciding, {})).status, 400, 'no description');
  const shadow = await ask(deciding, described('GET', '/shadow'));
  t.match([shadow.status, shadow.field('x-auth-subject')], [200, '']);
  t.equal((await ask(deciding, described('GET', '/limited'))).status, 200);
  const limited = await ask(deciding, described('GET', '/limited'));
  t.equal(limited.status, 429);
  t.match(limited.field('retry-after'), /^\d+$/);
});

t.test('nginx gets what it can pass on, and the right status beside it', async (t) => {
  const deciding = await startDeciding(t, 'nginx', alone);
  for (const [target, status, decided] of [
    ['/files/a', 200, null],
    ['/admin/a', 403, '403'],
    ['/files/a%2fb', 403, '400'],
    ['/limited', 200, null],
    ['/limited', 403, '429'],
  ] as const) {
    const told = await ask(deciding, { 'X-Original-URI': target, 'X-Original-Method': 'GET' });
    t.match([told.status, told.field('x-sallyport-status')], [status, decided], target);
  }
  const logged = deciding.proxy.logs().filter(({ path }) => path === '/limited');
  t.same(
    logged.map(({ status }) => status),
    [200, 429],
    'the log has the status that was decided',
  );
});

t.test('Envoy over HTTP is told what to set and what to remove', async (t) => {
  const deciding = await startDeciding(t, 'envoy', alone, { prefix: '/decide' });
  const sent = { X_Auth_Subject: 'spoofed', 'X-HTTP-Method-Override': 'PUT', 'Remote-User': 'root', 'X-Note': 'a' };
  const allowed = await ask(deciding, sent, '/decide/files/a');
  t.match([allowed.status, allowed.field('x-auth-subject')], [200, 'checkout']);
  const removed = (allowed.field('x-envoy-auth-headers-to-remove') ?? '').split(',');
  for (const name of ['X_Auth_Subject', 'X-HTTP-Method-Override', 'Remote-User', 'Authorization', 'X-Auth-Token-Id']) {
    t.ok(removed.includes(name), name);
  }
  t.notOk(removed.includes('X-Note'));
  t.equal((await ask(deciding, sent, '/files/a')).status, 400, 'without the prefix');
  t.equal((await ask(deciding, {}, '/decide/admin/a')).status, 403);
});

t.test('who is not trusted learns and decides nothing', async (t) => {
  const deciding = await startDeciding(t, 'traefik', alone, { trust: ['127.0.0.9'] });
  const refused = await ask(deciding, described('GET', '/files/a'));
  t.equal(refused.status, 403);
  t.match(deciding.proxy.logs().at(-1), {
    reason: 'asking_refused',
    route: 'none',
    subject: null,
    asked_by: 'traefik',
  });
});

t.test('a reload decides anew, status and metrics tell of it, and a drain ends it', async (t) => {
  const deciding = await startDeciding(t, 'caddy', alone);
  const { proxy } = deciding;
  t.equal((await ask(deciding, described('GET', '/files/a'))).status, 200);
  const status = JSON.parse((await proxy.admin('/status')).text) as Record<string, unknown>;
  t.match(status, { upstream: null, decide: [{ form: 'caddy', trust: ['127.0.0.0/8', '::1'], in_flight: 0 }] });
  t.match(status, { listeners: { proxy: null, decide: [{ host: '127.0.0.1', port: deciding.decidePort }] } });
  t.equal(await proxy.metric('sallyport_decisions_total{form="caddy",outcome="forwarded"}'), 1);
  proxy.rewrite({ ...alone, routes: routes.slice(1), decide: { port: 0, form: 'caddy', trust: ['127.0.0.1'] } });
  await until('the reload', async () => (await ask(deciding, described('GET', '/files/a'))).status === 403);
  const reloaded = JSON.parse((await proxy.admin('/status')).text) as { restart_needed: readonly string[] };
  t.match(reloaded.restart_needed, [/^decide/]);
  await proxy.app.stop();
  await t.rejects(ask(deciding, described('GET', '/files/a')));
});
