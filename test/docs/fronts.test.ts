/**
 * docs/behind-a-proxy.md: real nginx, HAProxy, Caddy and Apache, run from its lines, with a real Sallyport behind them.
 */
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { Agent, request as requestHttps } from 'node:https';
import { text } from 'node:stream/consumers';
import t from 'tap';
import { WebSocket } from 'ws';
import { parse } from 'yaml';
import { clientOf, startWebSocketUpstream } from '../proxy/websocket/websocket-proxy.js';
import { accepting } from '../support/accepting.js';
import { startJwksServer } from '../support/jwks-server.js';
import { freePort } from '../support/listening.js';
import { runNginx } from '../support/nginx.js';
import { request } from '../support/raw-client.js';
import { startUpstreamServer, type UpstreamServer } from '../support/upstream-server.js';
import type { Scope } from '../support/scope.js';
import { startRelay, type TcpRelay } from '../support/tcp-relay.js';
import { readProjectFile } from '../support/source-files.js';
import { until } from '../support/until.js';
import { startProxyProcess, type ConfigTree, type ProxyProcess } from '../support/proxy-process.js';
import { blockThatBegins } from './fenced-blocks.js';
import { frontNames, page, startFront, type Front, type FrontName } from './fronts.js';

t.setTimeout(240_000);

const largeBytes = 4 * 1024 * 1024;

const routes = [
  { name: 'list-orders', methods: ['GET'], path: '/orders', subjects: ['checkout'], permissions: ['orders:read'] },
  {
    name: 'create-order',
    methods: ['POST'],
    path: '/orders',
    subjects: ['checkout'],
    permissions: ['orders:write'],
    idempotency: 'required',
  },
  {
    name: 'upload',
    methods: ['POST'],
    path: '/uploads',
    subjects: ['checkout'],
    permissions: ['orders:write'],
    idempotency: 'none',
    max_body: '16MiB',
  },
  {
    name: 'live',
    methods: ['GET'],
    path: '/live',
    websocket: true,
    subjects: ['checkout'],
    permissions: ['orders:read'],
  },
  { name: 'health', methods: ['GET'], path: '/healthz', access: 'public' },
];

interface FrontedProxy {
  readonly proxy: ProxyProcess;
  readonly upstream: UpstreamServer;
  readonly front: Front;
  /** Between the front and Sallyport. */
  readonly relay: TcpRelay;
  readonly ask: (path: string, options?: Asked) => Promise<Answer>;
}

interface Asked {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string | string[]>>;
  readonly body?: string | Buffer;
  /** Keeps connections; without it each request has its own. */
  readonly agent?: Agent;
}

interface Answer {
  readonly status: number;
  readonly headers: NodeJS.Dict<string | string[]>;
  readonly text: string;
}

const publicHost = 'orders.example.com';

/** From another address than the front's own, so that it is seen whose address arrives. */
const callersAddress = '127.0.0.2';

async function askOf(
  { port, ca }: Front,
  path: string,
  { method = 'GET', headers = {}, body = '', agent }: Asked = {},
): Promise<Answer> {
  const place = {
    host: '127.0.0.1',
    port,
    localAddress: callersAddress,
    ca,
    servername: 'localhost',
    agent: agent ?? false,
  };
  const sent = requestHttps({
    ...place,
    method,
    path,
    headers: { Host: publicHost, 'Content-Length': String(Buffer.byteLength(body)), ...headers },
  });
  sent.end(body);
  const [answer] = (await once(sent, 'response')) as [IncomingMessage];
  return { status: answer.statusCode ?? 0, headers: answer.headers, text: await text(answer) };
}

/** The keys of the page, on ports that are free here, with these on top. */
function pageConfig(overrides: ConfigTree): ConfigTree {
  const { listen: shown, probes } = parse(blockThatBegins(page, 'listen:').text) as Readonly<Record<string, object>>;
  const { listen: further = {}, ...rest } = overrides as { readonly listen?: object };
  return {
    routes,
    store: { memory: {} },
    ...rest,
    listen: { ...shown, port: 0, ...further },
    probes: { ...probes, port: 0 },
  };
}

async function startFrontedProxy(
  t: Scope,
  name: FrontName,
  config: ConfigTree = {},
  edits: Parameters<typeof startFront>[3] = [],
): Promise<FrontedProxy> {
  const upstream = await startUpstreamServer(t);
  const proxy = await startProxyProcess(t, { receiver: upstream, config: pageConfig(config) });
  const relay = await startRelay(t, proxy.port);
  const front = await startFront(t, name, { proxy: relay.port, probes: await proxy.process.port('probes') }, edits);
  const ask: FrontedProxy['ask'] = async (path, options) => askOf(front, path, options);
  await until(
    `${name} forwards`,
    async () => (await ask('/healthz').catch(() => null))?.headers['x-request-id'] !== undefined,
  );
  return { proxy, upstream, front, relay, ask };
}

