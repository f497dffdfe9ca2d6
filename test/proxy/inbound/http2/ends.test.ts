/** How a request ends, and a connection: by empty frames, late ones, none, and by the end of one side. */
import t from 'tap';
import { certificates } from '../../../support/certificates.js';
import { connect as connectTls } from 'node:tls';
import { once } from 'node:events';
import { connect as connectHttp2 } from 'node:http2';
import { connectFrames, flags, frame, frameTypes, headers, preface, uint32 } from '../../../support/http2-frames.js';
import type { Scope } from '../../../support/scope.js';
import { until } from '../../../support/until.js';
import { startProxy, type Harness, type HarnessOptions } from '../../harness.js';

const start = (t: Scope, options: HarnessOptions = {}): Promise<Harness> =>
  startProxy(t, {
    ...options,
    config: { ...options.config, listen: { http2: true, ...(options.config?.['listen'] as object | undefined) } },
  });

const fieldsOf = (proxy: Harness, method = 'GET', path = '/orders'): readonly string[] => [
  ...[':method', method, ':scheme', 'http', ':path', path, ':authority', 'a'],
  ...['authorization', proxy.authorization().Authorization],
];

const end = (stream: number, text = ''): Buffer => frame(frameTypes.data, flags.endStream, stream, Buffer.from(text));

const statusOf = (block: Buffer): number => (block[0] === 0x88 ? 200 : block[0] === 0x8c ? 400 : 0);

t.test('GET and HEAD whose stream an empty frame ends have no body', async (t) => {
  const proxy = await start(t);
  const client = await connectFrames(t, proxy.port);
  const answerTo = async (stream: number): Promise<number> => {
    const isIt = (sent: { type: number; stream: number }): boolean => sent.type === 1 && sent.stream === stream;
    return statusOf((await client.next('an answer', isIt)).payload);
  };
  // With its head, and in a packet of its own.
  client.write(Buffer.concat([headers(1, fieldsOf(proxy), false), end(1)]));
  t.equal(await answerTo(1), 200);
  client.write(headers(3, [...fieldsOf(proxy), 'content-length', '0'], false));
  client.write(headers(5, fieldsOf(proxy, 'HEAD', '/orders/1'), false));
  await until('both have a place', () => proxy.server.counts().streams === 2);
  t.equal(proxy.receiver.requests.length, 1, 'nothing is sent on before their end');
  client.write(Buffer.concat([frame(frameTypes.data, 0, 3), end(5)]));
  t.equal(await answerTo(5), 200);
  client.write(end(3));
  t.equal(await answerTo(3), 200);
  for (const { field, body } of proxy.receiver.requests) {
    t.same([field('transfer-encoding'), body.length], [[], 0]);
    t.notMatch(field('content-length'), ['1']);
  }
  client.write(Buffer.concat([headers(7, fieldsOf(proxy), false), end(7, 'a')]));
  t.equal(await answerTo(7), 400);
  await until('its place is given back', () => proxy.server.counts().streams === 0, 8_000);
  client.write(Buffer.concat([headers(9, [...fieldsOf(proxy), 'content-length', '1'], false)]));
  t.equal(await answerTo(9), 400, 'at once, where it says that one follows');
  t.equal(proxy.receiver.requests.length, 3);
  // Nobody knows yet, and nobody will.
  client.write(headers(11, fieldsOf(proxy), false));
  await until('it has a place', () => proxy.server.counts().streams > 0);
  client.write(frame(frameTypes.reset, 0, 11, uint32(0)));
  await until('the place is given back', () => proxy.server.counts().streams === 0, 8_000);
  client.write(headers(13, fieldsOf(proxy), false));
  t.equal(await answerTo(13), 400, 'one that is not ended is refused, after a while');
  await until('every place is given back', () => proxy.server.counts().streams === 0, 8_000);
  t.equal(proxy.receiver.requests.length, 3);
  t.equal(proxy.server.counts().inFlight, 0);
});

