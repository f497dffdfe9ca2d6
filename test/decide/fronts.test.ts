/** Real proxies, set up as docs/decide.md says, in front of a real receiver: what they forward, and in whose name. */
import { once } from 'node:events';
import { connect, type IncomingHttpHeaders } from 'node:http2';
import t from 'tap';
import { readCorpusTargets } from '../conformance/corpus-targets.js';
import { pathReaders } from '../regression/path-readers.js';
import { ambiguousTargets } from '../support/attacks/targets.js';
import { believedFields, cases, lookAlikes, obeyedFields } from '../support/attacks/field-names.js';
import { ownFields } from '../support/attacks/connection-options.js';
import { handshakeFields } from '../support/attacks/handshakes.js';
import { until } from '../support/until.js';
import { identityNames, startShown, type Fronted } from './deciding.js';

t.setTimeout(240_000);

const open = {
  methods: ['GET', 'POST'],
  subjects: ['checkout'],
  permissions: [],
  idempotency: { mode: 'none', because: 'tests' },
};
const config = {
  receiver: { case_sensitive: true, strict_slash: true, format_suffix: false, trailing_dots: false },
  routes: [
    { ...open, name: 'files', path: '/files/**' },
    { ...open, name: 'names', path: '/names/{name}', encoded_slashes: 'allow' },
    { ...open, name: 'matrix', path: '/matrix/{point}', path_parameters: 'allow' },
    {
      ...open,
      name: 'secret',
      path: ['/admin/**', '/files/secret/**', '/names/{name}/secret'],
      permissions: ['admin'],
    },
    { name: 'open', methods: ['GET'], path: '/open/**', access: 'public' },
    { ...open, name: 'limited', path: '/limited', limits: { requests_per_second: 1, burst: 2 } },
    { ...open, name: 'socket', methods: ['GET'], path: '/socket', websocket: true },
    {
      name: 'reserved',
      methods: ['POST'],
      path: '/reserved',
      subjects: ['checkout'],
      permissions: [],
      idempotency: 'optional',
    },
  ],
  store: { memory: {} },
};

const names = ['nginx', 'caddy', 'haproxy', 'apache'] as const;

/** Where only who has the permission may come, as any reader of the path finds it. */
const stricter = /^\/(?:admin|files\/secret|names\/[^/]*\/secret)(?:\/|$)/;

function strictReaders(target: string): readonly string[] {
  return Object.entries(pathReaders).flatMap(([reader, read]) => {
    const path = read(target);
    return path !== null && stricter.test(path) ? [`${reader}: ${path}`] : [];
  });
}

/** Values of the identity headers that reached the receiver with the last request; empty ones are none. */
function identityOf({ proxy: { receiver } }: Fronted): Record<string, readonly string[]> {
  const last = receiver.requests.at(-1);
  return Object.fromEntries(
    identityNames.map((name) => [name, (last?.field(name) ?? []).filter((value) => value !== '')]),
  );
}

