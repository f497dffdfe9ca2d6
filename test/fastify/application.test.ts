/** The plugin in real applications: whose policy counts where, what handlers see, and what ends a start. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import httpProxy from '@fastify/http-proxy';
import { fastify, type FastifyBaseLogger, type FastifyRequest } from 'fastify';
import { Registry } from 'prom-client';
import t from 'tap';
import { stringify } from 'yaml';
import { sallyport } from '../../src/fastify/plugin.js';
import { rsaKey } from '../support/keys.js';
import { startJwksServer } from '../support/jwks-server.js';
import { startUpstreamServer } from '../support/upstream-server.js';
import { believedFields } from '../support/attacks/field-names.js';
import { tempDir } from '../support/temp-dir.js';
import { until } from '../support/until.js';
import { mintToken } from '../support/tokens.js';
import { applicationConfig, buildApp, openApp, type AppSettings } from './open-app.js';

const reads = { subjects: ['checkout'], permissions: ['orders:read'] };
const nothing = (): object => ({});

t.test('handlers and what is passed on see who calls, and no word of the caller on it', async (t) => {
  const receiver = await startUpstreamServer(t);
  const seen: { readonly headers: object; readonly raw: readonly string[]; readonly distinct: object }[] = [];
  const { request, token } = await openApp(t, {
    config: {
      routes: [
        { name: 'orders', methods: ['GET'], path: '/orders', ...reads },
        {
          name: 'legacy',
          methods: ['*'],
          path: ['/legacy', '/legacy/**'],
          ...reads,
          idempotency: { mode: 'none', because: 'a test' },
        },
        { name: 'open', methods: ['GET'], path: '/open', access: 'public' },
      ],
    },
    routes: async (app) => {
      const look = (request: FastifyRequest): unknown => {
        const { raw, headers } = request;
        seen.push({ headers, raw: raw.rawHeaders, distinct: raw.headersDistinct });
        return request.principal;
      };
      app.get('/orders', look);
      app.get('/open', look);
      await app.register(httpProxy, { upstream: receiver.url, prefix: '/legacy', rewritePrefix: '/old' });
    },
  });
  const forged = believedFields.flatMap(({ names }) => names).filter((name) => /^[A-Za-z0-9-]+$/.test(name));
  const headers: readonly (readonly [string, string])[] = [
    ['Authorization', `Bearer ${token()}`],
    ...forged.map((name): readonly [string, string] => [name, 'forged-by-the-caller']),
    ['X-Kept', 'kept'],
  ];
  const answer = await request({ path: '/orders', headers });
  t.match(JSON.parse(answer.text), {
    subject: 'checkout',
    permissions: ['orders:read', 'orders:write'],
    tokenId: null,
  });
  t.match(seen.at(-1)?.headers, { 'x-auth-subject': 'checkout', 'x-kept': 'kept' });
  t.notMatch(JSON.stringify(seen.at(-1)), /forged-by-the-caller|Bearer/);
  t.equal((await request({ path: '/open', headers })).text, 'null', 'nobody on a public route');
  t.notMatch(JSON.stringify(seen.at(-1)), /forged-by-the-caller|x-auth-subject/i);
  t.equal((await request({ path: '/legacy/x', headers })).status, 200);
  const passed = receiver.requests.at(-1);
  t.equal(passed?.target, '/old/x');
  t.match(JSON.stringify(passed), /checkout/);
  t.notMatch(JSON.stringify(passed), /forged-by-the-caller|Bearer/);
  t.equal((await request({ path: '/legacy/x' })).status, 401);
  const stripping = [...headers, ['Connection', 'X-Auth-Subject']] as const;
  t.equal((await request({ path: '/legacy/x', headers: stripping })).status, 400, 'Connection takes none of ours away');
});

t.test('a policy beside a route counts for that route alone', async (t) => {
  const { request, token } = await openApp(t, {
    config: { routes: [{ name: 'wide', methods: ['GET'], path: '/items/{id}', access: 'public' }] },
    routes: (app) => {
      app.get('/orders/:id', { config: { sallyport: reads } }, nothing);
      app.get('/orders/:id/open', { config: { sallyport: { access: 'public' } } }, nothing);
      app.get('/items/secret', { config: { sallyport: { ...reads, permissions: ['items:secret'] } } }, nothing);
      app.get('/items/:id', nothing);
      app.get('/files/*', { config: { sallyport: { ...reads, name: 'files' } } }, nothing);
    },
  });
  const as = async (path: string, claims: object | null, method = 'GET'): Promise<number> => {
    const headers = claims === null ? {} : { Authorization: `Bearer ${token({ ...claims })}` };
    return (await request({ method, path, headers })).status;
  };
  t.equal(await as('/orders/7', {}), 200);
  t.equal(await as('/orders/7', {}, 'HEAD'), 200, 'HEAD that Fastify adds has the same policy');
  t.equal(await as('/orders/7', null), 401);
  t.equal(await as('/orders/7', { permissions: [] }), 403);
  t.equal(await as('/orders/7/open', null), 200);
  t.equal(await as('/items/secret', {}), 403);
  t.equal(await as('/items/secret', null), 401);
  t.equal(await as('/items/other', null), 200);
  t.equal(await as('/files/a/b', {}), 200);
  t.equal(await as('/files/a/b', null), 401);
});

const startRows: readonly { readonly name: string; readonly settings: AppSettings; readonly error: RegExp | null }[] = [
  {
    name: 'a route without a policy',
    settings: { routes: (app) => app.get('/forgotten', nothing) },
    error: /no route covers GET \/forgotten, which the application serves; allowed: a route for it here/,
  },
  {
    name: 'the same, refused to everybody',
    settings: { options: { uncovered: 'refuse' }, routes: (app) => app.get('/forgotten', nothing) },
    error: null,
  },
  {
    name: 'a route that only the policy beside another covers',
    settings: {
      routes: (app) => {
        app.get('/a/:id', { config: { sallyport: reads } }, nothing);
        app.get('/a/special', nothing);
      },
    },
    error: /no route covers GET \/a\/special/,
  },
  {
    name: 'a wildcard that is covered in part',
    settings: { routes: (app) => app.get('/orders/*', nothing) },
    error: /no route covers GET \/orders\/\*/,
  },
  {
    name: 'a policy with an unknown key',
    settings: {
      routes: (app) => app.get('/x', { config: { sallyport: { ...reads, subject: 'x' } as object } }, nothing),
    },
    error: /unknown key "subject" in routes\[4\], did you mean "subjects"/,
  },
  {
    name: 'a policy with a key that is never read',
    settings: {
      routes: (app) => {
        const claims = JSON.parse('{ "__proto__": "x" }') as Record<string, string>;
        app.get('/x', { config: { sallyport: { accept: ['session'], session: { claims } } } }, nothing);
      },
    },
    error: /routes\[4\]\.session\.claims has the key "__proto__", which is never read; allowed: another key/,
  },
  {
    name: 'certificates in a header of everybody, beside TLS that has no effect',
    settings: {
      config: {
        listen: {
          client_cert_header: true,
          trust_forwarded: ['0.0.0.0/0'],
          tls: { cert_file: '/c.crt', key_file: '/c.key', client_ca_file: '/ca.crt' },
        },
      },
      routes: () => undefined,
    },
    error: /listen\.client_cert_header believes everybody/,
  },
  {
    name: 'a policy that says nothing',
    settings: { routes: (app) => app.get('/x', { config: { sallyport: {} } }, nothing) },
    error: /subjects/,
  },
  {
    name: 'a reservation without a store',
    settings: {
      routes: (app) => app.post('/x', { config: { sallyport: { ...reads, idempotency: 'required' } } }, nothing),
    },
    error: /store/,
  },
  {
    name: 'gRPC calls',
    settings: {
      config: {
        routes: [{ name: 'calls', grpc: 'a.B', ...reads, idempotency: { mode: 'none', because: 'a test' } }],
      },
      routes: () => undefined,
    },
    error: /takes gRPC calls, which an application cannot/,
  },
  {
    name: 'a route that was added before the plugin was there',
    settings: { before: (app) => app.get('/early', nothing), routes: () => undefined },
    error: /no route covers GET \/early/,
  },
  {
    name: 'the same with a policy of the file',
    settings: { before: (app) => app.get('/orders', nothing), routes: () => undefined },
    error: null,
  },
];

