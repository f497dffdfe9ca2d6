/** `listen.grpc_health: answer`: probes of gRPC are answered by the proxy itself. */
import { once } from 'node:events';
import { status } from '@grpc/grpc-js';
import t from 'tap';
import { frameMessage } from '../../src/decision/grpc/messages.js';
import { callFromPython } from '../support/grpcio.js';
import { ask, connectHttp2 } from '../support/http2-client.js';
import { startProxyProcess } from '../support/proxy-process.js';
import { until } from '../support/until.js';
import { configOf, startGrpcProxy } from './deployment.js';
import { createCaller, prefix, startNodeService } from './service.js';

t.setTimeout(120_000);

const check = '/grpc.health.v1.Health/Check';
const listen = { http2: true, grpc_health: 'answer' };
const serving = Buffer.from([8, 1]);
const notServing = Buffer.from([8, 2]);

t.test('probes that show no credential are told whether the proxy is ready, by clients of both kinds', async (t) => {
  const { port, runs } = await startNodeService(t);
  const proxy = await startGrpcProxy(t, port, { listen });
  const probe = createCaller(t, proxy.port);
  const { messages, status: end } = await probe.unary(check);
  t.same([end.code, messages], [status.OK, [serving]]);
  t.match((await probe.unary(check, Buffer.from('\x0a\x06orders'))).status, { code: status.NOT_FOUND });
  t.match((await probe.unary('/grpc.health.v1.Health/Watch')).status, { code: status.UNIMPLEMENTED });
  t.match((await probe.unary(check, Buffer.alloc(513))).status, { code: status.RESOURCE_EXHAUSTED });
  t.match((await probe.unary(`${prefix}Unary`)).status, { code: status.UNAUTHENTICATED }, 'nothing else is open');
  const address = `127.0.0.1:${String(proxy.port)}`;
  const { health } = await callFromPython({ address, authorization: '', steps: ['health'] });
  t.same(health, [serving.toString('hex'), 'NOT_FOUND', 'UNIMPLEMENTED']);
  t.equal(runs(), 0);
  t.same(
    proxy.logs().filter(({ path }) => String(path).startsWith('/grpc.health')),
    [],
    'probes fill no log',
  );
});

t.test('a proxy that is about to stop says that it does not serve, and ends all the same', async (t) => {
  const { port } = await startNodeService(t);
  const proxy = await startGrpcProxy(t, port, { listen, shutdown: { delay: '8s', grace: '5s' } });
  // Probes connect anew each time.
  const told = async (): Promise<Buffer | undefined> => (await createCaller(t, proxy.port).unary(check)).messages[0];
  t.same(await told(), serving);
  proxy.signal('SIGTERM');
  await until('it says so', async () => (await told())?.equals(notServing) === true);
  t.match(await proxy.process.exited, { code: 0 });
});

t.test('a proxy that has no keys says that it does not serve', async (t) => {
  const { port } = await startNodeService(t);
  const config = configOf(port, { listen, issuers: { core: { jwks_url: 'http://127.0.0.1:9/none' } } });
  const proxy = await startProxyProcess(t, { config, ready: false });
  t.same((await createCaller(t, proxy.port).unary(check)).messages, [notServing]);
  t.equal((await proxy.admin('/readyz')).status, 503);
});

t.test('what is no call of gRPC over HTTP/2 is a request like any other', async (t) => {
  const { port } = await startNodeService(t);
  const proxy = await startGrpcProxy(t, port, { listen });
  const session = await connectHttp2(t, `http://127.0.0.1:${String(proxy.port)}`);
  const body = Buffer.from(frameMessage(new Uint8Array()));
  const plain = { ':path': check, ':method': 'POST' };
  t.equal((await ask(session, plain, body)).status, 401, 'no content type');
  t.equal((await ask(session, { ':path': check })).status, 401, 'GET');
  const headers = { 'Content-Type': 'application/grpc' };
  t.equal((await proxy.request({ method: 'POST', path: check, headers, body })).status, 401, 'HTTP/1.1');
  const grpc = { ...plain, 'content-type': 'application/grpc' };
  t.match(await ask(session, grpc), { status: 200, headers: { 'grpc-status': '13' } }, 'no message');
  t.match(await ask(session, { ...grpc, ':scheme': 'ftp' }, body), { headers: { 'grpc-status': '13' } }, 'malformed');
  t.match(await ask(session, grpc, body), { status: 200, trailers: { 'grpc-status': '0' }, code: 0 });
});

t.test('a probe that stops in the middle of its message is ended, and the connection goes on', async (t) => {
  const { port } = await startNodeService(t);
  const proxy = await startGrpcProxy(t, port, { listen: { ...listen, body_idle_timeout: '100ms' } });
  const session = await connectHttp2(t, `http://127.0.0.1:${String(proxy.port)}`);
  const grpc = { ':path': check, ':method': 'POST', 'content-type': 'application/grpc' };
  const stream = session.request(grpc);
  stream.write(Buffer.from([0, 0]));
  const [head] = (await once(stream, 'response')) as [object];
  t.match(head, { 'grpc-status': String(status.DEADLINE_EXCEEDED) });
  stream.destroy();
  t.match(await ask(session, grpc, Buffer.from(frameMessage(new Uint8Array()))), { trailers: { 'grpc-status': '0' } });
});

t.test('a proxy that has no place for another call answers its probes', async (t) => {
  const service = await startNodeService(t);
  const proxy = await startGrpcProxy(t, service.port, { listen: { ...listen, max_in_flight: 2 } });
  const { Authorization } = proxy.authorization({ permissions: ['orders:write'] });
  const caller = createCaller(t, proxy.port, Authorization);
  const waits = [caller.unary(`${prefix}Wait`), caller.unary(`${prefix}Wait`)];
  await until('every place is taken', () => service.waiting() === 2);
  const { status: end } = await caller.unary(`${prefix}Unary`);
  t.equal(end.code, status.UNAVAILABLE, 'no other call has a place');
  for (const probe of [createCaller(t, proxy.port), caller]) {
    t.match(await probe.unary(check), { status: { code: status.OK }, messages: [serving] });
  }
  t.equal(service.runs(), 0);
  service.release();
  for (const { status: ended } of await Promise.all(waits)) t.equal(ended.code, status.OK);
});

t.test('unless it is asked for, the service is one like any other', async (t) => {
  const { port } = await startNodeService(t);
  const proxy = await startGrpcProxy(t, port);
  t.match((await createCaller(t, proxy.port).unary(check)).status, { code: status.UNAUTHENTICATED });
});
