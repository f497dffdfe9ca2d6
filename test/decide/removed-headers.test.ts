/** What the sidecar removes from a request reaches an upstream through no proxy that asks, either. */
import t from 'tap';
import {
  certificateHeaders,
  defaultIdentityNames,
  hopByHopHeaders,
  originHeaders,
  originPrefixes,
  overrideHeaders,
  principalHeaders,
  reservationHeaders,
  secondPathHeaders,
  lookAlikeKey,
} from '../../src/decision/http/header-names.js';
import { startInProcessProxy } from '../app/in-process-proxy.js';
import { startShown } from './deciding.js';

t.setTimeout(240_000);

const config = {
  routes: [
    {
      name: 'files',
      methods: ['GET'],
      path: '/files/**',
      subjects: ['checkout'],
      permissions: [],
    },
  ],
};
const marker = 'said-by-a-client';

/** Said of where a request came from: those that the page’s configs set or clear themselves. */
const setByConfigs = ['X-Forwarded-For', 'X-Forwarded-Host', 'X-Forwarded-Proto', 'X-Real-IP', 'Forwarded', 'Via'];
const names = [
  ...setByConfigs,
  ...hopByHopHeaders,
  ...originHeaders,
  ...principalHeaders,
  ...certificateHeaders,
  ...overrideHeaders,
  ...secondPathHeaders,
  ...reservationHeaders,
  ...defaultIdentityNames,
  'DPoP',
  'Client-Cert',
  'Client-Cert-Chain',
  'X-Client-Cert',
  'X-SSL-Client-Verify',
  'X-Original-URL',
  'X-Rewrite-URL',
  'X-Forwarded-Port',
  'CF-Connecting-IP',
  'X_Note',
  'Client_Cert',
  'Proxy_Authorization',
];

/** Whatever else is said of where a request came from is left to the proxy, and to those before it. */
function isLeftToProxy(name: string): boolean {
  const key = lookAlikeKey(name);
  if (setByConfigs.includes(name) || name.includes('_') || key.startsWith('remote')) return false;
  return (
    originHeaders.some((own) => lookAlikeKey(own) === key) || originPrefixes.some((prefix) => key.startsWith(prefix))
  );
}

t.test('the sidecar removes all of them', async (t) => {
  const proxy = await startInProcessProxy(t, { config });
  for (const name of names) {
    await proxy.request({ path: '/files/a', headers: { [name]: marker } });
    t.notMatch(String(proxy.receiver.requests.at(-1)?.rawHeaders), marker, name);
  }
});

for (const form of ['nginx', 'caddy', 'haproxy', 'apache'] as const) {
  t.test(`${form}: so does the proxy, or the request is refused`, async (t) => {
    const front = await startShown(t, form, config);
    const { requests } = front.proxy.receiver;
    const through: string[] = [];
    let forwarded = 0;
    for (const name of names) {
      const before = requests.length;
      await front.askAs({ path: '/files/a', headers: { [name]: marker } }).catch(() => null);
      if (requests.length === before) continue;
      forwarded += 1;
      if (String(requests.at(-1)?.rawHeaders).includes(marker)) through.push(name);
    }
    t.ok(forwarded >= 10, `${String(forwarded)} were forwarded`);
    t.same(
      through.filter((name) => !isLeftToProxy(name)),
      [],
    );
    await front.askAs({ path: '/files/a', headers: { 'X-Request-Id': 'one' } });
    t.same(requests.at(-1)?.field('x-request-id'), ['one']);
    await front.askAs({ path: '/files/a', headers: { 'X-Request-Id': 'no id, by the blanks in it' } });
    t.same(requests.at(-1)?.field('x-request-id'), [front.proxy.logs().at(-1)?.['request_id']]);
  });
}
