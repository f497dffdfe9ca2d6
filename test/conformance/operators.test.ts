/** docs/contract.md 6: what operators, monitors and logs are told. */
import t from 'tap';
import { request } from '../support/raw-client.js';
import { markedSecret } from '../support/secrets.js';
import { startProxyProcess, usualWorkers } from '../support/proxy-process.js';
import { checkRefusal, refusals } from './refusals.js';
import { checkSilence } from './silence.js';

const proxy = await startProxyProcess(t, { config: { probes: { host: '127.0.0.1', port: 0 } } });
const probesPort = await proxy.process.port('probes');

t.test('/livez, /readyz, /status and the console, and nothing else', async (t) => {
  t.equal((await proxy.admin('/livez')).status, 200);
  const ready = await proxy.admin('/readyz');
  t.equal(ready.status, 200);
  t.match(JSON.parse(ready.text), { status: 'ready' });
  const status = await proxy.admin('/status');
  t.equal(status.status, 200);
  t.match(status.text, 'list-orders', 'routes');
  t.match(status.text, 'd-1', 'key ids');
  t.match(status.text, /[0-9a-f]{64}/, "the config's hash");
  const page = await proxy.admin('/');
  t.equal(page.status, 200);
  t.notMatch(page.text, 'list-orders', 'the page itself tells nothing');
  for (const path of [
    '/orders',
    '/index.html',
    '//',
    '/livez/',
    '/LIVEZ',
    '/status/../livez',
    '/debug',
    '/metrics/x',
  ]) {
    t.not((await proxy.admin(path)).status, 200, path);
  }
  for (const method of ['POST', 'DELETE', 'PUT']) {
    t.not((await request(proxy.adminPort, { method, path: '/livez' })).status, 200, method);
  }
});

t.test('the admin listener checks Host, against pages whose name was bent to it', async (t) => {
  for (const host of ['evil.example', 'evil.example:9901', '127.0.0.1.evil.example', 'localhost.evil.example', '']) {
    const response = await request(proxy.adminPort, { path: '/status', headers: { Host: host } });
    t.ok(response.status >= 400 && response.status < 500, host);
    t.notMatch(response.text, 'list-orders', host);
  }
  for (const host of ['127.0.0.1', `localhost:${String(proxy.adminPort)}`]) {
    t.equal((await request(proxy.adminPort, { path: '/status', headers: { Host: host } })).status, 200, host);
  }
});

t.test('probes have their listener, without /status', async (t) => {
  for (const path of ['/livez', '/readyz', '/metrics']) {
    t.equal((await request(probesPort, { path, headers: { Host: 'pod.example' } })).status, 200, path);
  }
  for (const path of ['/status', '/', '/console/state']) {
    t.equal((await request(probesPort, { path, headers: { 'Sallyport-Console': '1' } })).status, 404, path);
  }
});

t.test("never on the caller's port", async (t) => {
  for (const path of ['/livez', '/readyz', '/metrics', '/status']) {
    checkRefusal(t, await proxy.request({ path }), refusals.unauthorized, path);
    checkRefusal(
      t,
      await proxy.request({ path, headers: proxy.authorization() }),
      refusals.forbidden,
      `${path} with a token`,
    );
  }
});

t.test('metrics have the names and the closed labels of the contract', async (t) => {
  const text = (await proxy.admin('/metrics')).text;
  const series = [
    'sallyport_requests_total',
    'sallyport_denials_total',
    'sallyport_request_duration_seconds',
    'sallyport_overhead_seconds',
    'sallyport_stripped_fields_total',
    'sallyport_jwks_refreshes_total',
    'sallyport_jwks_age_seconds',
    'sallyport_config_reloads_total',
    'sallyport_config_info',
    'process_cpu_seconds_total',
  ];
  for (const name of series) t.match(text, new RegExp(`^# TYPE ${name} `, 'm'), name);
  const counted: readonly (readonly [string, string, Record<string, string>])[] = [
    ['sallyport_requests_total{route="list-orders",outcome="forwarded"}', '/orders', proxy.authorization()],
    ['sallyport_requests_total{route="list-orders",outcome="denied"}', '/orders', {}],
    ['sallyport_requests_total{route="none",outcome="denied"}', '/no-such-route', proxy.authorization()],
    ['sallyport_denials_total{reason="credential_missing"}', '/orders', {}],
    ['sallyport_denials_total{reason="token_expired"}', '/orders', proxy.authorization({ exp: 1, iat: undefined })],
    ['sallyport_denials_total{reason="route_unknown"}', '/no-such-route', proxy.authorization()],
    ['sallyport_denials_total{reason="target_malformed"}', '/orders//x', proxy.authorization()],
    ['sallyport_request_duration_seconds_count{route="list-orders"}', '/orders', proxy.authorization()],
    ['sallyport_overhead_seconds_count{route="list-orders"}', '/orders', proxy.authorization()],
  ];
  for (const [name, path, headers] of counted) {
    const before = await proxy.metric(name);
    await proxy.request({ path, headers });
    t.equal((await proxy.metric(name)) - before, 1, name);
  }
  const ownSeries = async (): Promise<string[]> =>
    (await proxy.admin('/metrics')).text
      .split('\n')
      .filter((line) => line.startsWith('sallyport_'))
      .map((line) => line.replace(/ [^ ]*$/, ''));
  const before = await ownSeries();
  for (let i = 0; i < 50; i += 1) {
    await proxy.request({
      path: `/made-up-${String(i)}`,
      headers: proxy.authorization({ sub: `caller-${String(i)}` }),
    });
  }
  t.same(await ownSeries(), before, 'nothing that callers send makes a series');
});

