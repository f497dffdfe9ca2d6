/** Reserved writes beside what else an application has: other plugins' hooks, proxies, contexts, scopes. */
import { AsyncLocalStorage } from 'node:async_hooks';
import { createHash } from 'node:crypto';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { createGunzip, gzipSync } from 'node:zlib';
import cors from '@fastify/cors';
import helmet from '@fastify/helmet';
import httpProxy from '@fastify/http-proxy';
import { fastify, type FastifyInstance } from 'fastify';
import t from 'tap';
import { valuesOf } from '../../src/decision/http/header-values.js';
import { sallyport } from '../../src/fastify/plugin.js';
import { setHeaders } from '../../src/fastify/request-headers.js';
import { startInProcessProxy } from '../app/in-process-proxy.js';
import { rsaKey } from '../support/keys.js';
import { connectRaw, request } from '../support/raw-client.js';
import { startUpstreamServer } from '../support/upstream-server.js';
import { mintToken } from '../support/tokens.js';
import { applicationConfig } from './open-app.js';
import { startJwksServer } from '../support/jwks-server.js';
import { openWriting, reserves, serveWrites, writes } from './writes-app.js';

t.test('preflights are answered by @fastify/cors before, and its headers are on whatever is answered', async (t) => {
  const { request, write } = await openWriting(t, {
    before: async (app) => {
      await app.register(cors, { origin: ['https://shop.example.com', 'https://other.example.com'] });
      await app.register(helmet);
    },
    routes: (app) => serveWrites(app, { '/orders': () => ({ id: 7 }) }),
  });
  const origin = { Origin: 'https://shop.example.com' };
  const preflight = await request({
    method: 'OPTIONS',
    path: '/orders',
    headers: { ...origin, 'Access-Control-Request-Method': 'POST' },
  });
  t.equal(preflight.status, 204);
  t.match(preflight.field('access-control-allow-methods'), /POST/);
  const first = await write('/orders', 'k', { headers: origin });
  const again = await write('/orders', 'k', { headers: { Origin: 'https://other.example.com' } });
  const refused = await write('/orders', null, { headers: origin });
  t.equal(again.field('idempotent-replayed'), 'true');
  t.equal(again.text, first.text);
  t.equal(again.field('access-control-allow-origin'), 'https://other.example.com', 'that of this caller');
  t.equal(refused.status, 400);
  for (const answer of [first, again, refused]) {
    t.match(answer.field('access-control-allow-origin'), /^https:/);
    t.equal(answer.field('x-content-type-options'), 'nosniff');
    t.match(answer.field('vary'), /Origin/);
  }
});

t.test('@fastify/http-proxy passes a reserved write on once', async (t) => {
  const receiver = await startUpstreamServer(t);
  const { write } = await openWriting(t, {
    config: {
      routes: [{ name: 'legacy', methods: ['POST'], path: '/legacy/{thing}', ...writes, idempotency: 'required' }],
    },
    routes: async (app) => {
      await app.register(httpProxy, { upstream: receiver.url, prefix: '/legacy', httpMethods: ['POST'] });
    },
    options: { uncovered: 'refuse' },
  });
  const body = '{ "as" : "it came" }';
  const first = await write('/legacy/orders', 'k', { body });
  t.equal(first.status, 200, first.text);
  const again = await write('/legacy/orders', 'k', { body });
  t.equal(again.field('idempotent-replayed'), 'true');
  t.equal(again.text, first.text);
  const chunked = `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`;
  const inChunks = await write('/legacy/orders', 'l', {
    body: chunked,
    headers: { 'Transfer-Encoding': 'chunked' },
  });
  t.equal(inChunks.status, 200, inChunks.text);
  t.equal(receiver.requests.length, 2);
  for (const request of receiver.requests) {
    t.equal(request.body.toString(), body);
    t.match(request.field('idempotency-record'), [/./]);
    t.match(request.field('idempotency-fence'), [/^\d+$/]);
  }
  receiver.behave((_req, res) => res.destroy());
  const failed = await write('/legacy/orders', 'm');
  t.equal(failed.status, 500, 'as @fastify/http-proxy says it');
  t.equal((await write('/legacy/orders', 'm')).field('idempotent-replayed'), 'true');
});

