/** nginx, HAProxy, Apache and nghttpd as the upstream of HTTP/2 of a running `serve`. */
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { status } from '@grpc/grpc-js';
import t from 'tap';
import { configOf, startGrpcProxy } from '../grpc/deployment.js';
import { allBytes, createCaller, outcomeOf, prefix, startNodeService } from '../grpc/service.js';
import { accepting } from '../support/accepting.js';
import { certificates } from '../support/certificates.js';
import { runH2load } from '../support/h2load.js';
import { ask, connectHttp2 } from '../support/http2-client.js';
import { freePort } from '../support/listening.js';
import { runNginx } from '../support/nginx.js';
import { runNghttpd } from '../support/nghttpd.js';
import { startProxyProcess, type ConfigTree } from '../support/proxy-process.js';
import { startUpstreamServer } from '../support/upstream-server.js';
import { tempDir } from '../support/temp-dir.js';
import { until } from '../support/until.js';
import { relayNames, startRelay } from './relays.js';

t.setTimeout(240_000);

const permissions = ['orders:write'];
const orders = { subjects: ['checkout'], permissions, idempotency: { mode: 'none', because: 'a test' } };

/** Beside those of `shop.v1`. */
const plainRoutes: readonly ConfigTree[] = [
  { name: 'read', methods: ['GET', 'HEAD'], path: '/orders/{id}', subjects: ['checkout'], permissions },
  { name: 'write', methods: ['POST'], path: '/orders/{id}', max_body: '4MiB', ...orders },
];

for (const name of relayNames) {
  for (const isTls of [false, true]) {
    t.test(`${name} as the upstream, ${isTls ? 'over TLS' : 'with prior knowledge'}`, async (t) => {
      const files = certificates(t);
      const [service, receiver] = [await startNodeService(t), await startUpstreamServer(t)];
      const behind = { http2: { port: service.port }, http1: { port: receiver.port } };
      const port = await startRelay(t, name, isTls ? { ...behind, tls: files.server } : behind);
      const { routes, ...rest } = configOf(port);
      const tls = { url: `https://localhost:${String(port)}`, ca_file: files.ca.certFile };
      const upstream = { ...(isTls ? tls : { url: `http://127.0.0.1:${String(port)}` }), http2: true };
      const proxy = await startProxyProcess(t, {
        config: { ...rest, upstream, routes: [...(routes as ConfigTree[]), ...plainRoutes] },
      });
      const authorization = String(proxy.authorization({ permissions }).Authorization);

      const caller = createCaller(t, proxy.port, authorization);
      const metadata = { 'x-text': 'a text', 'x-data-bin': allBytes };
      const unary = await caller.unary(`${prefix}Unary`, Buffer.alloc(500_000, 'o'), { metadata });
      t.equal(unary.status.code, status.OK);
      t.equal(unary.messages[0]?.length, 500_000);
      t.same(unary.initial?.get('x-initial-bin'), [allBytes]);
      t.same(unary.status.metadata.get('x-trailing-bin'), [allBytes]);
      t.same(unary.status.metadata.get('x-seen-subject'), ['checkout']);
      const collected = await caller.collect(`${prefix}Collect`, [Buffer.from('1'), Buffer.from('22')]);
      t.same(collected.messages.map(String), ['2:3']);
      const split = await outcomeOf(caller.split(`${prefix}Split`, Buffer.from('1000')));
      t.same([split.status.code, split.messages.length], [status.OK, 1_000]);
      const both = caller.both(`${prefix}Both`);
      const ended = outcomeOf(both);
      both.write(Buffer.from('one'));
      await once(both, 'data');
      both.write(Buffer.from('two'));
      await once(both, 'data');
      both.end();
      t.same((await ended).messages.map(String), ['one', 'two']);
      const { status: failed } = await caller.unary(`${prefix}Fail`, Buffer.from('details'));
      t.same([failed.code, failed.details], [status.FAILED_PRECONDITION, 'half ä and 100%']);
      const waits = caller.split(`${prefix}Ticks`);
      const left = outcomeOf(waits);
      await once(waits, 'data');
      waits.cancel();
      t.equal((await left).status.code, status.CANCELLED);
      await until('the service has noticed', () => service.cancelled() === 1);

      const session = await connectHttp2(t, `http://127.0.0.1:${String(proxy.port)}`);
      const got = await ask(session, { ':path': '/orders/a%20b?c=d', authorization });
      t.equal(got.status, 200);
      t.match(receiver.requests, [{ method: 'GET', target: '/orders/a%20b?c=d' }]);
      t.same(receiver.requests[0]?.field('x-auth-subject'), ['checkout']);
      const head = await ask(session, { ':method': 'HEAD', ':path': '/orders/1', authorization });
      t.same([head.status, head.body.length], [200, 0]);
      for (const size of [0, 1, 70_000, 3_000_000]) {
        const body = Buffer.alloc(size, 'b');
        // Over HTTP/1.1 as well: whatever callers speak, the upstream is asked over HTTP/2.
        const posted = await ask(session, { ':method': 'POST', ':path': '/orders/1', authorization }, body);
        t.equal(posted.status, 200);
        t.ok(receiver.requests.at(-1)?.body.equals(body), `${String(size)} bytes`);
        const headers = { Authorization: authorization };
        t.equal((await proxy.request({ method: 'POST', path: '/orders/1', headers, body })).status, 200);
        t.ok(receiver.requests.at(-1)?.body.equals(body), `${String(size)} bytes over HTTP/1.1`);
      }
      receiver.behave((req, res) => {
        receiver.requests.length = 0;
        res.end('hello');
        req.resume();
      });
      const load = { url: `http://127.0.0.1:${String(proxy.port)}/orders/1`, connections: 4, streams: 10 };
      const loaded = await runH2load({ ...load, requests: 10_000, headers: { Authorization: authorization } });
      // Servers end a connection by GOAWAY after some thousand requests: those under way go on or elsewhere.
      t.match(loaded, { succeeded: 10_000, broken: 0, statuses: [10_000, 0, 0, 0], bodyBytes: 50_000 });
      t.same(await proxy.exposures(), []);
    });
  }
}