for (const name of frontNames) {
  t.test(`${name}: callers and Sallyport see of each other what they should`, async (t) => {
    const { proxy, upstream, ask } = await startFrontedProxy(t, name);

    await t.test('who calls, from where, and nothing of what a caller makes up', async (t) => {
      const spoofed = {
        'X-Forwarded-For': ['6.6.6.6', '7.7.7.7'],
        'X-Forwarded-Host': 'evil.example',
        'X-Forwarded-Proto': 'http',
        'X-Forwarded-Port': '1',
        Via: '1.1 evil',
        'X-Real-IP': '6.6.6.6',
        Forwarded: 'for=6.6.6.6',
        'X-Auth-Subject': 'admin',
        X_Auth_Subject: 'admin',
      };
      upstream.requests.length = 0;
      const allowed = await ask('/orders?page=2', {
        headers: { ...proxy.authorization(), ...spoofed, 'X-Request-Id': `of-${name}` },
      });
      t.equal(allowed.status, 200);
      t.equal(allowed.headers['x-request-id'], `of-${name}`);
      const [seen] = upstream.requests;
      t.equal(seen?.target, '/orders?page=2');
      const expected = [
        ['x-auth-subject', ['checkout']],
        ['x-forwarded-for', [`${callersAddress}, 127.0.0.1`]],
        ['x-forwarded-proto', ['https']],
        ['x-forwarded-host', [publicHost]],
        ['via', ['1.1 sallyport']],
        ['x_auth_subject', []],
        ['x-real-ip', []],
        ['forwarded', []],
        ['x-forwarded-port', []],
        ['authorization', []],
      ] as const;
      for (const [field, values] of expected) t.same(seen?.field(field), values, field);
    });

    await t.test('a refusal arrives as it is, and the upstream hears nothing of it', async (t) => {
      upstream.requests.length = 0;
      const refused = await ask('/orders', { headers: { 'X-Auth-Subject': 'admin' } });
      t.equal(refused.status, 401);
      t.match(refused.headers, { 'content-type': 'application/problem+json', 'proxy-status': /^sallyport;/ });
      t.match(JSON.parse(refused.text), { status: 401 });
      t.equal(upstream.requests.length, 0);
    });

    await t.test('a reserved write runs once, and its repetition gets its response', async (t) => {
      upstream.requests.length = 0;
      const headers = { ...proxy.authorization(), 'Content-Type': 'application/json', 'Idempotency-Key': 'k-1' };
      const write = { method: 'POST', body: '{"item":1}', headers };
      const [first, second] = [await ask('/orders', write), await ask('/orders', write)];
      t.same([first.status, second.status], [200, 200]);
      t.equal(second.headers['idempotent-replayed'], 'true');
      t.equal(second.text, first.text);
      t.same(
        upstream.requests.map(({ body }) => body.toString()),
        [write.body],
      );
    });

    await t.test('a body of 4 MiB, with a length and in chunks', async (t) => {
      const body = Buffer.alloc(largeBytes, 'sallyport ');
      for (const framing of [{}, { 'Transfer-Encoding': 'chunked', 'Content-Length': [] }]) {
        const headers = { ...proxy.authorization(), 'Content-Type': 'text/plain', ...framing };
        t.equal((await ask('/uploads', { method: 'POST', body, headers })).status, 200);
        t.ok(upstream.requests.at(-1)?.body.equals(body), JSON.stringify(framing));
      }
    });
  });

  t.test(`${name}: a WebSocket, and none without a token`, async (t) => {
    const webSockets = await startWebSocketUpstream(t);
    const { proxy, front } = await startFrontedProxy(t, name, { upstream: { url: webSockets.url } });
    const url = `wss://localhost:${front.port}/live`;
    const options = { ca: front.ca, localAddress: callersAddress, perMessageDeflate: false };
    const client = clientOf(
      t,
      new WebSocket(url, { ...options, headers: { Host: publicHost, ...proxy.authorization() } }),
    );
    await client.opened;
    client.socket.send('through two proxies');
    await until('the echo', () => client.messages.length === 1);
    t.same(client.messages, ['through two proxies']);
    t.equal(webSockets.upgrades[0]?.headers['x-auth-subject'], 'checkout');
    await t.rejects(clientOf(t, new WebSocket(url, { ...options, headers: { Host: publicHost } })).opened, /401/);
    proxy.rewrite(pageConfig({ upstream: { url: webSockets.url }, revoked: { subjects: ['checkout'] } }));
    t.match(await client.closed, { code: 4401 }, 'Sallyport’s own close code arrives');
  });

  t.test(`${name}: connections to Sallyport are kept, and one that it has closed is not used again`, async (t) => {
    // Not 1s: HAProxy passes Sallyport's Keep-Alive field on, and Node's client takes a second off what it says.
    const { proxy, relay, ask } = await startFrontedProxy(t, name, { listen: { keep_alive_timeout: '3s' } });
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    t.teardown(() => agent.destroy());
    const get = async (): Promise<number> => (await ask('/orders', { headers: proxy.authorization(), agent })).status;
    const before = relay.accepted();
    for (let i = 0; i < 20; i++) t.equal(await get(), 200);
    t.ok(relay.accepted() - before < 10, `${relay.accepted() - before} connections for 20 requests`);
    for (let i = 0; i < 2; i++) {
      await until('the idle connections are closed', () => relay.open() === 0);
      t.equal(await get(), 200);
    }
  });
}

