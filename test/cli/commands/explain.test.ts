import t from 'tap';
import { explain, get, post } from './run-explain.js';

t.test('each step of one decision, in words', async (t) => {
  const io = await explain(t, [
    ...post('/orders?x=1'),
    '--subject',
    'checkout',
    '--permissions',
    'orders:write orders:read',
    '--token-id',
    'j-1',
    '--header',
    'Idempotency-Key: k-1',
    '--header',
    'X_Auth.Subject: root',
    '--header',
    'TE: trailers',
  ]);
  t.equal(io.code(), 0);
  for (const line of [
    /^POST \/orders\?x=1$/m,
    /^ {2}target {6}ok {6}\/orders is read as "orders" and forwarded byte for byte; the query is not judged$/m,
    /dropped, since only Sallyport says or judges such: X_Auth\.Subject$/m,
    /for this connection only: TE$/m,
    /^ {2}route {7}ok {6}create-order, by POST \/orders$/m,
    /not list-orders: \/orders is for GET$/m,
    /other paths: read-order export-orders try-order count health$/m,
    /assumed: these claims are taken for granted, and no signature was verified$/m,
    /filled in as issuer core would: iss "https:\/\/api\.example\.com", aud "orders"/,
    /subject checkout, permissions orders:write orders:read, token id j-1$/m,
    /any_of 1: permission orders:read: held$/m,
    /any_of 2: subject checkout: not approved; approved: migration$/m,
    /Idempotency-Key required, operation create-order, kept for 24 h$/m,
    /would reserve record [\w-]{43}\.[\w-]{43}$/m,
    /would use up token id j-1$/m,
    /^ {4}X-Auth-Permissions: orders:write orders:read$/m,
    /^ {4}Idempotency-Record: [\w-]{43}\.[\w-]{43}$/m,
    /^allowed: route create-order$/m,
  ]) {
    t.match(io.out(), line);
  }
  t.notMatch(io.out(), /Authorization|root|eyJ/, 'neither the token nor what was dropped');
  t.equal(io.err(), '');
});

t.test('a write that may run again: why, and what the upstream is told where only the token is reserved', async (t) => {
  const io = await explain(t, [...post('/counts'), '--subject', 'checkout', '--permissions', '', '--token-id', 'j-1']);
  t.equal(io.code(), 0);
  for (const line of [
    /a write that is sent again runs again, because: one more or less is no matter$/m,
    /a token passes once$/m,
    /would use up token id j-1$/m,
    /^ {4}Idempotency-Record: [\w-]{43}\.[\w-]{43}$/m,
    /^ {4}Idempotency-Fence: \(a number of the store\)$/m,
  ]) {
    t.match(io.out(), line);
  }
  const reserved = await explain(t, [
    ...post('/orders'),
    '--subject',
    'migration',
    '--permissions',
    'orders:import',
    '--token-id',
    'j',
    '--header',
    'Idempotency-Key: k',
  ]);
  t.notMatch(reserved.out(), /because:/);
});

