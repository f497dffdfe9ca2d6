/**
 * Settings of proxies in front that docs/decide.md and `doctor` warn of: each opens a hole, and the page's config does
 * not. Of Traefik and Envoy, which are not to be had for tests, by what they are answered.
 */
import { status as codes } from '@grpc/grpc-js';
import t, { type Test as Tap } from 'tap';
import { frontSettings, type FrontSetting } from '../../src/cli/commands/doctor/fronts/settings.js';
import type { Form } from '../../src/decision/decide/forms.js';
import { tableBelow } from '../docs/pages.js';
import { request } from '../support/raw-client.js';
import type { Scope } from '../support/scope.js';
import { checkClient, checkRequest, described } from './check-client.js';
import { startDeciding, startShown, type Change, type Fronted, type RealFront } from './deciding.js';

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

const starting =
  (form: RealFront) =>
  async (t: Scope, ...changes: readonly Change[]): Promise<Fronted> =>
    startShown(t, form, config, { changes });
const [nginx, caddy, haproxy] = [starting('nginx'), starting('caddy'), starting('haproxy')];

async function apache(t: Scope, modules: readonly string[], ...changes: readonly Change[]): Promise<Fronted> {
  return startShown(t, 'apache', config, { changes, modules });
}

const shown = new Set<FrontSetting>();

/** Tests the setting that begins so. */
function shows(form: Form, beginning: string, run: (t: Tap) => Promise<void>): void {
  const setting = frontSettings[form].find((one) => one.setting.startsWith(beginning));
  if (setting === undefined) throw new Error(`no ${beginning}`);
  shown.add(setting);
  t.test(`${form}: ${setting.setting}`, run);
}

/** The targets that the receiver got, without what asked whether the front is up. */
const targetsOf = ({ proxy: { receiver } }: Fronted): readonly string[] =>
  receiver.requests.map(({ target }) => target);

shows('nginx', '`proxy_pass` with', async (t) => {
  const path = '/files/a%2Fsecret';
  const sound = await nginx(t);
  await sound.askAs({ path });
  t.same(targetsOf(sound), [path]);
  const broken = await nginx(t, ['proxy_pass http://127.0.0.1:3000;', 'proxy_pass http://127.0.0.1:3000/;']);
  await broken.askAs({ path });
  t.same(targetsOf(broken), ['/files/a/secret'], 'a stricter route’s path');
});

shows('nginx', '`rewrite`', async (t) => {
  const sound = await nginx(t);
  t.equal((await sound.ask({ path: '/admin/a' })).status, 401);
  const broken = await nginx(t, ['auth_request /_decide;', 'rewrite ^/open/(.*)$ /$1 break; auth_request /_decide;']);
  t.equal((await broken.ask({ path: '/open/admin/a' })).status, 200);
  t.same(targetsOf(broken), ['/admin/a'], 'without any credential');
});

shows('nginx', 'an identity header', async (t) => {
  const ask = async (front: Fronted): Promise<readonly string[] | undefined> => {
    await front.askAs({ path: '/files/a', headers: { 'X-Auth-Subject': 'root' } });
    return front.proxy.receiver.requests.at(-1)?.field('x-auth-subject');
  };
  t.same(await ask(await nginx(t)), ['checkout']);
  t.same(await ask(await nginx(t, ['proxy_set_header X-Auth-Subject $auth_subject;', ''])), ['root']);
});

/** Values of a header that reach the receiver, where a client sends one. */
async function goesOn(front: Fronted, name: string): Promise<readonly string[] | undefined> {
  t.equal((await front.askAs({ path: '/files/a', headers: { [name]: 'sent' } })).status, 200, name);
  return front.proxy.receiver.requests
    .at(-1)
    ?.field(name)
    .filter((value) => value !== '');
}

shows('nginx', '`DPoP`', async (t) => {
  t.same(await goesOn(await nginx(t), 'DPoP'), []);
  t.same(await goesOn(await nginx(t, ['proxy_set_header DPoP $auth_dpop;', '']), 'DPoP'), ['sent']);
});

shows('nginx', '`X-Forwarded-Host`', async (t) => {
  const sound = await nginx(t);
  for (const [name, value] of [
    ['X-Forwarded-Host', '$http_host'],
    ['X-Real-IP', '""'],
    ['Forwarded', '""'],
    ['Via', '""'],
  ] as const) {
    t.notMatch(await goesOn(sound, name), ['sent'], name);
    t.same(await goesOn(await nginx(t, [`proxy_set_header ${name} ${value};`, '']), name), ['sent'], name);
  }
});

shows('caddy', '`copy_headers`', async (t) => {
  t.same(await goesOn(await caddy(t), 'DPoP'), []);
  t.same(await goesOn(await caddy(t, [' DPoP', '']), 'DPoP'), ['sent']);
});