t.test(
  'HAProxy, Caddy: while Sallyport is not ready they answer by themselves, and forward as soon as it is',
  async (t) => {
    for (const name of ['HAProxy', 'Caddy'] as const) {
      const jwks = await startJwksServer(t, { keys: [] });
      const proxy = await startProxyProcess(t, {
        jwks,
        ready: false,
        config: pageConfig({ issuers: { core: { jwks: { cooldown: '0ms' } } } }),
      });
      const front = await startFront(t, name, { proxy: proxy.port, probes: await proxy.process.port('probes') });
      await until(`${name} sees that it is not ready`, async () => {
        const { status, headers } = await askOf(front, '/healthz');
        return status === 503 && headers['x-request-id'] === undefined;
      });
      t.match(await proxy.request({ path: '/healthz' }), { status: 200 }, 'though it would answer');
      jwks.setKeys([proxy.key]);
      // Keys are asked for after 30 s at most, and then the front has to look.
      const isReady = async (): Promise<boolean> => (await askOf(front, '/healthz')).status === 200;
      await until(`${name} sees that it is ready`, isReady, 60_000);
    }
  },
);

t.test('idle connections: what the page says gives them up does so before Sallyport does', async (t) => {
  const shorter = [
    ['nginx', 'keepalive_timeout 60s', 'keepalive_timeout 1s'],
    ['Caddy', 'keepalive 60s', 'keepalive 1s'],
  ] as const;
  for (const [name, shown, here] of shorter) {
    const { ask, relay } = await startFrontedProxy(t, name, {}, [[shown, here]]);
    t.equal((await ask('/healthz')).status, 200);
    await until(`${name} gives up its idle connections`, () => relay.open() === 0);
  }
});

t.test('nginx without the two lines is answered 400; with them, or with http_1_0: allow, 200', async (t) => {
  const least = blockThatBegins(page, 'proxy_http_version').text;
  const cases = [
    { lines: '', config: {}, status: 400 },
    { lines: least, config: {}, status: 200 },
    { lines: '', config: { listen: { http_1_0: 'allow' } }, status: 200 },
  ];
  for (const { lines, config, status } of cases) {
    const proxy = await startProxyProcess(t, { config });
    const port = await freePort();
    const program = runNginx(
      t,
      `server { listen 127.0.0.1:${port}; location / { proxy_pass http://127.0.0.1:${proxy.port}; ${lines} } }`,
    );
    await accepting(program, port, 'nginx');
    const answer = await request(port, { path: '/orders', headers: proxy.authorization() });
    t.equal(answer.status, status);
    if (status === 400) t.match(answer.text, /The HTTP version is not supported/, 'as the page says');
  }
});

/** Columns of the table of paths: what they are called there, and what they stand for. */
const columns: readonly {
  readonly title: string;
  readonly name: FrontName;
  readonly edits: Parameters<typeof startFront>[3];
}[] = [
  ...frontNames.map((name) => ({ title: name, name, edits: [] })),
  {
    title: 'nginx, `proxy_pass` with a slash',
    name: 'nginx',
    edits: [['proxy_pass http://sallyport;', 'proxy_pass http://sallyport/;']],
  },
  { title: 'Apache without `nocanon`', name: 'Apache', edits: [[' nocanon', '']] },
];

t.test('the table of paths says what each makes of them', async (t) => {
  const [titles, , ...rows] =
    readProjectFile(page)
      .split(/<!-- \/?paths -->/)[1]
      ?.split('\n')
      .filter((line) => line.startsWith('|'))
      .map((line) =>
        line
          .split('|')
          .slice(1, -1)
          .map((cell) => cell.trim()),
      ) ?? [];
  t.same(
    titles?.slice(1),
    columns.map(({ title }) => title),
  );
  const sent = rows.map(([cell = '']) => cell.replaceAll('`', ''));
  const found = await Promise.all(
    columns.map(async ({ name, edits }) => {
      const upstream = await startUpstreamServer(t);
      const { port, ca } = await startFront(t, name, { proxy: upstream.port, probes: upstream.port }, edits);
      const cells: string[] = [];
      for (const path of sent) {
        upstream.requests.length = 0;
        const headers = { Host: publicHost, 'X-Request-Id': 'asked' };
        const { status } = await request(port, { path, headers }, { tls: { ca, servername: 'localhost' } });
        const seen = upstream.requests.find((one) => one.field('x-request-id')[0] === 'asked');
        cells.push(seen === undefined ? String(status) : seen.target === path ? '=' : `\`${seen.target}\``);
      }
      return cells;
    }),
  );
  for (const [i, row] of rows.entries()) {
    t.same(
      row.slice(1),
      found.map((cells) => cells[i]),
      sent[i] ?? '',
    );
  }
});
