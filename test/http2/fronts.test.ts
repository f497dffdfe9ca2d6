/** nginx, HAProxy and Apache that speak HTTP/2 in front of a running `serve`: gRPC and plain requests. */
import { once } from 'node:events';
import { credentials, status } from '@grpc/grpc-js';
import t from 'tap';
import { startGrpcProxy } from '../grpc/deployment.js';
import { allBytes, createCaller, outcomeOf, prefix, startNodeService, type Outcome } from '../grpc/service.js';
import { certificates } from '../support/certificates.js';
import { runH2load } from '../support/h2load.js';
import { ask, connectHttp2 } from '../support/http2-client.js';
import { startProxyProcess } from '../support/proxy-process.js';
import { until } from '../support/until.js';
import { relayNames, startRelay } from './relays.js';

t.setTimeout(240_000);

const permissions = ['orders:write'];
const metadata = { 'x-text': 'a text', 'x-data-bin': allBytes };

function echoOf({ initial, status: { code, metadata: trailing } }: Outcome): object {
  return {
    code,
    initial: [initial?.get('x-initial'), initial?.get('x-initial-bin')],
    trailing: [trailing.get('x-trailing'), trailing.get('x-trailing-bin')],
    subject: trailing.get('x-seen-subject'),
  };
}

const echoed = {
  code: status.OK,
  initial: [['a text'], [allBytes]],
  trailing: [['a text'], [allBytes]],
  subject: ['checkout'],
};

for (const name of relayNames) {
  t.test(`gRPC through ${name}: calls of all kinds, failures, refusals, cancellation`, async (t) => {
    const service = await startNodeService(t);
    const proxy = await startGrpcProxy(t, service.port);
    const port = await startRelay(t, name, { http2: { port: proxy.port } });
    const caller = createCaller(t, port, proxy.authorization({ permissions }).Authorization);

    const unary = await caller.unary(`${prefix}Unary`, Buffer.from('order'), { metadata });
    t.same([unary.messages.map(String), echoOf(unary)], [['order'], echoed]);
    const collected = await caller.collect(`${prefix}Collect`, [Buffer.from('1'), Buffer.from('22')], { metadata });
    t.same([collected.messages.map(String), echoOf(collected)], [['2:3'], echoed]);
    const split = await outcomeOf(caller.split(`${prefix}Split`, Buffer.from('1000'), { metadata }));
    t.same([split.messages.length, echoOf(split)], [1_000, echoed]);
    const both = caller.both(`${prefix}Both`, { metadata });
    const ended = outcomeOf(both);
    let answers = 0;
    both.on('data', () => {
      answers += 1;
      if (answers < 3) both.write(Buffer.from(String(answers)));
      else both.end();
    });
    both.write(Buffer.from('0'));
    const bothWays = await ended;
    t.same([bothWays.messages.map(String), echoOf(bothWays)], [['0', '1', '2'], echoed]);

    const large = Buffer.alloc(900_000, allBytes);
    t.ok((await caller.unary(`${prefix}Unary`, large)).messages[0]?.equals(large));

    const { status: failed } = await caller.unary(`${prefix}Fail`, Buffer.from('details'));
    t.same([failed.code, failed.details], [status.FAILED_PRECONDITION, 'half ä and 100%']);
    t.same(failed.metadata.get('grpc-status-details-bin'), [Buffer.from('details')]);

    const runs = service.runs();
    const { status: stranger } = await createCaller(t, port).unary(`${prefix}Unary`);
    t.equal(stranger.code, status.UNAUTHENTICATED);
    const weak = createCaller(t, port, proxy.authorization({ permissions: ['orders:read'] }).Authorization);
    t.equal((await weak.unary(`${prefix}Unary`)).status.code, status.PERMISSION_DENIED);
    t.equal(service.runs(), runs, 'what was refused did not run');

    const waits = caller.split(`${prefix}Ticks`);
    const left = outcomeOf(waits);
    await once(waits, 'data');
    waits.cancel();
    t.equal((await left).status.code, status.CANCELLED);
    await until('the service has noticed', () => service.cancelled() === 1);
    t.same(await proxy.exposures(), []);
  });

  t.test(`plain requests through ${name}, whose connections carry those of many callers`, async (t) => {
    const proxy = await startProxyProcess(t, { config: { listen: { http2: true } } });
    const port = await startRelay(t, name, { http2: { port: proxy.port } });
    const session = await connectHttp2(t, `http://127.0.0.1:${String(port)}`);
    const authorization = String(proxy.authorization().Authorization);
    const writes = String(proxy.authorization({ permissions: ['orders:write'] }).Authorization);
    const got = await ask(session, { ':path': '/orders/a%20b?c=d', authorization, 'x-auth-subject': 'forged' });
    t.equal(got.status, 200);
    const [received] = proxy.receiver.requests;
    t.equal(received?.target, '/orders/a%20b?c=d');
    t.same(received?.field('x-auth-subject'), ['checkout']);
    t.equal((await ask(session, { ':path': '/orders' })).status, 401);
    t.equal((await ask(session, { ':path': '/nowhere', authorization })).status, 403);
    for (const size of [0, 1, 65_536, 900_000]) {
      const body = Buffer.alloc(size, 'b');
      const posted = await ask(session, { ':path': '/orders', ':method': 'POST', authorization: writes }, body);
      t.equal(posted.status, 200);
      t.ok(proxy.receiver.requests.at(-1)?.body.equals(body), `${String(size)} bytes`);
    }
    const statuses = await Promise.all(
      Array.from({ length: 200 }, async (_none, i) =>
        ask(session, { ':path': '/orders', ...(i % 4 === 0 ? {} : { authorization }) }),
      ),
    );
    t.same(
      statuses.map((answer) => answer.status),
      statuses.map((_answer, i) => (i % 4 === 0 ? 401 : 200)),
      'each has the answer to its own credential',
    );
    const load = { url: `http://127.0.0.1:${String(port)}/orders`, requests: 5_000, connections: 4, streams: 25 };
    const loaded = await runH2load({ ...load, headers: { Authorization: authorization } });
    t.match(loaded, { succeeded: 5_000, broken: 0, statuses: [5_000, 0, 0, 0] });
    t.equal(await proxy.metric('sallyport_connections_ended_total{reason="http2_abuse"}'), 0);
    t.equal(await proxy.metric('sallyport_client_connections_open{protocol="HTTP/1.1"}'), 0);
  });
}