t.test('the decision, its reason and the exit code', async (t) => {
  const as = (subject: string, permissions = 'orders:read'): readonly string[] => [
    '--subject',
    subject,
    '--permissions',
    permissions,
  ];
  const rows: readonly { name: string; words: readonly string[]; code: number; ends: string; says?: RegExp }[] = [
    { name: 'allowed', words: [...get('/orders'), ...as('checkout')], code: 0, ends: 'allowed: route list-orders' },
    {
      name: 'public',
      words: get('/healthz'),
      code: 0,
      ends: 'allowed: route health',
      says: /nobody is asked who they are/,
    },
    {
      name: 'no credential',
      words: get('/orders'),
      code: 1,
      ends: 'denied: 401 credential_missing (route list-orders)',
    },
    {
      name: 'another subject',
      words: [...get('/orders'), ...as('eve')],
      code: 1,
      ends: 'denied: 403 subject_not_approved (route list-orders)',
      says: /not approved; approved: checkout reporting/,
    },
    {
      name: 'a permission missing',
      words: [...get('/orders'), ...as('checkout', '')],
      code: 1,
      ends: 'denied: 403 permission_missing (route list-orders)',
      says: /permission_missing: orders:read/,
    },
    {
      name: 'a literal beats {id}',
      words: [...get('/orders/export'), ...as('checkout')],
      code: 1,
      ends: 'denied: 403 subject_not_approved (route export-orders)',
      says: /not read-order: \/orders\/\{id\} matches too, and a more specific path wins/,
    },
    {
      name: 'no route',
      words: [...get('/orders/'), ...as('checkout')],
      code: 1,
      ends: 'denied: 403 route_unknown (no route)',
      says: /not list-orders: \/orders differs in case or in a trailing slash, which count/,
    },
    {
      name: 'no route and no credential',
      words: get('/Orders'),
      code: 1,
      ends: 'denied: 401 credential_missing (no route)',
      says: /told to nobody without a valid credential/,
    },
    {
      name: 'revoked subject',
      words: [...get('/orders'), ...as('mallory')],
      code: 1,
      ends: 'denied: 401 subject_revoked (route list-orders)',
      says: /revoked\.subjects names mallory/,
    },
    {
      name: 'revoked token',
      words: [...get('/orders'), ...as('checkout'), '--token-id', 'stolen'],
      code: 1,
      ends: 'denied: 401 token_revoked (route list-orders)',
      says: /revoked\.token_ids names stolen/,
    },
    {
      name: 'a target with two readings',
      words: [...get('/orders/../x'), ...as('checkout')],
      code: 1,
      ends: 'denied: 400 target_malformed (no route)',
      says: /nothing is normalised/,
    },
    {
      name: 'a method nobody parses',
      words: ['--method', 'BREW', '--path', '/orders'],
      code: 1,
      ends: 'denied: 400 method_malformed (no route)',
    },
    {
      name: 'TRACE',
      words: ['--method', 'TRACE', '--path', '/orders'],
      code: 1,
      ends: 'denied: 405 method_not_allowed (no route)',
    },
    {
      name: 'a key missing',
      words: [...post('/orders'), ...as('migration', 'orders:import'), '--token-id', 'j'],
      code: 1,
      ends: 'denied: 400 idempotency_key_missing (route create-order)',
    },
    {
      name: 'a token id missing',
      words: [...post('/orders'), ...as('migration', 'orders:import')],
      code: 1,
      ends: 'denied: 401 token_id_missing (route create-order)',
    },
    {
      name: 'a body with GET',
      words: [...get('/orders'), ...as('checkout'), '--header', 'Content-Length: 3'],
      code: 1,
      ends: 'denied: 400 body_not_allowed (route list-orders)',
    },
    {
      name: 'too large',
      words: [...post('/orders'), ...as('migration', 'orders:import'), '--header', 'Content-Length: 9999999'],
      code: 1,
      ends: 'denied: 413 body_too_large (route create-order)',
    },
    {
      name: 'shadow',
      words: ['--method', 'PUT', '--path', '/orders/1', ...as('eve')],
      code: 0,
      ends: 'allowed in shadow mode: route try-order; enforced it would be 403 subject_not_approved',
      says: /SHADOW/,
    },
    {
      name: 'a repeated field',
      words: [...get('/orders'), '--header', 'Host: a', '--header', 'Host: b'],
      code: 1,
      ends: 'denied: 400 field_repeated (no route)',
    },
  ];
  for (const { name, words, code, ends, says } of rows) {
    const io = await explain(t, words);
    t.equal(io.code(), code, name);
    t.equal(io.out().trimEnd().split('\n').at(-1), ends, name);
    if (says !== undefined) t.match(io.out(), says, name);
  }
});

t.test('--json has the same steps as data', async (t) => {
  const io = await explain(t, [...get('/orders'), '--subject', 'checkout', '--json']);
  t.equal(io.code(), 1);
  t.match(JSON.parse(io.out()), {
    request: { method: 'GET', path: '/orders' },
    decision: 'denied',
    status: 403,
    reason: 'permission_missing',
    missing: ['orders:read'],
    route: 'list-orders',
    mode: 'enforce',
    principal: { subject: 'checkout', issuer: 'core' },
    reservation: null,
    headers: null,
  });
  const outcomes = (JSON.parse(io.out()) as { steps: { step: string; outcome: string }[] }).steps.map(
    ({ step, outcome }) => `${step} ${outcome}`,
  );
  t.same(outcomes, [
    'request passed',
    'target passed',
    'fields passed',
    'route passed',
    'credential passed',
    'token passed',
    'proof passed',
    'revocation passed',
    'policy refused',
    'body not_reached',
    'reservation not_reached',
  ]);
  const allowed = await explain(t, [
    ...post('/orders'),
    '--subject',
    'migration',
    '--permissions',
    'orders:import',
    '--token-id',
    'j',
    '--header',
    'Idempotency-Key: k',
    '--json',
  ]);
  t.match(JSON.parse(allowed.out()), {
    decision: 'allowed',
    status: 200,
    reason: null,
    reservation: { operation: 'create-order', single_use: true },
  });
});

