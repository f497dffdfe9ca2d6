/** Settings of proxies in front that docs/decide.md warns of: each opens a hole, and the page's config does not. */
import t from 'tap';
import { runCaddy } from '../support/caddy.js';
import { runNginx } from '../support/nginx.js';
import type { Scope } from '../support/scope.js';
import { placed, shownConfig, startDeciding, startFront, type Fronted } from './deciding.js';

t.setTimeout(120_000);

const open = { methods: ['GET'], subjects: ['checkout'], permissions: [] };
const config = {
  receiver: { case_sensitive: true, strict_slash: true, format_suffix: false, trailing_dots: false },
  routes: [
    { ...open, name: 'file', path: '/files/{name}', encoded_slashes: 'allow' },
    { ...open, name: 'secret', path: ['/files/{name}/secret', '/admin/**'], permissions: ['admin'] },
    { name: 'open', methods: ['GET'], path: '/open/**', access: 'public' },
  ],
};

type Change = readonly [from: string | RegExp, to: string];

async function nginx(t: Scope, ...changes: readonly Change[]): Promise<Fronted> {
  return startFront(await startDeciding(t, 'nginx', config), (places) => {
    runNginx(t, placed(changed(shownConfig('nginx'), changes), places));
  });
}

async function caddy(t: Scope, ...changes: readonly Change[]): Promise<Fronted> {
  return startFront(await startDeciding(t, 'caddy', config), (places) => {
    runCaddy(t, placed(changed(shownConfig('caddyfile'), changes), places));
  });
}

function changed(text: string, changes: readonly Change[]): string {
  return changes.reduce((before, [from, to]) => {
    const after = before.replace(from, to);
    if (after === before) throw new Error(`nothing to change: ${String(from)}`);
    return after;
  }, text);
}

/** The targets that the receiver got, without what asked whether the front is up. */
const targetsOf = ({ proxy: { receiver } }: Fronted): readonly string[] =>
  receiver.requests.map(({ target }) => target);

t.test('nginx: proxy_pass with a path decodes what was judged as one segment', async (t) => {
  const path = '/files/a%2Fsecret';
  const sound = await nginx(t);
  await sound.askAs({ path });
  t.same(targetsOf(sound), [path]);
  const broken = await nginx(t, ['proxy_pass http://127.0.0.1:3000;', 'proxy_pass http://127.0.0.1:3000/;']);
  await broken.askAs({ path });
  t.same(targetsOf(broken), ['/files/a/secret'], 'a stricter route’s path');
});

t.test('nginx: a rewrite beside auth_request forwards another target than was judged', async (t) => {
  const sound = await nginx(t);
  t.equal((await sound.ask({ path: '/admin/a' })).status, 401);
  const broken = await nginx(t, ['auth_request /_decide;', 'rewrite ^/open/(.*)$ /$1 break; auth_request /_decide;']);
  t.equal((await broken.ask({ path: '/open/admin/a' })).status, 200);
  t.same(targetsOf(broken), ['/admin/a'], 'without any credential');
});

t.test('nginx: an identity header that is not set is the client’s own', async (t) => {
  const ask = async (front: Fronted): Promise<readonly string[] | undefined> => {
    await front.askAs({ path: '/files/a', headers: { 'X-Auth-Subject': 'root' } });
    return front.proxy.receiver.requests.at(-1)?.field('x-auth-subject');
  };
  t.same(await ask(await nginx(t)), ['checkout']);
  t.same(await ask(await nginx(t, ['proxy_set_header X-Auth-Subject $auth_subject;', ''])), ['root']);
});

t.test('nginx: headers that are not shown cannot be judged', async (t) => {
  const headers = { X_Auth_Subject: 'root' };
  const seen = async (front: Fronted): Promise<boolean> => {
    await front.askAs({ path: '/files/a', headers });
    const { requests } = front.proxy.receiver;
    return requests.some(({ rawHeaders }) => rawHeaders.includes('X_Auth_Subject'));
  };
  const underscores: Change = ['underscores_in_headers off;', 'underscores_in_headers on;'];
  t.equal(await seen(await nginx(t)), false);
  t.equal(await seen(await nginx(t, underscores)), false, 'refused, as long as it is shown');
  const hidden: Change = [
    'proxy_pass_request_body off;',
    'proxy_pass_request_body off; proxy_pass_request_headers off; proxy_set_header Authorization $http_authorization;',
  ];
  t.equal(await seen(await nginx(t, underscores, hidden)), true);
});

t.test('nginx: a location of its own without auth_request is open', async (t) => {
  const broken = await nginx(t, [
    'location = /_decide {',
    'location /admin/ { proxy_pass http://127.0.0.1:3000; }\n  location = /_decide {',
  ]);
  t.equal((await broken.ask({ path: '/admin/a' })).status, 200);
});

t.test('Caddy: a matcher of forward_auth leaves what it does not match', async (t) => {
  const sound = await caddy(t);
  t.equal((await sound.ask({ path: '/admin/a' })).status, 401);
  const broken = await caddy(t, ['forward_auth 127', 'forward_auth /files/* 127']);
  t.equal((await broken.ask({ path: '/admin/a' })).status, 200);
});

t.test('Caddy: a Connection that is not shown takes the identity away', async (t) => {
  const headers = { Connection: 'close, X-Auth-Subject' };
  const sound = await caddy(t);
  t.not((await sound.askAs({ path: '/files/a', headers })).status, 200);
  const broken = await caddy(t, [/.*header_up X-Original-Connection.*\n/, '']);
  t.equal((await broken.askAs({ path: '/files/a', headers })).status, 200);
  t.same(broken.proxy.receiver.requests.at(-1)?.field('x-auth-subject'), [], 'nobody, in the place of checkout');
});