for (const name of ['nginx', 'HAProxy'] as const) {
  t.test(`gRPC over TLS: ${name} shows its certificate, and its callers speak TLS to it`, async (t) => {
    const files = certificates(t);
    const service = await startNodeService(t);
    const tls = {
      cert_file: files.server.certFile,
      key_file: files.server.keyFile,
      client_ca_file: files.ca.certFile,
    };
    const proxy = await startGrpcProxy(t, service.port, { listen: { http2: true, tls } });
    const port = await startRelay(t, name, {
      http2: { port: proxy.port, tls: { ca: files.ca, client: files.client } },
      tls: files.server,
    });
    const { Authorization } = proxy.authorization({ permissions });
    const caller = createCaller(t, port, Authorization, {}, credentials.createSsl(Buffer.from(files.ca.cert)));
    const unary = await caller.unary(`${prefix}Unary`, Buffer.from('order'), { metadata });
    t.same([unary.messages.map(String), echoOf(unary)], [['order'], echoed]);
    const strange = await startRelay(t, name, {
      http2: { port: proxy.port, tls: { ca: files.ca, client: files.stranger } },
      tls: files.server,
    });
    const refused = await createCaller(
      t,
      strange,
      Authorization,
      {},
      credentials.createSsl(Buffer.from(files.ca.cert)),
    ).unary(`${prefix}Unary`);
    t.not(refused.status.code, status.OK, 'with the certificate of a stranger');
    t.equal(service.runs(), 1);
  });
}
