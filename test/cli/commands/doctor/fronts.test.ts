/** What the doctor says of proxies that ask for decisions, and what it sees of a real one. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { run } from '../../../../src/cli/program.js';
import { frontSettings } from '../../../../src/cli/commands/doctor/fronts/settings.js';
import { startShown, type Change, type Fronted } from '../../../decide/deciding.js';
import { startJwksServer } from '../../../support/jwks-server.js';
import { startUpstreamServer } from '../../../support/upstream-server.js';
import { baseConfig, type ConfigTree } from '../../../support/proxy-process.js';
import type { Scope } from '../../../support/scope.js';
import { tempDir } from '../../../support/temp-dir.js';
import { captureIo } from '../../captured-io.js';

interface Finding {
  readonly level: string;
  readonly subject: string;
  readonly what: string;
  readonly fix: string;
}

const open = { methods: ['GET'], subjects: ['checkout'], permissions: [] };
const routes = [
  { ...open, name: 'files', path: '/files/**' },
  { ...open, name: 'admin', path: '/admin/{id}', permissions: ['admin'] },
  { ...open, name: 'later', path: '/later', mode: 'shadow' },
  { name: 'open', methods: ['GET'], path: '/open/**', access: 'public' },
];

async function doctor(
  t: Scope,
  config: ConfigTree,
  args: readonly string[] = [],
): Promise<{ readonly findings: readonly Finding[]; readonly code: number | null; readonly err: string }> {
  const cwd = tempDir(t);
  const [jwks, receiver] = await Promise.all([startJwksServer(t), startUpstreamServer(t)]);
  const own = { issuers: { core: { jwks_url: jwks.url } }, upstream: { url: receiver.url }, routes, ...config };
  writeFileSync(join(cwd, 'sallyport.yaml'), baseConfig(own));
  const io = captureIo({ cwd });
  await run(['doctor', '--config', 'sallyport.yaml', '--json', ...args], io);
  const { findings } = JSON.parse(io.out() === '' ? '{"findings":[]}' : io.out()) as { findings: readonly Finding[] };
  return { findings: findings.filter(({ subject }) => subject.startsWith('front')), code: io.code(), err: io.err() };
}

async function nginx(t: Scope, ...changes: readonly Change[]): Promise<Fronted> {
  return startShown(t, 'nginx', { routes }, { changes });
}

t.test('each form has its settings, once however many listeners it has', async (t) => {
  const listeners = [
    { port: 0, form: 'nginx' },
    { port: 0, form: 'nginx' },
    { port: 0, form: 'envoy' },
  ];
  const { findings, code } = await doctor(t, { decide: listeners });
  t.equal(code, 0);
  t.same(
    findings.map(({ level, subject }) => [level, subject]),
    [
      ...frontSettings.nginx.map(() => ['warning', 'front nginx']),
      ...frontSettings.envoy.map(() => ['warning', 'front envoy']),
    ],
  );
  for (const { setting, danger, fix } of frontSettings.nginx) {
    t.ok(
      findings.some((one) => one.what.includes(setting) && one.what.includes(danger) && one.fix.includes(fix)),
      setting,
    );
  }
  t.same((await doctor(t, {})).findings, [], 'nothing without a listener');
});

t.test('a front that asks about everything is told so', async (t) => {
  const front = await nginx(t);
  const url = `http://127.0.0.1:${String(front.frontPort)}`;
  const before = front.proxy.receiver.requests.length;
  const { findings, code } = await doctor(t, { decide: { port: 0, form: 'nginx' } }, ['--front', url]);
  t.equal(code, 0);
  t.match(findings.slice(0, 2), [
    { level: 'ok', what: /every protected route/ },
    { level: 'ok', what: /cannot describe/ },
  ]);
  t.match(findings.at(-1), { level: 'ok', what: /a location without `auth_request`/ });
  t.equal(front.proxy.receiver.requests.length, before, 'nothing reached the service');
});

t.test('a path is asked for as a client spells it, with the escapes that it needs', async (t) => {
  const paths = ['/order%20lists/{id}', '/100%25/**', '/%C3%A9t%C3%A9', '/%5Bdrafts%5D', '/@me:all', "/(it's)"];
  const escaped = paths.map((path, at) => ({ ...open, name: `route-${String(at)}`, path }));
  const shared = { name: 'open', methods: ['GET'], path: '/%C3%B6ffentlich', access: 'public' };
  const config = { routes: [...escaped, shared] };
  const front = await startShown(t, 'nginx', config);
  const url = `http://127.0.0.1:${String(front.frontPort)}`;
  const { findings, code } = await doctor(t, { ...config, decide: { port: 0, form: 'nginx' } }, ['--front', url]);
  t.equal(code, 0);
  t.match(findings.slice(0, 2), [
    { level: 'ok', what: /every protected route/ },
    { level: 'ok', what: /cannot describe/ },
  ]);
});

t.test('a location that does not ask is named', async (t) => {
  const front = await nginx(t, [
    'location = /_decide {',
    'location /admin/ { proxy_pass http://127.0.0.1:3000; }\n  location = /_decide {',
  ]);
  const url = `http://127.0.0.1:${String(front.frontPort)}`;
  const { findings, code } = await doctor(t, { decide: { port: 0, form: 'nginx' } }, ['--front', url]);
  t.equal(code, 1);
  t.match(findings[0], { level: 'problem', what: /"admin": GET \/admin\/sallyport-doctor was 200/ });
  t.notMatch(findings[0]?.what, /files|later/);
  t.equal(findings.at(-1)?.level, 'warning');
});

t.test('a front that believes what its client says of its request is named', async (t) => {
  // In the place of Traefik with `trustForwardHeader: true`: the asked target is the client’s word, where it has one.
  const front = await nginx(t, [
    'proxy_set_header X-Original-URI $request_uri;',
    'set $told $http_x_forwarded_uri; if ($told = "") { set $told $request_uri; } proxy_set_header X-Original-URI $told;',
  ]);
  const url = `http://127.0.0.1:${String(front.frontPort)}`;
  const { findings, code } = await doctor(t, { decide: { port: 0, form: 'traefik' } }, ['--front', url]);
  t.equal(code, 1);
  t.match(findings.slice(0, 3), [
    { level: 'ok' },
    { level: 'problem', what: /describes its own request.*was 200/ },
    { level: 'warning', what: /trustForwardHeader/ },
  ]);
});

t.test('what cannot be asked is out of reach, or wrong', async (t) => {
  const decide = { port: 0, form: 'nginx' };
  const away = await doctor(t, { decide }, ['--front', 'http://127.0.0.1:1']);
  t.equal(away.code, 3);
  t.match(away.findings[0], { level: 'problem', what: /127\.0\.0\.1:1/, fix: /--front/ });
  t.match((await doctor(t, {}, ['--front', 'http://127.0.0.1:1'])).findings, [
    { level: 'problem', what: /no decide listener/ },
  ]);
  const open = [{ name: 'open', methods: ['GET'], path: '/open', access: 'public' }];
  t.match((await doctor(t, { decide, routes: open }, ['--front', 'http://127.0.0.1:1'])).findings[0], {
    level: 'problem',
    what: /none is protected/,
  });
  for (const text of ['127.0.0.1:1', 'ftp://a', 'http://a/b', 'http://u:p@a']) {
    t.match(await doctor(t, { decide }, ['--front', text]), { code: 2, err: /Allowed/ }, text);
  }
});