for (const name of names) {
  t.test(`${name}: who is allowed comes through with an identity, and who is not does not`, async (t) => {
    const front = await startShown(t, name, config);
    const { requests } = front.proxy.receiver;
    const allowed = await front.askAs({ path: '/files/a?q=%20x', headers: { 'X-Note': 'kept' } });
    t.equal(allowed.status, 200);
    t.match(requests.at(-1), { method: 'GET', target: '/files/a?q=%20x' });
    t.same(requests.at(-1)?.field('x-note'), ['kept']);
    const identity = identityOf(front);
    t.match(identity['X-Auth-Subject'], ['checkout']);
    t.same(
      (requests.at(-1)?.field('authorization') ?? []).filter((value) => value !== ''),
      [],
      'no token goes on',
    );
    t.equal((await front.askAs({ method: 'POST', path: '/files/b', body: 'hello' })).status, 200);
    await until('the body', () => requests.at(-1)?.complete);
    t.equal(String(requests.at(-1)?.body), 'hello');

    const before = requests.length;
    const nobody = await front.ask({ path: '/files/a' });
    t.equal(nobody.status, 401);
    t.match(nobody.field('www-authenticate'), /^Bearer/);
    t.equal((await front.askAs({ path: '/admin/a' })).status, 403);
    t.equal((await front.askAs({ path: '/unknown' })).status, 403);
    t.equal((await front.askAs({ method: 'DELETE', path: '/files/a' })).status, 403);
    t.equal(requests.length, before);
    t.equal((await front.ask({ path: '/open/a' })).status, 200);
    t.same(Object.values(identityOf(front)).flat(), [], 'nobody on a public route');
    const line = front.proxy.logs().find(({ path }) => path === '/admin/a');
    t.match(line, {
      asked_by: name,
      reason: 'permission_missing',
      route: 'secret',
      subject: 'checkout',
      upstream_ms: null,
    });
    t.ok((await front.proxy.metric(`sallyport_decisions_total{form="${name}",outcome="forwarded"}`)) >= 3);
  });

  t.test(`${name}: limits, reservations and connections`, async (t) => {
    const front = await startShown(t, name, config);
    const statuses: number[] = [];
    for (let i = 0; i < 3; i++) {
      const limited = await front.askAs({ path: '/limited' });
      statuses.push(limited.status);
      if (limited.status === 429) t.match(limited.field('retry-after'), /^\d+$/);
    }
    t.same(statuses, [200, 200, 429]);
    const before = front.proxy.receiver.requests.length;
    const reserved = await front.askAs({ method: 'POST', path: '/reserved', headers: { 'Idempotency-Key': '"a1"' } });
    t.equal(reserved.status, 403);
    const handshake: [string, string][] = [['Authorization', `Bearer ${front.proxy.token()}`]];
    const fields = handshakeFields();
    for (let i = 0; i < fields.length; i += 2) handshake.push([fields[i] ?? '', fields[i + 1] ?? '']);
    t.equal((await front.ask({ path: '/socket', headers: handshake })).status, 403);
    t.not((await front.ask({ path: '/files/a', headers: handshake })).status, 200, 'no route of WebSockets');
    t.equal(front.proxy.receiver.requests.length, before);
    t.equal(
      (await front.askAs({ method: 'POST', path: '/reserved' })).status,
      200,
      'without a key nothing is reserved',
    );
  });

  t.test(`${name}: no target leads past a stricter route`, async (t) => {
    const front = await startShown(t, name, config);
    const targets = [
      ...ambiguousTargets.flatMap((row) => row.targets),
      ...['/files/', '/names/', '/matrix/', '/open/'].flatMap((prefix) =>
        [
          '..',
          '%2e%2e',
          '..;',
          '.',
          '%2e',
          'x/..',
          'x%2f..',
          'x%2f..%2f..',
          '..%2f',
          'x/../..',
          '..\\',
          '%5c..%5c..',
        ].flatMap((piece) => [
          `${prefix}${piece}/admin/a`,
          `${prefix}${piece}%2fadmin/a`,
          `${prefix}${piece}/secret/a`,
        ]),
      ),
      '/names/x%2fsecret/a',
      '/names/x%2f%2e%2e%2fsecret',
      '//admin/a',
      '/%61dmin/a',
      '/ADMIN/a',
      '/open/%00/../admin/a',
      '/open?/../admin/a',
      '/open/%3f/../../admin/a',
      'http://other.example/admin/a',
      'http://127.0.0.1/open/../admin/a',
      ...readCorpusTargets('/open/'),
    ];
    const { requests } = front.proxy.receiver;
    const before = requests.length;
    let answered = 0;
    for (const path of targets) {
      const response = await front.askAs({ path }).catch(() => null);
      if (response !== null) answered += 1;
    }
    const through = requests.slice(before);
    t.ok(answered > 200, `${String(answered)} answers`);
    t.ok(through.length > 0, `${String(through.length)} reached the receiver`);
    // What opts in to an encoded slash has a receiver that does not decode it before it routes.
    const judged = through.filter(({ target }) => !target.startsWith('/names/') && !target.startsWith('/matrix/'));
    t.same(
      judged.flatMap(({ target }) => strictReaders(target)),
      [],
      'none that a reader takes for a stricter route',
    );
    const logged = front.proxy.logs().flatMap(({ decision, path }) => (decision === 'forwarded' ? [String(path)] : []));
    t.same(
      through.map(({ target }) => target.split('?', 1)[0] ?? '').filter((path) => !logged.includes(path)),
      [],
      'the receiver got the very path that was judged',
    );
  });

  t.test(`${name}: no spoofed identity comes through`, async (t) => {
    const front = await startShown(t, name, config);
    const { requests } = front.proxy.receiver;
    const spoofed = 'spoofed-by-a-client';
    const names = [
      ...identityNames.flatMap((own) => [...cases(own), ...lookAlikes(own)]),
      'X-Auth-Client-Certificate',
      'X-Auth-Assertion',
      ...believedFields.flatMap(({ names: believed }) => believed),
      ...obeyedFields,
      ...lookAlikes('X-Auth-Subject'),
    ];
    const principal =
      /^(?:x-?auth|remote-|x-remote|x-forwarded-(?:user|email|groups|pref)|x-http-method|x-method|x-original|x-rewrite|ssl-|x-ssl)/i;
    const before = requests.length;
    for (const name of names) {
      for (const path of ['/files/a', '/open/a']) {
        await front.askAs({ path, headers: { [name]: spoofed } }).catch(() => null);
        await front
          .ask({
            path,
            headers: [
              [name, spoofed],
              [name, spoofed],
              ['Authorization', `Bearer ${front.proxy.token()}`],
            ],
          })
          .catch(() => null);
      }
    }
    const key = (text: string): string => text.toLowerCase().replace(/[^0-9a-z]/g, '');
    const identities = new Set(identityNames.map(key));
    const seen = requests.slice(before).flatMap(({ rawHeaders }) =>
      rawHeaders.flatMap((text, i) => {
        const own = rawHeaders[i - 1] ?? '';
        const isBad = i % 2 === 1 && text.includes(spoofed) && (identities.has(key(own)) || principal.test(own));
        return isBad ? [`${own}: ${text}`] : [];
      }),
    );
    t.same([...new Set(seen)], []);
    t.ok(requests.length > before, `${String(requests.length - before)} of ${String(4 * names.length)} came through`);

    for (const own of [...identityNames, ...ownFields]) {
      const count = requests.length;
      await front.askAs({ path: '/files/a', headers: { Connection: `close, ${own}` } }).catch(() => null);
      if (requests.length > count) t.match(identityOf(front)['X-Auth-Subject'], ['checkout'], `Connection: ${own}`);
    }
  });

  t.test(`${name}: a client cannot describe its own request`, async (t) => {
    const front = await startShown(t, name, config);
    const { requests } = front.proxy.receiver;
    const before = requests.length;
    for (const own of [
      'X-Original-URI',
      'X-Forwarded-Uri',
      'X-Original-Method',
      'X-Forwarded-Method',
      'X-Forwarded-Host',
    ]) {
      for (const value of ['/open/a', 'GET', '/files/a']) {
        const headers = { [own]: value };
        t.not((await front.askAs({ path: '/admin/a', headers })).status, 200, `${own}: ${value}`);
        t.not((await front.askAs({ method: 'DELETE', path: '/files/a', headers })).status, 200, `${own}: ${value}`);
      }
    }
    t.equal(requests.length, before);
  });

  t.test(`${name}: no other protocol than WebSocket comes through, however it is asked for`, async (t) => {
    const front = await startShown(t, name, config, { decide: { accept: ['connections'] } });
    const { requests } = front.proxy.receiver;
    for (const offered of [
      ['h2c'],
      ['websocket', 'h2c'],
      ['h2c', 'websocket'],
      ['websocket, h2c'],
      ['websocket', ''],
    ]) {
      for (const path of ['/files/a', '/open/a', '/socket']) {
        await front
          .ask({
            path,
            headers: [
              ['Authorization', `Bearer ${front.proxy.token()}`],
              ['Connection', 'Upgrade'],
              ...offered.map((protocol): [string, string] => ['Upgrade', protocol]),
            ],
          })
          .catch(() => null);
      }
    }
    t.same(
      requests.flatMap((request) => request.field('upgrade')).filter((protocol) => protocol !== 'websocket'),
      [],
    );
  });

  t.test(`${name}: the host that is judged is the one that goes on`, async (t) => {
    const front = await startShown(t, name, config);
    const { requests } = front.proxy.receiver;
    for (const host of ['orders.example.com', 'other.example,orders.example.com', 'a,b']) {
      const headers: [string, string][] = [
        ['Host', host],
        ['Authorization', `Bearer ${front.proxy.token()}`],
      ];
      const count = requests.length;
      await front.ask({ path: '/files/a', headers });
      const told = requests.slice(count).flatMap((request) => request.field('x-forwarded-host'));
      t.same(
        told.filter((value) => value !== host),
        [],
        host,
      );
    }
    t.ok(requests.length > 0);
  });

  t.test(`${name}: as many headers as it takes, and more, end neither it nor the proxy`, async (t) => {
    const front = await startShown(t, name, config);
    const statuses = new Set<number>();
    for (let count = 80; count <= 130; count += 1) {
      const headers: [string, string][] = Array.from({ length: count }, (_, i) => [`X-H${String(i)}`, '1']);
      for (const credential of [[], [['Authorization', `Bearer ${front.proxy.token()}`] as [string, string]]]) {
        const { status } = await front.ask({ path: '/files/a', headers: [...credential, ...headers] });
        statuses.add(status);
      }
    }
    t.comment([...statuses].join(', '));
    t.equal((await front.askAs({ path: '/files/a' })).status, 200);
  });
}

