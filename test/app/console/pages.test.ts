/** The pages behind the console, over sockets: what they tell, to whom, and what they never tell. */
import { gzipSync } from 'node:zlib';
import t from 'tap';
import type { Access } from '../../../src/admin/console/access.js';
import type { ConsoleState } from '../../../src/app/console/pages.js';
import type { ClaimsAnswer, RefusalExplanation } from '../../../src/app/console/questions.js';
import type { ExplanationData } from '../../../src/policy-test/explain/format.js';
import { request, type RawResponse } from '../../support/raw-client.js';
import { sendRefused, sendTraffic, startShop } from '../../console/shop.js';
import type { InProcessProxy } from '../in-process-proxy.js';

const own = { 'Sallyport-Console': '1' };

function ask(shop: InProcessProxy, path: string, query: Readonly<Record<string, string>> = {}): Promise<RawResponse> {
  return request(shop.adminPort, { path: `${path}?${new URLSearchParams(query).toString()}`, headers: own });
}

async function read<T>(shop: InProcessProxy, path: string, query: Readonly<Record<string, string>> = {}): Promise<T> {
  return JSON.parse((await ask(shop, path, query)).text) as T;
}

t.test('the page is one text of at most 60 KB, and its policy lets nothing else in', async (t) => {
  const shop = await startShop(t);
  const page = await shop.admin('/');
  t.equal(page.status, 200);
  t.ok(gzipSync(page.text).length < 60_000, `${String(gzipSync(page.text).length)} bytes compressed`);
  t.notMatch(page.text, /(?:src|href)="https?:/);
  t.notMatch(page.text.replaceAll(/<(script|style)>.*?<\/\1>/gs, ''), /style=/, 'the policy forbids such attributes');
  const policy = page.field('content-security-policy') ?? '';
  for (const part of ["default-src 'none'", "connect-src 'self'", "frame-ancestors 'none'", "trusted-types 'none'"]) {
    t.ok(policy.includes(part), part);
  }
  t.notMatch(policy, /unsafe/);
  for (const [name, value] of Object.entries({
    'content-type': 'text/html; charset=utf-8',
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'no-referrer',
    'x-frame-options': 'DENY',
    'cross-origin-opener-policy': 'same-origin',
    'cross-origin-resource-policy': 'same-origin',
    'cache-control': 'no-store',
  })) {
    t.equal(page.field(name), value, name);
  }
});

t.test('pages of other origins get nothing', async (t) => {
  const shop = await startShop(t);
  const rows: readonly (readonly [name: string, path: string, headers: Readonly<Record<string, string>>, number])[] = [
    ['without the header that needs leave', '/console/state', {}, 403],
    ['a question without it', '/console/claims?claims={}', {}, 403],
    ['with it', '/console/state', own, 200],
    ['from elsewhere', '/console/state', { ...own, 'Sec-Fetch-Site': 'cross-site' }, 403],
    ['from another port of this machine', '/status', { 'Sec-Fetch-Site': 'same-site' }, 403],
    ['an image elsewhere', '/', { 'Sec-Fetch-Site': 'cross-site', 'Sec-Fetch-Mode': 'no-cors' }, 403],
    [
      'a frame elsewhere',
      '/',
      { 'Sec-Fetch-Site': 'cross-site', 'Sec-Fetch-Mode': 'navigate', 'Sec-Fetch-Dest': 'iframe' },
      403,
    ],
    [
      'a link elsewhere',
      '/',
      { 'Sec-Fetch-Site': 'cross-site', 'Sec-Fetch-Mode': 'navigate', 'Sec-Fetch-Dest': 'document' },
      200,
    ],
    ['its own page', '/status', { 'Sec-Fetch-Site': 'same-origin' }, 200],
    ['typed in', '/', { 'Sec-Fetch-Site': 'none', 'Sec-Fetch-Mode': 'navigate', 'Sec-Fetch-Dest': 'document' }, 200],
    ['a rebound name', '/', { Host: 'evil.example' }, 421],
    ['a rebound name with the header', '/console/state', { ...own, Host: 'evil.example' }, 421],
    ['a monitor', '/metrics', {}, 200],
  ];
  for (const [name, path, headers, status] of rows) {
    t.equal((await request(shop.adminPort, { path, headers })).status, status, name);
  }
  for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS']) {
    t.equal((await request(shop.adminPort, { method, path: '/console/claims', headers: own })).status, 405, method);
  }
});

