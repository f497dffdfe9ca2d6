/** Reserved writes of an application: its handler stands where a sidecar has its upstream. */
import { setTimeout as delay } from 'node:timers/promises';
import { Readable } from 'node:stream';
import t from 'tap';
import { connectRaw } from '../support/raw-client.js';
import { settled } from '../support/settled.js';
import { until } from '../support/until.js';
import { createGate, openWriting, reserves, serveWrites, writes, type Handler } from './writes-app.js';

t.test('a repeated write gets the first response, whatever the handler answers with', async (t) => {
  const made = { id: 7, of: 'checkout' };
  const handlers: Readonly<Record<string, Handler>> = {
    '/value': () => made,
    '/promise': async () => Promise.resolve(made),
    '/send': (_request, reply) => void reply.code(201).header('location', '/orders/7').send(made),
    '/send-later': async (_request, reply) => {
      await delay(5);
      return reply.code(201).send(made);
    },
    '/stream': (_request, reply) => reply.type('text/plain').send(Readable.from(['a', 'b', 'c'])),
    '/length': (_request, reply) =>
      reply
        .type('text/plain')
        .header('content-length', 3)
        .send(Readable.from(['a', 'b', 'c'])),
    '/web-stream': (_request, reply) => reply.type('text/plain').send(new Blob(['abc']).stream()),
    '/response': () => new Response('abc', { status: 202, headers: { 'content-type': 'text/x' } }),
    '/empty': (_request, reply) => void reply.code(204).send(),
    '/hijack': (_request, reply) => {
      reply.hijack();
      reply.raw.writeHead(202, { 'content-type': 'text/plain' });
      reply.raw.write('ab');
      setImmediate(() => reply.raw.end('c'));
    },
    '/raw': (_request, reply) => {
      reply.raw.writeHead(200, ['Content-Type', 'text/plain']).end('abc');
    },
    '/write-after-end': (_request, reply) => {
      reply.hijack().raw.end('abc');
      reply.raw.write('d');
    },
    '/twice': (_request, reply) => {
      void reply.send(made);
      void reply.send({ other: true });
    },
    '/cookie': (_request, reply) => reply.header('set-cookie', 'a=b').send(made),
    '/hints': (_request, reply) => {
      reply.writeEarlyHints({ link: '</a>; rel=preload' });
      return made;
    },
    '/error': () => {
      throw new Error('secret words');
    },
    '/not-found': (_request, reply) => reply.callNotFound(),
    '/trailers': (_request, reply) => {
      void reply.trailer('x-sum', (_reply, _payload, done) => done(null, '1'));
      return made;
    },
    '/unicode': (_request, reply) => reply.header('etag', '"é"').send({ name: 'naïve' }),
  };
  let ran: ReadonlyMap<string, number> = new Map();
  const { write, lines } = await openWriting(t, { routes: (app) => (ran = serveWrites(app, handlers)) });
  for (const path of Object.keys(handlers)) {
    const first = await write(path, `"key-${path.slice(1)}"`);
    const second = await write(path, `key-${path.slice(1)}`);
    t.equal(ran.get(path), 1, `${path} ran once`);
    t.equal(second.status, first.status, path);
    t.equal(second.text, first.text, path);
    t.equal(second.field('content-type'), first.field('content-type'), path);
    t.equal(second.field('location'), first.field('location'), path);
    t.equal(second.field('etag'), first.field('etag'), path);
    t.equal(first.field('idempotent-replayed'), null, path);
    t.equal(second.field('idempotent-replayed'), 'true', `${path}: ${second.text}`);
    t.equal(second.field('cache-control'), 'no-store', path);
    t.equal(second.field('idempotency-key'), `key-${path.slice(1)}`, path);
    t.match(first.field('x-request-id'), /./, path);
    t.equal(second.field('set-cookie'), null, path);
  }
  t.match(lines.filter(({ msg }) => msg === 'decided').slice(0, 2), [
    { decision: 'forwarded', record: /./, status: 200 },
    { decision: 'replayed', record: /./, status: 200 },
  ]);
});