t.test('a start ends with all that is wrong, and nothing gets through before', async (t) => {
  for (const { name, settings, error } of startRows) {
    await t.test(name, async (t) => {
      const app = await buildApp(t, rsaKey(), settings);
      if (error === null) await app.ready();
      else await t.rejects(Promise.resolve(app.ready()), { message: error });
    });
  }
});

t.test('an application of HTTP/2 is refused', async (t) => {
  const app = fastify({ http2: true });
  t.teardown(() => app.close());
  await t.rejects(Promise.resolve(app.register(sallyport, { config: {} })), /HTTP\/2/);
});

t.test('what is checked is what the router was given, and no route comes late', async (t) => {
  const key = rsaKey();
  const app = await buildApp(t, key, {
    server: { rewriteUrl: ({ url = '' }) => (url === '/healthz' ? '/orders' : url) },
    routes: (routes) => {
      routes.get('/orders', () => 'orders');
      routes.get('/healthz', nothing);
    },
  });
  await app.ready();
  t.equal((await app.inject('/healthz')).statusCode, 401, 'a public path does not lead to another route');
  const authorization = `Bearer ${mintToken({ key })}`;
  t.equal(
    (await app.inject({ url: '/orders', headers: { authorization } })).body,
    'orders',
    'without a socket as well',
  );
  t.throws(() => app.get('/late', nothing), 'Fastify takes none');
});

