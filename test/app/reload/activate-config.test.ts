import { copyFileSync } from 'node:fs';
import { createServer } from 'node:https';
import { join } from 'node:path';
import t from 'tap';
import { createMetrics } from '../../../src/adapters/metrics/metrics.js';
import { createConfigActivator, type ConfigActivator } from '../../../src/app/reload/activate-config.js';
import { certificates } from '../../support/certificates.js';
import { untilForgotten } from '../../support/garbage.js';
import { keySet, startJwksServer } from '../../support/jwks-server.js';
import { rsaKey } from '../../support/keys.js';
import { listen } from '../../support/listening.js';
import { startUpstreamServer } from '../../support/upstream-server.js';
import type { Scope } from '../../support/scope.js';
import { until } from '../../support/until.js';
import { compiled } from '../../proxy/harness.js';
import { merge, type ConfigTree } from '../../support/proxy-process.js';

const silent = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined };
const issuer: ConfigTree = {
  issuer: 'https://api.example.com',
  audience: 'orders',
  source: 'microservice',
  token_type: 'service',
};

/** A config with these issuers and no other. */
function issuers(named: Readonly<Record<string, ConfigTree>>): ConfigTree {
  const whole = Object.entries(named).map(([name, settings]) => [name, { ...issuer, ...settings }]);
  return { issuers: { core: undefined, ...Object.fromEntries(whole) } };
}

/** Puts a config in force and waits for its keys. */
async function start(t: Scope, overrides: ConfigTree): Promise<ConfigActivator> {
  const activator = createConfigActivator(compiled(overrides), null, {
    log: silent,
    metrics: createMetrics(),
    sessions: null,
    assertions: { headers: () => [] },
    proofs: null,
    revocations: { listed: () => [], areKnown: () => true },
    onClientCertificates: () => undefined,
  });
  t.teardown(activator.close);
  await until('the keys', () => activator.keyStates().every(({ usable }) => usable));
  return activator;
}

/** What the sources say of `d-1`, by issuer. */
async function lookUps(activator: ConfigActivator): Promise<readonly string[]> {
  const sources = activator.activeConfig().issuers;
  return Promise.all(sources.map(async ({ rules, keys }) => `${rules.name} ${(await keys.find('d-1')).kind}`));
}

t.test(
  'known keys serve through an outage when a reload changes their issuer and not where they come from',
  async (t) => {
    const server = await startJwksServer(t);
    const other = await startJwksServer(t);
    const activator = await start(t, issuers({ core: { jwks_url: server.url } }));
    await server.close();
    await other.close();
    const rows: readonly { name: string; config: ConfigTree; expected: readonly string[] }[] = [
      { name: 'another name', config: issuers({ renamed: { jwks_url: server.url } }), expected: ['renamed found'] },
      { name: 'undone', config: issuers({ core: { jwks_url: server.url } }), expected: ['core found'] },
      {
        name: 'one more of the same place',
        config: issuers({ core: { jwks_url: server.url }, more: { jwks_url: server.url, audience: 'more' } }),
        expected: ['core found', 'more found'],
      },
      { name: 'another place', config: issuers({ core: { jwks_url: other.url } }), expected: ['core unavailable'] },
      {
        name: 'a file',
        config: issuers({ core: { jwks_url: undefined, jwks_file: '/nowhere.json' } }),
        expected: ['core unavailable'],
      },
      { name: 'undone as well', config: issuers({ core: { jwks_url: server.url } }), expected: ['core found'] },
    ];
    for (const { name, config, expected } of rows) {
      await activator.replace(compiled(config), null);
      t.same(await lookUps(activator), expected, name);
    }
    await activator.replace(
      compiled(issuers({ late: { jwks_url: server.url, jwks: { max_age: '100ms', max_stale: '0ms' } } })),
      null,
    );
    await until('they end with max_stale', async () => (await lookUps(activator)).join() === 'late unavailable');
  },
);

t.test('a key that left the set stops working for a renamed issuer too', async (t) => {
  const server = await startJwksServer(t);
  const activator = await start(t, issuers({ core: { jwks_url: server.url } }));
  server.setKeys([rsaKey('d-2')]);
  await activator.replace(compiled(issuers({ renamed: { jwks_url: server.url } })), null);
  t.same(await lookUps(activator), ['renamed unknown']);
});

t.test('known keys serve through an outage when the file of the authorities moves', async (t) => {
  const {
    ca,
    server: { cert, key },
    dir,
  } = certificates(t);
  const server = createServer({ cert, key }, (_req, res) => res.end(keySet([rsaKey()])));
  const { port, close } = await listen(t, server);
  const url = `https://127.0.0.1:${String(port)}/jwks.json`;
  const activator = await start(t, issuers({ core: { jwks_url: url, ca_file: ca.certFile } }));
  await close();
  const moved = join(dir, 'moved.crt');
  copyFileSync(ca.certFile, moved);
  await activator.replace(compiled(issuers({ core: { jwks_url: url, ca_file: moved } })), null);
  t.same(await lookUps(activator), ['core found']);
});

t.test('another way to use connections is in force at once', async (t) => {
  const [receiver, jwks] = [await startUpstreamServer(t), await startJwksServer(t)];
  const keys = issuers({ core: { jwks_url: jwks.url, jwks: { timeout: '100ms' } } });
  const base = merge(keys, { upstream: { url: receiver.url } });
  const activator = await start(t, base);
  for (const change of [
    { upstream: { reuse: 'never' } },
    { upstream: { reuse: 'always' } },
    { receiver: { reads_bodies: true } },
    {},
  ]) {
    const before = activator.activeConfig().upstream;
    await activator.replace(compiled(merge(base, change)), null);
    t.not(activator.activeConfig().upstream, before, JSON.stringify(change));
  }
  const last = activator.activeConfig().upstream;
  await activator.replace(compiled(base), null);
  t.equal(activator.activeConfig().upstream, last, 'and nothing else gives connections up');
});

t.test('upstreams that were replaced are forgotten', async (t) => {
  const [first, second, jwks] = [await startUpstreamServer(t), await startUpstreamServer(t), await startJwksServer(t)];
  const at = (url: string): ConfigTree =>
    merge(issuers({ core: { jwks_url: jwks.url, jwks: { timeout: '100ms' } } }), { upstream: { url } });
  const activator = await start(t, at(first.url));
  const replaced = new WeakRef(activator.activeConfig().upstream);
  await activator.replace(compiled(at(second.url)), null);
  await untilForgotten('nothing holds it', replaced);
  t.equal(activator.activeConfig().upstream.host, new URL(second.url).host);
});