t.test('haproxy: a handshake over HTTP/2 is judged as one', async (t) => {
  const refusing = await startShown(t, 'haproxy', config);
  t.equal(await shakeHands(refusing, '/socket'), 403, 'connections are not accepted');
  t.same(refusing.proxy.receiver.requests, []);
  const accepting = await startShown(t, 'haproxy', config, { decide: { accept: ['connections'] } });
  t.not(await shakeHands(accepting, '/files/a'), 200, 'no route of WebSockets');
  t.not(await shakeHands(accepting, '/open/a'), 200, 'nor this one');
  t.same(accepting.proxy.receiver.requests, []);
  await shakeHands(accepting, '/socket');
  t.match(
    accepting.proxy.logs().find(({ path }) => path === '/socket'),
    { decision: 'forwarded', route: 'socket' },
  );
});

/** The status that a WebSocket's handshake over a stream is answered with (RFC 8441 §4). */
async function shakeHands({ frontPort, proxy }: Fronted, path: string): Promise<number> {
  const session = connect(`http://127.0.0.1:${String(frontPort)}`);
  try {
    await once(session, 'remoteSettings');
    const stream = session.request({
      ':method': 'CONNECT',
      ':protocol': 'websocket',
      ':scheme': 'http',
      ':authority': 'orders.example.com',
      ':path': path,
      authorization: `Bearer ${proxy.token()}`,
      'sec-websocket-version': '13',
    });
    const [headers] = (await once(stream, 'response')) as [IncomingHttpHeaders];
    return Number(headers[':status']);
  } finally {
    session.destroy();
  }
}