t.test('what handlers see of a reservation', async (t) => {
  const seen: object[] = [];
  const { write } = await openWriting(t, {
    routes: (app) =>
      serveWrites(app, {
        '/orders': ({ headers, raw, principal, body }) => {
          seen.push({ headers, distinct: raw.headersDistinct, raw: raw.rawHeaders, principal, body });
          return {};
        },
      }),
  });
  await write('/orders', 'a', { headers: { 'Idempotency-Record': 'forged', 'Idempotency-Fence': '99' } });
  t.match(seen[0], {
    headers: { 'idempotency-record': /^[\w.-]{20,}$/, 'idempotency-fence': /^\d+$/, 'idempotency-key': 'a' },
    principal: { subject: 'checkout' },
    body: { sku: 'a' },
  });
  t.notMatch(JSON.stringify(seen), /forged|"99"/);
});

t.test('a key stands for one request, of one caller, and is needed', async (t) => {
  let ran: ReadonlyMap<string, number> = new Map();
  const { write } = await openWriting(t, { routes: (app) => (ran = serveWrites(app, { '/orders': () => ({}) })) });
  t.equal((await write('/orders', 'k')).status, 200);
  const other = await write('/orders', 'k', { body: '{"sku":"b"}' });
  t.equal(other.status, 422);
  t.match(JSON.parse(other.text), { type: 'urn:sallyport:idempotency-key-reused' });
  t.equal((await write('/orders', 'k', { body: '{ "sku":"a"}' })).status, 422, 'bytes count, not what they mean');
  t.equal((await write('/orders?x=1', 'k')).status, 422);
  t.equal((await write('/orders', null)).status, 400);
  t.equal((await write('/orders', '"unclosed')).status, 400);
  t.equal((await write('/orders', 'k', { claims: { permissions: [] } })).status, 403);
  t.equal(ran.get('/orders'), 1);
});

t.test('who repeats while the handler runs is told so, and one of many runs', async (t) => {
  let ran: ReadonlyMap<string, number> = new Map();
  const gate = createGate();
  const { write } = await openWriting(t, {
    routes: (app) =>
      (ran = serveWrites(app, {
        '/orders': async () => {
          await gate.passed;
          return { id: 1 };
        },
      })),
  });
  const all = Array.from({ length: 20 }, async () => write('/orders', 'k'));
  await until('19 are refused', async () => (await Promise.all(all.map(settled))).filter(Boolean).length === 19);
  gate.open();
  const statuses = (await Promise.all(all)).map(({ status }) => status);
  t.equal(statuses.filter((status) => status === 200).length, 1);
  t.equal(statuses.filter((status) => status === 409).length, 19);
  t.equal(ran.get('/orders'), 1);
  t.equal((await write('/orders', 'k')).field('idempotent-replayed'), 'true');
});

t.test('a caller that leaves gets the response when it comes again', async (t) => {
  let ran: ReadonlyMap<string, number> = new Map();
  const gate = createGate();
  const { port, write, token, lines } = await openWriting(t, {
    routes: (app) =>
      (ran = serveWrites(app, {
        '/orders': async () => {
          await gate.passed;
          return { id: 1 };
        },
      })),
  });
  const caller = await connectRaw(port);
  caller.write(
    `POST /orders HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nAuthorization: Bearer ${token()}\r\nContent-Type: application/json\r\nIdempotency-Key: k\r\nContent-Length: 11\r\n\r\n{"sku":"a"}`,
  );
  await until('the handler runs', () => ran.get('/orders') === 1);
  caller.end();
  await until('the caller is gone', () => lines.some(({ reason }) => reason === 'caller_gone'));
  t.equal((await write('/orders', 'k')).status, 409);
  gate.open();
  await until('it is settled', async () => (await write('/orders', 'k')).status === 200);
  const again = await write('/orders', 'k');
  t.equal(again.text, '{"id":1}');
  t.equal(again.field('idempotent-replayed'), 'true');
  t.equal(ran.get('/orders'), 1);
});