t.test('admin.console: false takes all of it away', async (t) => {
  const shop = await startShop(t, { admin: { console: false } });
  for (const path of ['/', '/console/state', '/console/explain', '/console/access', '/console/claims']) {
    t.equal((await ask(shop, path)).status, 404, path);
  }
  t.equal((await shop.admin('/status')).status, 200);
});

t.test('what was counted, and what was refused since', async (t) => {
  const shop = await startShop(t);
  await sendTraffic(shop);
  await sendRefused(shop);
  const state = await read<ConsoleState>(shop, '/console/state');
  const orders = state.traffic.routes.find(({ route }) => route === 'read-orders');
  t.match(orders, {
    requests: { forwarded: 3, denied: 4 },
    denials: { permission_missing: 1, subject_not_approved: 1, credential_missing: 1, token_expired: 1 },
  });
  t.equal(orders?.duration.at(-1), 7);
  t.equal(state.refusals.length, 7);
  t.match(
    state.refusals.find(({ reason }) => reason === 'permission_missing'),
    { decision: 'denied', path: '/orders', subject: 'reporting', missing: ['orders:export'], status: 403 },
  );
  t.match(
    state.refusals.find(({ decision }) => decision === 'shadow'),
    { route: 'stock', reason: 'subject_not_approved', subject: 'newsletter' },
  );
  const text = JSON.stringify(state);
  t.notMatch(text, /not-to-be-kept|eyJ|Bearer/, 'no query and no token');
  const after = String(state.refusals[0]?.id);
  t.same((await read<ConsoleState>(shop, '/console/state', { after })).refusals, []);
});

t.test('each refusal is explained, by what would decide now', async (t) => {
  const shop = await startShop(t);
  await sendRefused(shop);
  const { refusals } = await read<ConsoleState>(shop, '/console/state');
  const same = new Map<string, boolean>();
  for (const { id, reason, decision } of refusals) {
    const explained = await read<RefusalExplanation>(shop, '/console/explain', { refusal: String(id) });
    same.set(`${decision} ${reason}`, explained.is_same);
    t.equal(explained.explanation.steps.length, 11, reason);
  }
  t.same(Object.fromEntries(same), {
    'denied permission_missing': true,
    'denied subject_not_approved': true,
    'denied credential_missing': true,
    'denied route_unknown': true,
    'denied token_expired': false,
    'shadow subject_not_approved': true,
    // A key is taken to have come, so that what else is refused shows.
    'denied idempotency_key_missing': false,
  });
  t.equal((await ask(shop, '/console/explain', { refusal: '9999' })).status, 404);
});

t.test('questions about requests that nobody sent', async (t) => {
  const shop = await startShop(t);
  const claims = JSON.stringify({ sub: 'checkout', permissions: ['orders:read'] });
  const allowed = await read<ExplanationData>(shop, '/console/explain', { method: 'GET', path: '/orders/7', claims });
  t.match(allowed, { decision: 'allowed', route: 'read-orders', reason: null });
  const denied = await read<ExplanationData>(shop, '/console/explain', { method: 'POST', path: '/orders', claims });
  t.match(denied, { decision: 'denied', reason: 'permission_missing', missing: ['orders:write'] });
  const { routes } = await read<ClaimsAnswer>(shop, '/console/claims', { claims });
  t.same(
    routes.map(({ route, decision }) => `${route} ${decision}`),
    ['health allowed', 'read-orders allowed', 'place-order denied', 'refund denied', 'stock shadow', 'prices allowed'],
  );
  const access = await read<Access>(shop, '/console/access');
  t.equal(access.config, shop.app.status().config.sha256);
  const rows: readonly (readonly [Readonly<Record<string, string>>, RegExp])[] = [
    [{ claims: '{' }, /no JSON; allowed: a JSON object of claims/],
    [{ claims: '[]' }, /no object/],
    [{ claims: '{"a":1,"a":2}' }, /given twice/],
    [{}, /no JSON/],
  ];
  for (const [query, problem] of rows) {
    const answer = await ask(shop, '/console/claims', query);
    t.equal(answer.status, 400);
    t.match(answer.text, problem);
  }
  t.equal((await ask(shop, '/console/explain', { method: 'GET' })).status, 400);
  t.same(shop.receiver.requests.length, 0, 'nothing was sent to the upstream');
});
