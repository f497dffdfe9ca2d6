import t from 'tap';
import { checkOverHttp2 } from './http2-suite.js';
import { suiteNames } from './shadow-suite.js';

t.setTimeout(1_800_000);

/** They start proxies of their own, and are about tokens alone. */
const ownProxies: readonly string[] = ['glewlwyd', 'oidc-provider'];

t.test('the conformance suite over HTTP/2', async (t) => {
  const { refused, reset, allowed } = await checkOverHttp2(
    t,
    suiteNames().filter((name) => !ownProxies.includes(name)),
  );
  t.ok(
    refused > 2300 && reset > 50 && allowed > 800,
    `${String(refused)} refused alike, ${String(reset)} by a reset, ${String(allowed)} allowed alike`,
  );
});
