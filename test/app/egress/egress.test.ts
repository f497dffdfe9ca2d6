import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { request, type RawResponse } from '../../support/raw-client.js';
import { tempDir } from '../../support/temp-dir.js';
import { until } from '../../support/until.js';
import { startFrom } from '../in-process-proxy.js';
import type { ConfigTree } from '../../support/proxy-process.js';
import { ok, startCalling, startTarget, type Answer } from './calling.js';

// That of the file, which is half a minute otherwise.
t.setTimeout(120_000);

t.test('a call gets a token, and nothing of the way within the pod', async (t) => {
  const target = await startTarget(t, (_seen, _number, res) => {
    res.setHeader('Idempotent-Replayed', '?1');
    res.setHeader('Proxy-Status', 'sallyport; error=connection_refused');
    res.end('done');
  });
  const { call } = await startCalling(t, `${target.url}/api`);
  const response = await call('/orders/a%20b?x=1', { headers: { Host: 'orders.local', 'X-Auth-Subject': 'root' } });
  t.equal(response.status, 200);
  t.equal(response.text, 'done');
  t.equal(response.field('x-sallyport-attempts'), '1');
  t.equal(response.field('x-sallyport-idempotency-key'), null, 'the default makes no key');
  t.equal(response.field('idempotent-replayed'), '?1');
  t.equal(response.field('proxy-status'), 'sallyport; error=connection_refused', 'the word of the far side');
  const [seen] = target.seen;
  t.equal(seen?.url, '/api/a%20b?x=1');
  t.equal(seen?.body, 'hello');
  t.equal(seen?.headers.authorization, 'Bearer token.one.x');
  t.equal(seen?.headers.host, `127.0.0.1:${String(target.port)}`);
  for (const name of [
    'x-auth-subject',
    'x-forwarded-for',
    'x-forwarded-host',
    'x-forwarded-proto',
    'idempotency-key',
  ]) {
    t.equal(seen?.headers[name], undefined, name);
  }
});

t.test('nothing makes it call elsewhere, or what is not allowed', async (t) => {
  const target = await startTarget(t, (_seen, _number, res) => {
    res.writeHead(302, { Location: 'http://127.0.0.1:1/elsewhere' });
    res.end();
  });
  const { call, port } = await startCalling(t, target.url, { allow: [{ methods: ['GET'], path: '/open/{id}' }] });
  const refused: readonly { readonly path: string; readonly method?: string; readonly status: number }[] = [
    { path: '/orders/open/1', method: 'POST', status: 403 },
    { path: '/orders/open', status: 403 },
    { path: '/orders/open/1/2', status: 403 },
    { path: '/other', status: 403 },
    { path: '/', status: 403 },
    { path: '/%6frders/open/1', status: 400 },
    { path: '/orders/../orders/open/1', status: 400 },
    { path: '/orders/open%2f1', status: 400 },
    { path: '/orders//127.0.0.1/1', status: 400 },
    { path: 'http://127.0.0.1:1/orders/open/1', status: 400 },
    { path: `http://127.0.0.1:${String(port)}/orders/open/1`, status: 400 },
    { path: '//127.0.0.1:1/orders/open/1', status: 400 },
    { path: '/orders@127.0.0.1:1/open/1', status: 403 },
    { path: '/orders/open/1#@127.0.0.1', status: 400 },
    { path: '/orders\\open/1', status: 400 },
  ];
  for (const { path, method = 'GET', status } of refused) {
    const response = await call(path, { method });
    t.equal(response.status, status, `${method} ${path}`);
  }
  t.equal(target.seen.length, 0, 'none of them went out');
  const redirected = await call('/orders/open/1', { method: 'GET', headers: { Host: '127.0.0.1:1' } });
  t.equal(redirected.status, 302, 'a redirect is passed on and not followed');
  t.equal(target.seen.length, 1);
});