shows('caddy', '`X-Real-IP`', async (t) => {
  const sound = await caddy(t);
  for (const name of ['X-Real-IP', 'Forwarded', 'Via']) {
    t.same(await goesOn(sound, name), [], name);
    t.same(await goesOn(await caddy(t, [`request_header -${name}\n`, '\n']), name), ['sent'], name);
  }
});

shows('nginx', '`proxy_pass_request_headers', async (t) => {
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

shows('nginx', 'a location', async (t) => {
  const broken = await nginx(t, [
    'location = /_decide {',
    'location /admin/ { proxy_pass http://127.0.0.1:3000; }\n  location = /_decide {',
  ]);
  t.equal((await broken.ask({ path: '/admin/a' })).status, 200);
});

shows('caddy', 'a path matcher', async (t) => {
  const sound = await caddy(t);
  t.equal((await sound.ask({ path: '/admin/a' })).status, 401);
  const broken = await caddy(t, ['forward_auth 127', 'forward_auth /files/* 127']);
  t.equal((await broken.ask({ path: '/admin/a' })).status, 200);
});

shows('caddy', 'no `X-Original', async (t) => {
  const headers = { Connection: 'close, X-Auth-Subject' };
  const sound = await caddy(t);
  t.not((await sound.askAs({ path: '/files/a', headers })).status, 200);
  const broken = await caddy(t, [/.*header_up X-Original-Connection.*\n/, '']);
  t.equal((await broken.askAs({ path: '/files/a', headers })).status, 200);
  t.same(broken.proxy.receiver.requests.at(-1)?.field('x-auth-subject'), [], 'nobody, in the place of checkout');
});

shows('caddy', 'an identity header', async (t) => {
  const ask = async (front: Fronted): Promise<readonly string[] | undefined> => {
    await front.askAs({ path: '/files/a', headers: { 'X-Auth-Token-Id': 'spoofed' } });
    return front.proxy.receiver.requests
      .at(-1)
      ?.field('x-auth-token-id')
      .filter((value) => value !== '');
  };
  t.not((await ask(await caddy(t)))?.[0], 'spoofed');
  const broken = await caddy(t, ['\t\trequest_header -X-Auth-Token-Id\n', ''], ['X-Auth-Token-Id ', '']);
  t.same(await ask(broken), ['spoofed']);
});

shows('haproxy', 'a rule that rewrites', async (t) => {
  const rule = 'http-request set-path /admin/a if { path_beg /open }';
  const sound = await haproxy(t, ['http-request lua.sallyport', `${rule}\n    http-request lua.sallyport`]);
  t.equal((await sound.ask({ path: '/open/a' })).status, 401, 'rewritten before it was judged');
  const broken = await haproxy(t, ['http-request lua.sallyport', `http-request lua.sallyport\n    ${rule}`]);
  t.equal((await broken.ask({ path: '/open/a' })).status, 200);
  t.same(targetsOf(broken), ['/admin/a'], 'without any credential');
});

shows('haproxy', '`http-request allow`', async (t) => {
  const sound = await haproxy(t);
  t.equal((await sound.ask({ path: '/admin/a' })).status, 401);
  const broken = await haproxy(t, [
    'http-request lua.sallyport',
    'http-request allow if { path_beg /admin }\n    http-request lua.sallyport',
  ]);
  t.equal((await broken.ask({ path: '/admin/a' })).status, 200);
});

shows('haproxy', '`lua.sallyport` without', async (t) => {
  const begins = 'core.register_action("sallyport", { "http-req" }, function(txn)';
  const script: readonly Change[] = [
    [begins, `${begins}\n  if txn.sf:path() == "/admin/a" then error("as for want of memory") end`],
  ];
  const sound = await startShown(t, 'haproxy', config, { script });
  t.equal((await sound.ask({ path: '/admin/a' })).status, 503);
  t.same(targetsOf(sound), []);
  const broken = await startShown(t, 'haproxy', config, { script, changes: [[/ +http-request deny .*\n/, '']] });
  t.equal((await broken.ask({ path: '/admin/a' })).status, 200);
});

shows('apache', '`Satisfy Any`', async (t) => {
  const modules = ['access_compat'];
  const sound = await apache(t, modules);
  t.equal((await sound.ask({ path: '/admin/a' })).status, 401);
  const location = '<Location />\n    Satisfy Any\n    Require all granted\n  </Location>\n  ProxyPass';
  const broken = await apache(t, modules, ['ProxyPass', location]);
  t.equal((await broken.ask({ path: '/admin/a' })).status, 200);
});

shows('apache', 'a virtual host', async (t) => {
  const hook = /(LuaHook.*)\n\n(<VirtualHost .*>)/;
  const broken = await apache(t, [], [hook, '<VirtualHost other.example:8080>\n  $1\n</VirtualHost>\n$2']);
  t.equal((await broken.ask({ path: '/admin/a' })).status, 200);
});

shows('apache', '`RequestHeader`', async (t) => {
  const ask = async (front: Fronted): Promise<readonly string[] | undefined> => {
    await front.askAs({ path: '/files/a', headers: { 'X-User': 'root' } });
    return front.proxy.receiver.requests.at(-1)?.field('x-auth-subject');
  };
  t.same(await ask(await apache(t, ['headers'])), ['checkout']);
  const rule = 'RequestHeader set X-Auth-Subject expr=%{HTTP:X-User}\n  ProxyPass';
  t.same(await ask(await apache(t, ['headers'], ['ProxyPass', rule])), ['root']);
});

t.test('Apache: what is rewritten, or forwarded otherwise than it came, is refused by the script', async (t) => {
  const rewritten = await apache(
    t,
    ['rewrite'],
    ['ProxyPass', 'RewriteEngine On\n  RewriteRule ^/open/(.*)$ http://127.0.0.1:3000/$1 [P]\n  ProxyPass'],
  );
  t.equal((await rewritten.ask({ path: '/open/admin/a' })).status, 400);
  const decoded = await apache(t, [], [' nocanon', '']);
  t.equal((await decoded.askAs({ path: '/files/a%20b' })).status, 400);
  const moved = await apache(t, [], ['ProxyPass / http://127.0.0.1:3000/', 'ProxyPass /open/ http://127.0.0.1:3000/']);
  t.equal((await moved.ask({ path: '/open/admin/a' })).status, 400);
  t.same([rewritten, decoded, moved].flatMap(targetsOf), []);
});

/** What the client itself says is what Traefik tells where it trusts its headers. */
shows('traefik', '`trustForwardHeader', async (t) => {
  const { decidePort } = await startDeciding(t, 'traefik', config);
  const told = { 'X-Forwarded-Method': 'GET', 'X-Forwarded-Host': 'a.example', 'X-Forwarded-Proto': 'http' };
  const asked = async (uri: string): Promise<number> =>
    (await request(decidePort, { path: '/', headers: { ...told, 'X-Forwarded-Uri': uri } })).status;
  t.equal(await asked('/admin/a'), 401, 'what Traefik was asked for');
  t.equal(await asked('/open/a'), 200, 'what its client says');
});

/** Traefik sets what of the answer is in its list. A client’s header of another name it leaves. */
shows('traefik', 'an identity header', async (t) => {
  const { decidePort } = await startDeciding(t, 'traefik', config);
  const answer = await request(decidePort, {
    path: '/',
    headers: {
      'X-Forwarded-Method': 'GET',
      'X-Forwarded-Host': 'a.example',
      'X-Forwarded-Proto': 'http',
      'X-Forwarded-Uri': '/open/a',
      'X-Auth-Subject': 'root',
    },
  });
  t.equal(answer.status, 200, 'a client’s own is not refused: the answer has one in its place');
  t.equal(answer.field('x-auth-subject'), '');
});

/** The same of a proof: the answer has what takes its place, and Traefik sets what is in its list. */
shows('traefik', '`DPoP`', async (t) => {
  const { proxy, decidePort } = await startDeciding(t, 'traefik', config);
  const headers = {
    ...{ 'X-Forwarded-Method': 'GET', 'X-Forwarded-Uri': '/files/a', 'X-Forwarded-Host': 'a.example' },
    ...{ 'X-Forwarded-Proto': 'http', Authorization: `Bearer ${proxy.token()}`, DPoP: 'sent' },
  };
  const answer = await request(decidePort, { path: '/', headers });
  t.match([answer.status, answer.field('dpop'), answer.field('authorization')], [200, '', '']);
});

shows('envoy', '`failure_mode_allow', async (t) => {
  const { proxy, decidePort } = await startDeciding(t, 'envoy', config);
  const check = checkClient(t, decidePort);
  const message = checkRequest(described({ path: '/admin/a' }));
  t.ok((await check(message)).response?.deniedResponse);
  await proxy.app.stop();
  const { response, code } = await check(message);
  t.equal(response, null, 'nothing is said of the request');
  t.equal(code, codes.UNAVAILABLE);
});

shows('envoy', '`allowed_headers`', async (t) => {
  const { decidePort } = await startDeciding(t, 'envoy', config);
  const check = checkClient(t, decidePort);
  const removed = async (headers: Record<string, string>): Promise<boolean | undefined> =>
    (await check(checkRequest(described({ path: '/open/a', headers })))).response?.okResponse?.headersToRemove.includes(
      'x_auth_subject',
    );
  t.equal(await removed({ X_Auth_Subject: 'root' }), true);
  t.equal(await removed({}), false, 'it goes on where it is not shown');
});

t.test('each setting that doctor warns of is shown above, and stands on the page', (t) => {
  const rows = tableBelow('docs/decide.md', '## Settings that open a hole');
  const settings = Object.values(frontSettings).flat();
  t.same(
    settings.filter((setting) => !shown.has(setting)),
    [],
  );
  t.same(
    rows.map(([, setting, danger, fix]) => [setting, danger, fix]),
    settings.map(({ setting, danger, fix }) => [setting, danger, fix]),
  );
  t.end();
});