t.test('hooks and handlers keep the context of their request', async (t) => {
  const storage = new AsyncLocalStorage<string>();
  const seen: unknown[] = [];
  const { write } = await openWriting(t, {
    before: (app) =>
      app.addHook('onRequest', ({ headers }, _reply, done) => storage.run(String(headers['x-who']), done)),
    routes: (app) => {
      app.addHook('preValidation', (_request, _reply, done) => {
        seen.push(storage.getStore());
        done();
      });
      serveWrites(app, { '/orders': () => seen.push(storage.getStore()) });
    },
  });
  await Promise.all(['a', 'b', 'c'].map(async (who) => write('/orders', `key-${who}`, { headers: { 'X-Who': who } })));
  t.same(seen.sort(), ['a', 'a', 'b', 'b', 'c', 'c']);
});

function digestOf(body: string): string {
  return createHash('sha256').update(body).digest('hex');
}

t.test('a body is reserved by its bytes as they came, and read by whoever reads it', async (t) => {
  let delayMs = 0;
  const { write, port, token } = await openWriting(t, {
    before: (app) => {
      // What comes meanwhile waits in the request.
      app.addHook('onRequest', async () => delay(delayMs));
      app.addHook('preParsing', (request, _reply, payload, done) => {
        const isZipped = request.headers['content-encoding'] === 'gzip';
        if (!isZipped) done(null, payload);
        else {
          delete request.headers['content-length'];
          done(null, payload.pipe(createGunzip()));
        }
      });
    },
    routes: (app) => {
      serveWrites(app, { '/parsed': ({ body }) => digestOf(JSON.stringify(body)) });
      app.register((scope, _options, done) => {
        scope.removeAllContentTypeParsers();
        scope.addContentTypeParser('*', (_request, _payload, parsed) => parsed(null));
        scope.post('/past-parsers', reserves, async ({ raw }) => digestOf(await text(raw)));
        done();
      });
    },
  });
  const body = JSON.stringify({ sku: 'x'.repeat(300_000) });
  const zipped = gzipSync(body);
  for (const [round, pause] of [0, 50].entries()) {
    delayMs = pause;
    for (const path of ['/parsed', '/past-parsers']) {
      const key = `${path.slice(1)}-${String(round)}`;
      for (const replayed of [null, 'true']) {
        const answer = await write(path, key, { body });
        t.equal(answer.text, digestOf(body), `${path} ${String(pause)}`);
        t.equal(answer.field('idempotent-replayed'), replayed);
      }
      t.equal((await write(path, key, { body: body.replace('x', 'y') })).status, 422);
    }
    const caller = await connectRaw(port);
    t.teardown(caller.end);
    for (const key of [`z${String(round)}`, `z${String(round)}`]) {
      caller.write(
        `POST /parsed HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${token()}\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\nIdempotency-Key: ${key}\r\nContent-Length: ${String(zipped.length)}\r\n\r\n`,
      );
      await delay(10);
      caller.write(zipped.subarray(0, 20));
      await delay(pause * 2);
      caller.write(zipped.subarray(20));
      t.equal((await caller.readResponse())?.text, digestOf(body));
    }
  }
});

t.test('hooks that follow see and change what the handler answers, and that is kept', async (t) => {
  let sent = 0;
  const statuses: number[] = [];
  const { write } = await openWriting(t, {
    routes: (app) => {
      app.addHook('onSend', (_request, reply, payload, done) => {
        sent += 1;
        reply.header('x-sent', String(sent));
        done(null, `${String(payload)}!`);
      });
      app.addHook('onResponse', (_request, reply, done) => {
        statuses.push(reply.statusCode);
        done();
      });
      serveWrites(app, { '/orders': (_request, reply) => reply.code(201).send('made') });
    },
  });
  const first = await write('/orders', 'k');
  t.equal(first.text, 'made!');
  t.equal(first.field('x-sent'), '1');
  const again = await write('/orders', 'k');
  t.equal(again.text, 'made!', 'and not once more');
  t.equal(sent, 1);
  t.same(statuses, [201, 201]);
});