t.test("a caller's own Authorization is refused", async (t) => {
  const target = await startTarget(t, ok);
  const { call } = await startCalling(t, target.url);
  const response = await call('/orders/1', { headers: { Authorization: 'Bearer mine' } });
  t.equal(response.status, 400);
  t.match(response.text, /Authorization is set here/);
  t.equal(target.seen.length, 0);
});

const own503 = { 'Proxy-Status': 'sallyport; error=proxy_internal_error', 'Retry-After': '0' };

const retries: readonly {
  readonly name: string;
  readonly method?: string;
  readonly key?: string;
  readonly target?: ConfigTree;
  readonly fault: Answer;
  /** How often it fails. */
  readonly times: number;
  readonly status: number;
  readonly asked: number;
  readonly notRetried?: string;
}[] = [
  {
    name: "a Sallyport's 503 was not applied",
    fault: (_seen, _number, res) => res.writeHead(503, own503).end('no'),
    times: 2,
    status: 200,
    asked: 3,
  },
  {
    name: "anybody else's may be",
    fault: (_seen, _number, res) => res.writeHead(503, { 'Retry-After': '0' }).end('no'),
    times: 1,
    status: 503,
    asked: 1,
  },
  {
    name: 'no more often than the target says',
    target: { retries: { attempts: 2 } },
    fault: (_seen, _number, res) => res.writeHead(503, own503).end('no'),
    times: 9,
    status: 503,
    asked: 2,
    notRetried: 'attempts',
  },
  {
    name: 'nor later',
    target: { retries: { within: '500ms' } },
    fault: (_seen, _number, res) => res.writeHead(429, { 'Retry-After': '1' }).end('no'),
    times: 9,
    status: 429,
    asked: 1,
    notRetried: 'time',
  },
  {
    name: 'a write that was cut off is in doubt',
    fault: (_seen, _number, res) => void res.socket?.destroy(),
    times: 1,
    status: 502,
    asked: 1,
    notRetried: 'in_doubt',
  },
  {
    name: 'with a key it is asked again',
    key: 'k-1',
    fault: (_seen, _number, res) => void res.socket?.destroy(),
    times: 2,
    status: 200,
    asked: 3,
  },
  {
    name: 'and with one of ours',
    target: { idempotency: 'generate' },
    fault: (_seen, _number, res) => res.writeHead(504).end('late'),
    times: 1,
    status: 200,
    asked: 2,
  },
  {
    name: 'a read needs none',
    method: 'GET',
    fault: (_seen, _number, res) => void res.socket?.destroy(),
    times: 1,
    status: 200,
    asked: 2,
  },
  {
    name: 'a final answer is never asked again',
    key: 'k-1',
    fault: (_seen, _number, res) => res.writeHead(500).end('no'),
    times: 1,
    status: 500,
    asked: 1,
  },
  {
    name: 'a response that was begun is passed on, broken as it is',
    key: 'k-1',
    fault: (_seen, _number, res) => {
      res.writeHead(200, { 'Content-Length': '10' });
      res.write('12345', () => res.socket?.destroy());
    },
    times: 1,
    status: 200,
    asked: 1,
  },
  {
    name: 'an attempt under way is waited for',
    key: 'k-1',
    fault: (_seen, _number, res) =>
      res
        .writeHead(409, { ...own503, 'Content-Type': 'application/problem+json' })
        .end('{"type":"urn:sallyport:idempotency-in-progress"}'),
    times: 4,
    status: 200,
    asked: 5,
  },
  {
    name: 'an outcome that nobody knows is passed on',
    key: 'k-1',
    fault: (_seen, _number, res) =>
      res
        .writeHead(409, { ...own503, 'Content-Type': 'application/problem+json' })
        .end('{"type":"urn:sallyport:idempotency-outcome-unknown"}'),
    times: 1,
    status: 409,
    asked: 1,
  },
  {
    name: 'that a later attempt was refused says nothing of the first',
    key: 'k-1',
    fault: (_seen, number, res) =>
      number === 1 ? void res.socket?.destroy() : res.writeHead(503, own503).end('not now'),
    times: 9,
    status: 502,
    asked: 3,
    notRetried: 'attempts',
  },
  {
    name: 'whoever refused it',
    key: 'k-1',
    fault: (_seen, number, res) => (number === 1 ? res.writeHead(504).end() : res.writeHead(503).end('not now')),
    times: 9,
    status: 504,
    asked: 2,
  },
  {
    name: 'nor that its token was',
    key: 'k-1',
    fault: (_seen, number, res) => (number === 1 ? void res.socket?.destroy() : res.writeHead(401).end('who?')),
    times: 9,
    status: 502,
    asked: 2,
  },
  {
    name: 'the last doubt is told as it is',
    key: 'k-1',
    fault: (_seen, number, res) => (number < 3 ? void res.socket?.destroy() : res.writeHead(504).end('late')),
    times: 9,
    status: 504,
    asked: 3,
    notRetried: 'attempts',
  },
  {
    name: 'a read leaves no doubt',
    method: 'GET',
    fault: (_seen, number, res) =>
      number === 1 ? void res.socket?.destroy() : res.writeHead(503, own503).end('not now'),
    times: 9,
    status: 503,
    asked: 3,
    notRetried: 'attempts',
  },
  {
    name: 'a body too large to hold is sent once',
    key: 'k-1',
    target: { hold_body: '4B' },
    fault: (_seen, _number, res) => void res.socket?.destroy(),
    times: 1,
    status: 502,
    asked: 1,
    notRetried: 'body_not_held',
  },
];