t.test('options that may not be given, or not together, are wrong usage', async (t) => {
  const rows: readonly { words: readonly string[]; says: RegExp }[] = [
    { words: ['--method', 'GET'], says: /--path/ },
    { words: [...get('/'), '--header', 'Authorization: Bearer x'], says: /standard input/ },
    { words: [...get('/'), '--header', 'no colon'], says: /a name, a colon and a value/ },
    { words: [...get('/'), '--token-stdin', '--subject', 'a'], says: /cannot be used with/ },
    { words: [...get('/'), '--claims', 'f', '--subject', 'a'], says: /cannot be used with/ },
    { words: [...get('/'), '--permissions', 'a'], says: /need --subject or --claims/ },
  ];
  for (const { words, says } of rows) {
    const io = await explain(t, words);
    t.equal(io.code(), 2, words.join(' '));
    t.match(io.err(), says, words.join(' '));
    t.notMatch(io.err(), /Bearer x/);
  }
  const bad = await explain(t, get('/'), { config: { routes: [] } });
  t.equal(bad.code(), 1, 'a bad config');
  t.match(bad.err(), /error: /);
});

t.test('controls that a caller chose are printed as escapes', async (t) => {
  const io = await explain(t, [...get('/\u001b[2J'), '--subject', 'a\u001b[2Jb', '--header', 'A\u001b: x']);
  t.notMatch(io.out(), /\u001b/);
});

t.test('sessions and WebSockets', async (t) => {
  const config = {
    sessions: { core_url: 'http://127.0.0.1:1', api_domain: 'https://api.example.com' },
    routes: [
      { name: 'profile', methods: ['GET'], path: '/me', accept: ['session'], session: { claims: { role: 'support' } } },
      {
        name: 'feed',
        methods: ['GET'],
        path: '/feed',
        subjects: ['checkout'],
        permissions: [],
        websocket: true,
        origins: ['https://app.example.com'],
      },
    ],
  };
  const upgrade = (...words: readonly string[]): readonly string[] => [
    ...get('/feed'),
    '--subject',
    'checkout',
    '--header',
    'Upgrade: websocket',
    '--header',
    'Connection: upgrade',
    '--header',
    'Sec-WebSocket-Version: 13',
    ...words,
  ];
  const key = ['--header', 'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA=='];
  const rows: readonly { name: string; words: readonly string[]; ends: RegExp; step: RegExp }[] = [
    {
      name: 'a token where sessions count',
      words: [...get('/me'), '--subject', 'checkout'],
      ends: /denied: 401 credential_kind_refused/,
      step: /credential {2}REFUSED/,
    },
    {
      name: 'a WebSocket',
      words: upgrade(...key, '--header', 'Origin: https://app.example.com'),
      ends: /allowed: route feed/,
      step: /body {8}ok/,
    },
    { name: 'no handshake', words: upgrade(), ends: /denied: 400 websocket_handshake/, step: /fields {6}REFUSED/ },
    {
      name: 'another origin',
      words: upgrade(...key, '--header', 'Origin: https://evil.example'),
      ends: /denied: 403 origin_refused/,
      step: /policy {6}REFUSED/,
    },
  ];
  for (const { name, words, ends, step } of rows) {
    const io = await explain(t, words, { config });
    t.match(io.out(), ends, name);
    t.match(io.out(), step, name);
  }
  const payload = Buffer.from('{}').toString('base64url');
  const header = Buffer.from(JSON.stringify({ alg: 'RS256', kid: 'd-1', typ: 'JWT', version: '5' })).toString(
    'base64url',
  );
  const away = await explain(t, [...get('/me'), '--token-stdin'], { config, stdin: `${header}.${payload}.AAAA` });
  t.equal(away.code(), 3, 'the Core is out of reach');
  t.match(away.out(), /the keys of the Core cannot be had: .*\n[^]*denied: 503 keys_unavailable/);
});