t.test('one log line per request', async (t) => {
  const members = [
    'time',
    'request_id',
    'route',
    'method',
    'path',
    'decision',
    'reason',
    'kind',
    'issuer',
    'subject',
    'key_id',
    'status',
    'duration_ms',
    'upstream_ms',
    'record',
    'trace_id',
    'protocol',
    'grpc_status',
    'client_address',
    'user_agent',
    ...(usualWorkers === 1 ? [] : ['worker']),
  ];
  const service = { kind: 'service', issuer: 'core', subject: 'checkout', key_id: 'd-1' };
  const nobody = { kind: null, issuer: null, subject: null, key_id: null };
  const auth = proxy.authorization();
  const rows = [
    {
      id: 'forwarded',
      path: `/orders?secret=${markedSecret}`,
      headers: auth,
      line: { route: 'list-orders', path: '/orders', decision: 'forwarded', reason: null, status: 200, ...service },
    },
    {
      id: 'public',
      path: '/healthz',
      headers: {},
      line: { route: 'health', path: '/healthz', decision: 'forwarded', reason: null, status: 200, ...nobody },
    },
    {
      id: 'anonymous',
      path: '/orders',
      headers: {},
      line: { path: '/orders', decision: 'denied', reason: 'credential_missing', status: 401, ...nobody },
    },
    {
      id: 'unapproved',
      path: '/orders',
      headers: proxy.authorization({ sub: 'other' }),
      line: {
        route: 'list-orders',
        decision: 'denied',
        reason: 'subject_not_approved',
        status: 403,
        ...service,
        subject: 'other',
      },
    },
    {
      id: 'lacking',
      path: '/orders',
      headers: proxy.authorization({ permissions: [] }),
      line: { route: 'list-orders', decision: 'denied', reason: 'permission_missing', status: 403, ...service },
    },
    {
      id: 'no-route',
      path: '/nowhere',
      headers: auth,
      line: { route: 'none', path: '/nowhere', decision: 'denied', reason: 'route_unknown', status: 403, ...service },
    },
    {
      id: 'bad-target',
      path: '/orders/../x',
      headers: auth,
      line: { decision: 'denied', reason: 'target_malformed', status: 400 },
    },
  ];
  for (const { id, path, headers, line } of rows) {
    const requestId =
      (await proxy.request({ path, headers: { ...headers, 'X-Request-Id': `log-${id}` } })).field('x-request-id') ?? '';
    const written = await proxy.logOf(requestId);
    t.match(written, line, id);
    t.same(
      members.filter((member) => !(member in written)),
      [],
      `${id}: every member`,
    );
    const more = line.reason === 'permission_missing' ? ['level', 'missing_permissions'] : ['level'];
    t.same(
      Object.keys(written).filter((member) => ![...members, ...more].includes(member)),
      [],
      `${id}: and no other`,
    );
    t.equal(typeof written['duration_ms'], 'number', id);
    t.equal(typeof written['upstream_ms'], line.decision === 'forwarded' ? 'number' : 'object', id);
    t.match(written['time'], /^\d{4}-\d\d-\d\dT|^\d+$/, id);
    t.equal(proxy.logs().filter((other) => other['request_id'] === requestId).length, 1, `${id}: one line`);
  }
});

t.test('what callers send cannot forge a log line', async (t) => {
  const before = proxy.process.output().split('\n').length;
  const id = 'forged-1';
  await proxy.request({
    path: '/orders%20%22%7d',
    headers: { ...proxy.authorization({ sub: '"}{"forged":"1' }), 'X-Request-Id': id },
  });
  const line = await proxy.logOf(id);
  t.equal(line['forged'], undefined);
  t.equal(line['subject'], '"}{"forged":"1');
  t.ok(proxy.process.output().split('\n').length > before);
  t.equal(
    proxy.process
      .output()
      .split('\n')
      .filter((text) => text !== '' && !text.startsWith('{'))
      .filter((text) => text.includes('forged')).length,
    0,
  );
});

checkSilence(t, proxy);