t.test('what is safe is asked again, with the same key and body, and nothing else', async (t) => {
  for (const { name, method = 'POST', key, target: settings, fault, times, status, asked, notRetried } of retries) {
    const target = await startTarget(t, (seen, number, res) => {
      if (number <= times) fault(seen, number, res);
      else res.end('done');
    });
    const { call, proxy } = await startCalling(t, target.url, settings);
    const response = await call('/orders/1', { method, headers: key === undefined ? {} : { 'Idempotency-Key': key } });
    t.equal(response.status, status, name);
    t.equal(target.seen.length, asked, `${name}: asked so often`);
    t.equal(response.field('x-sallyport-attempts'), String(asked), `${name}: and says so`);
    t.equal(response.field('x-sallyport-not-retried'), notRetried ?? null, `${name}: why no more`);
    t.equal(new Set(target.seen.map(({ headers }) => headers['idempotency-key'])).size, 1, `${name}: one key`);
    t.equal(new Set(target.seen.map(({ body }) => body)).size, 1, `${name}: one body`);
    const line = proxy.logs().find((entry) => entry['route'] === 'egress:orders');
    t.match(line, { attempts: asked, not_retried: notRetried ?? null }, `${name}: in the log`);
    t.equal(
      await proxy.metric('sallyport_egress_attempts_total{target="orders",attempt="retry"}'),
      asked - 1,
      `${name}: counted`,
    );
  }
});

t.test('what was never connected is asked again', async (t) => {
  const target = await startTarget(t, ok);
  const { call } = await startCalling(t, 'http://127.0.0.1:1', { retries: { attempts: 2 } });
  const response = await call('/orders/1');
  t.equal(response.status, 503);
  t.equal(response.field('proxy-status'), 'sallyport; error=connection_refused');
  t.equal(response.field('x-sallyport-attempts'), '2');
  t.equal(response.field('x-sallyport-not-retried'), 'attempts');
  t.equal(target.seen.length, 0);
});

t.test('a retry begins with the first byte, however the body came', async (t) => {
  for (const size of [10, 70_000, 900_000]) {
    for (const chunked of [false, true]) {
      const target = await startTarget(t, (_seen, number, res) => {
        if (number <= 2) res.socket?.destroy();
        else res.end('done');
      });
      const { call } = await startCalling(t, target.url);
      const body = 'x'.repeat(size);
      const response = await call('/orders/1', {
        headers: { 'Idempotency-Key': 'k', ...(chunked ? { 'Transfer-Encoding': 'chunked' } : {}) },
        body: chunked ? `${size.toString(16)}\r\n${body}\r\n0\r\n\r\n` : body,
      });
      t.equal(response.status, 200);
      t.same(
        target.seen.map((seen) => seen.body === body),
        [true, true, true],
        `${String(size)} bytes, ${chunked ? 'in chunks' : 'with a length'}`,
      );
    }
  }
});

