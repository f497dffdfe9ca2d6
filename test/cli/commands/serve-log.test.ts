/** What an operator learns of a request from the log and the metrics of `serve`. */
import t from 'tap';
import { version } from '../../../src/version.js';
import { until } from '../../support/until.js';
import { startProxyProcess } from '../../support/proxy-process.js';

const proxy = await startProxyProcess(t, { config: { listen: { trust_forwarded: ['127.0.0.1', '10.0.0.0/8'] } } });

t.test('a line names the client behind trusted proxies and its user agent', async (t) => {
  const rows = [
    { id: 'direct', headers: {}, line: { client_address: '127.0.0.1', user_agent: null } },
    {
      id: 'proxied',
      headers: { 'X-Forwarded-For': '198.51.100.1, 203.0.113.7, 10.1.2.3' },
      line: { client_address: '203.0.113.7' },
    },
    { id: 'odd', headers: { 'X-Forwarded-For': 'unknown' }, line: { client_address: '127.0.0.1' } },
    {
      id: 'longest',
      headers: { 'X-Forwarded-For': '0000:0000:0000:0000:0000:ffff:255.255.255.255%a' },
      line: { client_address: '255.255.255.255' },
    },
    { id: 'agent', headers: { 'User-Agent': 'checkout/1.2 (café)\tx' }, line: { user_agent: 'checkout/1.2 (caf?)?x' } },
  ];
  for (const { id, headers, line } of rows) {
    for (const [whose, credential] of [
      ['caller', proxy.authorization()],
      ['stranger', {}],
    ] as const) {
      await proxy.request({
        path: '/orders',
        headers: { ...credential, ...headers, 'X-Request-Id': `${whose}-${id}` },
      });
      t.match(await proxy.logOf(`${whose}-${id}`), line, `${whose}, ${id}`);
    }
  }
  await proxy.send('GARBAGE\r\n\r\n');
  const garbage = await until('its line', () => proxy.logs().find(({ reason }) => reason === 'method_malformed'));
  t.match(garbage, { client_address: '127.0.0.1', user_agent: null, trace_id: null });
});

t.test('a token in a user agent, or beside one, is not written', async (t) => {
  const token = proxy.token();
  await proxy.request({
    path: '/orders',
    headers: { 'User-Agent': `agent ${token} end`, 'X-Request-Id': 'talkative' },
  });
  t.match(await proxy.logOf('talkative'), { user_agent: 'agent [redacted] end' });
  await proxy.request({
    path: '/orders',
    headers: { 'User-Agent': `${'x'.repeat(250)} ${token}`, 'X-Request-Id': 'talkative-late' },
  });
  t.match(await proxy.logOf('talkative-late'), { user_agent: `${'x'.repeat(250)} [reda` });
  t.same(await proxy.exposures(), []);
});

t.test('the trace of a line is the one that the service was told of', async (t) => {
  const sent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';
  const given = (): string => proxy.receiver.requests.at(-1)?.field('traceparent').join() ?? '';
  await proxy.request({
    path: '/orders',
    headers: { ...proxy.authorization(), traceparent: sent, 'X-Request-Id': 'traced' },
  });
  t.equal(given(), sent, 'unchanged');
  t.match(await proxy.logOf('traced'), { trace_id: '4bf92f3577b34da6a3ce929d0e0e4736' });
  await proxy.request({ path: '/orders', headers: { ...proxy.authorization(), 'X-Request-Id': 'untraced' } });
  t.match(given(), /^00-[0-9a-f]{32}-[0-9a-f]{16}-02$/, 'a new one claims no sampling');
  t.match(await proxy.logOf('untraced'), { trace_id: given().slice(3, 35) });
  await proxy.request({ path: '/orders', headers: { traceparent: sent, 'X-Request-Id': 'refused' } });
  t.match(await proxy.logOf('refused'), { status: 401, trace_id: '4bf92f3577b34da6a3ce929d0e0e4736' });
  await proxy.request({ path: '/orders', headers: { 'X-Request-Id': 'refused-untraced' } });
  t.match(await proxy.logOf('refused-untraced'), { status: 401, trace_id: null });
});

t.test('an enforced 403 says which permissions were missing, and to nobody but the operator', async (t) => {
  const answer = await proxy.request({
    path: '/orders',
    headers: { ...proxy.authorization({ permissions: ['other'] }), 'X-Request-Id': 'lacking' },
  });
  t.equal(answer.status, 403);
  t.notMatch(answer.text, 'orders:read');
  const line = await proxy.logOf('lacking');
  t.match(line, { reason: 'permission_missing', missing_permissions: ['orders:read'], level: 'info' });
  t.notOk('permissions' in line);
  await proxy.request({ path: '/orders', headers: { ...proxy.authorization(), 'X-Request-Id': 'served' } });
  t.notOk('missing_permissions' in (await proxy.logOf('served')));
});

