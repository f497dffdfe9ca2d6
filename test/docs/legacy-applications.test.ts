/**
 * The lines of docs/legacy-applications.md, in front of applications that know nothing of Sallyport: Express, and a
 * WSGI program. Each is asked twice, through a proxy without the lines and through one with all of them.
 */
import { createServer } from 'node:http';
import express from 'express';
import t from 'tap';
import { WebSocket, WebSocketServer } from 'ws';
import { parse } from 'yaml';
import { listen } from '../support/listening.js';
import { validateConfig } from '../../src/config/load/validate-config.js';
import { refuse } from '../../src/lib/result.js';
import { startPython } from '../support/python.js';
import type { RawResponse, RequestInput } from '../support/raw-client.js';
import type { Scope } from '../support/scope.js';
import { tempDir } from '../support/temp-dir.js';
import { baseConfig, merge, startProxyProcess, type ConfigTree, type ProxyProcess } from '../support/proxy-process.js';
import { fencedBlocks } from './fenced-blocks.js';

const page = 'docs/legacy-applications.md';

t.setTimeout(120_000);

interface Policy extends ConfigTree {
  readonly routes: readonly (ConfigTree & { readonly name: string })[];
}

const checkout = { subjects: ['checkout'], permissions: [] };
/** All that the routes of the page ask for. */
const claims = { permissions: ['orders:read', 'orders:write', 'files:read', 'files:write', 'customers:read'] };

/** What somebody writes who has not read the page. */
const unaware: Policy = {
  listen: { host: '127.0.0.1', port: 0 },
  routes: [
    { name: 'list-orders', methods: ['GET'], path: '/orders', ...checkout },
    { name: 'create-order', methods: ['POST'], path: '/orders', ...checkout, idempotency: 'none' },
    { name: 'old-login', methods: ['GET'], path: '/old', access: 'public' },
    { name: 'search-orders', methods: ['GET'], path: '/orders/search', ...checkout },
    { name: 'read-file', methods: ['GET'], path: '/files/{name}', ...checkout },
    { name: 'list-customers', methods: ['GET'], path: '/customers', ...checkout },
    { name: 'upload', methods: ['PUT'], path: '/uploads/{id}', ...checkout },
    { name: 'report', methods: ['GET'], path: '/report', ...checkout },
    { name: 'live-orders', methods: ['GET'], path: '/orders/live', ...checkout },
  ],
};

/**
 * The blocks of the page, laid over one another and over what was there: a route in the place of the one with its name.
 */
function withLines(policy: Policy): Policy {
  return fencedBlocks(page)
    .filter(({ language }) => language === 'yaml')
    .reduce<Policy>((sum, { text }) => {
      const { routes = [], ...rest } = parse(text) as Partial<Policy>;
      const names = new Set(routes.map(({ name }) => name));
      return { ...merge(sum, rest), routes: [...sum.routes.filter(({ name }) => !names.has(name)), ...routes] };
    }, policy);
}

const aware = withLines(unaware);
// Of this test's own: a free port, and answers that count as slow at once where the route does not say otherwise.
const own = { listen: { host: '127.0.0.1', port: 0 }, upstream: { response_timeout: '300ms' } };

/**
 * An application as there are many: absolute redirects, the caller's address, cross-origin answers, uploads, files and
 * slow reports.
 */
async function startExpress(t: Scope): Promise<string> {
  const app = express().set('trust proxy', 'loopback');
  app.get(
    '/orders',
    (request, response) =>
      void response.json({ ip: request.ip, protocol: request.protocol, tenant: request.get('x_tenant') ?? null }),
  );
  app.options(
    '/orders',
    (_request, response) =>
      void response.set('Access-Control-Allow-Origin', 'https://shop.example.com').sendStatus(204),
  );
  app.get('/orders/search', express.text({ type: '*/*' }), (request, response) => void response.send(request.body));
  app.get('/old', (request, response) => void response.send(request.get('authorization') ?? 'nobody'));
  app.get('/files/*path', (request, response) => void response.json(request.params['path']));
  app.get('/customers', (request, response) => void response.send(request.path));
  app.put('/uploads/:id', (request, response) => {
    let bytes = 0;
    request
      .on('data', (chunk: Buffer) => {
        bytes += chunk.length;
      })
      .on('end', () => void response.send(String(bytes)));
  });
  app.get('/report', (_request, response) => void setTimeout(() => void response.send('at last'), 600));
  const server = createServer({ maxHeaderSize: 65_536 }, app);
  const sockets = new WebSocketServer({ server });
  sockets.on('connection', (socket) => {
    socket.send('order 1');
  });
  t.teardown(() => {
    sockets.close();
    for (const socket of sockets.clients) socket.terminate();
  });
  const { port } = await listen(t, server);
  return `http://127.0.0.1:${String(port)}`;
}