t.test('what is held is bounded, and given back', async (t) => {
  const target = await startTarget(t, (_seen, number, res) => {
    if (number === 1) res.socket?.destroy();
    else res.end('done');
  });
  const { call, proxy } = await startCalling(t, target.url, {}, { hold_bodies: '64KiB' });
  const response = await call('/orders/1', { headers: { 'Idempotency-Key': 'k' }, body: 'x'.repeat(100_000) });
  t.equal(response.status, 502);
  t.equal(response.field('x-sallyport-not-retried'), 'body_not_held');
  await until('nothing is held', () => proxy.app.status().egress?.held_bytes === 0);
});

t.test('a 401 has another token fetched, once; without another it is passed on', async (t) => {
  const tokens: string[] = [];
  const target = await startTarget(t, ({ headers }, _number, res) => {
    tokens.push(headers.authorization ?? '');
    if (headers.authorization === 'Bearer token.two.x') res.end('done');
    else res.writeHead(401, { 'WWW-Authenticate': 'Bearer' }).end('who?');
  });
  const { call, tokenFile } = await startCalling(t, target.url);
  const refused = await call('/orders/1');
  t.equal(refused.status, 401);
  t.equal(refused.text, 'who?');
  t.equal(refused.field('www-authenticate'), 'Bearer');
  writeFileSync(tokenFile, 'token.two.x');
  await until('the new token is used', async () => (await call('/orders/2')).status === 200);
  t.equal(tokens.at(-1), 'Bearer token.two.x');
});

t.test('a named operation has one key, whoever repeats it', async (t) => {
  const target = await startTarget(t, ok);
  const { call } = await startCalling(t, target.url, { key_from: { json: '/order/id' } });
  const send = (body: string, path = '/orders/1'): Promise<RawResponse> => call(path, { body });
  t.equal((await send('{"order":{"id":"o-1"},"try":1}')).status, 200);
  await send('{"order":{"id":"o-1"},"try":2}');
  await send('{"order":{"id":"o-2"}}');
  await send('{"order":{"id":"o-1"}}', '/orders/2');
  await send(`{"order":{"id":"o-1"},"long":"${'x'.repeat(200_000)}"}`);
  const keys = target.seen.map(({ headers }) => headers['idempotency-key']);
  t.equal(keys[0], keys[1]);
  t.equal(keys[0], keys[4], 'of a long body too');
  t.equal(new Set(keys).size, 3);
  t.equal((await send('{"order":{}}')).status, 400, 'without a name');
  t.equal((await send(`{"x":"${'x'.repeat(1_100_000)}"}`)).status, 413, 'too long to be read');
  t.equal(target.seen.length, 5);
});

t.test('a reload takes other targets, and keeps the connections of the others', async (t) => {
  const first = await startTarget(t, ok);
  const second = await startTarget(t, ok);
  const { call, proxy, tokenFile } = await startCalling(t, first.url);
  await call('/orders/1');
  const targets = (url: string): ConfigTree => ({
    egress: {
      listen: { port: 0 },
      tokens: { own: { file: tokenFile } },
      targets: [{ name: 'orders', prefix: '/orders', url, token: 'own', allow: [{ methods: ['*'], path: '/**' }] }],
    },
  });
  proxy.rewrite(targets(second.url));
  await until('the second is asked', async () => {
    await call('/orders/2');
    return second.seen.length > 0;
  });
  t.match(proxy.app.status().egress, {
    targets: [{ name: 'orders', prefix: '/orders', url: second.url, token: 'own' }],
    tokens: [{ name: 'own', kind: 'file' }],
  });
  proxy.rewrite({});
  await until('it is refused', () => proxy.app.status().config.last_reload_error !== null);
  t.match(proxy.app.status().config.last_reload_error?.problems, [/egress comes or goes/]);
  t.equal((await call('/orders/3')).status, 200, 'the old one stays in force');
});