for (const isTls of [false, true]) {
  t.test(`nghttpd as the upstream, ${isTls ? 'over TLS' : 'with prior knowledge'}`, async (t) => {
    const files = certificates(t);
    const port = await freePort();
    const dir = tempDir(t);
    writeFileSync(join(dir, 'file'), Buffer.alloc(300_000, 'f'));
    const options = [`--htdocs=${dir}`, '--echo-upload', '--trailer=etag: "1"', '--trailer=x-other: 2'];
    const how = isTls ? [files.server.keyFile, files.server.certFile] : ['--no-tls'];
    await accepting(runNghttpd(t, port, ...options, ...how), port, 'nghttpd');
    const plain = { methods: ['GET'], path: '/file', subjects: ['checkout'], permissions };
    const routes = [
      { name: 'file', ...plain },
      { name: 'missing', ...plain, path: '/missing' },
      { name: 'echo', methods: ['POST'], path: '/echo', max_body: '4MiB', ...orders },
    ];
    const tls = { url: `https://localhost:${String(port)}`, ca_file: files.ca.certFile };
    const upstream = { ...(isTls ? tls : { url: `http://127.0.0.1:${String(port)}` }), http2: true };
    const proxy = await startProxyProcess(t, { config: { listen: { http2: true }, upstream, routes } });
    const authorization = String(proxy.authorization({ permissions }).Authorization);
    const session = await connectHttp2(t, `http://127.0.0.1:${String(proxy.port)}`);
    const got = await ask(session, { ':path': '/file', authorization, te: 'trailers' });
    t.same([got.status, got.body.length, got.code], [200, 300_000, 0]);
    t.same(Object.entries(got.trailers ?? {}), [['etag', '"1"']], 'of the trailers those that may pass');
    t.equal((await ask(session, { ':path': '/file', authorization })).trailers, null, 'where they are asked for');
    t.equal((await ask(session, { ':path': '/missing', authorization })).status, 404);
    for (const size of [1, 70_000, 3_000_000]) {
      const body = Buffer.alloc(size, 'b');
      const echoed = await ask(session, { ':method': 'POST', ':path': '/echo', authorization }, body);
      t.equal(echoed.status, 200);
      t.ok(echoed.body.equals(body), `${String(size)} bytes`);
    }
    const all = await Promise.all(
      Array.from({ length: 100 }, async () => ask(session, { ':path': '/file', authorization })),
    );
    t.ok(all.every((answer) => answer.status === 200 && answer.body.length === 300_000));
  });
}

t.test(
  'requests whose connection nginx ends meanwhile are answered, or refused as not sent; none runs twice',
  async (t) => {
    const receiver = await startUpstreamServer(t);
    const port = await freePort();
    const server = [
      `server { listen 127.0.0.1:${String(port)} http2; keepalive_requests 20;`,
      `location / { proxy_pass http://127.0.0.1:${String(receiver.port)}; proxy_http_version 1.1; } }`,
    ];
    await accepting(runNginx(t, server.join('\n')), port, 'nginx');
    const proxy = await startGrpcProxy(t, port, { routes: plainRoutes });
    const runs = new Map<string, number>();
    receiver.behave((req, res) => {
      runs.set(String(req.url), (runs.get(String(req.url)) ?? 0) + 1);
      receiver.requests.length = 0;
      req.resume().on('end', () => res.end('done'));
    });
    const authorization = String(proxy.authorization({ permissions }).Authorization);
    const sessions = await Promise.all(
      Array.from({ length: 10 }, async () => connectHttp2(t, `http://127.0.0.1:${String(proxy.port)}`)),
    );
    const statuses = new Map<string, number>();
    await Promise.all(
      sessions.map(async (session, number) => {
        for (let i = 0; i < 200; i += 1) {
          const method = i % 2 === 0 ? 'GET' : 'POST';
          const path = `/orders/${String(number)}-${String(i)}`;
          const fields = { ':method': method, ':path': path, authorization };
          statuses.set(path, (await ask(session, fields, method === 'GET' ? null : 'an order')).status);
        }
      }),
    );
    const served = [...statuses].filter(([, answered]) => answered === 200).map(([path]) => path);
    const unsent = [...statuses].filter(([, answered]) => answered === 503);
    t.equal(served.length + unsent.length, 2_000, 'nobody is told that something may have been done');
    t.ok(served.length > 1_600, `${String(served.length)} served`);
    t.same([...runs.keys()].sort(), served.sort(), 'what was not sent did not run');
    t.same(new Set(runs.values()), new Set([1]), 'none of them twice');
  },
);
