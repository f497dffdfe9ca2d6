import { randomUUID } from 'node:crypto';
import t from 'tap';
import { startReservingProxy, type WriteInput } from './reserving-proxy.js';

const proxy = await startReservingProxy(t);

/** Writes that share a key with `base`, and whether they are the same request. */
interface Row {
  readonly name: string;
  readonly base?: WriteInput;
  readonly other: WriteInput;
  readonly same: boolean;
}

const boundary = (name: string): WriteInput => ({
  headers: { 'Content-Type': `multipart/form-data; boundary=${name}` },
  body: `--${name}\r\n\r\nx\r\n--${name}--\r\n`,
});

const rows: readonly Row[] = [
  { name: 'another body', other: { body: '{"item":2}' }, same: false },
  { name: 'another length of body', other: { body: '{"item":1} ' }, same: false },
  { name: 'another method', other: { method: 'PUT' }, same: false },
  { name: 'a query', other: { path: '/orders?dry=1' }, same: false },
  { name: 'an empty query', other: { path: '/orders?' }, same: false },
  {
    name: 'another spelling of the query',
    base: { path: '/orders?a=1&b=2' },
    other: { path: '/orders?b=2&a=1' },
    same: false,
  },
  {
    name: 'another Content-Type',
    other: { headers: { 'Content-Type': 'application/json; charset=utf-8' } },
    same: false,
  },
  { name: 'a Content-Encoding', other: { headers: { 'Content-Encoding': 'gzip' } }, same: false },
  { name: 'a multipart boundary drawn anew', base: boundary('one'), other: boundary('two'), same: false },
  {
    name: 'a field that the route lists',
    base: { path: '/fields' },
    other: { path: '/fields', headers: { 'If-Match': '"1"' } },
    same: false,
  },
  {
    name: 'another value of it',
    base: { path: '/fields', headers: { Prefer: 'a' } },
    other: { path: '/fields', headers: { prefer: 'b' } },
    same: false,
  },
  { name: 'a field that the route does not list', other: { headers: { 'If-Match': '"1"' } }, same: true },
  {
    name: 'the value of one listed field in another',
    base: { path: '/fields', headers: { 'If-Match': 'x' } },
    other: { path: '/fields', headers: { Prefer: 'x' } },
    same: false,
  },
  {
    name: 'what differs between honest retries',
    other: {
      claims: { jti: 'another', iat: Math.floor(Date.now() / 1000) - 3 },
      headers: {
        Date: 'Sat, 01 Jan 2022 00:00:00 GMT',
        traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
        tracestate: 'a=b',
        'X-Request-Id': 'mine',
        'User-Agent': 'other',
        Accept: '*/*',
      },
    },
    same: true,
  },
];

for (const { name, base, other, same } of rows) {
  t.test(`${name} is ${same ? 'the same' : 'a different'} request`, async (t) => {
    const key = randomUUID();
    t.equal((await proxy.write({ ...base, key })).status, 200);
    const second = await proxy.write({ ...base, ...other, key });
    if (same) t.equal(second.field('Idempotent-Replayed'), 'true');
    else t.equal(second.status, 422);
    t.equal((await proxy.write({ ...base, key })).field('Idempotent-Replayed'), 'true', 'the first is kept');
  });
}

t.test('chunked or with a length, one body is one body', async (t) => {
  const key = randomUUID();
  await proxy.write({ key, body: 'abc' });
  const chunked = await proxy.write({
    key,
    body: '1\r\na\r\n2\r\nbc\r\n0\r\n\r\n',
    headers: { 'Transfer-Encoding': 'chunked' },
  });
  t.equal(chunked.field('Idempotent-Replayed'), 'true');
});

t.test('one key under another subject, route or audience is another key', async (t) => {
  const key = randomUUID();
  const before = proxy.executions().length;
  const canaries: string[] = [];
  const strangers: readonly WriteInput[] = [
    {},
    { claims: { sub: 'migration' } },
    { path: '/optional' },
    { path: '/fields' },
  ];
  for (const input of strangers) {
    const answer = await proxy.write({ ...input, key, headers: { 'X-Canary': `canary-${canaries.length}` } });
    t.equal(answer.status, 200);
    t.equal(answer.field('Idempotent-Replayed'), null);
    canaries.push(`canary-${canaries.length}`);
  }
  t.equal(proxy.executions().length, before + strangers.length);
  for (const [index, input] of strangers.entries()) {
    const { text } = await proxy.write({ ...input, key });
    t.same(
      canaries.filter((canary) => text.includes(canary)),
      [`canary-${index}`],
      "no answer carries another scope's",
    );
  }
  t.equal(proxy.executions().length, before + strangers.length);
});

t.test('behind a proxy that is trusted, the host that its caller asked for tells requests apart', async (t) => {
  const tenants = {
    name: 'tenants',
    methods: ['POST'],
    path: '/tenants',
    subjects: ['checkout'],
    permissions: [],
    idempotency: { mode: 'required', fields: ['host'] },
  };
  for (const [trusted, status] of [
    ['127.0.0.1', 422],
    ['192.0.2.1', 200],
  ] as const) {
    const behind = await startReservingProxy(t, {
      config: { listen: { trust_forwarded: [trusted] }, routes: [tenants] },
    });
    const write = async (host: string): Promise<number> => {
      const answer = await behind.write({ path: '/tenants', key: 'k', headers: { 'X-Forwarded-Host': host } });
      return answer.status;
    };
    t.same([await write('a.example'), await write('a.example')], [200, 200]);
    t.equal(await write('b.example'), status, 'from others it counts for nothing, here and for the upstream');
    t.equal(behind.executions().length, 1);
  }
});

t.test('a field that is removed but for upstream.pass_fields tells requests apart', async (t) => {
  const moves = {
    name: 'moves',
    methods: ['POST'],
    path: '/moves',
    subjects: ['checkout'],
    permissions: [],
    idempotency: { mode: 'required', fields: ['Destination'] },
  };
  const webDav = await startReservingProxy(t, {
    config: { upstream: { pass_fields: ['Destination'] }, routes: [moves] },
  });
  const move = async (to: string): Promise<number> => {
    const answer = await webDav.write({ path: '/moves', key: 'k', headers: { Destination: to } });
    return answer.status;
  };
  t.same([await move('/a'), await move('/a'), await move('/b')], [200, 200, 422]);
  t.same(
    webDav.executions().map(({ field }) => field('Destination')),
    [['/a']],
  );
});

t.test('policy is checked before a stored result is shown', async (t) => {
  const key = randomUUID();
  await proxy.write({ key });
  t.equal((await proxy.write({ key, claims: { permissions: [] } })).status, 403);
  t.equal((await proxy.write({ key, claims: { exp: Math.floor(Date.now() / 1000) - 60 } })).status, 401);
  t.equal((await proxy.write({ key })).field('Idempotent-Replayed'), 'true');
});