t.test('another response_timeout counts after a reload, on the connections that are there', async (t) => {
  const target = await startTarget(t, ({ url }, _number, res) => {
    if (url !== '/slow') res.end('done');
  });
  let connections = 0;
  target.server.on('connection', () => (connections += 1));
  // Calls follow one another at once: a connection that rested first would be another one each time.
  const reuse = 'always';
  const { call, proxy, tokenFile } = await startCalling(t, target.url, { reuse });
  t.equal((await call('/orders/1')).status, 200);
  const own = { name: 'orders', prefix: '/orders', url: target.url, token: 'own', response_timeout: '150ms', reuse };
  proxy.rewrite({
    egress: {
      listen: { port: 0 },
      tokens: { own: { file: tokenFile } },
      targets: [{ ...own, allow: [{ methods: ['*'], path: '/**' }], retries: { attempts: 1 } }],
    },
  });
  await until('it was reloaded', () => proxy.logs().some(({ msg }) => msg === 'the config was reloaded'));
  t.equal((await call('/orders/2')).status, 200);
  t.equal(connections, 1, 'the connection is kept');
  t.equal((await call('/orders/slow')).status, 504);
  t.equal(connections, 1, 'and it was asked on it');
});

t.test('a Unix socket is open to whom its mode says', async (t) => {
  const { statSync } = await import('node:fs');
  const target = await startTarget(t, ok);
  const path = join(tempDir(t), 'egress.sock');
  const { proxy } = await startCalling(t, target.url, {}, { listen: { unix: path, mode: '0660' } });
  t.equal(statSync(path).mode & 0o777, 0o660);
  const response = await request(0, { path: '/orders/1' }, { unix: path });
  t.equal(response.status, 200);
  t.match(proxy.app.status().listeners.egress, { host: `unix:${path}` });
});

t.test('a Unix socket belongs to whom its owner says', async (t) => {
  const { statSync } = await import('node:fs');
  const target = await startTarget(t, ok);
  const [uid, gid] = [process.getuid?.() ?? 0, process.getgid?.() ?? 0];
  const path = join(tempDir(t), 'egress.sock');
  // Only root gives files away.
  const [others, group] = uid === 0 ? [4711, 4712] : [uid, gid];
  const listen = { unix: path, mode: '0660', owner: `${String(others)}:${String(group)}` };
  await startCalling(t, target.url, {}, { listen });
  t.match(statSync(path), { uid: others, gid: group });
  t.equal(statSync(path).mode & 0o777, 0o660);
  const ofGroup = join(tempDir(t), 'group.sock');
  await startCalling(t, target.url, {}, { listen: { unix: ofGroup, owner: `:${String(group)}` } });
  t.match(statSync(ofGroup), { uid, gid: group });
});

t.test('a config may have the calling side alone', async (t) => {
  const target = await startTarget(t, ok);
  const configFile = join(tempDir(t), 'sallyport.yaml');
  const config = {
    admin: { port: 0 },
    egress: {
      listen: { port: 0 },
      targets: [{ name: 'orders', prefix: '/orders', url: target.url, allow: [{ methods: ['GET'], path: '/**' }] }],
    },
  };
  writeFileSync(configFile, JSON.stringify(config));
  const { started } = await startFrom(t, configFile);
  if (!started.ok) throw new Error(started.error.messages.join('\n'));
  const app = started.value;
  t.equal(app.listeners.proxy, null, 'nobody else is served');
  t.equal(app.readiness().status, 'ready');
  t.equal((await request(app.listeners.egress?.port ?? 0, { path: '/orders/1' })).status, 200);
  t.equal(target.seen[0]?.headers.authorization, undefined, 'without a token where the target names none');
  t.match(app.status(), { listeners: { proxy: null }, upstream: null, routes: [], issuers: [] });
});
