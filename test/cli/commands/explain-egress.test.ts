import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { run } from '../../../src/cli/program.js';
import { tempDir } from '../../support/temp-dir.js';
import { captureIo, type CapturedIo } from '../captured-io.js';

const config = {
  egress: {
    tokens: { own: { file: '/run/token' } },
    targets: [
      {
        name: 'orders',
        prefix: '/orders',
        url: 'https://orders.shop.svc/api',
        token: 'own',
        allow: [{ methods: ['GET', 'POST'], path: '/v1/**' }],
        idempotency: 'generate',
      },
      {
        name: 'bills',
        prefix: '/bills',
        url: 'https://bills.shop.svc',
        allow: [{ methods: ['*'], path: '/**' }],
        idempotency: 'require',
        key_from: { header: 'X-Bill' },
      },
    ],
  },
};

async function explain(args: readonly string[], text: unknown = config): Promise<CapturedIo> {
  const cwd = tempDir(t);
  writeFileSync(join(cwd, 'sallyport.yaml'), JSON.stringify(text));
  const io = captureIo({ cwd });
  await run(['explain', '--config', 'sallyport.yaml', '--egress', ...args], io);
  return io;
}

const rows: readonly { readonly args: readonly string[]; readonly code: number; readonly expected: object }[] = [
  {
    args: ['--method', 'POST', '--path', '/orders/v1/a.B/C', '--header', 'Content-Type: application/grpc'],
    code: 0,
    expected: { allowed: true, key: 'none' },
  },
  {
    args: ['--method', 'POST', '--path', '/orders/v1/a?x=1'],
    code: 0,
    expected: {
      allowed: true,
      target: 'orders',
      sends: { method: 'POST', url: 'https://orders.shop.svc/api/v1/a?x=1' },
      token: 'own',
      key: 'generated',
      attempts: 3,
    },
  },
  { args: ['--method', 'GET', '--path', '/orders/v1/a'], code: 0, expected: { allowed: true, key: 'none' } },
  {
    args: ['--method', 'POST', '--path', '/orders/v1/a', '--header', 'Idempotency-Key: k'],
    code: 0,
    expected: { key: 'kept' },
  },
  {
    args: ['--method', 'PUT', '--path', '/bills/1'],
    code: 0,
    expected: { target: 'bills', token: null, key: 'derived' },
  },
  {
    args: ['--method', 'DELETE', '--path', '/orders/v1/a'],
    code: 1,
    expected: { allowed: false, reason: 'route_unknown', target: 'orders', sends: null },
  },
  {
    args: ['--method', 'GET', '--path', '/orders/v2'],
    code: 1,
    expected: { reason: 'route_unknown', target: 'orders' },
  },
  { args: ['--method', 'GET', '--path', '/other'], code: 1, expected: { reason: 'route_unknown', target: null } },
  { args: ['--method', 'GET', '--path', '/orders/../x'], code: 1, expected: { reason: 'target_malformed' } },
  { args: ['--method', 'GET', '--path', '/orders/v1/a%2fb'], code: 1, expected: { reason: 'target_malformed' } },
  { args: ['--method', 'TRACE', '--path', '/orders/v1'], code: 1, expected: { reason: 'method_not_allowed' } },
  {
    args: ['--method', 'POST', '--path', '/bills/1', '--header', 'Idempotency-Key: a b'],
    code: 1,
    expected: { reason: 'idempotency_key_malformed', target: 'bills' },
  },
];

t.test('explain says what the calling side would do, by the code that does it', async (t) => {
  for (const { args, code, expected } of rows) {
    const io = await explain([...args, '--json']);
    t.equal(io.code(), code, args.join(' '));
    t.match(JSON.parse(io.out()), expected, args.join(' '));
  }
});

t.test('in words', async (t) => {
  const sent = await explain(['--method', 'POST', '--path', '/orders/v1/a']);
  t.match(sent.out(), /^target {3}orders, by the prefix of its path$/m);
  t.match(sent.out(), /^sends {4}POST https:\/\/orders\.shop\.svc\/api\/v1\/a$/m);
  t.match(sent.out(), /^key {6}a new one, the same in each attempt$/m);
  t.match(sent.out(), /^retries {2}3 attempts at most, .* in doubt$/m);
  const refused = await explain(['--method', 'PUT', '--path', '/orders/v1/a']);
  t.match(refused.out(), /^allowed {2}GET POST \/orders\/v1\/\*\*$/m);
  t.match(refused.out(), /^denied {3}route_unknown: PUT \/orders\/v1\/a is not sent$/m);
  t.match((await explain(['--method', 'GET', '--path', '/x'])).out(), /prefixes of targets: \/orders, \/bills$/m);
});

t.test('what a token is bound to, and what the target is shown', async (t) => {
  const oauth = { issuer: 'https://idp.example.com', client_id: 'shop' };
  const own = { certificate_file: '/run/a.crt', key_file: '/run/a.key' };
  const tokens = {
    bearer: { oauth: { ...oauth, auth: { secret_file: '/run/secret' } } },
    key: { oauth: { ...oauth, auth: { secret_file: '/run/secret' } }, dpop: true },
    certificate: { oauth: { ...oauth, auth: own } },
  };
  const shown = { cert_file: '/run/a.crt', key_file: '/run/a.key' };
  const cases: readonly {
    readonly target: object;
    readonly expected: object;
    readonly lines: readonly RegExp[];
  }[] = [
    { target: { token: 'bearer' }, expected: { dpop: false, certificate: null }, lines: [/^token {4}bearer$/m] },
    {
      target: { token: 'key' },
      expected: { dpop: true, certificate: null },
      lines: [/^token {4}key, bound to a key of this process: each attempt has a proof of its own \(DPoP\)$/m],
    },
    {
      target: { token: 'bearer', ...shown },
      expected: { dpop: false, certificate: { file: '/run/a.crt', asksForToken: false } },
      lines: [/^shows {4}\/run\/a\.crt$/m],
    },
    { target: shown, expected: { token: null, certificate: { asksForToken: false } }, lines: [/^token {4}none$/m] },
    {
      target: { token: 'certificate', ...shown },
      expected: { dpop: false, certificate: { file: '/run/a.crt', asksForToken: true } },
      lines: [/^token {4}certificate$/m, /^shows {4}\/run\/a\.crt, with which the token is asked for as well$/m],
    },
    { target: { token: 'certificate' }, expected: { certificate: null }, lines: [/^token {4}certificate$/m] },
  ];
  for (const { target, expected, lines } of cases) {
    const allow = [{ methods: ['GET'], path: '/**' }];
    const targets = [{ name: 'orders', prefix: '/orders', url: 'https://orders.shop.svc', allow, ...target }];
    const args = ['--method', 'GET', '--path', '/orders/1'];
    const json = await explain([...args, '--json'], { egress: { tokens, targets } });
    t.match(JSON.parse(json.out()), expected, JSON.stringify(target));
    const words = await explain(args, { egress: { tokens, targets } });
    for (const line of lines) t.match(words.out(), line);
  }
});

t.test('a config without a calling side is said to be one', async (t) => {
  const io = await explain(['--method', 'GET', '--path', '/x'], {
    listen: { host: '127.0.0.1', port: 0 },
    upstream: { url: 'http://127.0.0.1:1' },
    issuers: { core: { issuer: 'https://a.example', audience: 'a', source: 'm', token_type: 's' } },
    routes: [{ name: 'a', methods: ['GET'], path: '/a', access: 'public' }],
  });
  t.equal(io.code(), 1);
  t.match(io.err(), /--egress: the config has no egress/);
});
