/** `sallyport revoke` of opaque tokens, through a real Redis, at proxies that run. */
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { run } from '../../src/cli/program.js';
import { captureIo } from '../cli/captured-io.js';
import { sayJson, startIntrospection, type IntrospectionServer } from '../support/introspection-server.js';
import { startOidcProvider } from '../support/oidc-provider.js';
import { startProxyProcess, type ConfigTree, type ProxyProcess } from '../support/proxy-process.js';
import { startRedis } from '../support/redis-server.js';
import type { Scope } from '../support/scope.js';
import { tempDir } from '../support/temp-dir.js';
import { until } from '../support/until.js';

const secret = 'a secret of the proxy';
const secretFile = join(tempDir(t), 'secret');
writeFileSync(secretFile, secret);
chmodSync(secretFile, 0o600);

const redis = await startRedis(t);
const store: ConfigTree = { store: { redis: { url: `redis://127.0.0.1:${String(redis.port)}` } } };
t.beforeEach(async () => redis.client.flushall());

const statusOf = async (proxy: ProxyProcess, token: string): Promise<number> =>
  (await proxy.request({ path: '/orders', headers: { Authorization: `Bearer ${token}` } })).status;

/** Runs the command, and returns the id of what it made. */
async function revoke(proxy: ProxyProcess, stdin: string): Promise<string> {
  const io = captureIo({ stdin });
  const args = ['--config', proxy.configFile, '--token-stdin', '--for', '3h', '--reason', 'a leak', '--json'];
  await run(['revoke', ...args], io);
  t.equal(io.code(), 0, io.err());
  t.notOk(`${io.out()}${io.err()}`.includes(stdin));
  return (JSON.parse(io.out()) as { readonly id: string }).id;
}

async function undo(proxy: ProxyProcess, id: string): Promise<void> {
  const io = captureIo();
  await run(['revoke', '--config', proxy.configFile, '--undo', id], io);
  t.equal(io.code(), 0, io.err());
}

const introspection = (more: ConfigTree): ConfigTree => ({
  client_id: 'sallyport',
  client_secret_file: secretFile,
  ...more,
});

t.test('of a real provider: refused at every proxy, also one that starts later; others pass', async (t) => {
  const idp = await startOidcProvider(t, [{ client_id: 'sallyport', client_secret: secret }]);
  const config: ConfigTree = {
    ...store,
    issuers: {
      idp: {
        profile: 'oauth',
        issuer: idp.issuer,
        audience: 'orders',
        ca_file: idp.caFile,
        claims: { subject: 'client_id' },
        introspection: introspection({}),
      },
    },
  };
  const proxies = [await startProxyProcess(t, { config }), await startProxyProcess(t, { config })];
  const [leaked, other] = [await idp.token('opaque'), await idp.token('opaque')];
  for (const proxy of proxies) t.same([await statusOf(proxy, leaked), await statusOf(proxy, other)], [200, 200]);
  const [first] = proxies;
  if (first === undefined) throw new Error('no proxy');
  const id = await revoke(first, `${leaked}\n`);
  for (const proxy of proxies) await until('it is refused', async () => (await statusOf(proxy, leaked)) === 401);
  const late = await startProxyProcess(t, { config });
  for (const proxy of [...proxies, late]) {
    t.same([await statusOf(proxy, leaked), await statusOf(proxy, other)], [401, 200]);
    await until('the log says why', () => proxy.logs().some(({ reason }) => reason === 'token_revoked'));
    t.equal(await statusOf(proxy, await idp.token('opaque')), 200, 'a new one of the same caller');
    t.same(await proxy.exposures(), []);
  }
  t.notOk(JSON.stringify(await redis.client.hgetall('sallyport:{revoked}:list')).includes(leaked));
  await undo(first, id);
  await until('it passes again', async () => (await statusOf(first, leaked)) === 200);
});

const active = { active: true, aud: 'orders', client_id: 'checkout', scope: 'orders:read' };

/** An issuer that decodes its tokens as base64, and so takes each in many spellings. */
async function startLaxIssuer(t: Scope, tokens: readonly string[]): Promise<IntrospectionServer> {
  const issuer = await startIntrospection(t);
  const known = new Set(tokens.map((token) => Buffer.from(token, 'base64').toString('hex')));
  issuer.behave(({ form }, res) => {
    const asked = Buffer.from(form.get('token') ?? '', 'base64').toString('hex');
    sayJson(res, known.has(asked) ? { ...active, exp: Math.floor(Date.now() / 1_000) + 300 } : { active: false });
  });
  return issuer;
}

t.test('in each spelling that a lax issuer takes for the same token', async (t) => {
  const spellings = ['-_-AbCdEfGhIjKlMnOpQrSg', '-_-AbCdEfGhIjKlMnOpQrSg=', '-_-AbCdEfGhIjKlMnOpQrSg=='];
  const all = [...spellings, ...spellings.map((token) => token.replaceAll('-', '+').replaceAll('_', '/'))];
  const others = ['-_-AbCdEfGhIjKlMnOpQrTg', '-_-AbCdEfGhIjKlMnOpQrTg=='];
  const issuer = await startLaxIssuer(t, [all[0] ?? '', others[0] ?? '']);
  for (const mode of ['enforce', 'shadow']) {
    const proxy = await startProxyProcess(t, {
      config: {
        ...store,
        mode,
        issuers: {
          idp: {
            profile: 'oauth',
            issuer: 'https://idp.example.com',
            audience: 'orders',
            jwks_url: issuer.url,
            claims: { subject: 'client_id' },
            introspection: introspection({ url: issuer.url, unknown_per_address: 1_000, unknown_per_second: 1_000 }),
          },
        },
      },
    });
    for (const token of [...all, ...others]) t.equal(await statusOf(proxy, token), 200, `${mode}: ${token} is one`);
    for (const shown of all) {
      const id = await revoke(proxy, shown);
      await until('it is refused', async () => (await statusOf(proxy, shown)) === 401);
      for (const token of all) {
        t.equal(await statusOf(proxy, token), 401, `${mode}: ${token} where ${shown} is revoked`);
      }
      for (const token of others) t.equal(await statusOf(proxy, token), 200, `${mode}: ${token} is another`);
      if (mode === 'shadow') {
        const quoted = await proxy.request({ path: '/orders', headers: { Authorization: `Bearer "${shown}"` } });
        t.equal(quoted.status, 401, 'also where no proxy in force would read it');
      }
      await undo(proxy, id);
      await until('it passes again', async () => (await statusOf(proxy, shown)) === 200);
    }
    await proxy.stop();
  }
});