/** Handlers that end without a response that could be kept: what the caller is told, and what a retry is. */
const unkept: readonly {
  readonly name: string;
  readonly handler: Handler;
  readonly status: number | null;
  readonly retry: RegExp;
}[] = [
  {
    name: 'a handler that is too slow',
    handler: async () => delay(2_000),
    status: 504,
    retry: /outcome-unknown/,
  },
  {
    name: 'a response that is destroyed before it begins',
    handler: (_request, reply) => void reply.hijack().raw.destroy(),
    status: 502,
    retry: /outcome-unknown/,
  },
  {
    name: 'a response that is destroyed with an error',
    handler: (_request, reply) => {
      reply.hijack();
      reply.raw.write('half');
      setTimeout(() => reply.raw.destroy(new Error('broken')), 10);
    },
    status: 502,
    retry: /result-not-replayable/,
  },
  {
    name: 'a stream that fails in the middle',
    handler: (_request, reply) =>
      reply.type('text/plain').send(
        Readable.from(
          (async function* () {
            yield 'half';
            await delay(10);
            throw new Error('broken');
          })(),
        ),
      ),
    status: 502,
    retry: /result-not-replayable/,
  },
  {
    name: 'a response shorter than it says',
    handler: (_request, reply) => {
      reply.hijack();
      reply.raw.writeHead(200, { 'content-length': '10' }).end('short');
    },
    status: 502,
    retry: /result-not-replayable/,
  },
  {
    name: 'a response that is too large to be kept',
    handler: (_request, reply) => reply.type('text/plain').send('x'.repeat(2_000_000)),
    status: 200,
    retry: /result-not-replayable/,
  },
  {
    name: 'the same as a stream',
    handler: (_request, reply) =>
      reply.type('text/plain').send(Readable.from(Array.from({ length: 40 }, () => 'x'.repeat(50_000)))),
    status: 200,
    retry: /result-not-replayable/,
  },
];

for (const { name, handler, status, retry } of unkept) {
  t.test(name, async (t) => {
    let ran: ReadonlyMap<string, number> = new Map();
    const { write } = await openWriting(t, {
      config: {
        routes: [
          {
            name: 'orders',
            methods: ['POST'],
            path: '/orders',
            ...writes,
            idempotency: 'required',
            response_timeout: '300ms',
          },
        ],
      },
      routes: (app) => {
        const counts = new Map<string, number>();
        ran = counts;
        app.post('/orders', (request, reply) => {
          counts.set('/orders', (counts.get('/orders') ?? 0) + 1);
          return handler(request, reply);
        });
      },
    });
    const first = await write('/orders', 'k');
    t.equal(first.status, status, first.text.slice(0, 300));
    if (status === 200) t.equal(first.text.length, 2_000_000);
    const again = await write('/orders', 'k');
    t.equal(again.status, 409);
    t.match(again.text, retry);
    t.match(again.text, /"record":"/);
    t.equal(ran.get('/orders'), 1);
  });
}

t.test('what is refused before the handler reserves nothing', async (t) => {
  let ran = 0;
  const { write } = await openWriting(t, {
    routes: (app) => {
      const schema = { body: { type: 'object', required: ['sku'], properties: { sku: { type: 'string' } } } };
      app.post('/orders', { ...reserves, schema }, () => ++ran);
      app.post(
        '/guarded',
        { ...reserves, preValidation: (_request, reply) => void reply.code(418).send() },
        () => ++ran,
      );
    },
  });
  t.equal((await write('/orders', 'k', { body: '{}' })).status, 400, 'of a schema');
  t.equal((await write('/orders', 'k', { body: '{' })).status, 400, 'no JSON');
  t.equal((await write('/orders', 'k', { headers: { 'Content-Type': 'text/x' } })).status, 415);
  t.equal((await write('/orders', 'k')).text, '1', 'the key is free');
  t.equal((await write('/guarded', 'k')).status, 418);
  t.equal((await write('/guarded', 'k')).status, 418);
  t.equal(ran, 1);
});