interface Pair {
  readonly before: ProxyProcess;
  readonly after: ProxyProcess;
}

async function startPair(t: Scope, url: string, more: ConfigTree = {}): Promise<Pair> {
  const at = { ...own, upstream: { ...own.upstream, url } };
  const start = async (policy: Policy): Promise<ProxyProcess> =>
    startProxyProcess(t, { config: merge(merge(policy, at), more) });
  return { before: await start(unaware), after: await start(aware) };
}

/** One request through both, by the approved caller unless it has an `Authorization` of its own or is nobody's. */
async function ask(
  { before, after }: Pair,
  input: RequestInput,
  isAnonymous = false,
): Promise<readonly [RawResponse, RawResponse]> {
  const send = async (proxy: ProxyProcess): Promise<RawResponse> => {
    const headers = {
      ...(isAnonymous ? {} : proxy.authorization(claims)),
      ...(input.headers as Readonly<Record<string, string>> | undefined),
    };
    return proxy.request({ ...input, headers });
  };
  return [await send(before), await send(after)];
}

const statuses = (answers: readonly RawResponse[]): readonly number[] => answers.map(({ status }) => status);

t.test('in front of Express', async (t) => {
  const pair = await startPair(t, await startExpress(t));
  const shows = async (
    name: string,
    input: RequestInput,
    expected: readonly [number, number],
    text?: string,
  ): Promise<void> => {
    const answers = await ask(pair, input);
    t.same(statuses(answers), expected, name);
    if (text !== undefined) t.equal(answers[1].text, text, name);
  };
  await shows('HEAD', { method: 'HEAD', path: '/orders' }, [403, 200]);
  const search = {
    path: '/orders/search',
    headers: { 'Content-Type': 'application/json', 'Content-Length': '7' },
    body: '{"a":1}',
  };
  await shows('a body on GET', search, [400, 200], '{"a":1}');
  await shows('a slash in a name', { path: '/files/2026/report.pdf' }, [403, 200], '["2026","report.pdf"]');
  await shows('an encoded slash in a name', { path: '/files/2026%2Freport.pdf' }, [400, 200], '["2026/report.pdf"]');
  await shows('a double slash', { path: '/files//report.pdf' }, [400, 400]);
  await shows('a slash at the end', { path: '/customers/' }, [403, 200], '/customers/');
  await shows('no slash at the end', { path: '/customers' }, [200, 200]);
  const upload = {
    method: 'PUT',
    path: '/uploads/1',
    headers: { 'Content-Length': '2000000' },
    body: 'x'.repeat(2_000_000),
  };
  await shows('an upload', upload, [413, 200], '2000000');
  await shows('a slow report', { path: '/report' }, [504, 200], 'at last');
  await shows('a large cookie', { path: '/orders', headers: { Cookie: `state=${'x'.repeat(20_000)}` } }, [431, 200]);

  const preflight = {
    method: 'OPTIONS',
    path: '/orders',
    headers: { Origin: 'https://shop.example.com', 'Access-Control-Request-Method': 'GET' },
  };
  const asked = await ask(pair, preflight, true);
  t.same(statuses(asked), [401, 204], 'a preflight');
  t.same(
    asked.map((answer) => answer.field('access-control-allow-origin')),
    [null, 'https://shop.example.com'],
  );

  const basic = { path: '/old', headers: { Authorization: 'Basic b2xkOnBhc3N3b3Jk' } };
  t.same(
    (await ask(pair, basic, true)).map(({ text }) => text),
    ['nobody', 'Basic b2xkOnBhc3N3b3Jk'],
    'its own log-in',
  );

  const seen = async (headers: Readonly<Record<string, string>>): Promise<readonly unknown[]> => {
    const answers = await ask(pair, { path: '/orders', headers });
    return answers.map(({ text }) => JSON.parse(text) as unknown);
  };
  const plain = { ip: '127.0.0.1', protocol: 'http', tenant: null };
  t.same(await seen({}), [plain, plain]);
  const forwarded = { 'X-Forwarded-For': '203.0.113.7', 'X-Forwarded-Proto': 'https', 'X-Real-IP': '198.51.100.1' };
  t.same(
    await seen(forwarded),
    [plain, { ...plain, ip: '203.0.113.7', protocol: 'https' }],
    'the address that a proxy in front tells of',
  );
  t.same(await seen({ X_Tenant: 'a' }), [plain, { ...plain, tenant: 'a' }], 'an underscore');

  const greeting = async (proxy: ProxyProcess): Promise<string> => {
    const socket = new WebSocket(`ws://127.0.0.1:${String(proxy.port)}/orders/live`, {
      headers: proxy.authorization(claims),
    });
    const received = await new Promise<string>((resolve) => {
      socket
        .once('message', (message: Buffer) => {
          resolve(message.toString());
        })
        .once('error', ({ message }) => {
          resolve(message);
        });
    });
    socket.terminate();
    return received;
  };
  t.same(
    [await greeting(pair.before), await greeting(pair.after)],
    ['Unexpected server response: 400', 'order 1'],
    'a WebSocket',
  );
});