t.test('in a scope of its own, under a prefix', async (t) => {
  const key = rsaKey();
  const jwks = await startJwksServer(t, { keys: [key] });
  let ran = 0;
  const outer = fastify();
  t.teardown(() => outer.close());
  outer.post('/free', () => 'free');
  outer.register(
    async (scope: FastifyInstance) => {
      await scope.register(sallyport, {
        config: applicationConfig(jwks.url, { store: { memory: {} }, routes: undefined }),
      });
      scope.post('/orders', reserves, () => ({ ran: ++ran }));
    },
    { prefix: '/api' },
  );
  await outer.ready();
  const headers = { authorization: `Bearer ${mintToken({ key })}`, 'idempotency-key': 'k' };
  const inject = async (): Promise<{ body: string; statusCode: number; headers: object }> =>
    outer.inject({ method: 'POST', url: '/api/orders', headers, payload: { sku: 'a' } });
  t.equal((await outer.inject({ method: 'POST', url: '/free' })).body, 'free');
  t.equal((await inject()).body, '{"ran":1}');
  const again = await inject();
  t.equal(again.body, '{"ran":1}');
  t.match(again.headers, { 'idempotent-replayed': 'true' });
});

t.test('a body without a length is held to max_body, whoever reads it', async (t) => {
  const receiver = await startUpstreamServer(t);
  let ran = 0;
  const { write } = await openWriting(t, {
    config: {
      routes: [
        {
          name: 'plain',
          methods: ['POST'],
          path: ['/plain', '/stream', '/past-parsers', '/legacy/orders'],
          ...writes,
          max_body: '1KiB',
          idempotency: { mode: 'none', because: 'a test' },
        },
      ],
    },
    options: { uncovered: 'refuse' },
    before: (app) => app.addHook('onRequest', async ({ headers }) => delay(Number(headers['x-delay'] ?? 0))),
    routes: async (app) => {
      app.post('/plain', () => ++ran);
      app.register((scope, _options, done) => {
        scope.removeAllContentTypeParsers();
        scope.addContentTypeParser('*', (_request, payload, parsed) => parsed(null, payload));
        scope.post('/past-parsers', async ({ raw }, reply) => {
          let bytes = 0;
          for await (const chunk of raw as AsyncIterable<Buffer>) bytes += chunk.length;
          ran += 1;
          return reply.send(String(bytes));
        });
        scope.post('/stream', async ({ body }, reply) => {
          let bytes = 0;
          for await (const chunk of body as AsyncIterable<Buffer>) bytes += chunk.length;
          ran += 1;
          return reply.send(String(bytes));
        });
        done();
      });
      await app.register(httpProxy, { upstream: receiver.url, prefix: '/legacy', httpMethods: ['POST'] });
    },
  });
  const send = async (path: string, bytes: number, delayMs = 0): ReturnType<typeof write> => {
    const text = JSON.stringify('x'.repeat(bytes - 2));
    const half = Math.floor(bytes / 2);
    const chunks = [text.slice(0, half), text.slice(half), ''];
    const body = chunks.map((chunk) => `${chunk.length.toString(16)}\r\n${chunk}\r\n`).join('');
    return write(path, null, { body, headers: { 'Transfer-Encoding': 'chunked', 'X-Delay': String(delayMs) } });
  };
  for (const path of ['/plain', '/stream', '/past-parsers', '/legacy/orders']) {
    t.equal((await send(path, 1_024)).status, 200, path);
    const before = ran;
    t.equal((await send(path, 1_025, 20)).status, 413, `${path}: what came before it was decided on`);
    const refused = await send(path, 1_025);
    t.equal(refused.status, 413, `${path}: ${refused.text}`);
    t.match(refused.text, /urn:sallyport:body-too-large/);
    t.equal(refused.field('content-type'), 'application/problem+json');
    t.equal(ran, before, path);
  }
  t.notOk(receiver.requests.some(({ body, complete }) => complete && body.length > 1_024));
});