t.test('other plugins’ hooks see requests and refusals; preflights may be answered before', async (t) => {
  const { request } = await openApp(t, {
    before: (app) =>
      app.addHook('onRequest', (request, reply, done) => {
        reply.header('access-control-allow-origin', '*');
        if (request.method === 'OPTIONS') reply.code(204).send();
        else done();
      }),
    routes: (app) => {
      app.addHook('onSend', (_request, reply, _payload, done) => {
        reply.header('x-sent', 'yes');
        done();
      });
      app.get('/orders', nothing);
    },
  });
  t.equal((await request({ method: 'OPTIONS', path: '/orders' })).status, 204, 'before the decision');
  const refused = await request({ path: '/orders' });
  t.equal(refused.status, 401);
  t.equal(refused.field('access-control-allow-origin'), '*');
  t.equal(refused.field('x-sent'), 'yes');
});

t.test('it holds in its scope, and not beside it', async (t) => {
  const key = rsaKey();
  const outside = fastify();
  t.teardown(() => outside.close());
  outside.get('/free', nothing);
  await outside.register(
    async (scope) => {
      const inner = { config: { sallyport: { access: 'public' } } } as const;
      await scope.register(sallyport, {
        config: {
          issuers: {
            core: { issuer: 'i', jwks_file: '/none', audience: 'a', source: 's', token_type: 'service' },
          },
        },
      });
      scope.get('/open', inner, nothing);
      scope.get('/closed', { config: { sallyport: reads } }, nothing);
    },
    { prefix: '/api' },
  );
  t.ok(key);
  t.equal((await outside.inject('/free')).statusCode, 200);
  t.equal((await outside.inject('/api/open')).statusCode, 200);
  t.equal((await outside.inject('/api/closed')).statusCode, 401);
});

t.test('metrics on the application’s registry, lines in its log', async (t) => {
  const registry = new Registry();
  const lines: string[] = [];
  const { request, token } = await openApp(t, {
    options: { registry },
    server: { logger: { level: 'info', stream: { write: (line: string) => void lines.push(line) } } },
    routes: (app) => app.get('/orders', nothing),
  });
  await request({ path: '/orders?secret=1', headers: { Authorization: `Bearer ${token()}` } });
  await request({ path: '/orders' });
  const text = await registry.metrics();
  t.match(text, /sallyport_requests_total\{route="list-orders",outcome="forwarded",code="2xx"\} 1/);
  t.match(text, /sallyport_denials_total\{route="list-orders",reason="credential_missing"\} 1/);
  t.match(text, /sallyport_request_duration_seconds_bucket\{route="list-orders",le="\+Inf"\} 2/);
  t.notMatch(text, /process_cpu/);
  const decided = lines.filter((line) => line.includes('"decided"')).map((line) => JSON.parse(line) as object);
  t.match(decided[0], {
    route: 'list-orders',
    path: '/orders',
    decision: 'forwarded',
    subject: 'checkout',
    status: 200,
  });
  t.match(decided[1], { decision: 'denied', reason: 'credential_missing', status: 401 });
  t.notMatch(JSON.stringify(decided), /secret=1|eyJ/);
});

t.test('a log line that cannot be written is told, and ends no application', async (t) => {
  const bugs: object[] = [];
  let isBroken = true;
  const lines: string[] = [];
  const logger: FastifyBaseLogger = {
    level: 'info',
    silent: nothing,
    fatal: nothing,
    trace: nothing,
    debug: nothing,
    warn: nothing,
    info: (_fields: unknown, message?: string) => {
      if (message !== 'decided') return;
      if (isBroken) throw new Error('the disk is full');
      lines.push(message);
    },
    error: (fields: object, message?: string) => {
      if (message === 'bug') bugs.push(fields);
    },
    child: () => logger,
  };
  const { request } = await openApp(t, {
    config: { routes: [{ name: 'open', methods: ['GET'], path: '/open', access: 'public' }] },
    server: { loggerInstance: logger },
    routes: (app) => app.get('/open', nothing),
  });
  t.equal((await request({ path: '/open' })).status, 200);
  await until('the line', () => bugs.length > 0);
  t.match(bugs, [{ request_id: /./, error: 'Error' }]);
  isBroken = false;
  t.equal((await request({ path: '/open' })).status, 200);
  await until('the next line', () => lines.length > 0);
  t.equal(bugs.length, 1);
});

t.test('a config file that changes is taken, unless a route would be left without a policy', async (t) => {
  const key = rsaKey();
  const jwks = await startJwksServer(t, { keys: [key] });
  const file = join(tempDir(t), 'sallyport.yaml');
  const write = (routes: readonly object[]): void =>
    writeFileSync(file, stringify(applicationConfig(jwks.url, { routes })));
  const route = { name: 'orders', methods: ['GET'], path: '/orders' };
  write([{ ...route, access: 'public' }]);
  const app = fastify();
  t.teardown(() => app.close());
  app.register(sallyport, { config: file, watch: false });
  app.get('/orders', nothing);
  t.equal((await app.inject('/orders')).statusCode, 200);
  write([{ ...route, path: '/stock', access: 'public' }]);
  await app.sallyport.reload();
  t.equal((await app.inject('/orders')).statusCode, 200, 'the old one stays in force');
  write([{ ...route, ...reads }]);
  await app.sallyport.reload();
  t.equal((await app.inject('/orders')).statusCode, 401);
});
