/** What the policy matched is what the receiver serves, however the receiver reads paths. */
import { fastify } from 'fastify';
import t from 'tap';
import { startProxy } from '../proxy/harness.js';
import { request } from '../support/raw-client.js';
import type { Scope } from '../support/scope.js';
import { pathReaders } from './path-readers.js';
import { askAll, hostileTargets, publicAndAdmin } from './path-targets.js';

/** A real router, as lax as its options allow. */
async function startFastify(t: Scope): Promise<{ readonly url: string; readonly targets: string[] }> {
  const targets: string[] = [];
  const app = fastify({
    routerOptions: { caseSensitive: false, ignoreTrailingSlash: true, ignoreDuplicateSlashes: true },
  });
  app.addHook('onRequest', (req, _reply, done) => {
    targets.push(req.originalUrl);
    done();
  });
  for (const path of ['/admin', '/admin/*']) app.get(path, () => 'ADMIN');
  for (const path of ['/public/*', '/*']) app.get(path, () => 'public');
  const url = await app.listen({ host: '127.0.0.1', port: 0 });
  t.teardown(async () => app.close());
  return { url, targets };
}

t.test('no spelling leads an upstream to what the policy did not judge, whichever way it reads', async (t) => {
  const receiver = await startFastify(t);
  const proxy = await startProxy(t, { upstreamUrl: receiver.url, config: { routes: publicAndAdmin } });
  const targets = hostileTargets();
  const answers = await askAll(proxy.port, targets);
  t.comment(`${String(targets.length)} targets, ${String(receiver.targets.length)} reached the receiver`);
  t.ok(targets.length > 700 && receiver.targets.length > 20);
  t.same(
    answers.filter(({ answer }) => answer?.text === 'ADMIN').map(({ target }) => target),
    [],
    'of Fastify, as lax as it can be',
  );
  t.same(
    answers.filter(({ answer }) => answer === null || answer.status >= 500),
    [],
    'each is answered',
  );
  const asked = new Set(targets);
  t.same(
    receiver.targets.filter((target) => !asked.has(target)),
    [],
    'what reaches it is what was sent, byte for byte',
  );
  for (const [name, read] of Object.entries(pathReaders)) {
    const led = receiver.targets.filter((target) => !/^\/(?:public(?:\/|$)|caf)/i.test(read(target) ?? '/public/'));
    t.same(led, [], name);
  }
});

t.test('a protected path in another spelling is not served without a credential', async (t) => {
  const proxy = await startProxy(t, { config: { routes: publicAndAdmin } });
  const spellings = [
    '/%61dmin/x',
    '//admin/x',
    '/admin;a/x',
    '/admin/',
    '/admin/x/',
    '/./admin/x',
    '/admin/./x',
    '/ADMIN/x',
    '/admin%2fx',
    '/admin\\x',
    '/admin/x%00',
  ];
  for (const path of spellings) {
    const { status } = await request(proxy.port, { path });
    t.ok(status === 400 || status === 401, `${path}: ${String(status)}`);
  }
  t.equal(proxy.receiver.requests.length, 0);
});

t.test('nothing in the query makes a route another one', async (t) => {
  const proxy = await startProxy(t, { config: { routes: publicAndAdmin } });
  const targets = [
    '/admin/x?/public/',
    '/admin/x?path=/public/x',
    '/admin?/../public/x',
    '/admin/x??/public/x',
    '/nowhere?/public/x',
    '/admin/x?_method=GET&access=public',
  ];
  for (const path of targets) {
    t.equal((await request(proxy.port, { path })).status, 401, path);
  }
  t.equal(proxy.receiver.requests.length, 0);
  t.equal((await request(proxy.port, { path: '/public/x?/admin/../x#'.slice(0, -1) })).status, 200);
  t.equal(proxy.receiver.requests[0]?.target, '/public/x?/admin/../x');
});

t.test('no header gets a caller past the checks', async (t) => {
  const proxy = await startProxy(t, { config: { routes: publicAndAdmin } });
  const fields: readonly (readonly [string, string])[] = [
    ['User-Agent', 'kube-probe/1.30'],
    ['User-Agent', 'GoogleHC/1.0'],
    ['User-Agent', 'ELB-HealthChecker/2.0'],
    ['X-Forwarded-Uri', '/public/x'],
    ['X-Forwarded-For', '127.0.0.1'],
    ['X-Forwarded-Prefix', '/public'],
    ['X-Original-URL', '/public/x'],
    ['X-Rewrite-URL', '/public/x'],
    ['X-Envoy-Original-Path', '/public/x'],
    ['X-Skipper-Proxy', 'x'],
    ['X-Middleware-Subrequest', 'middleware:middleware'],
    ['X-Matched-Path', '/public/x'],
    ['X-Invoke-Path', '/public/x'],
    ['X-Auth-Subject', 'root'],
    ['X-HTTP-Method-Override', 'OPTIONS'],
    ['Host', '127.0.0.1:9901'],
    ['Origin', 'http://127.0.0.1'],
    ['X-Real-IP', '127.0.0.1'],
    ['Via', '1.1 sallyport'],
    ['Forwarded', 'for=127.0.0.1;host=admin'],
    ['Cookie', 'admin=true'],
    ['Proxy-Authorization', 'Bearer x'],
    ['X-Authorization', 'Bearer x'],
    ['Expect', ''],
  ];
  for (const [name, value] of fields) {
    const { status } = await request(proxy.port, { path: '/admin/x', headers: [[name, value]] });
    t.ok(status === 401 || (name === 'Expect' && status === 417), `${name}: ${value}`);
  }
  t.equal(proxy.receiver.requests.length, 0);
});

t.test('the case of letters counts in paths, and that of hex digits does not', async (t) => {
  const proxy = await startProxy(t, { config: { routes: publicAndAdmin } });
  for (const path of ['/caf%C3%A9', '/caf%c3%a9', '/caf%C3%a9']) {
    t.equal((await request(proxy.port, { path })).status, 200, path);
  }
  for (const path of ['/CAF%C3%A9', '/Public/x', '/PUBLIC/x', '/ADMIN', '/Admin/x']) {
    t.equal((await request(proxy.port, { path })).status, 401, path);
  }
  t.same(
    proxy.receiver.requests.map(({ target }) => target),
    ['/caf%C3%A9', '/caf%c3%a9', '/caf%C3%a9'],
  );
});
