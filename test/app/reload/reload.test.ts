import { copyFileSync, mkdirSync, renameSync, symlinkSync, writeFileSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import t from 'tap';
import { startApp } from '../../../src/app/start.js';
import { fileSource, type ConfigSource } from '../../../src/app/config/config-source.js';
import { certificates } from '../../support/certificates.js';
import { startJwksServer } from '../../support/jwks-server.js';
import { rsaKey } from '../../support/keys.js';
import { connectRaw, request } from '../../support/raw-client.js';
import { startUpstreamServer } from '../../support/upstream-server.js';
import { replaceFile } from '../../support/replace-file.js';
import type { Scope } from '../../support/scope.js';
import type { LogLine } from '../../support/serve-process.js';
import { mintToken } from '../../support/tokens.js';
import { until } from '../../support/until.js';
import type { ConfigTree } from '../../support/proxy-process.js';
import { startInProcessProxy, startFrom } from '../in-process-proxy.js';

/** The only route, open to one subject. */
function only(subject: string): { routes: readonly object[] } {
  return { routes: [{ name: 'orders', methods: ['GET'], path: '/orders', subjects: [subject], permissions: [] }] };
}

t.test('an edit takes effect', async (t) => {
  const proxy = await startInProcessProxy(t, { config: only('checkout') });
  const before = proxy.app.status().config;
  t.equal((await proxy.request({ path: '/orders' })).status, 200);
  proxy.rewrite(only('reporting'));
  await until('the new policy', async () => (await proxy.request({ path: '/orders' })).status === 403);
  t.equal((await proxy.request({ path: '/orders' }, { sub: 'reporting' })).status, 200);
  await until(
    'the reload is counted',
    async () => (await proxy.metric('sallyport_config_reloads_total{result="ok"}')) === 1,
  );
  const after = proxy.app.status().config;
  t.not(after.sha256, before.sha256);
  t.not(after.loaded_at, before.loaded_at);
  t.equal(await proxy.metric(`sallyport_config_info{sha256="${after.sha256}"}`), 1);
  t.equal(await proxy.metric(`sallyport_config_info{sha256="${before.sha256}"}`), 0);
});

t.test('a bad file keeps the old policy, is logged, counted and shown', async (t) => {
  const proxy = await startInProcessProxy(t, { config: only('checkout') });
  const good = readFileSync(proxy.configFile, 'utf8');
  const rows: readonly { name: string; text: string }[] = [
    { name: 'an empty file', text: '' },
    { name: 'half a file', text: good.slice(0, good.length / 2) },
    { name: 'a duplicate key', text: `${good}routes: []\n` },
    { name: 'an unknown key', text: `${good}colour: red\n` },
  ];
  for (const [index, { name, text }] of rows.entries()) {
    replaceFile(proxy.configFile, text);
    await until(`${name} is counted`, () => proxy.app.status().counts.config_reloads.failed === index + 1);
    t.equal((await proxy.request({ path: '/orders' })).status, 200, name);
    const error = proxy.app.status().config.last_reload_error;
    t.match(error?.problems[0], /^sallyport\.yaml:\d+:\d+: error: /, name);
    t.match(
      proxy.logs().findLast(({ level }) => level === 'error'),
      { problems: error?.problems },
      name,
    );
  }
  t.equal((await proxy.admin('/readyz')).status, 200, 'and it stays ready');
  t.equal(await proxy.metric('sallyport_config_reloads_total{result="failed"}'), rows.length);
  writeFileSync(proxy.configFile, good);
  await until('the error is gone', () => proxy.app.status().config.last_reload_error === null);
});

t.test('an edit between the first reading and the watch is not missed', async (t) => {
  const proxy = await startInProcessProxy(t, { config: only('checkout') });
  const text = readFileSync(proxy.configFile, 'utf8');
  const file = fileSource(proxy.configFile, 'sallyport.yaml', 20);
  let readings = 0;
  const source: ConfigSource = {
    ...file,
    read: async () => {
      const content = await file.read();
      readings += 1;
      if (readings === 1) writeFileSync(proxy.configFile, text.replace('checkout', 'reporting'));
      return content;
    },
  };
  const started = await startApp({ source, env: {}, logTo: { write: () => undefined } });
  if (!started.ok) throw new Error(started.error.messages.join());
  t.teardown(started.value.stop);
  await until('the edit is noticed', () => started.value.status().counts.config_reloads.ok === 1);
});

t.test(
  'an edit that is loaded by signal and taken back before the watch sees it is taken back in force as well',
  async (t) => {
    const proxy = await startInProcessProxy(t, { config: only('checkout'), watchMs: 250 });
    const good = readFileSync(proxy.configFile, 'utf8');
    proxy.rewrite(only('reporting'));
    await proxy.app.reload();
    writeFileSync(proxy.configFile, good);
    await until('the first policy is back', async () => (await proxy.request({ path: '/orders' })).status === 200);
    writeFileSync(proxy.configFile, 'nonsense');
    await proxy.app.reload();
    writeFileSync(proxy.configFile, good);
    await until('nor does the error stay', () => proxy.app.status().config.last_reload_error === null);
  },
);

t.test('a file that is gone keeps the old policy, and its return is noticed', async (t) => {
  const proxy = await startInProcessProxy(t, { config: only('checkout') });
  renameSync(proxy.configFile, `${proxy.configFile}.away`);
  await until('noticed', () => proxy.app.status().config.last_reload_error !== null);
  t.match(proxy.app.status().config.last_reload_error?.problems, ['sallyport.yaml: does not exist']);
  t.equal((await proxy.request({ path: '/orders' })).status, 200);
  proxy.rewrite(only('reporting'));
  await until('the new policy', async () => (await proxy.request({ path: '/orders' })).status === 403);
});

t.test('a ConfigMap update is one move of a link, and taken however long an edit would have to wait', async (t) => {
  const proxy = await startInProcessProxy(t, { config: { ...only('checkout'), reload: { least_age: '1m' } } });
  const text = readFileSync(proxy.configFile, 'utf8');
  const volume = join(dirname(proxy.configFile), 'volume');
  const version = (name: string, content: string): void => {
    mkdirSync(join(volume, name), { recursive: true });
    writeFileSync(join(volume, name, 'sallyport.yaml'), content);
    symlinkSync(name, join(volume, '..data_tmp'));
    renameSync(join(volume, '..data_tmp'), join(volume, '..data'));
  };
  version('..1', text);
  symlinkSync('..data/sallyport.yaml', join(volume, 'sallyport.yaml'));
  const { started } = await startFrom(t, join(volume, 'sallyport.yaml'));
  if (!started.ok) throw new Error(started.error.messages.join());
  // The first look learns where the link leads.
  await started.value.reload();
  version('..2', text.replace('checkout', 'reporting'));
  await until('the move is noticed', () => started.value.status().counts.config_reloads.ok === 2);
  const authorization = `Bearer ${proxy.token()}`;
  const port = started.value.listeners.proxy?.port ?? 0;
  await until('ready', () => started.value.readiness().status === 'ready');
  t.equal((await request(port, { path: '/orders', headers: { Authorization: authorization } })).status, 403);
});

t.test('listen, admin and probes wait for a restart, compared with what is open', async (t) => {
  const proxy = await startInProcessProxy(t, { config: only('checkout') });
  const rows: readonly { name: string; config: object; keys: readonly string[] }[] = [
    {
      name: 'other limits',
      config: { listen: { port: 1, max_target: '4KiB' } },
      keys: ['listen.port', 'listen.max_target'],
    },
    {
      name: 'another admin port',
      config: { listen: { port: 1 }, admin: { port: 2 } },
      keys: ['listen.port', 'admin.port'],
    },
    {
      name: 'a new listener',
      config: { probes: { host: '127.0.0.1', port: 3 } },
      keys: ['probes.host', 'probes.port'],
    },
    { name: 'as it was', config: {}, keys: [] },
  ];
  for (const { name, config, keys } of rows) {
    proxy.rewrite({ ...only('reporting'), ...config });
    await proxy.app.reload();
    t.same(proxy.app.status().restart_needed, keys, name);
    t.equal(
      (await proxy.request({ path: '/orders' }, { sub: 'reporting' })).status,
      200,
      `${name}: the rest takes effect`,
    );
    const long = await proxy.request({ path: `/orders?${'x'.repeat(5_000)}` }, { sub: 'reporting' });
    t.equal(long.status, 200, `${name}: no half of listen does`);
    if (keys.length > 0) {
      t.match(
        proxy.logs().findLast(({ msg }) => msg === 'a restart is needed for part of the config'),
        { level: 'warn', keys },
        name,
      );
    }
  }
});

t.test('keys stay where their source does, also while the source is out of reach', async (t) => {
  const proxy = await startInProcessProxy(t, { config: only('checkout') });
  t.equal(proxy.jwks.hits(), 1);
  await proxy.jwks.close();
  proxy.rewrite({ ...only('reporting'), issuers: { core: { jwks: { max_age: '30m' }, clock_skew: '1s' } } });
  await proxy.app.reload();
  t.equal((await proxy.request({ path: '/orders' }, { sub: 'reporting' })).status, 200);
  t.equal(proxy.jwks.hits(), 1, 'nothing was fetched');
});

t.test('a new source of keys is asked before it counts', async (t) => {
  const proxy = await startInProcessProxy(t, { config: only('checkout') });
  const other = rsaKey('d-2');
  const moved = await startJwksServer(t, { keys: [other] });
  proxy.rewrite({ ...only('checkout'), issuers: { core: { jwks_url: moved.url, jwks: { cooldown: '1s' } } } });
  await proxy.app.reload();
  t.equal(moved.hits(), 1);
  const answer = await request(proxy.port, {
    path: '/orders',
    headers: { Authorization: `Bearer ${mintToken({ key: other })}` },
  });
  t.equal(answer.status, 200);
  t.equal(moved.hits(), 1, 'and not again for the request');
  t.equal(await proxy.metric('sallyport_jwks_refreshes_total{issuer="core",result="ok"}'), 2);
  t.equal((await proxy.request({ path: '/orders' })).status, 401, 'the old keys count no more');
});

t.test('a new source that is out of reach counts as well: the config says so', async (t) => {
  const proxy = await startInProcessProxy(t, { config: only('checkout') });
  const dead = await startJwksServer(t);
  await dead.close();
  proxy.rewrite({ ...only('checkout'), issuers: { core: { jwks_url: dead.url } } });
  await proxy.app.reload();
  t.equal((await proxy.request({ path: '/orders' })).status, 503);
  t.equal(proxy.app.readiness().status, 'unavailable');
});

t.test('connections to the upstream stay unless it moves', async (t) => {
  const proxy = await startInProcessProxy(t, { config: only('checkout') });
  await proxy.request({ path: '/orders' });
  proxy.rewrite({ ...only('checkout'), upstream: { response_timeout: '7s' } });
  await proxy.app.reload();
  await proxy.request({ path: '/orders' });
  t.equal(proxy.receiver.connections(), 1);
  proxy.rewrite({ ...only('checkout'), upstream: { host: 'preserve' } });
  await proxy.app.reload();
  await proxy.request({ path: '/orders' });
  t.same(proxy.receiver.requests.at(-1)?.field('host'), [`127.0.0.1:${String(proxy.port)}`]);
  const second = await startUpstreamServer(t);
  proxy.rewrite({ ...only('checkout'), upstream: { url: second.url } });
  await proxy.app.reload();
  await proxy.request({ path: '/orders' });
  t.equal(second.requests.length, 1);
  await until('the old connection is closed', () => proxy.receiver.open() === 0);
});

t.test('a request ends under the policy it started with', async (t) => {
  const proxy = await startInProcessProxy(t, {
    config: { ...only('checkout'), issuers: { core: { jwks: { cooldown: '0s' } } } },
  });
  const other = rsaKey('d-2');
  let answerKeys: (() => void) | null = null;
  proxy.jwks.behave((_req, res) => {
    answerKeys = () => res.end(JSON.stringify({ keys: [rsaKey().jwk, other.jwk] }));
  });
  // The key is unknown, so this one waits for the Core in the middle of its decision.
  const waiting = request(proxy.port, {
    path: '/orders',
    headers: { Authorization: `Bearer ${mintToken({ key: other })}` },
  });
  await until('the Core is asked', () => answerKeys !== null);
  proxy.rewrite(only('reporting'));
  await proxy.app.reload();
  t.equal((await proxy.request({ path: '/orders' })).status, 403, 'the new policy is in force');
  (answerKeys as (() => void) | null)?.();
  t.equal((await waiting).status, 200);
});

t.test('a write whose body is still coming is held to what an edit revokes, and to no other edit', async (t) => {
  const route = { name: 'write', methods: ['POST'], path: '/orders', permissions: [], idempotency: 'required' };
  const config = { store: { memory: {} }, routes: [{ ...route, subjects: ['checkout'] }] };
  const rows: readonly (readonly [string, ConfigTree, number])[] = [
    ['of its route', { ...config, routes: [{ ...route, subjects: ['reporting'] }] }, 200],
    ['of who is revoked', { ...config, revoked: { subjects: ['checkout'] } }, 401],
  ];
  for (const [name, edited, status] of rows) {
    const proxy = await startInProcessProxy(t, { config });
    const connection = await connectRaw(proxy.port);
    const headers = [`Authorization: Bearer ${proxy.token()}`, 'Host: x', 'Idempotency-Key: a', 'Content-Length: 2'];
    connection.write(`POST /orders HTTP/1.1\r\n${headers.join('\r\n')}\r\n\r\n{`);
    await until('it is under way', async () => (await proxy.metric('sallyport_requests_in_flight')) === 1);
    proxy.rewrite(edited);
    await proxy.app.reload();
    connection.write('}');
    t.equal((await connection.readResponse())?.status, status, name);
    t.equal(proxy.receiver.requests.length, status === 200 ? 1 : 0, name);
    connection.end();
  }
});

t.test('a request that takes long ends with the upstream it started with', async (t) => {
  const short: ConfigTree = { ...only('checkout'), issuers: { core: { jwks: { timeout: '100ms' } } } };
  const proxy = await startInProcessProxy(t, { config: short });
  let answer: (() => void) | null = null;
  proxy.receiver.behave((_req, res) => {
    answer = () => res.end('from the first');
  });
  const slow = proxy.request({ path: '/orders' });
  await until('the first receiver has it', () => answer !== null);
  const second = await startUpstreamServer(t);
  proxy.rewrite({ ...short, upstream: { url: second.url } });
  await proxy.app.reload();
  // Longer than it takes to look whether the first receiver can be forgotten.
  await delay(1_500);
  (answer as (() => void) | null)?.();
  t.equal((await slow).text, 'from the first');
});

t.test('the log level is reloaded', async (t) => {
  const proxy = await startInProcessProxy(t, { config: only('checkout') });
  proxy.rewrite({ ...only('checkout'), log: { level: 'error' } });
  await proxy.app.reload();
  const lines = proxy.logs().length;
  await proxy.request({ path: '/orders' });
  await until('the request is counted', () => proxy.app.status().counts.requests.forwarded === 1);
  t.equal(proxy.logs().length, lines);
});

t.test('reloads that are asked for at once are one at a time, and all of them end', async (t) => {
  const proxy = await startInProcessProxy(t, { config: only('checkout') });
  proxy.rewrite(only('reporting'));
  await Promise.all(Array.from({ length: 20 }, () => proxy.app.reload()));
  t.equal((await proxy.request({ path: '/orders' }, { sub: 'reporting' })).status, 200);
  t.ok(proxy.app.status().counts.config_reloads.ok <= 3);
});

/** A proxy whose file is read again only when asked for, and what the log says of that. */
async function startReloadingProxy(t: Scope) {
  const proxy = await startInProcessProxy(t, { config: only('checkout'), watchMs: 3_600_000 });
  const reload = async (config: ConfigTree): Promise<readonly LogLine[]> => {
    const before = proxy.logs().length;
    proxy.rewrite(config);
    await proxy.app.reload();
    return proxy.logs().slice(before);
  };
  return { proxy, reload };
}

t.test('a reload names what is different, and never what it was set to', async (t) => {
  const { reload } = await startReloadingProxy(t);
  const config = { ...only('canary-subject'), upstream: { response_timeout: '7s' }, listen: { max_target: '4KiB' } };
  const open = { name: 'open', methods: ['GET'], path: '/open', access: 'public' };
  const [first] = await reload({ ...config, routes: [...config.routes, open] });
  t.match(first, {
    level: 'info',
    added: ['routes.open'],
    changed: ['listen.max_target', 'upstream.response_timeout', 'routes.orders.subjects'],
    removed: [],
  });
  t.equal(first?.['msg'], 'the config was reloaded');
  t.notMatch(JSON.stringify(first), /canary-subject|7000|4096/);
  t.match((await reload(config))[0], { added: [], changed: [], removed: ['routes.open'] });
  t.match((await reload(config))[0], {
    level: 'info',
    msg: 'the config was reloaded: nothing in it is different',
    added: [],
    changed: [],
    removed: [],
  });
  const many = Array.from({ length: 60 }, (_, index) => ({
    ...open,
    name: `r${String(index)}`,
    path: `/${String(index)}`,
  }));
  const [{ added } = {}] = await reload({ ...config, routes: [...config.routes, ...many] });
  t.same(added, [...many.slice(0, 50).map(({ name }) => `routes.${name}`), 'and 10 more'], 'a long list is cut');
});

t.test('a reload names the key of a file whose content is another', async (t) => {
  const { proxy, reload } = await startReloadingProxy(t);
  const c = certificates(t);
  const [ca, key] = ['ca.pem', 'assertion.pem'].map((name) => join(dirname(proxy.configFile), name));
  copyFileSync(c.ca.certFile, ca ?? '');
  copyFileSync(c.server.keyFile, key ?? '');
  const reloaded = async (): Promise<LogLine | undefined> =>
    (await reload(config)).find(({ sha256 }) => sha256 !== undefined);
  const config = {
    ...only('checkout'),
    upstream: { url: 'https://127.0.0.1:1', ca_file: ca },
    identity: { assertion: { key_file: key, audience: 'orders' } },
  };
  t.match(await reloaded(), { changed: ['upstream.url', 'upstream.ca_file', 'identity.assertion'] });
  copyFileSync(c.otherCa.certFile, ca ?? '');
  t.match(await reloaded(), { msg: /reloaded$/, added: [], changed: ['upstream.ca_file'], removed: [] });
  copyFileSync(c.ca.keyFile, key ?? '');
  t.match(await reloaded(), { msg: /reloaded$/, added: [], changed: ['identity.assertion.key_file'], removed: [] });
});

t.test('a reload repeats no warning that was told before, wherever it stands now', async (t) => {
  const { proxy, reload } = await startReloadingProxy(t);
  const literal = (name: string): object => ({ name, methods: ['GET'], path: `/${name}/:id`, access: 'public' });
  const warned = async (...routes: readonly object[]): Promise<readonly unknown[]> =>
    (await reload({ routes })).filter(({ level }) => level === 'warn').map(({ warning, msg }) => warning ?? msg);
  t.match(await warned(literal('a')), [/:id/]);
  t.same(await warned(literal('a')), []);
  t.match(await warned(literal('b'), literal('a')), [/routes\[0\]/], 'what is new in the place of what was told');
  t.equal(proxy.app.status().config.warnings.length, 2, 'all of them are shown');
  const moved = { routes: [literal('a')], admin: { port: 1 } };
  const restart = 'a restart is needed for part of the config';
  t.match(await reload(moved), [{}, { level: 'warn', msg: restart, keys: ['admin.port'] }]);
  t.equal((await reload(moved)).length, 1, 'nor what needs a restart');
  t.match(await reload({ ...moved, probes: { host: '127.0.0.1', port: 2 } }), [
    {},
    { msg: restart, keys: ['admin.port', 'probes.host', 'probes.port'] },
  ]);
});