t.test('nobody switches protocols, also where @fastify/http-proxy would', async (t) => {
  const receiver = await startUpstreamServer(t);
  const { token, send } = await openWriting(t, {
    config: { routes: [{ name: 'legacy', methods: ['GET'], path: '/legacy/ws', ...writes }] },
    options: { uncovered: 'refuse' },
    routes: async (app) => {
      await app.register(httpProxy, { upstream: receiver.url, prefix: '/legacy', websocket: true });
    },
  });
  const head = `GET /legacy/ws HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${token()}\r\n`;
  const upgrade =
    'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n';
  const [answer] = await send(`${head}${upgrade}\r\n`);
  t.equal(answer?.status, 400);
  t.match(answer?.field('content-type'), /problem/);
  t.same(receiver.requests, []);
  t.equal((await send(`${head}Connection: close\r\n\r\n`))[0]?.status, 200, 'the same without an upgrade');
});

t.test('shadow mode lets a token through that was used, as nobody’s and without a reservation', async (t) => {
  const seen: unknown[] = [];
  const { write, lines } = await openWriting(t, {
    config: {
      mode: 'shadow',
      routes: [
        { name: 'orders', methods: ['POST'], path: '/orders', ...writes, idempotency: 'required', single_use: true },
      ],
    },
    routes: (app) =>
      app.post('/orders', ({ principal, headers }) => {
        seen.push([principal?.subject, headers['x-auth-subject'], headers['idempotency-record'] !== undefined]);
        return {};
      }),
  });
  const claims = { jti: 'one' };
  for (const key of ['a', 'b', 'c']) t.equal((await write('/orders', key, { claims })).status, 200);
  t.equal((await write('/orders', null, { claims })).status, 400, 'what is malformed is refused');
  t.same(seen, [['checkout', 'checkout', true], ...Array.from({ length: 2 }, () => [undefined, undefined, false])]);
  t.match(
    lines.filter(({ msg }) => msg === 'decided').map((line) => line['decision']),
    ['forwarded', 'shadow', 'shadow', 'denied'],
  );
});

t.test('what shadow mode lets by at the reservation goes on as it came, as from the sidecar', async (t) => {
  const routes = [
    { name: 'orders', methods: ['POST'], path: '/orders', ...writes, idempotency: 'required', single_use: true },
  ];
  const config = { mode: 'shadow', routes, store: { memory: {} } };
  const names = ['Authorization', 'DPoP', 'X-Auth-Subject', 'X-Auth-Kind', 'Idempotency-Key', 'X-Note'];
  const seen: (readonly string[])[] = [];
  const { token, write } = await openWriting(t, {
    config,
    routes: (app) => {
      app.addHook('onRequest', ({ raw }, _reply, next) => {
        setHeaders(raw, ['X-Of-A-Hook', 'kept']);
        next();
      });
      app.post('/orders', ({ raw, headers }) => {
        const own = [...names, 'X-Of-A-Hook'].map((name) => String(headers[name.toLowerCase()] ?? ''));
        for (const [index, name] of names.entries()) {
          t.equal(valuesOf(raw.rawHeaders, name.toLowerCase()).join('|'), own[index], `${name}, raw`);
          t.equal(raw.headersDistinct[name.toLowerCase()]?.join('|') ?? '', own[index], `${name}, distinct`);
        }
        seen.push(own);
        return {};
      });
    },
  });
  const sent = { DPoP: 'a', 'X-Note': 'as it came', 'X-Auth-Subject': 'spoofed', Connection: 'X-Dropped' };
  const Authorization = `Bearer ${token({ jti: 'one' })}`;
  for (const key of ['"a"', '"b"']) {
    t.equal((await write('/orders', key, { headers: { ...sent, Authorization } })).status, 200);
  }
  t.match(seen[0], ['', '', 'checkout', 'service'], 'reserved: the credential ends here');
  const sidecar = await startInProcessProxy(t, { config });
  const own = `Bearer ${sidecar.token({ jti: 'one' })}`;
  for (const key of ['"a"', '"b"']) {
    const headers = { ...sent, Authorization: own, 'Content-Type': 'application/json', 'Idempotency-Key': key };
    const answer = await request(sidecar.port, { method: 'POST', path: '/orders', body: '{"sku":"a"}', headers });
    t.equal(answer.status, 200);
  }
  const got = names.map((name) => sidecar.receiver.requests[1]?.field(name).join('|'));
  t.same(got, [own, 'a', '', '', '"b"', 'as it came'], 'what the sidecar hands on');
  t.same(seen[1], [Authorization, ...got.slice(1), 'kept']);
});