t.test('what fails is a warning, what is refused is not, and both are counted by route', async (t) => {
  const counted = {
    served: 'sallyport_requests_total{route="list-orders",outcome="forwarded",code="2xx"}',
    broken: 'sallyport_requests_total{route="list-orders",outcome="forwarded",code="5xx"}',
    failed: 'sallyport_requests_total{route="list-orders",outcome="failed",code="5xx"}',
    denied: 'sallyport_requests_total{route="list-orders",outcome="denied",code="4xx"}',
    denials: 'sallyport_denials_total{route="list-orders",reason="credential_missing"}',
    failures: 'sallyport_failures_total{route="list-orders",reason="upstream_failed"}',
  };
  type Name = keyof typeof counted;
  const read = async (): Promise<Record<Name, number>> =>
    Object.fromEntries(
      await Promise.all(Object.entries(counted).map(async ([name, series]) => [name, await proxy.metric(series)])),
    ) as Record<Name, number>;
  const auth = proxy.authorization();
  const rows: readonly {
    name: string;
    headers: Readonly<Record<string, string>>;
    behave: 'well' | 500 | 'break';
    level: string;
    grows: readonly Name[];
  }[] = [
    { name: 'served', headers: auth, behave: 'well', level: 'info', grows: ['served'] },
    { name: 'refused', headers: {}, behave: 'well', level: 'info', grows: ['denied', 'denials'] },
    { name: 'the service answers 500', headers: auth, behave: 500, level: 'warn', grows: ['broken'] },
    { name: 'the service breaks off', headers: auth, behave: 'break', level: 'warn', grows: ['failed', 'failures'] },
  ];
  for (const [index, { name, headers, behave, level, grows }] of rows.entries()) {
    proxy.receiver.behave(
      behave === 'well'
        ? null
        : (req, res) => {
            if (behave === 'break') req.socket.destroy();
            else res.writeHead(behave).end();
          },
    );
    const before = await read();
    await proxy.request({ path: '/orders', headers: { ...headers, 'X-Request-Id': `level-${index}` } });
    t.match(await proxy.logOf(`level-${index}`), { level }, name);
    const after = await read();
    t.same(
      Object.keys(counted).filter((key) => after[key as Name] !== before[key as Name]),
      grows,
      name,
    );
  }
  proxy.receiver.behave(null);
});

t.test('what usual proxies send is no attack: only what speaks of the caller counts as identity', async (t) => {
  const auth = proxy.authorization();
  const fromNginx = {
    Host: 'orders.example',
    'X-Real-IP': '203.0.113.7',
    'X-Forwarded-For': '203.0.113.7',
    'X-Forwarded-Proto': 'https',
    'X-Forwarded-Host': 'orders.example',
    'X-Forwarded-Port': '443',
    'X-Forwarded-Scheme': 'https',
    'X-Scheme': 'https',
    'X-Request-Id': 'ab12',
  };
  const kinds = async (): Promise<readonly number[]> =>
    Promise.all(
      ['identity', 'forwarded'].map(async (kind) => proxy.metric(`sallyport_stripped_fields_total{kind="${kind}"}`)),
    );
  const [identity = 0, forwarded = 0] = await kinds();
  t.equal((await proxy.request({ path: '/orders', headers: { ...auth, ...fromNginx } })).status, 200);
  t.same(await kinds(), [identity, forwarded + 4]);
  t.equal((await proxy.request({ path: '/orders', headers: { ...auth, 'X-Auth-Subject': 'root' } })).status, 200);
  t.same(await kinds(), [identity + 1, forwarded + 4]);
});

t.test('the metrics say what runs', async (t) => {
  const { text } = await proxy.admin('/metrics');
  t.match(
    text,
    new RegExp(
      `^sallyport_build_info\\{version="${version}",revision="[^"]+",node="${process.versions.node}"\\} 1$`,
      'm',
    ),
  );
});

t.test('a reload leaves out what an operator may not keep, and the trace where the service begins it', async (t) => {
  proxy.rewrite({
    log: { client_address: false, user_agent: false, level: 'warn' },
    upstream: { begin_trace: false },
    mode: 'shadow',
  });
  await proxy.loaded();
  proxy.receiver.behave((_req, res) => res.writeHead(503).end());
  await proxy.request({ path: '/orders', headers: { 'User-Agent': 'x', 'X-Request-Id': 'discreet' } });
  const line = await proxy.logOf('discreet');
  t.match(
    line,
    { decision: 'shadow', status: 503, level: 'warn', trace_id: null },
    'it has its line at level warn too',
  );
  t.same(
    ['client_address', 'user_agent'].filter((member) => member in line),
    [],
  );
  t.same(proxy.receiver.requests.at(-1)?.field('traceparent'), []);
  proxy.receiver.behave(null);
  proxy.rewrite({ mode: 'shadow' });
  await proxy.loaded();
  await proxy.request({ path: '/orders', headers: { 'User-Agent': 'x', 'X-Request-Id': 'shown' } });
  t.match(await proxy.logOf('shown'), { decision: 'shadow', client_address: '127.0.0.1', user_agent: 'x' });
});