t.test('in front of a WSGI program: where its redirects lead, in stored responses too, and whom it sees', async (t) => {
  const { wsgi } = await startPython(t, tempDir(t));
  const url = `http://127.0.0.1:${String(wsgi)}`;
  const pair = await startPair(t, url);
  const location = async (
    proxy: ProxyProcess,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<string | null> => {
    const all = { ...proxy.authorization(claims), Host: 'orders.example.com', ...headers };
    const answer = await proxy.request({ method: 'POST', path: '/orders', headers: all });
    t.equal(answer.status, 201);
    return answer.field('location');
  };
  const made = [`${url}/orders/1`, 'http://orders.example.com/orders/1'];
  t.same([await location(pair.before), await location(pair.after)], made);

  const idempotent = { name: 'create-order', methods: ['POST'], path: '/orders', ...checkout, idempotency: 'required' };
  for (const [index, policy] of [unaware, aware].entries()) {
    const routes = [...policy.routes.filter(({ name }) => name !== 'create-order'), idempotent];
    const proxy = await startProxyProcess(t, {
      config: { ...merge(policy, merge(own, { upstream: { url } })), routes, store: { memory: {} } },
    });
    const key = { 'Idempotency-Key': '"one"' };
    t.same(
      [await location(proxy, key), await location(proxy, key)],
      [made[index], made[index]],
      'the answer that is kept',
    );
  }

  const claimed = { 'X-Remote-User': 'root', X_Remote_User: 'root', 'X-Forwarded-For': '203.0.113.7' };
  const fields = (await ask(pair, { path: '/orders', headers: claimed })).map(
    ({ text }) => (JSON.parse(text) as { readonly fields: ConfigTree }).fields,
  );
  t.match(fields, [{ HTTP_X_AUTH_SUBJECT: 'checkout' }, { HTTP_X_REMOTE_USER: 'checkout' }], 'whom it sees');
  t.notOk('HTTP_X_REMOTE_USER' in (fields[0] ?? {}), 'not whom the caller claims to be');
  t.notOk('HTTP_X_AUTH_SUBJECT' in (fields[1] ?? {}), 'under the name of the page alone');
  t.notOk('HTTP_AUTHORIZATION' in (fields[1] ?? {}));

  const believed = { 'X-User': 'root', X_Role: 'admin', Destination: '/admin' };
  const seen = (await ask(pair, { path: '/orders', headers: believed })).map(
    ({ text }) => (JSON.parse(text) as { readonly fields: ConfigTree }).fields,
  );
  t.match(seen, [{ HTTP_X_USER: 'root' }, { HTTP_DESTINATION: '/admin' }], 'what it believes');
  t.notOk('HTTP_DESTINATION' in (seen[0] ?? {}), 'a second path is nothing that passes unasked');
  t.same(
    Object.keys(seen[1] ?? {}).filter((name) => /USER$|TENANT/.test(name)),
    ['HTTP_X_REMOTE_USER'],
    'only the verified caller',
  );
});

t.test(
  "what no line changes: overrides of method and target, and other names for the caller's address, never arrive",
  async (t) => {
    const { wsgi } = await startPython(t, tempDir(t));
    const proxy = await startProxyProcess(t, {
      config: merge(merge(aware, own), { upstream: { url: `http://127.0.0.1:${String(wsgi)}` } }),
    });
    const headers = {
      ...proxy.authorization(claims),
      'X-HTTP-Method-Override': 'DELETE',
      'X-Original-URL': '/admin',
      'X-Real-IP': '198.51.100.1',
    };
    const { fields } = JSON.parse((await proxy.request({ path: '/orders', headers })).text) as {
      readonly fields: ConfigTree;
    };
    t.same(
      Object.keys(fields).filter((name) => /OVERRIDE|ORIGINAL|REAL_IP/.test(name)),
      [],
    );
  },
);

t.test('without a word on repetition, a route for POST does not load', async (t) => {
  const routes = [{ name: 'create-order', methods: ['POST'], path: '/orders', ...checkout }];
  const { problems } = validateConfig(baseConfig({ routes }), {
    file: 'sallyport.yaml',
    folder: '/',
    env: {},
    readFile: () => refuse('none'),
  });
  t.match(
    problems.filter(({ severity }) => severity === 'error'),
    [{ message: /idempotency/ }],
  );
});