t.test('a body of GET passes whole where the route allows one, however late it begins', async (t) => {
  const search = {
    name: 'search',
    methods: ['GET'],
    path: '/search',
    subjects: ['checkout'],
    permissions: ['orders:read'],
    body: 'allow',
  };
  const proxy = await start(t, { config: { routes: [search] } });
  const client = await connectFrames(t, proxy.port);
  client.write(headers(1, fieldsOf(proxy, 'GET', '/search'), false));
  await until('it has a place', () => proxy.server.counts().streams === 1);
  client.write(frame(frameTypes.data, 0, 1, Buffer.from('the ')));
  await until('it is sent on', () => proxy.receiver.requests.length === 1);
  client.write(end(1, 'body'));
  await client.next('the answer', ({ type, flags: set }) => type === frameTypes.data && (set & flags.endStream) !== 0);
  t.equal(proxy.receiver.requests[0]?.body.toString(), 'the body');
  t.ok(proxy.receiver.requests[0]?.complete);
});

t.test('a caller that ends its side of the connection has left: what it asked for is broken off', async (t) => {
  const files = certificates(t);
  const tls = { cert: files.server.cert, key: files.server.key, clientCa: null, clientAuth: 'require' as const };
  const listen = { tls: { cert_file: '/tls/tls.crt', key_file: '/tls/tls.key' } };
  for (const isTls of [false, true]) {
    const proxy = await start(t, isTls ? { config: { listen }, tls } : {});
    proxy.receiver.behave((_req, res) => res.write('it goes on'));
    const hello = Buffer.concat([preface, frame(frameTypes.settings, 0, 0), headers(1, fieldsOf(proxy))]);
    if (isTls) {
      const ca = files.ca.cert;
      const options = { port: proxy.port, host: '127.0.0.1', servername: 'localhost', ca, ALPNProtocols: ['h2'] };
      const socket = connectTls(options);
      t.teardown(() => socket.destroy());
      let got = '';
      socket
        .on('error', () => undefined)
        .setEncoding('latin1')
        .on('data', (text: string) => {
          got += text;
        });
      await once(socket, 'secureConnect');
      socket.write(hello);
      await until('some of the response came', () => got.includes('it goes on'));
      socket.end();
    } else {
      const client = await connectFrames(t, proxy.port);
      client.write(headers(1, fieldsOf(proxy)));
      await client.next('some of the response', ({ type }) => type === frameTypes.data);
      client.socket.end();
    }
    // Sooner than a silent caller is asked whether it is there.
    await until('the receiver is told', () => proxy.receiver.open() === 0, 8_000);
    await until('nothing is held', () => proxy.server.counts().connections === 0, 8_000);
    t.equal(proxy.server.counts().inFlight, 0);
    t.match(proxy.records, [{ status: 200, reason: 'caller_gone' }]);
  }
});

for (const status of [413, 204]) {
  t.test(`${String(status)} before the body came: the place is had until the rest had a moment to come`, async (t) => {
    const proxy = await start(t);
    proxy.receiver.behave((_req, res) => res.writeHead(status).end());
    const client = connectHttp2(`http://127.0.0.1:${String(proxy.port)}`);
    t.teardown(() => client.destroy());
    const headers = { ...proxy.authorization(), 'content-length': 900_000 };
    const stream = client.request({ ':method': 'POST', ':path': '/orders', ...headers });
    // More than is held for an upstream, and never its end.
    stream.on('error', () => undefined).write(Buffer.alloc(500_000));
    const [answer] = (await once(stream, 'response')) as [{ ':status'?: number }];
    t.equal(answer[':status'], status);
    stream.resume();
    await until('its place is given back', () => proxy.server.counts().streams === 0, 10_000);
  });
}

t.test(
  'the last id that a caller has for its streams is as good as any other, and a shutdown ends its connection',
  async (t) => {
    const proxy = await start(t);
    const lastId = 2 ** 31 - 1;
    const client = await connectFrames(t, proxy.port);
    client.write(headers(lastId, fieldsOf(proxy)));
    const { payload } = await client.next('an answer', ({ type, stream }) => type === 1 && stream === lastId);
    t.equal(statusOf(payload), 200);
    await until('its place is free again', () => proxy.server.counts().streams === 0);
    client.write(frame(frameTypes.ping, 0, 0, Buffer.alloc(8)));
    await client.next('the connection goes on', ({ type, flags: set }) => type === 6 && set === 1);
    await Promise.all([proxy.server.drain(1_000), client.closed]);
  },
);
